"""The store of pages that outlives the process, as the engine and the window see it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from app.store.errors import StoreError, store_errors
from app.store.prefixes.counts import PrefixCounts
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.digests import ModelDigests
from app.store.prefixes.housekeeping import Housekeeping, most_nbytes, taken_nbytes
from app.store.prefixes.orders import Order, clear, give_back, in_file, where_it_exists
from app.store.prefixes.own_database import OwnDatabase
from app.store.prefixes.problems import Problems, Side
from app.store.prefixes.reading import PrefixFinder, PrefixReader, StoredName
from app.store.prefixes.records import PrefixEntry, PrefixFigures, PrefixSettings
from app.store.prefixes.waiting import Waiting, Write
from app.store.prefixes.writer import PrefixWriter
from engine.cancel import CancelToken
from engine.prefixes.records import NewPage, PrefixStore, SaveMode, StoredPage, StoredSequence

log = logging.getLogger(__name__)

PAUSE_S = 30.0
"""What went wrong is not tried again for so long."""
WRITTEN_TWICE = 2
"""SQLite writes what is new to its log and then to the file."""
_DAY_IS_FULL = (
    "Nothing more is saved in the prefix cache today: as much was written as its settings allow. "
    "It goes on tomorrow, or with a higher limit."
)


class PrefixService(PrefixStore):
    """`prefixes.db` for one process: read on the engine's thread, written on one of its own.

    Nothing raises: what cannot be read is not there, what cannot be written is not kept, and when the cause
    is gone it goes on by itself. Nothing is opened and no thread is begun before it is needed.

    Attributes:
        path: the file.
    """

    def __init__(
        self,
        path: Path,
        settings: PrefixSettings | None = None,
        on_problem: Callable[[str], None] = log.warning,
        pause_s: float = PAUSE_S,
    ) -> None:
        """Args:
        path: of the file; it is created when something is kept.
        settings: what may be kept.
        on_problem: called once for each new problem with a sentence, on the thread that met it.
        pause_s: for how long what went wrong is not tried again.
        """
        self.path = path
        self._settings = settings or PrefixSettings()
        self._problems = Problems(on_problem, pause_s)
        self._counts = PrefixCounts()
        self._waiting = Waiting()
        self._writer = PrefixWriter(
            OwnDatabase(path, self._problems, self._counts),
            self._waiting,
            self._problems,
            self._counts,
            lambda: self._settings,
        )
        self._digests = ModelDigests(self._remembered, self._remember)
        self._reader = PrefixReader(path, self._problems, self._counts)
        self._finder = PrefixFinder(self._reader, self._waiting, self._counts)
        self._used: set[tuple[int, str]] = set()
        """Sequences that were noted as used: once is enough, as each reply saves them again."""

    # For the window and the terminal, from any thread; none waits for the thread that writes.

    @property
    def settings(self) -> PrefixSettings:
        """What may be kept; a change holds from now on, and deletes nothing but what passes the limit."""
        return self._settings

    @settings.setter
    def settings(self, settings: PrefixSettings) -> None:
        former, self._settings = self._settings, settings
        if settings.mode not in (former.mode, SaveMode.EVERYTHING):
            self._waiting.give_up()
            self._counts.add(losses=1)
        if settings.most_nbytes != former.most_nbytes:
            self._order(where_it_exists(self._keep_below_the_limit), give_back)

    def figures(self) -> PrefixFigures:
        """Return the figures of the whole store."""
        num_pages, written = self._reader.ask_briefly(
            lambda database: (Housekeeping(database).num_pages(), database.written_today()),
            (0, self._writer.written_today_nbytes),
        )
        nbytes, most = self._sizes()
        return PrefixFigures(
            num_pages=num_pages,
            nbytes=nbytes,
            most_nbytes=most,
            written_today_nbytes=written,
            most_written_nbytes=self._settings.most_written_nbytes,
            waiting_nbytes=self._waiting.nbytes,
            saved=self._counts.saved,
            restored=self._counts.restored,
            evicted=self._counts.evicted,
            damaged=self._counts.damaged,
            problem=self._problems.sentence or (_DAY_IS_FULL if self._is_day_full(written) else None),
        )

    def entries(self) -> tuple[PrefixEntry, ...]:
        """Return what is kept by conversation, last used first."""
        return self._reader.ask_briefly(lambda database: Housekeeping(database).entries(), ())

    def pin(self, conversation_id: int, pinned: bool) -> None:
        """Let a conversation's pages go last when room is needed, or no longer."""
        self._order(in_file(lambda database: database.pin(conversation_id, pinned)))

    def delete(self, conversation_id: int) -> None:
        """Delete what is kept of a conversation and let nothing of it be kept any more, at once.

        Its pages that other conversations use stay. Its words are in none of the files when `flush` returns.
        `allow` it again where the conversation goes on.
        """
        delete = where_it_exists(lambda database: Housekeeping(database).delete(conversation_id))
        self._waiting.delete(conversation_id, delete)
        self._order(give_back)

    def allow(self, conversation_id: int) -> None:
        """Let a conversation be kept again: its deletion was undone, or only what is kept was deleted."""
        if self._waiting.allow(conversation_id):
            self._counts.add(losses=1)

    def clear(self) -> None:
        """Delete all that is kept, also what waits to be written; what is put from now on is kept.

        It is no loss: a conversation that is in memory is put again when it goes on.
        """
        self._waiting.give_up(clear)
        self._writer.begin()

    def keep_only(self, conversation_ids: Collection[int]) -> None:
        """Delete what is kept of conversations that are not among these, nor put since the start."""
        kept = frozenset(conversation_ids)
        self._order(
            where_it_exists(lambda database: Housekeeping(database).keep_only(kept | self._waiting.seen)),
            give_back,
        )

    def flush(self, timeout_s: float, leaving: CancelToken | None = None) -> bool:
        """Wait until all is written and deleted, for so many seconds at most; return whether it is.

        What could not be done is tried again at once. Where that is in vain, it returns then: `figures` tell
        the problem. Returns soon after `leaving` is cancelled, too.
        """
        return self._waiting.flush(timeout_s, leaving)

    def leave(self) -> None:
        """Close the calling thread's connection; each thread that the engine runs on does so at its end."""
        self._reader.leave()

    def close(self) -> None:
        """End the writing after what is being written, close this thread's connection, keep nothing any more.

        What still waits to be written is dropped (`flush` first), what is to be deleted is deleted.
        """
        self._digests.close()
        self._waiting.close()
        self._writer.join()
        self.leave()

    # The engine's side, on its own thread; see `PrefixStore`.

    @property
    def mode(self) -> SaveMode:
        """What may be kept now."""
        return self._settings.mode

    def model_digest(self, path: Path) -> str | None:
        """Return the digest of a model's content, None while it is being found out."""
        return self._digests.digest(path)

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the stored pages of the longest beginning of `keys` that is there whole."""
        return self._finder.find_pages(keys)

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored, or on their way there."""
        return self._finder.stored_bits(keys)

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not there."""
        return self._finder.read_page(key)

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read."""
        found = self._finder.find_sequence(conversation_id, model)
        if found is not None and (conversation_id, model) not in self._used:
            self._used.add((conversation_id, model))
            self._order(where_it_exists(lambda database: database.touch_sequence(conversation_id, model)))
        return found

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether only another model's pages are kept of a conversation."""
        return self._finder.is_of_other_model(conversation_id, model)

    def touch(self, keys: Collection[bytes]) -> None:
        """Take note that pages were used now."""
        touched = tuple(keys)
        self._order(where_it_exists(lambda database: database.touch(touched)))

    def drop_page(self, key: bytes) -> None:
        """Delete and count a page that is not what was written; it is not found again."""
        self._waiting.drop_page(key)
        self._drop(key, lambda database: database.drop_page(key))

    def drop_sequence(self, conversation_id: int, model: str) -> None:
        """Delete and count a manifest that is not what was written; it is not found again."""
        name = conversation_id, model
        self._waiting.drop_sequence(conversation_id, model)
        self._drop(name, lambda database: database.drop_sequence(*name))

    @property
    def num_losses(self) -> int:
        """Grows each time that much of what was put may be lost: it may be put again."""
        return self._counts.losses

    @property
    def has_room(self) -> bool:
        """Whether more can be put now."""
        return self._is_taking and self._waiting.has_room

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until there is room, or so many seconds; return whether there is.

        Returns at once where waiting is of no use: nothing may be kept, or the disk is full.
        """
        return self._is_taking and self._waiting.wait_for_room(timeout_s) and self._is_taking

    def put_page(self, page: NewPage) -> bool:
        """Have a page written; return False where there is no room. Of a deleted conversation: dropped."""
        return self._put(page)

    def put_sequence(self, sequence: StoredSequence) -> bool:
        """Have a conversation's pages and manifest noted; return False where there is no room."""
        return self._put(sequence)

    @property
    def _is_taking(self) -> bool:
        return (
            self.mode is not SaveMode.NEVER
            and not self._problems.pause_left_s(Side.WRITING)
            and not self._is_day_full(
                self._writer.written_today_nbytes + WRITTEN_TWICE * self._waiting.nbytes
            )
        )

    def _sizes(self) -> tuple[int, int]:
        """Return what the file takes and may take; nothing where nobody can look at it."""
        try:
            with store_errors(self.path):
                return taken_nbytes(self.path), most_nbytes(self.path, self._settings.most_nbytes)
        except StoreError:
            return 0, 0

    def _is_day_full(self, nbytes: int) -> bool:
        return nbytes >= self._settings.most_written_nbytes

    def _put(self, write: Write) -> bool:
        if not self._is_taking or not self._waiting.put(write):
            return False
        self._writer.begin()
        return True

    def _order(self, *orders: Order) -> None:
        for order in orders:
            self._waiting.order(order)
        self._writer.begin()

    def _drop(self, name: StoredName, deletion: Callable[[PrefixDatabase], object]) -> None:
        def show(own: OwnDatabase) -> bool:
            self._finder.show(name)
            return True

        self._counts.add(damaged=1)
        self._finder.hide(name)
        self._order(where_it_exists(deletion), show)

    def _keep_below_the_limit(self, database: PrefixDatabase) -> None:
        evicted = Housekeeping(database).make_room(0, most_nbytes(self.path, self._settings.most_nbytes))
        self._counts.add(evicted=evicted or 0)

    def _remembered(self, path: Path, marks: str) -> str | None:
        return self._reader.ask(lambda database: database.model_digest(str(path), marks), None)

    def _remember(self, path: Path, marks: str, digest: str) -> None:
        self._order(in_file(lambda database: database.remember_model(str(path), marks, digest)))
