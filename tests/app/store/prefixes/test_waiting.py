"""The queue before the disk, without a disk: a test's thread stands in for the one that writes."""

from __future__ import annotations

import threading
import time

import pytest

from app.store.prefixes import waiting as waiting_module
from app.store.prefixes.own_database import OwnDatabase
from app.store.prefixes.waiting import Waiting
from engine.cancel import CancelToken
from engine.prefixes.records import NewPage, StoredSequence
from tests.app.store.prefixes.stored_texts import MODEL, PAGE_NBYTES, key_of, page_of, sequence_of


def an_order(own: OwnDatabase) -> bool:
    raise AssertionError("nothing carries it out here")


def all_that_waits(waiting: Waiting) -> list[object]:
    """Take and do everything, in order, until it is closed."""
    waited: list[object] = []
    while not waiting.flush(0):
        waited.append(waiting.take())
        waiting.done()
    return waited


def test_what_is_put_is_taken_in_the_same_order_and_a_sequence_behind_its_pages() -> None:
    waiting = Waiting()
    first, second, sequence = page_of("first"), page_of("second"), sequence_of(1, "first", "second")
    for write in (first, sequence_of(1, "first"), second, sequence):
        assert waiting.put(write)
    assert all_that_waits(waiting) == [first, second, sequence]


def test_an_order_comes_before_what_was_put_earlier() -> None:
    waiting = Waiting()
    page = page_of("page")
    waiting.put(page)
    waiting.order(an_order)
    assert all_that_waits(waiting) == [an_order, page]


def test_nothing_is_taken_once_64_mib_wait_until_some_of_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_module, "MOST_WAITING_NBYTES", 2 * PAGE_NBYTES)
    waiting = Waiting()
    assert waiting.put(page_of("one"))
    assert waiting.put(page_of("two"))
    assert waiting.nbytes == 2 * PAGE_NBYTES
    assert not waiting.has_room
    assert not waiting.wait_for_room(0)
    assert not waiting.put(page_of("three"))

    came = threading.Event()
    waits = threading.Thread(target=lambda: waiting.wait_for_room(60) and came.set())
    waits.start()
    waiting.take()
    waiting.done()
    waits.join()
    assert came.is_set()
    assert waiting.nbytes == PAGE_NBYTES
    assert waiting.put(page_of("three"))


def test_a_page_that_is_larger_than_all_that_may_wait_is_taken_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_module, "MOST_WAITING_NBYTES", PAGE_NBYTES // 2)
    waiting = Waiting()
    assert waiting.put(page_of("large"))
    assert not waiting.put(page_of("another"))


def test_a_page_that_is_put_again_takes_the_place_of_the_one_that_waits() -> None:
    waiting = Waiting()
    waiting.put(page_of("parent", bits=16.0, nbytes=8000))
    waiting.put(page_of("child"))
    again = page_of("parent", bits=4.0, nbytes=2000)
    waiting.put(again)
    assert waiting.nbytes == 2000 + PAGE_NBYTES
    assert all_that_waits(waiting)[0] is again


def test_a_page_that_waits_for_another_conversation_keeps_its_bits() -> None:
    waiting = Waiting()
    exact = page_of("shared", conversation_id=1, bits=16.0)
    waiting.put(exact)
    assert waiting.put(page_of("shared", conversation_id=2, bits=4.0))
    assert all_that_waits(waiting) == [exact]


def test_a_page_is_visible_until_it_is_written() -> None:
    waiting = Waiting()
    page = page_of("page")
    waiting.put(page)
    assert waiting.take() is page
    assert waiting.page(page.key) is page
    assert not waiting.flush(0)
    waiting.done()
    assert waiting.page(page.key) is None
    assert waiting.flush(0)


def test_a_page_that_is_put_again_while_it_is_written_waits_for_its_own_turn() -> None:
    waiting = Waiting()
    waiting.put(page_of("page", bits=16.0))
    waiting.take()
    again = page_of("page", bits=4.0)
    waiting.put(again)
    waiting.done()
    assert all_that_waits(waiting) == [again]


def test_nothing_of_a_deleted_conversation_waits_and_nothing_more_of_it_is_taken() -> None:
    waiting = Waiting()
    other = page_of("other", conversation_id=2)
    for write in (page_of("gone"), other, sequence_of(1, "gone")):
        waiting.put(write)
    waiting.delete(1, an_order)
    assert waiting.nbytes == PAGE_NBYTES
    # No room would make the engine wait for some.
    assert waiting.put(page_of("late"))
    assert waiting.put(sequence_of(1, "late"))
    assert all_that_waits(waiting) == [an_order, other]


def test_a_conversation_whose_deletion_was_undone_is_taken_again() -> None:
    waiting = Waiting()
    waiting.delete(1, an_order)
    waiting.allow(1)
    page = page_of("again")
    waiting.put(page)
    assert all_that_waits(waiting) == [an_order, page]


