"""Pages that two conversations read, next to twins that read alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.kv.blob import Blob
from engine.kv.cache import SequenceCache
from engine.kv.lineage import prefix_chain
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import PAGE_NBYTES, active_nbytes, bits, cache_of, tiers
from tests.engine.kv.twins import read_and_written, same_logits, tokens
from tests.engine.tiny_models import tiny_model

SPECS = ["16; page=64", "4; page=64, hot=1, warm=1", "k6v3, 1.h0:5; page=64, group=32, hot=0, warm=0"]
NEW = [[1, 2, 3], [4], [5]]

pytestmark = pytest.mark.usefixtures("one_blas_thread")


@pytest.fixture(params=SPECS)
def spec(request: pytest.FixtureRequest) -> KVSpec:
    return KVSpec.parse(request.param)


def sharp(spec: KVSpec) -> SequenceCache:
    return SequenceCache(tiny_model("llama", sharp=True, num_key_value_heads=2), spec)


def decoded(cache: SequenceCache) -> None:
    for token in tokens(500, 530):
        cache.read([token])


def lowered(cache: SequenceCache) -> None:
    cache.apply(KVSpec.parse(f"2; page=64, group={cache.spec.group_size}, hot=0, warm=0"))


def grown(cache: SequenceCache) -> None:
    for start in range(700, 1100, 50):
        cache.read(tokens(start, start + 50))


def changed(cache: SequenceCache) -> None:
    cache.drop(20, 100)
    cache.splice(20, tokens(900, 930))


def cooled(cache: SequenceCache) -> None:
    cache.cool(cache.num_tokens)


CHANGES = [decoded, lowered, grown, changed, cooled, SequenceCache.close]


@pytest.mark.parametrize("change", CHANGES)
def test_what_one_conversation_does_changes_no_number_of_the_other(
    spec: KVSpec, change: Callable[[SequenceCache], None]
) -> None:
    holder, twin = sharp(spec), sharp(spec)
    for cache in (holder, twin):
        read_and_written(cache)
    guest = holder.share(256, spec)

    change(guest)

    assert bits(holder) == bits(twin)
    assert same_logits(holder, twin, NEW)


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_other_one_does_changes_no_number_here(
    spec: KVSpec, change: Callable[[SequenceCache], None]
) -> None:
    holder, other = sharp(spec), sharp(spec)
    for cache in (holder, other):
        read_and_written(cache)
    guest, twin = holder.share(256, spec), other.share(256, spec)

    change(holder)

    assert bits(guest) == bits(twin)
    assert same_logits(guest, twin, NEW)


@pytest.mark.parametrize("change", [lowered, grown, cooled])
def test_a_conversation_that_left_memory_comes_back_as_it_was(
    spec: KVSpec, change: Callable[[SequenceCache], None]
) -> None:
    holder, twin = sharp(spec), sharp(spec)
    for cache in (holder, twin):
        read_and_written(cache)
    guest = holder.share(256, spec)
    blobs: list[Blob] = []
    holder.move_out(blobs.append)

    change(guest)
    holder.move_in(iter(blobs))

    assert bits(holder) == bits(twin)
    assert same_logits(holder, twin, NEW)


def test_where_no_page_is_kept_more_exactly_for_its_age_it_is_as_if_all_had_been_read() -> None:
    spec = KVSpec.parse(SPECS[2])
    holder, alone = sharp(spec), sharp(spec)
    for cache in (holder, alone):
        for start in range(0, 320, 64):
            cache.read(tokens(start, start + 64))
    guest = holder.share(320, spec)
    assert same_logits(guest, alone, NEW)
    assert guest.tokens == alone.tokens


def test_pages_that_are_shared_take_no_memory_twice() -> None:
    holder = cache_of("8; page=64, hot=0, warm=0", 640)
    before = active_nbytes()
    guest = holder.share(640, holder.spec)
    assert active_nbytes() - before < PAGE_NBYTES[8]
    assert SequenceCache.total_nbytes([holder, guest]) == holder.nbytes


def test_what_only_the_other_one_has_does_not_count() -> None:
    holder = cache_of("8; page=64, hot=0, warm=0", 64 * 8)
    guest = holder.share(128, holder.spec)
    assert guest.nbytes <= holder.nbytes - 6 * PAGE_NBYTES[8]
    assert guest.referred_nbytes == 2 * PAGE_NBYTES[8]
    guest.read(range(1000, 1000 + 64 * 4))
    assert holder.nbytes < 10 * PAGE_NBYTES[8]
    assert SequenceCache.total_nbytes([holder, guest]) >= 12 * PAGE_NBYTES[8]


def test_what_another_version_has_is_not_only_the_other_conversations() -> None:
    holder = cache_of("8; page=64, hot=0, warm=0", 64 * 4)
    version = holder.fork()
    holder.rebuild()
    guest = holder.share(128, holder.spec)
    assert version.nbytes == holder.nbytes == 8 * PAGE_NBYTES[8]
    assert guest.nbytes == 2 * PAGE_NBYTES[8]


def test_all_memory_comes_back_when_both_are_closed() -> None:
    before = active_nbytes()
    holder = cache_of("4; page=64, hot=1, warm=1", 400)
    guest = holder.share(256, KVSpec.parse("2; page=64, hot=0, warm=0"))
    holder.close()
    assert active_nbytes() > before
    guest.close()
    assert active_nbytes() == before


def test_a_lower_precision_takes_its_bits_from_a_copy_and_a_higher_one_finds_none() -> None:
    holder = cache_of("8; page=64, hot=0, warm=0", 256)
    lower = KVSpec.parse("4; page=64, hot=0, warm=0")
    guest = holder.share(holder.common_tokens(holder.tokens, lower), lower)
    assert guest.num_tokens == 256
    assert {page.references for page in holder.pages()} == {1}
    assert bits(holder) == bits(cache_of("8; page=64, hot=0, warm=0", 256))
    assert bits(guest) == bits(cache_of("4; page=64, hot=0, warm=0", 256))
    assert guest.common_tokens(guest.tokens, holder.spec) == 0


def test_where_memory_is_short_both_lose_the_bits() -> None:
    holder = cache_of("4; page=64, hot=2, warm=0", 256)
    guest = holder.share(256, holder.spec)
    before = SequenceCache.total_nbytes([holder, guest])
    guest.press()
    assert tiers(holder) == tiers(guest) == "cccc"
    assert SequenceCache.total_nbytes([holder, guest]) < before


def test_text_is_shared_up_to_where_it_differs_by_whole_pages_or_among_the_open_tokens() -> None:
    holder = cache_of("8; page=64", 200)
    text = list(range(1, 301))
    assert holder.common_tokens(text, holder.spec) == 200
    assert holder.common_tokens(text[:197], holder.spec) == 197
    assert holder.common_tokens([*text[:195], 0], holder.spec) == 195
    assert holder.common_tokens([*text[:150], 0, *text[151:]], holder.spec) == 128
    assert holder.common_tokens(text[:63], holder.spec) == 0
    assert holder.common_tokens(text[1:], holder.spec) == 0
    assert holder.share(197, holder.spec).tokens == text[:197]


def test_pages_of_another_size_are_not_shared() -> None:
    holder = cache_of("8; page=64", 200)
    assert holder.common_tokens(holder.tokens, KVSpec.parse("8; page=128")) == 0
    assert holder.common_tokens(holder.tokens, KVSpec.parse("8; page=64, group=32")) == 0


def test_nothing_is_shared_that_was_read_behind_an_edit() -> None:
    holder = cache_of("8; page=64", 256)
    holder.drop(130, 140)
    holder.read(range(500, 600))
    assert holder.common_tokens(holder.tokens, holder.spec) == 128


def test_nothing_is_shared_of_a_page_that_lost_tokens_or_of_open_tokens_that_did() -> None:
    holder = cache_of("8; page=64", 230)
    whole = holder.tokens
    holder.drop(200, 205)
    assert holder.common_tokens(holder.tokens, holder.spec) == 192
    holder.drop(70, 80)
    assert holder.common_tokens(whole, holder.spec) == 64


def test_what_follows_in_the_other_conversation_is_found_by_its_text() -> None:
    holder = cache_of("8; page=64", 256)
    holder.drop(130, 140)
    guest = holder.share(128, holder.spec)
    guest.read(range(129, 257))
    assert guest.is_unbroken
    chain = tuple(page.chain for page in guest.savable_pages())
    assert chain == prefix_chain(range(1, 257), 64)


def test_pins_stay_with_the_conversation_in_which_they_were_set() -> None:
    holder = cache_of("4; page=64, hot=1, warm=1", 256)
    holder.pin(64, 128)
    guest = holder.share(256, holder.spec)
    assert [page.pinned for page in guest.pages()] == [False] * 4
    assert [page.pinned for page in holder.pages()] == [False, True, False, False]


def test_cooling_brings_full_pages_of_the_beginning_where_age_would_bring_them() -> None:
    cache = cache_of("4; page=64, hot=1, warm=4", 64 * 5)
    assert "c" not in tiers(cache)
    cache.cool(64 * 3 + 10)
    assert tiers(cache)[:3] == "wcc"
    assert "c" not in tiers(cache)[3:]
    old = cache_of("4; page=64, hot=1, warm=4", 64 * 20)
    assert bits(cache)[:3] == bits(old)[:3]
