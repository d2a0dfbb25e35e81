"""Sequences whose keys and values left memory and came back, next to the same ones that stayed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import mlx.core as mx
import mlx.nn as nn
import pytest

from engine.kv.blob import Blob, BlobError
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import PAGE_NBYTES, active_nbytes, cache_of, holds_exactly, text
from tests.engine.kv.twins import edited, infos, read_and_written, same_logits, tokens
from tests.engine.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def moved(cache: SequenceCache) -> SequenceCache:
    """Take the keys and values out and back in."""
    blobs: list[Blob] = []
    cache.move_out(blobs.append)
    cache.move_in(iter(blobs))
    return cache


@pytest.mark.parametrize("live", [read_and_written, edited])
@pytest.mark.parametrize(
    "spec",
    [
        "16; page=64",
        "4; page=64, hot=1, warm=2",
        "k6v3, 1.h0:5; page=64, group=32, hot=0, warm=0",
        "4; page=64, hot=0, warm=1, attend=1, grow=1",
    ],
)
def test_a_sequence_goes_on_as_if_it_had_stayed(spec: str, live: Callable[[SequenceCache], None]) -> None:
    module = tiny_model("llama", sharp=True)
    stayed, gone = (SequenceCache(module, KVSpec.parse(spec)) for _ in range(2))
    for cache in (stayed, gone):
        live(cache)
    moved(gone)
    assert infos(gone) == infos(stayed)
    assert gone.tokens == stayed.tokens
    following = [[token] for token in tokens(0, 150)] + [tokens(150, 250)]
    assert same_logits(stayed, gone, following)  # long enough for pages to be sealed, lowered and sampled
    assert infos(gone) == infos(stayed)


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16])
def test_models_in_16_bits_go_on_as_if_they_had_stayed(dtype: mx.Dtype) -> None:
    module = tiny_model("llama", sharp=True)
    module.set_dtype(dtype)
    stayed, gone = (
        SequenceCache(module, KVSpec.parse("4, 1:k8v3; page=64, hot=0, warm=1")) for _ in range(2)
    )
    for cache in (stayed, gone):
        read_and_written(cache)
    moved(gone)
    assert same_logits(stayed, gone, [[token] for token in tokens(0, 80)] + [tokens(80, 150)])


@pytest.mark.parametrize("num_tokens", [0, 1, 63, 64, 65, 128])
def test_any_length_comes_back(num_tokens: int) -> None:
    cache = moved(cache_of("16; page=64", num_tokens))
    assert holds_exactly(cache, text(num_tokens))
    cache.read([500])
    expected = text(num_tokens)
    expected.append([500])
    assert holds_exactly(cache, expected)


def test_a_step_that_was_queued_but_never_told_is_not_kept() -> None:
    cache = cache_of("16; page=64", 70)
    cache._module(mx.array([[99]]), cache=cache.layers)
    assert holds_exactly(moved(cache), text(70))


def test_a_page_that_is_read_in_two_places_is_one_page_again() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 200)
    cache.drop(70, 110)
    cache.splice(70, range(300, 320))
    distinct = len({page.number for page in cache.pages()})
    assert len(cache.pages()) == distinct + 1
    blobs: list[Blob] = []
    cache.move_out(blobs.append)
    assert len(blobs) == distinct + 1  # and the open tokens
    cache.move_in(iter(blobs))
    assert len(cache.pages()) == distinct + 1 == len({page.number for page in cache.pages()}) + 1


def test_a_sequence_that_shares_pages_leaves_them_to_the_other() -> None:
    cache = cache_of("16; page=64", 150)
    fork = cache.fork()
    blobs: list[Blob] = []
    cache.move_out(blobs.append)
    assert holds_exactly(fork, text(150))
    fork.close()
    cache.move_in(iter(blobs))
    assert holds_exactly(cache, text(150))


def test_memory_is_given_back_while_they_are_outside() -> None:
    moved(cache_of("4; page=64", 1)).close()
    baseline = active_nbytes()
    cache = cache_of("4; page=64, hot=1, warm=2, attend=1", 1000)
    for token in tokens(0, 40):
        cache.read([token])
    held, blobs = active_nbytes() - baseline, []
    cache.move_out(blobs.append)
    assert active_nbytes() - baseline < 0.02 * held
    assert cache.nbytes < 0.02 * held
    assert sum(map(len, blobs)) < 1.1 * held
    cache.move_in(iter(blobs))
    assert active_nbytes() - baseline <= 1.05 * held


def test_moving_takes_about_a_page_of_memory_beside_the_sequence() -> None:
    """Coming back, also a copy of what one layer has of keys or values, as whenever these grow."""
    cache = cache_of("16; page=64", 30 * 64)
    page_nbytes = PAGE_NBYTES[16]
    blobs: list[bytes] = []
    mx.reset_peak_memory()
    active = active_nbytes()
    tracemalloc.start()

    def write(blob: Blob) -> None:
        blobs.append(bytes(blob))
        assert tracemalloc.get_traced_memory()[1] - len(blobs) * len(blobs[0]) < 2.5 * page_nbytes
        tracemalloc.reset_peak()

    cache.move_out(write)
    tracemalloc.stop()
    assert mx.get_peak_memory() - active < page_nbytes
    mx.reset_peak_memory()
    cache.move_in(iter(blobs))
    assert mx.get_peak_memory() - active_nbytes() < cache.nbytes // 4 + page_nbytes


def test_a_sequence_is_whole_when_writing_fails() -> None:
    cache = cache_of("16; page=64", 200)
    blobs: list[Blob] = []

    def write(blob: Blob) -> None:
        if len(blobs) == 2:
            raise OSError
        blobs.append(blob)

    with pytest.raises(OSError):
        cache.move_out(write)
    assert not cache.is_outside
    assert holds_exactly(cache, text(200))


@pytest.mark.parametrize("num_blobs", [0, 2, 3])
def test_a_sequence_that_came_back_in_part_only_is_still_outside(num_blobs: int) -> None:
    cache = cache_of("16; page=64", 200)
    blobs: list[Blob] = []
    cache.move_out(blobs.append)
    outside = active_nbytes()

    def half_way() -> Iterator[Blob]:
        yield from blobs[:num_blobs]
        raise OSError

    with pytest.raises(OSError):
        cache.move_in(half_way())
    assert cache.is_outside
    assert active_nbytes() == outside
    cache.move_in(iter(blobs))
    assert holds_exactly(cache, text(200))


def test_free_buffers_do_not_pile_up_while_a_sequence_comes_back() -> None:
    cache = cache_of("16; page=64", 60 * 64)
    blobs: list[Blob] = []
    cache.move_out(blobs.append)
    most = 0

    def watched() -> Iterator[Blob]:
        nonlocal most
        for blob in blobs:
            most = max(most, mx.get_cache_memory())
            yield blob

    cache.move_in(watched())
    assert most < 2 * PAGE_NBYTES[16]


def test_blobs_of_another_order_or_model_are_refused() -> None:
    cache, other = cache_of("16; page=64", 100), cache_of("8; page=64, group=32", 100)
    own: list[Blob] = []
    foreign: list[Blob] = []
    cache.move_out(own.append)
    other.move_out(foreign.append)
    for blobs in (own[::-1], foreign):
        with pytest.raises(BlobError):
            cache.move_in(iter(blobs))
        assert cache.is_outside


@pytest.mark.parametrize("architecture", ["gemma3_text", "mamba2", "deepseek_v3"])
def test_sequences_with_layers_that_are_not_paged_cannot_move(architecture: str) -> None:
    module: nn.Module = tiny_model(architecture)
    assert not SequenceCache(module, KVSpec.parse("4; page=64")).can_move
