from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.backend import Backend
from engine.bench.trim.watched import CHUNK_TOKENS, WatchedEngine
from engine.cancel import CancelToken
from engine.engine import GenerationRequest
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from tests.engine.small_engine import write_small_model

SIXTEEN = KVSpec.parse("16; page=64, group=32")
ONE_TOKEN = SamplingParams(temperature=0, max_tokens=1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> WatchedEngine:
    path: Path = write_small_model(tmp_path_factory.mktemp("model"))
    engine = WatchedEngine(backend)
    engine.load(path, SIXTEEN, cancel=CancelToken(), on_progress=lambda progress: None)
    question = ChatMessage("user", "What follows is read. " * 8)
    list(engine.generate(GenerationRequest((question,), ONE_TOKEN, SIXTEEN), CancelToken()))
    return engine


def dense_perplexity(engine: WatchedEngine, prompt: list[int], continuation: list[int]) -> float:
    """Return it from one pass over all tokens without a cache."""
    logits = engine.model.module(mx.array([prompt + continuation]))[0].astype(mx.float32)
    rows = np.array(logits)[len(prompt) : -1].astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    logprobs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    chosen = logprobs[np.arange(len(continuation) - 1), continuation[1:]]
    return float(np.exp(-chosen.mean()))


def test_perplexity_is_that_of_a_pass_without_a_cache(engine: WatchedEngine) -> None:
    prompt = list(engine.context.cache.tokens)
    continuation = [number % 200 for number in range(CHUNK_TOKENS + 20)]
    expected = dense_perplexity(engine, prompt, continuation)
    assert engine.perplexity(prompt, continuation) == pytest.approx(expected, rel=1e-3)


def test_what_a_longer_prompt_has_more_is_read_first(engine: WatchedEngine) -> None:
    prompt = [*engine.context.cache.tokens, *range(50, 150)]
    continuation = list(range(20, 40))
    expected = dense_perplexity(engine, prompt, continuation)
    assert engine.perplexity(prompt, continuation) == pytest.approx(expected, rel=1e-3)


def test_the_conversation_stays_as_it_was(engine: WatchedEngine) -> None:
    before, nbytes = list(engine.context.cache.tokens), engine.context.cache.nbytes
    engine.perplexity([*before, 1, 2, 3], list(range(80)))
    assert engine.context.cache.tokens == before
    assert engine.context.cache.nbytes == nbytes
