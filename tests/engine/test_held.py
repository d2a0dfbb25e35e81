"""Conversations that are held: which is in hand, which leaves memory first, and what comes back."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import Cancelled
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters
from engine.kv.precision import KVSpec
from tests.app.models.full_disk import file_size_limit
from tests.engine.kv.caches import active_nbytes, cache_of, holds_exactly, text
from tests.engine.tiny_models import tiny_model

SPEC = "16; page=64"


def held_with(root: Path | None, *lengths: int) -> HeldSequences:
    """Hold a conversation for each length, by the numbers 1, 2, 3...; the last one is in hand."""
    held = HeldSequences(root)
    for number, length in enumerate(lengths, start=1):
        held.take(number)
        held.keep(number, context_of(length))
    return held


def context_of(num_tokens: int) -> HeldContext:
    return HeldContext(cache_of(SPEC, num_tokens))


def taken(held: HeldSequences, conversation_id: int) -> SequenceCache:
    context = held.take(conversation_id)
    assert context is not None
    return context.cache


def in_memory(held: HeldSequences, *conversation_ids: int) -> list[int]:
    """Return the conversations whose sequences are in memory, without taking them."""
    return [one for one in conversation_ids if one in held._held and not held._held[one].cache.is_outside]


def nbytes_of(held: HeldSequences, conversation_id: int) -> int:
    """Bytes that a conversation takes in memory; 0 where it is not there."""
    versions = held.in_memory(conversation_id)
    return 0 if versions is None else versions.nbytes


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.pages"))


def test_each_conversation_has_a_sequence_of_its_own(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100, 150)
    second = held.in_hand
    first = held.take(1)
    assert first is not None and holds_exactly(first.cache, text(100))
    assert held.in_hand is first
    assert held.take(2) is second


def test_a_conversation_that_is_not_held_is_none_and_leaves_nothing_in_hand(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100)
    assert held.take(7) is None
    assert held.in_hand is None
    assert held.conversation_id == 7
    assert held.idle_nbytes > 0


def test_what_is_idle_is_all_but_the_one_in_hand(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100, 150, 200)
    assert held.idle_nbytes == nbytes_of(held, 1) + nbytes_of(held, 2)
    held.take(1)
    assert held.idle_nbytes == nbytes_of(held, 2) + nbytes_of(held, 3)


def test_spilled_sequences_come_back_when_they_are_taken(tmp_path: Path) -> None:
    held = held_with(tmp_path, 200, 150, 100)
    before, idle = active_nbytes(), held.idle_nbytes
    freed = held.spill_idle()
    assert freed == idle
    assert before - active_nbytes() > 0.95 * freed
    assert held.idle_nbytes == 0
    assert in_memory(held, 1, 2, 3) == [3]
    assert holds_exactly(taken(held, 1), text(200))
    assert held.counters == PageCounters(spills=5, restores=3)
    assert len(files(tmp_path)) == 1


def test_the_one_that_was_in_hand_longest_ago_goes_first(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100, 100, 100, 100)
    held.take(1)
    held.take(2)
    assert nbytes_of(held, 3) == held.make_room(1)
    assert in_memory(held, 1, 2, 3, 4) == [1, 2, 4]
    assert nbytes_of(held, 4) == held.make_room(1)
    assert in_memory(held, 1, 2, 3, 4) == [1, 2]


def test_no_more_goes_than_is_needed_and_never_the_one_in_hand(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100, 100, 100)
    assert held.make_room(0) == 0
    assert in_memory(held, 1, 2, 3) == [1, 2, 3]
    assert nbytes_of(held, 1) + nbytes_of(held, 2) == held.make_room(1 << 40)
    assert in_memory(held, 1, 2, 3) == [3]
    assert held.make_room(1 << 40) == 0


def test_the_one_in_hand_goes_too_when_another_is_about_to_be_taken(tmp_path: Path) -> None:
    held = held_with(tmp_path, 100, 150)
    assert nbytes_of(held, 2) == held.make_room(1 << 40, conversation_id=1)
    assert held.in_hand is None
    assert in_memory(held, 1, 2) == [1]
    assert holds_exactly(taken(held, 2), text(150))
    assert held.memory_nbytes == nbytes_of(held, 1) + nbytes_of(held, 2)


def test_a_conversation_that_goes_on_after_coming_back_can_leave_again(tmp_path: Path) -> None:
    held, expected = held_with(tmp_path, 200, 100), text(200)
    for token in (300, 301, 302):
        held.spill_idle()
        taken(held, 1).read([token])
        expected.append([token])
        held.take(2)
    held.spill_idle()
    assert holds_exactly(taken(held, 1), expected)


def test_keeping_another_sequence_closes_the_former(tmp_path: Path) -> None:
    held = held_with(tmp_path, 400)
    before = active_nbytes()
    held.keep(1, context_of(10))
    assert active_nbytes() < before
    assert held.in_hand is not None and held.in_hand.cache.num_tokens == 10


def test_forgetting_gives_memory_and_files_back(tmp_path: Path) -> None:
    baseline = active_nbytes()
    held = held_with(tmp_path, 200, 200, 200)
    held.make_room(1)
    for conversation_id in (1, 2, 3, 4):
        held.forget(conversation_id)
    assert files(tmp_path) == []
    assert held.in_hand is None
    assert active_nbytes() - baseline < 10_000
    assert [held.take(conversation_id) for conversation_id in (1, 2, 3)] == [None, None, None]


def test_closing_gives_everything_back(tmp_path: Path) -> None:
    baseline = active_nbytes()
    held = held_with(tmp_path, 200, 200)
    held.spill_idle()
    held.close()
    assert list(tmp_path.rglob("*-*")) == []
    assert active_nbytes() - baseline < 10_000
    assert held.take(1) is None


def stop_at(call: int) -> Callable[[], None]:
    """Return what raises `Cancelled` when it is called for that time."""
    calls = itertools.count(1)

    def check() -> None:
        if next(calls) == call:
            raise Cancelled

    return check


@pytest.mark.parametrize("call", [1, 2, 4])
def test_a_stop_on_the_way_to_the_disk_leaves_the_sequence_in_memory(tmp_path: Path, call: int) -> None:
    held = held_with(tmp_path, 200, 100)
    with pytest.raises(Cancelled):
        held.spill_idle(stop_at(call))
    assert in_memory(held, 1, 2) == [1, 2] and files(tmp_path) == []
    assert holds_exactly(taken(held, 1), text(200))


@pytest.mark.parametrize("call", [1, 2, 4])
def test_a_stop_on_the_way_back_leaves_the_sequence_on_the_disk(tmp_path: Path, call: int) -> None:
    held = held_with(tmp_path, 200, 100)
    held.spill_idle()
    outside = active_nbytes()
    with pytest.raises(Cancelled):
        held.take(1, stop_at(call))
    assert held.in_hand is None and active_nbytes() == outside
    assert in_memory(held, 1, 2) == [2] and len(files(tmp_path)) == 1
    assert holds_exactly(taken(held, 1), text(200))
    assert held.counters == PageCounters(spills=3, restores=3)


@pytest.mark.parametrize("harm", ["removed", "damaged"])
def test_what_does_not_come_back_whole_is_given_up_and_logged_once(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    held = held_with(tmp_path, 200, 100)
    held.spill_idle()
    (path,) = files(tmp_path)
    if harm == "removed":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"OctavoKV", b"OctavoKW"))
    with caplog.at_level(logging.WARNING):
        assert held.take(1) is None
        assert held.take(1) is None
    assert held.counters == PageCounters(spills=3, evictions=3)
    assert len(caplog.records) == 1
    assert nbytes_of(held, 1) == 0
    held.keep(1, context_of(30))
    assert held.in_hand is not None and holds_exactly(held.in_hand.cache, text(30))


def test_on_a_full_disk_idle_sequences_are_given_up_and_memory_is_there_all_the_same(tmp_path: Path) -> None:
    held = held_with(tmp_path, 200, 100)
    before, idle = active_nbytes(), held.idle_nbytes
    with file_size_limit(100_000):
        assert held.spill_idle() == idle
    assert before - active_nbytes() > 0.95 * idle
    assert held.counters == PageCounters(evictions=3)
    assert held.take(1) is None
    assert files(tmp_path) == []


def test_without_a_folder_idle_sequences_are_given_up() -> None:
    held = held_with(None, 200, 100)
    assert held.spill_idle() > 0
    assert held.counters == PageCounters(evictions=3)
    assert held.take(1) is None


def test_models_whose_layers_are_not_all_paged_are_given_up(tmp_path: Path) -> None:
    held = HeldSequences(tmp_path)
    cache = SequenceCache(tiny_model("gemma3_text"), KVSpec.parse(SPEC))
    cache.read(range(70))
    held.keep(1, HeldContext(cache))
    held.take(2)
    assert held.spill_idle() > 0
    assert held.counters == PageCounters(evictions=1)
    assert held.take(1) is None


def test_hits_are_counted(tmp_path: Path) -> None:
    held = HeldSequences(tmp_path)
    held.use(context_of(1).cache, num_hits=3)
    held.use(context_of(1).cache, num_hits=2)
    assert held.counters == PageCounters(hits=5)
