"""Precision that changes while a cache is in use, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import OctavoError
from engine.kv.precision import KVSpec, Tier
from tests.engine.kv.caches import (
    PAGE_NBYTES,
    active_nbytes,
    bits,
    cache_of,
    tiers,
)


def test_usage_is_what_a_hand_computes() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 5 * 64 + 7)
    usage = cache.usage()
    assert tiers(cache) == "wccwh"
    assert (usage.hot_pages, usage.warm_pages, usage.cold_pages) == (1, 2, 2)
    assert (usage.num_tokens, usage.open_tokens) == (327, 7)
    assert usage.sealed_nbytes == PAGE_NBYTES[16] + 2 * PAGE_NBYTES[8] + 2 * PAGE_NBYTES[4]
    assert usage.effective_bits == pytest.approx((32 + 2 * 9 + 2 * 5) / 5)
    assert usage.requested == usage.effective == (4, 4)
    assert (usage.num_below, usage.attention_pages, usage.caught) == (0, None, None)
    assert [page.nbytes for page in cache.pages()] == [PAGE_NBYTES[bits] for bits in (8, 4, 4, 8, 16)]


def test_pages_say_what_they_hold() -> None:
    cache = cache_of("k8v4, 1.h0:3; page=64, hot=0, warm=0", 2 * 64 + 7)
    cache.drop(3, 10)
    cache.pin(70, 71)
    first, second = cache.pages()
    assert first.bits == {0: cache.pages()[1].bits[0], 1: second.bits[1]}
    assert bits(cache) == ["k8v4 k8v4 3 k8v4"] * 2
    assert [(page.num_tokens, page.first_position, page.last_position) for page in (first, second)] == [
        (57, 0, 63),
        (64, 64, 127),
    ]
    assert [page.pinned for page in (first, second)] == [False, True]
    assert [page.tier for page in (first, second)] == [Tier.COLD] * 2


def test_there_is_nothing_to_say_of_no_pages() -> None:
    usage = cache_of("4; page=64", 10).usage()
    assert (usage.num_tokens, usage.open_tokens, usage.sealed_nbytes) == (10, 10, 0)
    assert (usage.effective_bits, usage.effective, usage.requested) == (None, None, (4, 4))


def test_less_precision_is_there_at_once_and_more_with_new_pages() -> None:
    cache = cache_of("8; page=64, hot=0, warm=0", 3 * 64)
    cache.apply(KVSpec.parse("0-:4, 1.h1:8, 1.h0:16; page=64, hot=0, warm=0"))
    assert bits(cache) == ["4 4 8 8"] * 3
    usage = cache.usage()
    assert usage.num_below == 3  # in layer 1, head 0 is to have 16 bits
    assert usage.requested == ((4 + 4 + 16 + 8) / 4,) * 2
    assert usage.effective == ((4 + 4 + 8 + 8) / 4,) * 2
    cache.apply(KVSpec.parse("6; page=64, hot=0, warm=0"))
    cache.read(range(300, 364))
    assert bits(cache) == ["4 4 6 6"] * 3 + ["6 6 6 6"]
    assert cache.usage().num_below == 3
    cache.apply(KVSpec.parse("k4v3; page=64, hot=0, warm=0"))
    assert bits(cache) == ["k4v3 k4v3 k4v3 k4v3"] * 4
    assert cache.usage().num_below == 0
    assert cache.usage().effective == (4, 3)


def test_fewer_exact_pages_are_lowered_at_once_and_more_come_with_the_text() -> None:
    cache = cache_of("4; page=64, hot=3, warm=0", 6 * 64)
    assert tiers(cache) == "wcchhh"
    cache.apply(KVSpec.parse("4; page=64, hot=1, warm=1"))
    assert tiers(cache) == "wcccwh"
    cache.apply(KVSpec.parse("4; page=64, hot=6, warm=0"))
    assert tiers(cache) == "wcccwh"
    cache.read(range(400, 464))
    assert tiers(cache) == "wcccwhh"
    assert bits(cache)[3:] == ["4 4 4 4", "8 8 8 8", "16 16 16 16", "16 16 16 16"]


def test_the_memory_of_lost_bits_is_given_back_at_once() -> None:
    cache = cache_of("16; page=64", 20 * 64)
    before = active_nbytes()
    cache.apply(KVSpec.parse("4; page=64, hot=0, warm=0"))
    saved = 20 * (PAGE_NBYTES[16] - PAGE_NBYTES[4])
    assert before - active_nbytes() == pytest.approx(saved, rel=0.1)


def test_pages_of_another_size_take_a_new_cache() -> None:
    cache = cache_of("4; page=64", 100)
    for spec in ("4; page=128", "4; page=64, group=32"):
        with pytest.raises(OctavoError, match="new cache"):
            cache.apply(KVSpec.parse(spec))
    assert str(cache.spec) == "4; page=64"


def test_a_splice_leaves_as_many_exact_pages_as_there_may_be() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 5 * 64 + 7)
    cache.drop(100, 200)
    cache.splice(100, range(500, 570))
    assert [page.num_tokens for page in cache.pages()] == [64, 36, 64, 6, 56, 64]
    assert tiers(cache) == "wcccwh"
    assert cache.usage().open_tokens == 7
    cache.read(range(600, 664))
    assert tiers(cache) == "wccccwh"


def test_an_attention_budget_counts_from_the_next_token_on() -> None:
    cache, other = (cache_of("4; page=64, hot=0, warm=0", 6 * 64 + 1) for _ in range(2))

    def difference(token: int, spec: str) -> float:
        """Return how far the answer is from that of a cache that reads all pages."""
        cache.apply(KVSpec.parse(f"4; page=64, hot=0, warm=0{spec}"))
        return float(np.abs(np.array(cache.read([token])) - np.array(other.read([token]))).max())

    assert difference(7, "") < 1e-5
    assert difference(8, ", attend=1") > 1e-2
    assert cache.usage().attention_pages == 1
    assert difference(9, ", attend=6") < 1e-5
    assert difference(8, ", attend=1") > 1e-2
    assert difference(9, "") < 1e-5


def test_pins_follow_their_text() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 100)
    cache.pin(70, 72)  # still open
    fork = cache.fork()
    fork.pin(0, 1)
    cache.read(range(200, 200 + 4 * 64))
    assert [page.pinned for page in cache.pages()] == [False, True, False, False, False]
    cache.rebuild()
    assert [page.pinned for page in cache.pages()] == [False, True, False, False, False]
    assert tiers(cache) == "wwcwh"
    cache.truncate(80)
    cache.drop(70, 72)
    cache.read(range(300, 300 + 2 * 64))
    assert not any(page.pinned for page in cache.pages())


def test_pinned_pages_stay_a_tier_higher() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 2 * 64)
    assert tiers(cache) == "hh"
    cache.pin(64, 65)
    cache.read(range(200, 200 + 4 * 64))
    assert tiers(cache) == "wwccwh"
    assert bits(cache)[1] == "8 8 8 8"
    assert [page.pinned for page in cache.pages()] == [False, True, False, False, False, False]


def test_pinned_text_is_replaced_and_leaves_pages_pinned_by_hand() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 5 * 64)
    cache.pin_page(cache.pages()[3].number, True)
    cache.pin_text([(3 * 64 - 1, 3 * 64 + 1), (70, 71)])
    assert [page.pinned for page in cache.pages()] == [False, True, True, True, False]
    cache.pin_text([(130, 131)])
    assert [page.pinned for page in cache.fork().pages()] == [False, False, True, True, False]
    cache.drop(0, 64)
    cache.rebuild()
    assert [page.pinned for page in cache.pages()] == [False, True, True, False]
    cache.pin_text([])
    assert [page.pinned for page in cache.pages()] == [False, False, True, False]


def test_text_is_pinned_before_it_is_read() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 64)
    cache.drop(10, 20)
    cache.pin_text([(64, 65)])  # the 11th token that is yet to be read
    cache.drop(20, 30)
    cache.read(range(200, 200 + 4 * 64))
    assert [page.pinned for page in cache.pages()] == [False, True, False, False, False]
    cache.pin_text([(44 + 64, 44 + 65)])
    cache.truncate(44)
    cache.read(range(200, 200 + 4 * 64))
    assert not any(page.pinned for page in cache.pages())
