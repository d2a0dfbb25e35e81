"""The paged cache under mlx-lm's architectures, next to mlx-lm's own caches with the same weights."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.base import scaled_dot_product_attention

from engine.kv.cache import SequenceCache
from engine.kv.dispatch import dispatch_attention
from engine.kv.layers import can_be_left
from engine.kv.precision import GROUP_SIZES, KV_BITS, PAGE_TOKENS, KVSpec, Tier
from tests.engine.kv.architectures import (
    CASES,
    DECODED,
    EXACT,
    LONG_PROMPT,
    NEARNESS,
    PROMPT,
    Case,
    chunks_of,
    model_of,
    read_by,
    read_by_mlx_lm,
    split,
    worst,
)
from tests.engine.tiny_models import tiny_model

SMALL = KVSpec.parse("4; page=64, warm=1")
"""Under LONG_PROMPT: the first page, cold ones at 4 bits, one warm, one hot and the open one."""

HEAD_DIMS = (64, 72, 80, 96, 112, 128, 256)
KV_HEADS = {"MHA": 4, "GQA": 2, "MQA": 1}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def paged_layers(cache: SequenceCache) -> tuple[int, ...]:
    return tuple(
        number for number, layer in enumerate(cache.layers) if type(layer).__module__.startswith("engine.kv")
    )


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


class LeftError(Exception):
    """Leaves a forward pass."""


def looks_for_a_stop(cache: SequenceCache, tokens: list[int], leave_at: int | None = None) -> int:
    """Read tokens and return how often a stop was looked for; at the given time, leave the pass."""
    seen = 0

    def look(keys: mx.array) -> None:
        nonlocal seen
        seen += 1
        if seen == leave_at:
            raise LeftError

    cache.watch(look)
    with contextlib.suppress(LeftError):
        cache.read(tokens)
    cache.watch(None)
    return seen


@pytest.mark.parametrize("was_cleared", [False, True])
def test_whatever_takes_keys_looks_for_a_stop_first(case: Case, was_cleared: bool) -> None:
    cache = SequenceCache(model_of(case), EXACT)
    if was_cleared:
        cache.clear()
    assert looks_for_a_stop(cache, [1]) == case.looks


def test_only_a_pass_that_can_be_undone_is_one_to_leave(case: Case) -> None:
    assert can_be_left(SequenceCache(model_of(case), EXACT).layers) == case.goes_back


@pytest.mark.parametrize("num_tokens", [1, 30])
@pytest.mark.parametrize("prompt", [[1, 7], PROMPT])
def test_a_pass_left_half_way_is_undone_or_all_is_forgotten(
    case: Case, prompt: list[int], num_tokens: int
) -> None:
    module, chunks = model_of(case), chunks_of(case, prompt)
    passed = list(range(1 if case.one_by_one else num_tokens))
    for leave_at in range(1, case.looks + 1):
        cache = SequenceCache(module, EXACT)
        read_by(cache, chunks)
        tokens = [*cache.tokens]
        assert looks_for_a_stop(cache, passed, leave_at) == leave_at
        cache.realign()
        assert cache.tokens == (tokens if case.goes_back else [])
        before = chunks if case.goes_back else []
        after = [[token] for token in tokens[:10]]
        expected = read_by_mlx_lm(module, before + after)[-10:]
        assert worst(read_by(cache, after), expected) < 1e-4


def test_attention_that_is_wrapped_already_reads_pages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model("llama")
    module = sys.modules[type(model).__module__]

    @functools.wraps(scaled_dot_product_attention)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return scaled_dot_product_attention(*args, **kwargs)

    monkeypatch.setattr(module, "scaled_dot_product_attention", wrapped)
    assert SequenceCache(model, EXACT).note is None
    dispatching = module.scaled_dot_product_attention
    dispatch_attention(model)
    assert module.scaled_dot_product_attention is dispatching


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
