"""Where the memory of a cache goes, and when it comes back."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Iterator

import mlx.core as mx
import numpy as np
import pytest

from engine.kv.cache import SequenceCache
from engine.kv.heat import SAMPLE_EVERY_TOKENS
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import (
    LAYER_SHAPES,
    PAGE_NBYTES,
    SHAPE,
    active_nbytes,
    cache_of,
    holds_exactly,
    text,
)
from tests.engine.kv.stand_in import stand_in
from tests.engine.tiny_models import tiny_model


@pytest.fixture
def no_cycles_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def busy_cache() -> SequenceCache:
    """Return a cache in which everything has happened that takes memory."""
    cache = cache_of("4, 1.h1:8; page=64, hot=1, warm=1, attend=1", 330)
    for token in range(400, 440):
        cache.read([token])
    fork = cache.fork()
    fork.read(range(500, 600))
    fork.truncate(350)
    fork.close()
    cache.drop(70, 100)
    cache.splice(70, range(600, 620))
    mx.eval(cache.read([1]))
    return cache


@pytest.mark.usefixtures("no_cycles_collected")
@pytest.mark.parametrize("closes", [True, False])
def test_all_memory_is_given_back_in_the_end(closes: bool) -> None:
    busy_cache().close()
    baseline = active_nbytes()
    cache = busy_cache()
    assert active_nbytes() - baseline > 6 * PAGE_NBYTES[4]
    if closes:
        cache.close()
    else:
        del cache
    assert abs(active_nbytes() - baseline) < PAGE_NBYTES[4]


@pytest.mark.usefixtures("no_cycles_collected")
@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "mamba2"])
def test_what_is_forgotten_is_freed_at_once_and_not_when_cycles_are_looked_for(architecture: str) -> None:
    cache = SequenceCache(tiny_model(architecture), KVSpec.parse("4; page=64"))
    cache.read(range(70))
    layers = [weakref.ref(layer) for layer in cache.layers]
    del cache
    assert [layer() for layer in layers] == [None] * len(layers)


@pytest.mark.parametrize("spec", ["16", "8", "4", "k6v3", "2, 1.h1:5"])
def test_pages_take_the_bytes_that_were_promised(spec: str) -> None:
    cache = cache_of(f"{spec}; page=64, hot=0, warm=0", 5 * 64)
    promised = cache.spec.kv_nbytes_per_token(LAYER_SHAPES, activation_nbytes=4) * 5 * 64
    usage = cache.usage()
    assert usage.sealed_nbytes == pytest.approx(promised, rel=0.02)
    assert usage.effective_bits == pytest.approx(8 * promised / (5 * 64 * 512), rel=0.02)
    assert usage.nbytes == cache.nbytes <= 1.25 * promised


@pytest.mark.usefixtures("no_cycles_collected")
def test_the_bytes_that_are_counted_are_those_that_mlx_counts() -> None:
    busy_cache().close()
    baseline = active_nbytes()
    cache = cache_of("4; page=64, hot=1, warm=2, attend=1", 700)
    mx.eval(cache.read([1]))
    assert active_nbytes() - baseline == pytest.approx(cache.nbytes, rel=0.03)


def test_a_long_text_s_memory_is_given_back_to_a_short_one() -> None:
    for spec in ("16; page=64", "4; page=64", "4; page=64, hot=0, warm=0, attend=2"):
        cache, short = cache_of(spec, 2000), cache_of(spec, 30)
        mx.eval(cache.read([5]))
        assert cache.truncate(30)
        assert cache.nbytes <= short.nbytes
        cache.read(range(500, 700))
        mx.eval(cache.read([5]))
        cache.clear()
        assert cache.nbytes == 0
        assert cache.tokens == []


def test_a_branch_shares_all_pages() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 5 * 64 + 10)
    before = active_nbytes()
    fork = cache.fork()
    mx.eval(fork.state)
    open_nbytes = 32 * 512 * 4
    assert active_nbytes() - before <= 1.1 * open_nbytes
    assert [page.references for page in fork.pages()] == [2] * 5
    assert [page.number for page in fork.pages()] == [page.number for page in cache.pages()]


def test_branches_write_to_themselves_alone() -> None:
    cache, expected = cache_of("16; page=64", 140), text(140)
    fork, branch = cache.fork(), text(140)
    for _ in range(3):  # each writes into its copy of the open tokens, then fills pages of its own
        for one, own, start in ((cache, expected, 1000), (fork, branch, 2000)):
            for tokens in ([start], [start + 1], range(start + 2, start + 50)):
                one.read(tokens)
                own.append(tokens)
        assert holds_exactly(cache, expected)
        assert holds_exactly(fork, branch)
    assert [page.references for page in cache.pages()] == [2, 2, 1, 1]


def test_an_aside_leaves_what_it_came_from_bit_for_bit() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 3 * 64 + 20)
    for token in range(40):
        cache.read([token])
    before, tokens = cache.pages(), cache.tokens
    expected = np.array(cache.fork().read([7]))
    aside = cache.fork(is_aside=True)
    aside.truncate(3 * 64 + 4)
    aside.read(range(300, 300 + 4 * 64))
    for token in range(2 * SAMPLE_EVERY_TOKENS):
        aside.read([token])
    aside.press()
    aside.close()
    assert [dataclasses.replace(page, references=1) for page in cache.pages()] == before
    assert cache.tokens == tokens
    assert np.array_equal(np.array(cache.read([7])), expected)


def test_a_branch_outlives_what_it_came_from() -> None:
    cache = cache_of("16; page=64", 200)
    fork = cache.fork()
    cache.close()
    assert holds_exactly(fork, text(200))
    assert [page.references for page in fork.pages()] == [1, 1, 1]
    other = fork.fork()
    del other
    fork.truncate(199)  # what is dropped without being closed is released with the next change
    assert [page.references for page in fork.pages()] == [1, 1, 1]
    assert holds_exactly(fork, text(199))


def test_a_branch_of_a_running_reply_has_what_was_committed() -> None:
    cache = cache_of("16; page=64", 130)
    model = stand_in(SHAPE)
    first = model(mx.array([[131]]), cache=cache.layers)
    second = model(mx.array([[132]]), cache=cache.layers)
    mx.eval(first, second)
    cache.commit([131])
    fork = cache.fork()
    cache.commit([132])
    for one, length in ((fork, 131), (cache, 132)):
        one.read([500])
        expected = text(length)
        expected.append([500])
        assert holds_exactly(one, expected)