def test_pages_of_no_conversation_are_taken_after_those_before_were_deleted() -> None:
    waiting = Waiting()
    waiting.put(page_of("before", conversation_id=0))
    waiting.delete(0, an_order)
    after = page_of("after", conversation_id=0)
    waiting.put(after)
    assert all_that_waits(waiting) == [an_order, after]


def test_a_page_of_a_deleted_conversation_that_another_one_counts_on_is_written_for_that_one() -> None:
    waiting = Waiting()
    waiting.put(page_of("shared", conversation_id=1))
    waiting.put(sequence_of(2, "shared"))
    waiting.delete(1, an_order)
    order, page, sequence = all_that_waits(waiting)
    assert order is an_order
    assert isinstance(page, NewPage)
    assert (page.key, page.conversation_id) == (key_of("shared"), 2)
    assert isinstance(sequence, StoredSequence)


def test_an_order_that_cannot_be_done_now_is_the_next_again() -> None:
    waiting = Waiting()
    waiting.order(an_order)
    page = page_of("page")
    waiting.put(page)
    assert waiting.take() is an_order
    waiting.postpone()
    assert all_that_waits(waiting) == [an_order, page]


def test_what_is_closed_drops_writes_still_does_orders_and_wakes_who_waits() -> None:
    waiting = Waiting()
    taken: list[object] = []
    writer = threading.Thread(target=lambda: taken.append(waiting.take()))
    writer.start()
    waiting.close()
    writer.join()
    assert taken == [None]

    waiting = Waiting()
    waiting.put(page_of("page"))
    waiting.order(an_order)
    waiting.close()
    waiting.order(an_order)
    assert not waiting.put(page_of("late"))
    assert all_that_waits(waiting) == [an_order]
    assert waiting.take() is None


def test_what_was_put_is_known_and_found_by_its_conversation() -> None:
    waiting = Waiting()
    sequence = sequence_of(7, "page")
    waiting.put(page_of("page", conversation_id=3))
    waiting.put(sequence)
    assert waiting.seen == {3, 7}
    assert waiting.sequence(7, MODEL) is sequence
    assert waiting.sequence(7, "another model") is None
    waiting.drop_sequence(7, MODEL)
    assert waiting.sequence(7, MODEL) is None
    waiting.drop_page(key_of("page"))
    assert waiting.flush(0)


def test_a_pause_ends_when_somebody_waits_for_what_is_written() -> None:
    waiting = Waiting()
    waiting.put(page_of("page"))
    waits = threading.Thread(target=lambda: waiting.flush(60))
    waits.start()
    waiting.pause(60)
    assert waits.is_alive()
    waiting.take()
    waiting.done()
    waits.join(60)
    assert not waits.is_alive()


def test_a_pause_is_as_long_as_it_is_said_to_be_when_nobody_waits() -> None:
    waiting = Waiting()
    waiting.put(page_of("page"))
    assert waiting.flush(0) is False and waiting.wait_for_room(0)  # both waited, and do no more
    started_s = time.monotonic()
    waiting.pause(0.05)
    assert time.monotonic() - started_s >= 0.05


def test_nobody_waits_for_a_thread_that_has_ended_in_the_middle() -> None:
    waiting = Waiting()
    waiting.order(an_order)
    waiting.put(page_of("page"))
    waiting.take()
    flushed: list[bool] = []
    waits = threading.Thread(target=lambda: flushed.append(waiting.flush(600)))
    waits.start()
    waiting.abandon()
    waits.join(60)
    assert flushed == [False]
    assert not waiting.put(page_of("late"))


def test_nobody_waits_for_what_cannot_be_done_for_now() -> None:
    waiting = Waiting()
    waiting.order(an_order)
    num_tries = 0

    def try_in_vain() -> None:
        nonlocal num_tries
        while waiting.take():
            num_tries += 1
            waiting.postpone()
            waiting.stall(600)

    writer = threading.Thread(target=try_in_vain)
    writer.start()
    flushed: list[bool] = []
    for _ in range(2):
        before = num_tries
        waits = threading.Thread(target=lambda: flushed.append(waiting.flush(600)))
        waits.start()
        waits.join(60)
        assert before < num_tries <= before + 2  # each has it tried once more
    assert flushed == [False, False]
    waiting.close()
    writer.join()


@pytest.mark.parametrize("is_late", [False, True])
def test_who_waits_leaves_when_it_is_stopped(is_late: bool) -> None:
    waiting, leaving = Waiting(), CancelToken()
    waiting.put(page_of("page"))
    flushed: list[bool] = []
    waits = threading.Thread(target=lambda: flushed.append(waiting.flush(600, leaving)))
    if is_late:
        waits.start()
        waiting.pause(600)  # it waits by now
    leaving.cancel()
    if not is_late:
        waits.start()
    waits.join(60)
    assert flushed == [False]
