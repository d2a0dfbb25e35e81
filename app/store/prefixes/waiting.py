"""What waits to be written to disk or deleted from it, bounded in bytes; shared by several threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from app.store.prefixes.orders import Order
from engine.cancel import CancelToken
from engine.prefixes.records import NewPage, StoredSequence

MOST_WAITING_NBYTES = 64 * 2**20
"""With this much waiting, nothing more is taken; what is taken last may pass it."""
GLANCE_S = 0.1
"""Who waits looks for a stop so often."""

Write: TypeAlias = NewPage | StoredSequence
_Name: TypeAlias = bytes | tuple[int, str]


class Waiting:
    """Pages and sequences in the order in which they are to be written, and orders that come before them.

    A write stays visible while it is being done. Of conversations that were deleted nothing is taken.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._writes: dict[_Name, Write] = {}
        self._nbytes = 0
        self._orders: deque[Order] = deque()
        self._in_hand: Write | Order | None = None
        self._deleted: set[int] = set()
        self._seen: set[int] = set()
        self._closed = self._abandoned = False
        self._num_hurrying = 0
        self._num_taken = self._stalled_at = 0
        self._is_urgent = False

    # For those who put and look.

    @property
    def nbytes(self) -> int:
        """Bytes that wait to be written."""
        with self._changed:
            return self._nbytes

    @property
    def seen(self) -> frozenset[int]:
        """The conversations that something was put of."""
        with self._changed:
            return frozenset(self._seen)

    def is_deleted(self, conversation_id: int) -> bool:
        """Return whether nothing of this conversation is taken."""
        with self._changed:
            return conversation_id in self._deleted

    def page(self, key: bytes) -> NewPage | None:
        """Return a page that waits."""
        with self._changed:
            found = self._writes.get(key)
        return found if isinstance(found, NewPage) else None

    def sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return a sequence that waits."""
        with self._changed:
            found = self._writes.get((conversation_id, model))
        return found if isinstance(found, StoredSequence) else None

    def put(self, write: Write) -> bool:
        """Take a write, in place of an older one of the same; return False where there is no room."""
        name, nbytes = _name_of(write), _nbytes_of(write)
        with self._changed:
            if write.conversation_id in self._deleted:
                return True
            if not self.has_room:
                return False
            former = self._writes.get(name)
            if _is_more_exact(former, write):
                return True
            if isinstance(write, StoredSequence):
                # It goes behind its pages, which were put before it. A page stays before its children.
                self._writes.pop(name, None)
            self._writes[name] = write
            self._nbytes += nbytes - (0 if former is None else _nbytes_of(former))
            self._seen.add(write.conversation_id)
            self._changed.notify_all()
        return True

    def order(self, order: Order) -> None:
        """Take an order; it is done after former orders and before all writes."""
        with self._changed:
            if not self._closed:
                self._orders.append(order)
                self._changed.notify_all()

    @property
    def has_room(self) -> bool:
        """Whether something can be put."""
        with self._changed:
            return not self._closed and self._nbytes < MOST_WAITING_NBYTES

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until something can be put, or so many seconds; return whether it can."""
        with self._changed, self._hurrying():
            self._changed.wait_for(lambda: self._closed or self.has_room, timeout_s)
            return self.has_room

    def flush(self, timeout_s: float, leaving: CancelToken | None = None) -> bool:
        """Wait until all is done, for so many seconds at most; return whether it is.

        What could not be done is tried again at once. Returns when that is in vain, too, and soon after
        `leaving` is cancelled.
        """
        end_s = time.monotonic() + timeout_s
        with self._changed, self._hurrying():
            num_taken, self._is_urgent = self._num_taken, True
            while not (self._is_done() or self._abandoned or self._stalled_at > num_taken):
                left_s = end_s - time.monotonic()
                if left_s <= 0 or (leaving is not None and leaving.cancelled):
                    break
                self._changed.wait(left_s if leaving is None else min(left_s, GLANCE_S))
            return self._is_done()

    def delete(self, conversation_id: int, order: Order) -> None:
        """Drop what waits of a conversation, take no more of it, and give the order to delete it.

        A page that another conversation's waiting sequence has among its own waits on for that one.
        """
        with self._changed:
            if conversation_id > 0:
                self._deleted.add(conversation_id)
            self._drop(lambda write: write.conversation_id == conversation_id, self._owners(conversation_id))
            self.order(order)

    def allow(self, conversation_id: int) -> bool:
        """Take writes of a conversation again; return whether it was deleted."""
        with self._changed:
            was_deleted = conversation_id in self._deleted
            self._deleted.discard(conversation_id)
        return was_deleted

    def drop_page(self, key: bytes) -> None:
        """Drop a page that waits."""
        with self._changed:
            self._drop(lambda write: _name_of(write) == key)

    def drop_sequence(self, conversation_id: int, model: str) -> None:
        """Drop a sequence that waits."""
        with self._changed:
            self._drop(lambda write: _name_of(write) == (conversation_id, model))

    def give_up(self, order: Order | None = None) -> None:
        """Drop all that waits to be written, and take an order in its place."""
        with self._changed:
            self._drop(lambda write: True)
            if order is not None:
                self.order(order)

    def close(self) -> None:
        """Drop all that waits to be written and take nothing more; what was ordered is still to be done."""
        with self._changed:
            self._closed = True
            self.give_up()
            self._changed.notify_all()

    # For the thread that writes.

    def take(self, timeout_s: float | None = None) -> Write | Order | None:
        """Wait for something to do and take it in hand; None when closed with nothing left, or in vain."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._orders or self._writes, timeout_s)
            if self._orders:
                self._in_hand = self._orders.popleft()
            elif self._writes:
                self._in_hand = next(iter(self._writes.values()))
            self._num_taken += 1
            self._is_urgent = False
            return self._in_hand

    def done(self) -> None:
        """Lay down what is in hand, which was done or is given up."""
        with self._changed:
            done, self._in_hand = self._in_hand, None
            if isinstance(done, Write) and self._writes.get(_name_of(done)) is done:
                del self._writes[_name_of(done)]
                self._nbytes -= _nbytes_of(done)
            self._changed.notify_all()

    def postpone(self) -> None:
        """Put the order that is in hand back, to be done later."""
        with self._changed:
            order, self._in_hand = self._in_hand, None
            if order is not None and not isinstance(order, Write) and not self._closed:
                self._orders.appendleft(order)
            self._changed.notify_all()

    def abandon(self) -> None:
        """Let nobody wait any more: no thread writes."""
        with self._changed:
            self._abandoned = True
            self.close()

    def rest(self, timeout_s: float) -> None:
        """Wait so many seconds, less when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout_s)

    def stall(self, timeout_s: float) -> None:
        """Wait so long because what was taken cannot be done, less when closed or when somebody waits."""
        with self._changed:
            self._stalled_at = self._num_taken
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._is_urgent, timeout_s)

    def pause(self, timeout_s: float) -> None:
        """Wait so many seconds, less when closed, when something is ordered, or while somebody waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._orders or self._num_hurrying, timeout_s)

    # With the lock held.

    @contextmanager
    def _hurrying(self) -> Iterator[None]:
        """Have no pause while this lasts."""
        self._num_hurrying += 1
        self._changed.notify_all()
        try:
            yield
        finally:
            self._num_hurrying -= 1

    def _is_done(self) -> bool:
        return not self._writes and not self._orders and self._in_hand is None

    def _owners(self, deleted_id: int) -> dict[bytes, int]:
        """Return for each page of another conversation's waiting sequence whose it is as well."""
        return {
            key: write.conversation_id
            for write in self._writes.values()
            if isinstance(write, StoredSequence) and write.conversation_id != deleted_id
            for key in write.keys
        }

    def _drop(self, is_dropped: Callable[[Write], bool], owners: dict[bytes, int] | None = None) -> None:
        kept: dict[_Name, Write] = {}
        for name, write in self._writes.items():
            if not is_dropped(write):
                kept[name] = write
            elif owners and isinstance(write, NewPage) and write.key in owners:
                kept[name] = replace(write, conversation_id=owners[write.key])
        self._writes = kept
        self._nbytes = sum(map(_nbytes_of, kept.values()))
        self._changed.notify_all()


def _name_of(write: Write) -> _Name:
    if isinstance(write, NewPage):
        return write.key
    return write.conversation_id, write.model


def _is_more_exact(former: Write | None, write: Write) -> bool:
    """Return whether a page waits for another conversation with more bits than it would have now."""
    return (
        isinstance(former, NewPage)
        and isinstance(write, NewPage)
        and former.conversation_id != write.conversation_id
        and former.bits > write.bits
    )


def _nbytes_of(write: Write) -> int:
    return len(write.blob if isinstance(write, NewPage) else write.manifest)
