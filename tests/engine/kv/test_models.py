"""The paged cache under mlx-lm's architectures, next to mlx-lm's own caches with the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from engine.kv.cache import SequenceCache
from engine.kv.precision import GROUP_SIZES, KV_BITS, PAGE_TOKENS, KVSpec, Tier
from tests.engine.tiny_models import tiny_model

DECODED = [1] * 10
PROMPT = [1, 63, 64, 22]
"""Chunks that end inside a page, at its end and after it, and are longer than the windows."""
LONG_PROMPT = [1, 63, 64, 150, 122]
EXACT = KVSpec.parse("16; page=64")
SMALL = KVSpec.parse("4; page=64, warm=1")
"""Under LONG_PROMPT: the first page, cold ones at 4 bits, one warm, one hot and the open one."""

NEARNESS = 0.06
"""Between what 4 and what 3 bits make of the tiny llama's logits, 0.04 and 0.08."""


@dataclass(frozen=True)
class Case:
    """What is expected of an architecture.

    Attributes:
        architecture: its name in `tiny_model`.
        paged: the layers whose keys and values are in pages.
        note: what the sentence about the other layers says; none where there is nothing to say.
        unsaid: what would be wrong in it.
        overrides: settings of the tiny model.
        one_by_one: whether mlx-lm itself cannot read chunks of several tokens.
        nearness: the largest error at 4 bits, as a part of the logits' deviation.
    """

    architecture: str
    paged: tuple[int, ...] = (0, 1)
    note: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)
    one_by_one: bool = False
    nearness: float = NEARNESS


