"""One measured generation, in a process of its own: by Octavo's engine or by mlx-lm as installed.

MLX is imported where a side is prepared, since Octavo loads a BLAS before it and mlx-lm does not.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.bench.loading import load_for_bench, package_versions
from engine.bench.prose import TEXT

WARM_UP_TOKENS = 4


class Side(enum.Enum):
    """Who generates."""

    OCTAVO = "Octavo"
    MLX_LM = "mlx-lm"


@dataclass(frozen=True)
class Measurement:
    """Figures of one generation.

    Attributes:
        side: who generated.
        prefill_tps: tokens of the prompt per second until the first token of the answer.
        decode_tps: tokens per second after the first one.
        setup: what it ran on, in words: device, BLAS, weights.
        versions: of the packages that computed, in words.
    """

    side: Side
    prefill_tps: float
    decode_tps: float
    setup: str
    versions: str


@dataclass(frozen=True)
class _Generator:
    """A loaded model: `stream` takes a prompt and a number of tokens and yields once for each token."""

    stream: Callable[[list[int], int], Iterator[object]]
    tokenizer: Any
    setup: str


def measure(side: Side, path: Path, *, prompt_tokens: int, answer_tokens: int) -> Measurement:
    """Load the model at `path`, warm up with a few tokens, then measure one generation.

    A model never ends before `answer_tokens`, at least 2; for mlx-lm `path` is an MLX folder.
    """
    generator = _load_octavo(path) if side is Side.OCTAVO else _load_mlx_lm(path)
    prompt = _prompt(generator.tokenizer, prompt_tokens)
    for _ in generator.stream(prompt[:WARM_UP_TOKENS], WARM_UP_TOKENS):
        pass
    started_s = time.perf_counter()
    arrivals_s = [time.perf_counter() for _ in generator.stream(prompt, answer_tokens)]
    return Measurement(
        side=side,
        prefill_tps=prompt_tokens / (arrivals_s[0] - started_s),
        decode_tps=(answer_tokens - 1) / (arrivals_s[answer_tokens - 1] - arrivals_s[0]),
        setup=generator.setup,
        versions=package_versions(),
    )


def _prompt(tokenizer: Any, num_tokens: int) -> list[int]:
    """Return the first tokens of a text, repeated where it is too short."""
    tokens: list[int] = tokenizer.encode(TEXT, add_special_tokens=False)
    return (tokens * (num_tokens // len(tokens) + 1))[:num_tokens]


def _load_octavo(path: Path) -> _Generator:
    model, setup = load_for_bench(path)

    from engine.cancel import CancelToken
    from engine.events import Token
    from engine.generate import Generation
    from engine.kv.cache import SequenceCache
    from engine.kv.precision import KVSpec
    from engine.sampling import SamplingParams

    def stream(prompt: list[int], num_tokens: int) -> Iterator[object]:
        generation = Generation(
            model,
            SequenceCache(model.module, KVSpec.parse("16")),
            prompt,
            SamplingParams(temperature=0, repetition_penalty=1, max_tokens=num_tokens),
            limit_tokens=len(prompt) + num_tokens,
            cancel=CancelToken(),
        )
        return (event for event in generation.events() if isinstance(event, Token))

    return _Generator(stream, model.tokenizer, setup)


def _load_mlx_lm(path: Path) -> _Generator:
    import mlx.core as mx
    import mlx_lm

    model, tokenizer = mlx_lm.load(str(path))[:2]
    tokenizer.eos_token_ids = ()
    device = "CPU" if mx.default_device() == mx.Device(mx.cpu) else "GPU"

    def stream(prompt: list[int], num_tokens: int) -> Iterator[object]:
        return iter(mlx_lm.stream_generate(model, tokenizer, prompt, max_tokens=num_tokens))

    return _Generator(stream, tokenizer, f"{device}, BLAS of MLX, weights as stored")
