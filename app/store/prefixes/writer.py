"""The thread that does all writing to the pages on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import date

from app.store.errors import StorageFullError, StoreError
from app.store.prefixes.counts import PrefixCounts
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.housekeeping import Housekeeping, most_nbytes
from app.store.prefixes.orders import Order
from app.store.prefixes.own_database import OwnDatabase
from app.store.prefixes.problems import Problems, Side
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.waiting import Waiting, Write
from engine.prefixes.records import NewPage, SaveMode

CLOSE_S = 10.0
"""How long is waited for the thread at the end; what it is doing then is given up with the process."""
PAUSE_RATIO = 9.0
"""A pause behind a write takes so many times as long, unless somebody waits for what is written: a reply may
need the processor and the memory meanwhile."""
AGAIN_S = 0.1
"""After how long is tried again what a reader stood in the way of."""


class PrefixWriter:
    """Does what waits, one thing after another; its thread is begun with the first.

    A write that fails is given up with all that waits behind it: it can be read again. An order that fails is
    done later.

    Args:
        database: the thread's own.
        waiting: what is to be done.
        settings: what holds at the moment.
    """

    def __init__(
        self,
        database: OwnDatabase,
        waiting: Waiting,
        problems: Problems,
        counts: PrefixCounts,
        settings: Callable[[], PrefixSettings],
    ) -> None:
        self._database = database
        self._waiting = waiting
        self._problems = problems
        self._counts = counts
        self._settings = settings
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._written = date.min, 0

    def begin(self) -> None:
        """Begin the thread, unless it runs."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="prefix writer", daemon=True)
                self._thread.start()

    def join(self) -> None:
        """Wait for the end of the thread, once nothing waits any more and nothing is taken."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_S)

    @property
    def written_today_nbytes(self) -> int:
        """Bytes that were written to disk today, as far as this thread knows."""
        day, nbytes = self._written
        return nbytes if day == date.today() else 0

    def _run(self) -> None:
        try:
            while (job := self._waiting.take()) is not None:
                if isinstance(job, Write):
                    self._write(job)
                else:
                    self._follow(job)
        finally:
            self._waiting.abandon()
            self._database.close()

    def _write(self, write: Write) -> None:
        started_s = time.monotonic()
        try:
            self._database.use(lambda database: self._put(database, write))
        except StoreError as error:
            self._problems.met(Side.WRITING, error)
            self._give_up()
        else:
            self._problems.gone(Side.WRITING)
        self._waiting.done()
        self._waiting.pause(PAUSE_RATIO * (time.monotonic() - started_s))

    def _follow(self, order: Order) -> None:
        try:
            is_done = order(self._database)
        except StoreError as error:
            self._problems.met(Side.WRITING, error)
            self._waiting.postpone()
            self._waiting.stall(self._problems.pause_left_s(Side.WRITING))
            return
        if not self._problems.pause_left_s(Side.WRITING):
            self._problems.gone(Side.WRITING)
        if is_done:
            self._waiting.done()
        else:
            self._waiting.postpone()
            self._waiting.rest(AGAIN_S)

    def _put(self, database: PrefixDatabase, write: Write) -> None:
        settings = self._settings()
        today, written = date.today(), database.written_today()  # before the write: it may end tomorrow
        if settings.mode is SaveMode.NEVER or written >= settings.most_written_nbytes:
            self._give_up()
        elif isinstance(write, NewPage):
            self._make_room(database, len(write.blob), settings)
            nbytes = database.put_page(write)
            self._counts.add(saved=int(nbytes > 0))
            written += nbytes
        else:
            self._make_room(database, len(write.manifest), settings)
            written += database.put_sequence(write)
        self._written = today, written

    def _give_up(self) -> None:
        self._waiting.give_up()
        self._counts.add(losses=1)

    def _make_room(self, database: PrefixDatabase, nbytes: int, settings: PrefixSettings) -> None:
        path = self._database.path
        evicted = Housekeeping(database).make_room(nbytes, most_nbytes(path, settings.most_nbytes))
        if evicted is None:
            raise StorageFullError(
                "Nothing more is saved in the prefix cache: its limit is too small, or the disk is almost "
                "full. Raise the limit in the settings of the prefix cache, or free some space."
            )
        self._counts.add(evicted=evicted)
