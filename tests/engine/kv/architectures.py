"""mlx-lm's architectures as tiny models, what is expected of their caches, and their logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from tests.engine.tiny_models import tiny_model

DECODED = [1] * 10
PROMPT = [1, 63, 64, 22]
"""Chunks that end inside a page, at its end and after it, and are longer than the windows."""
LONG_PROMPT = [1, 63, 64, 150, 122]
EXACT = KVSpec.parse("16; page=64")

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
        looks: how many of its caches look for a stop in a forward pass.
        goes_back: whether a pass that was left half-way can be undone, behind more tokens than a window has.
    """

    architecture: str
    paged: tuple[int, ...] = (0, 1)
    note: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)
    one_by_one: bool = False
    nearness: float = NEARNESS
    looks: int = 2
    goes_back: bool = True


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
        goes_back=False,
    ),
    "gemma3": Case(
        "gemma3",
        paged=(1,),
        note=("1 of 2 layers", "sliding-window", "mlx-lm"),
        nearness=0.12,
        goes_back=False,
    ),
    "gemma3_text": Case(
        "gemma3_text",
        paged=(1,),
        note=("1 of 2 layers", "sliding-window", "mlx-lm"),
        nearness=0.1,
        goes_back=False,
    ),
    "gpt_oss": Case(
        "gpt_oss", paged=(0,), note=("1 of 2 layers", "sliding-window", "mlx-lm"), goes_back=False
    ),
    "cohere2": Case(
        "cohere2", paged=(1,), note=("1 of 2 layers", "sliding-window", "mlx-lm"), goes_back=False
    ),
    "llama4": Case("llama4", paged=(3,), note=("3 of 4 layers", "chunked", "mlx-lm"), looks=4),
    "qwen3_next": Case(
        "qwen3_next", paged=(1,), note=("1 of 2 layers", "recurrent", "mlx-lm"), looks=1, goes_back=False
    ),
    "lfm2": Case(
        "lfm2",
        paged=(1,),
        note=("1 of 2 layers", "recurrent", "mlx-lm"),
        overrides={"block_dim": 128},
        looks=1,
        goes_back=False,
    ),
    "granitemoehybrid": Case(
        "granitemoehybrid",
        paged=(1,),
        note=("1 of 2 layers", "recurrent", "mlx-lm"),
        looks=1,
        goes_back=False,
    ),
    "deepseek_v3": Case("deepseek_v3", paged=(), note=("latent", "mlx-lm"), unsaid=("sliding", "recurrent")),
    "longcat_flash": Case("longcat_flash", paged=(), note=("a kind of their own", "mlx-lm"), looks=4),
    "falcon_h1": Case("falcon_h1", paged=(), note=("a kind of their own", "mlx-lm"), goes_back=False),
    "mamba2": Case(
        "mamba2", paged=(), note=("recurrent", "mlx-lm"), unsaid=("latent",), looks=0, goes_back=False
    ),
}
TWO_KV_HEADS = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}


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


def worst(logits: mx.array, expected: mx.array) -> float:
    """Return the largest difference as a part of the largest logit."""
    return float(mx.max(mx.abs(logits - expected)).item() / mx.max(mx.abs(expected)).item())