CASES = {
    "llama": Case("llama"),
    "mistral": Case("mistral"),
    "qwen2": Case("qwen2"),
    "qwen3": Case("qwen3"),
    "phi3": Case("phi3"),
    # gemma's norms double what is normed, so its attention is sharper than the others'.
    "gemma2": Case("gemma2", note=("cannot read pages where they lie", "slower"), nearness=0.35),
    # mlx-lm 0.32.2 adds the mask's name, "causal", to olmo's scores, so it fails on a chunk of two tokens and
    # nothing is to be found out about its attention.
    "olmo": Case(
        "olmo", paged=(), note=("mlx-lm", "a kind of their own"), unsaid=("sliding",), one_by_one=True
    ),
    "llama with windows": Case(
        "llama",
        paged=(1,),
        note=("1 of 2 layers", "sliding-window", "mlx-lm"),
        overrides={"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16},
    ),
    "gemma3": Case("gemma3", paged=(1,), note=("1 of 2 layers", "sliding-window", "mlx-lm"), nearness=0.12),
    "gemma3_text": Case(
        "gemma3_text", paged=(1,), note=("1 of 2 layers", "sliding-window", "mlx-lm"), nearness=0.1
    ),
    "gpt_oss": Case("gpt_oss", paged=(0,), note=("1 of 2 layers", "sliding-window", "mlx-lm")),
    "cohere2": Case("cohere2", paged=(1,), note=("1 of 2 layers", "sliding-window", "mlx-lm")),
    "llama4": Case("llama4", paged=(3,), note=("3 of 4 layers", "chunked", "mlx-lm")),
    "qwen3_next": Case("qwen3_next", paged=(1,), note=("1 of 2 layers", "recurrent", "mlx-lm")),
    "lfm2": Case(
        "lfm2",
        paged=(1,),
        note=("1 of 2 layers", "recurrent", "mlx-lm"),
        overrides={"block_dim": 128},
    ),
    "granitemoehybrid": Case("granitemoehybrid", paged=(1,), note=("1 of 2 layers", "recurrent", "mlx-lm")),
    "deepseek_v3": Case("deepseek_v3", paged=(), note=("latent", "mlx-lm"), unsaid=("sliding", "recurrent")),
    "mamba2": Case("mamba2", paged=(), note=("recurrent", "mlx-lm"), unsaid=("latent",)),
}
TWO_KV_HEADS = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
HEAD_DIMS = (64, 72, 80, 96, 112, 128, 256)
KV_HEADS = {"MHA": 4, "GQA": 2, "MQA": 1}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def model_of(case: Case) -> nn.Module:
    return tiny_model(case.architecture, sharp=True, **TWO_KV_HEADS | case.overrides)


def chunks_of(case: Case, prompt: list[int]) -> list[list[int]]:
    return split([1] * sum(prompt) if case.one_by_one else prompt)


def split(prompt: list[int]) -> list[list[int]]:
    """Return a prompt of random tokens in chunks of these lengths, and those decoded after it one by one."""
    lengths = prompt + DECODED
    tokens = np.random.default_rng(7).integers(0, 100, sum(lengths))
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def read_by_mlx_lm(module: nn.Module, chunks: Sequence[list[int]]) -> mx.array:
    """Return the logits after each token, [tokens, vocabulary], with mlx-lm's own caches."""
    layers, logits = make_prompt_cache(module), []
    for tokens in chunks:
        logits.append(module(mx.array([tokens]), cache=layers)[0])
        mx.eval(logits[-1], [layer.state for layer in layers if not layer.empty()])
    return mx.concatenate(logits)


def read_by(cache: SequenceCache, chunks: Sequence[list[int]]) -> mx.array:
    """Return the logits after each token, [tokens, vocabulary], with Octavo's cache."""
    return mx.concatenate([cache.read(tokens)[0] for tokens in chunks])


def paged_layers(cache: SequenceCache) -> tuple[int, ...]:
    return tuple(
        number for number, layer in enumerate(cache.layers) if type(layer).__module__.startswith("engine.kv")
    )


def worst(logits: mx.array, expected: mx.array) -> float:
    """Return the largest difference as a part of the largest logit."""
    return float(mx.max(mx.abs(logits - expected)).item() / mx.max(mx.abs(expected)).item())


def deviation(logits: mx.array, expected: mx.array) -> float:
    """Return the root mean square of the differences as a part of the logits' standard deviation.

    Of the last 20 tokens of the prompt or of those decoded, whichever is more: the former read a dense copy
    of the pages, the latter the pages themselves.
    """
    decoded = len(DECODED)
    parts = [slice(-decoded - 20, -decoded), slice(-decoded, None)]
    errors = [mx.sqrt(mx.mean(mx.square(logits[part] - expected[part]))) for part in parts]
    return float((mx.maximum(*errors) / mx.std(expected)).item())


def cold_tokens(cache: SequenceCache) -> int:
    return sum(page.num_tokens for page in cache.pages() if page.tier is Tier.COLD)


def test_mlx_lm_gives_the_same_logits_for_chunks_and_for_single_tokens(case: Case) -> None:
    module = model_of(case)
    chunks = chunks_of(case, PROMPT)
    single = [[token] for chunk in chunks for token in chunk]
    assert worst(read_by_mlx_lm(module, chunks), read_by_mlx_lm(module, single)) < 1e-4


def test_at_16_bits_the_logits_are_those_of_mlx_lm(case: Case) -> None:
    module = model_of(case)
    cache, chunks = SequenceCache(module, EXACT), chunks_of(case, PROMPT)
    assert worst(read_by(cache, chunks), read_by_mlx_lm(module, chunks)) < 1e-4


def test_full_attention_layers_are_paged_and_a_note_is_about_the_others(case: Case) -> None:
    cache = SequenceCache(model_of(case), SMALL)
    assert paged_layers(cache) == case.paged
    assert cache.can_edit == (len(case.paged) == len(cache.layers))
    if not case.note:
        assert cache.note is None
        return
    assert cache.note is not None
    assert cache.note.endswith(".")
    assert [words for words in case.note if words not in cache.note] == []
    assert [words for words in case.unsaid if words in cache.note] == []


def test_at_4_bits_the_logits_are_near_those_at_16(case: Case) -> None:
    module = model_of(case)
    cache, chunks = SequenceCache(module, SMALL), chunks_of(case, LONG_PROMPT)
    error = deviation(read_by(cache, chunks), read_by_mlx_lm(module, chunks))
    if case.paged:
        assert cold_tokens(cache) >= 128
        assert 1e-3 < error < case.nearness
    else:
        assert error < 1e-4


@pytest.mark.parametrize("length", [155, 100, 20])
def test_truncating_is_exact_or_refused(case: Case, length: int) -> None:
    module = model_of(case)
    cache, chunks = SequenceCache(module, EXACT), chunks_of(case, PROMPT)
    read_by(cache, chunks)
    tokens = [*cache.tokens]
    kept = tokens[:length] if cache.truncate(length) else tokens
    assert cache.tokens == kept
    before = [[token] for token in kept] if case.one_by_one else [kept]
    after = [[token] for token in tokens[:10]]
    expected = read_by_mlx_lm(module, before + after)[-10:]
    assert worst(read_by(cache, after), expected) < 1e-4


def llama(kv_heads: str, head_dim: int = 32) -> nn.Module:
    shape = {"num_attention_heads": 4, "num_key_value_heads": KV_HEADS[kv_heads], "head_dim": head_dim}
    return tiny_model("llama", sharp=True, **shape)


def error_at(module: nn.Module, spec: str, chunks: Sequence[list[int]]) -> float:
    """Return how far the last tokens' logits are from mlx-lm's, having seen that old pages are cold."""
    cache = SequenceCache(module, KVSpec.parse(spec))
    logits, expected = read_by(cache, chunks), read_by_mlx_lm(module, chunks)
    assert cache.note is None
    assert cold_tokens(cache) >= cache.spec.page_tokens
    return deviation(logits, expected)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("kv_heads", KV_HEADS)
def test_heads_of_every_size_and_number_are_exact_at_16_bits_and_near_at_4(
    kv_heads: str, head_dim: int
) -> None:
    module, chunks = llama(kv_heads, head_dim), split(LONG_PROMPT)
    exact = SequenceCache(module, EXACT)
    assert worst(read_by(exact, chunks), read_by_mlx_lm(module, chunks)) < 1e-4
    assert 1e-3 < error_at(module, str(SMALL), chunks) < NEARNESS


@pytest.mark.parametrize(
    "page_tokens", [*PAGE_TOKENS[:-1], pytest.param(PAGE_TOKENS[-1], marks=pytest.mark.slow)]
)
def test_pages_of_every_size_are_exact_at_16_bits_and_near_at_4(page_tokens: int) -> None:
    module = llama("GQA")
    chunks = split([1, page_tokens - 1, page_tokens, 3 * page_tokens // 2, page_tokens // 2 - 5])
    exact = SequenceCache(module, KVSpec.parse(f"16; page={page_tokens}"))
    assert worst(read_by(exact, chunks), read_by_mlx_lm(module, chunks)) < 1e-4
    for group_size in (size for size in GROUP_SIZES if size <= page_tokens):
        spec = f"4; page={page_tokens}, group={group_size}, warm=1"
        assert 1e-3 < error_at(module, spec, chunks) < NEARNESS


@pytest.mark.parametrize("head_dim", [64, 80])
def test_each_bit_brings_the_logits_nearer(head_dim: int) -> None:
    module, chunks = llama("GQA", head_dim), split(LONG_PROMPT)
    errors = [error_at(module, f"{bits}; page=64, warm=0", chunks) for bits in KV_BITS]
    assert errors[0] < 1e-4
    assert min(worse / error for error, worse in pairwise(errors)) > 1.5
