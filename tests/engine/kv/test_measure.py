"""The figures of a cache against counting every block of every page."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters, SpanKind, TextSpan
from engine.kv.precision import KVSpec, Tier
from tests.engine.kv.caches import PAGE_NBYTES, cache_of
from tests.engine.tiny_models import tiny_model

SPANS = (TextSpan(SpanKind.USER, "What is it?", 0, 300),)
COUNTERS = PageCounters(hits=3, spills=2, restores=1, evictions=4)


def blocks(cache: SequenceCache, tier: Tier) -> np.ndarray:
    """Return the bits of the blocks of a tier as they lie in the pages: `[2, blocks]`."""
    pages = [reference.page for reference in cache._table.references if reference.page.tier is tier]
    parts = ([one.bits for page in pages for one in part(page)] for part in (_keys, _values))
    return np.stack([np.concatenate(part) for part in parts])


def _keys(page):  # noqa: ANN001, ANN202
    return page.keys.values()


def _values(page):  # noqa: ANN001, ANN202
    return page.values.values()


def test_effective_bits_are_the_mean_of_all_cold_blocks_when_pages_differ() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 3 * 64)
    cache.apply(KVSpec.parse("0:8, 1.h1:k6v5; page=64, hot=0, warm=0"))
    cache.read(range(500, 500 + 2 * 64))

    usage = cache.usage()

    assert usage.effective == pytest.approx(tuple(blocks(cache, Tier.COLD).mean(axis=1)))
    assert usage.num_below == 3
    assert usage.requested == pytest.approx(((8 + 8 + 16 + 6) / 4, (8 + 8 + 16 + 5) / 4))


def test_bytes_and_pages_are_counted_by_tier_and_shared_pages_once() -> None:
    cache = cache_of("4; page=64, hot=1, warm=2", 6 * 64)
    other = cache.fork()

    usage = other.usage()

    # The first page is kept one tier higher than its age gives.
    assert (usage.hot_pages, usage.warm_pages, usage.cold_pages) == (1, 3, 2)
    assert (usage.hot_nbytes, usage.warm_nbytes, usage.cold_nbytes) == (
        PAGE_NBYTES[16],
        3 * PAGE_NBYTES[8],
        2 * PAGE_NBYTES[4],
    )


def test_a_page_map_says_what_each_page_holds() -> None:
    cache = cache_of("4; page=64, hot=1, warm=2", 6 * 64 + 10)
    cache.pin(2 * 64 + 63, 2 * 64 + 64)
    other = cache.fork()
    other.drop(5, 70)

    page_map = other.page_map(SPANS, COUNTERS)

    kept = [*range(1, 6), *range(71, 6 * 64 + 11)]
    assert [token for page in page_map.pages for token in page.tokens] + [*page_map.open_tokens] == kept
    assert [page.num_tokens for page in page_map.pages] == [5, 58, 64, 64, 64, 64]
    assert [page.first_position for page in page_map.pages] == [64 * number for number in range(6)]
    assert [page.pinned for page in page_map.pages] == [False, False, True, False, False, False]
    assert {page.references for page in page_map.pages} == {2}
    assert (page_map.page_tokens, page_map.next_position) == (64, 6 * 64 + 10)
    assert page_map.is_paged
    assert (page_map.spans, page_map.counters) == (SPANS, COUNTERS)
    assert page_map.attention_pages is None and page_map.caught is None


def test_a_model_with_caches_of_its_own_has_no_pages() -> None:
    cache = SequenceCache(tiny_model("deepseek_v3"), KVSpec.parse("4; page=64"))
    cache.read(range(1, 80))

    page_map = cache.page_map((), COUNTERS)

    assert not page_map.is_paged
    assert (page_map.pages, len(page_map.open_tokens)) == ((), 79)


def test_decoded_tokens_are_counted_as_last_access_counts_them() -> None:
    cache = cache_of("4; page=64, attend=2", 3 * 64)
    for token in range(500, 540):
        cache.read([token])

    page_map = cache.page_map((), PageCounters())

    assert page_map.num_decoded == 40
    assert max(page.last_access for page in page_map.pages) in range(17, 41)
    assert page_map.attention_pages == 2


def test_pages_share_their_tokens_and_equal_bits_with_the_map() -> None:
    cache = cache_of("0:8, 1:4; page=64, hot=0, warm=0", 5 * 64)

    pages = cache.pages()

    assert len({id(page.bits) for page in pages}) == 1
    assert all(
        page.tokens is reference.page.tokens
        for page, reference in zip(pages, cache._table.references, strict=True)
    )


def test_bits_are_taken_anew_after_blocks_were_lowered() -> None:
    cache = cache_of("8; page=64, hot=0, warm=0", 2 * 64)
    before = [str(pair) for page in cache.pages() for pair in page.bits[1]]
    cache.apply(KVSpec.parse("0-:8, 1.h0:k4v3; page=64, hot=0, warm=0"))

    pages = cache.pages()

    assert before == ["8"] * 4
    assert [[str(pair) for pair in page.bits[1]] for page in pages] == [["k4v3", "8"]] * 2
    assert [[str(pair) for pair in page.bits[0]] for page in pages] == [["8", "8"]] * 2
