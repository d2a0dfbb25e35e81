"""Which request of the engine's thread goes first, and what ends which."""

from __future__ import annotations

from engine.cancel import CancelToken
from ui.request_queue import Priority, Request, RequestQueue


def put(queue: RequestQueue, priority: Priority, *, is_stoppable: bool = True) -> None:
    queue.put(priority, lambda cancel: None, is_stoppable=is_stoppable)


def take(queue: RequestQueue) -> Request:
    request = queue.get(0)
    assert request is not None
    return request


def background(queue: RequestQueue) -> CancelToken:
    """Put a request in the background and take it, as if it ran."""
    put(queue, Priority.BACKGROUND, is_stoppable=False)
    return take(queue).cancel


def test_what_is_done_in_the_background_comes_last() -> None:
    queue = RequestQueue()
    put(queue, Priority.BACKGROUND)
    put(queue, Priority.USER)
    put(queue, Priority.CONTROL)
    order = [take(queue).priority for _ in range(3)]
    assert order == [Priority.CONTROL, Priority.USER, Priority.BACKGROUND]


def test_whatever_comes_cancels_what_is_done_in_the_background() -> None:
    for priority in (Priority.CONTROL, Priority.USER):
        queue = RequestQueue()
        running = background(queue)
        put(queue, priority)
        assert running.cancelled
        assert not take(queue).cancel.cancelled


def test_what_can_wait_leaves_what_is_done_in_the_background_to_its_end() -> None:
    queue = RequestQueue()
    running = background(queue)
    queue.put(Priority.CONTROL, lambda cancel: None, is_stoppable=False, can_wait=True)
    assert not running.cancelled


def test_what_is_done_in_the_background_ends_nothing_else() -> None:
    queue = RequestQueue()
    put(queue, Priority.USER)
    running = take(queue).cancel
    background_first = background(queue)
    put(queue, Priority.BACKGROUND)
    assert not running.cancelled
    assert not background_first.cancelled


def test_a_stop_leaves_the_background_alone_and_the_end_of_everything_does_not() -> None:
    queue = RequestQueue()
    running = background(queue)
    queue.stop()
    assert not running.cancelled
    queue.cancel_all()
    assert running.cancelled


def test_a_request_that_has_ended_is_cancelled_no_more() -> None:
    queue = RequestQueue()
    put(queue, Priority.BACKGROUND)
    ended = take(queue)
    queue.done(ended)
    put(queue, Priority.USER)
    assert not ended.cancel.cancelled
