"""A context whose keys and values are in a store of pages, and how they come into memory."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from engine.errors import Cancelled
from engine.held_context import HeldContext
from engine.kv.blob import BlobError
from engine.kv.codec import OpenedPage
from engine.kv.lineage import page_key
from engine.lost_text import DAMAGED, EVICTED, LostText
from engine.prefixes.records import Absence, PrefixStore
from engine.spans import Prompt

log = logging.getLogger(__name__)

READ_AHEAD_PAGES = 2
"""Pages that are read and checked before the one that is taken in."""
_WHY = {Absence.EVICTED: EVICTED, Absence.DAMAGED: DAMAGED}


class StoredContext:
    """What is stored of a conversation, or of the beginning of a prompt.

    Attributes:
        context: its cache is outside until all pages that are there have come in.
    """

    def __init__(
        self, context: HeldContext, chains: Sequence[bytes], store: PrefixStore, root: bytes
    ) -> None:
        """Args:
        context: of which all pages are outside.
        chains: the chain keys of its pages, in the order of the text.
        store: has the pages.
        root: what the keys of these have in common; see `root_key`.
        """
        self.context = context
        self._store = store
        self._read = context.held
        self._keys = {chain: page_key(root, chain) for chain in chains}
        self._absence: Absence | None = None
        self._cut_at_missing()
        self._nbytes = context.cache.outside_nbytes

    @property
    def text(self) -> Prompt:
        """What comes back of what was read, as far as that is known."""
        return self.context.held

    @property
    def missing_nbytes(self) -> int:
        """Bytes that it will take in memory beside those that it takes already.

        The first pages make room for the others.
        """
        cache = self.context.cache
        return max(0, min(cache.outside_nbytes, self._nbytes - cache.nbytes))

    def bring_in(self, check: Callable[[], None]) -> LostText | None:
        """Bring the pages in, the hottest first; where one is not there or damaged, the text ends before it.

        Returns: what did not come in, None where all did.

        Raises:
            Cancelled: `check`, which is called between pages, says so. What has come in stays.
        """
        cache = self.context.cache
        with ThreadPoolExecutor(1, "octavo-check-pages") as checking:
            while chains := cache.outside_chains:
                for chain, opened in self._read_ahead(chains, checking, check):
                    absence = self._take_in(chain, opened)
                    if absence is not None:
                        self._cut(chain, absence)
                        break
        cache.come_in()
        self._store.touch([self._keys[page.chain] for page in cache.savable_pages()])
        return self.lost

    @property
    def lost(self) -> LostText | None:
        """What does not come in, as far as that is known."""
        return None if self._absence is None else LostText(_WHY[self._absence], self._read)

    def discard(self) -> None:
        """Leave what is stored where it is: it outlives this process."""

    def _cut_at_missing(self) -> None:
        """End the text before the first page that is known not to be stored, with one query."""
        stored = self._store.stored_bits(self._keys.values())
        missing = next((chain for chain, key in self._keys.items() if key not in stored), None)
        if missing is not None:
            self._cut(missing, Absence.EVICTED)

    def _read_ahead(
        self, chains: Sequence[bytes], checking: Executor, check: Callable[[], None]
    ) -> Iterator[tuple[bytes, Future[OpenedPage] | None]]:
        """Read pages, and have them checked on another thread while those before them are taken in.

        A stop comes behind those that were read.
        """
        ahead: deque[tuple[bytes, Future[OpenedPage] | None]] = deque()
        for chain in chains:
            try:
                check()
            except Cancelled:
                yield from ahead
                raise
            blob = self._store.read_page(self._keys[chain])
            opened = None if blob is None else checking.submit(self.context.cache.opened, blob)
            ahead.append((chain, opened))
            if len(ahead) > READ_AHEAD_PAGES:
                yield ahead.popleft()
        yield from ahead

    def _take_in(self, chain: bytes, opened: Future[OpenedPage] | None) -> Absence | None:
        """Take a page in; return why it cannot be where it cannot."""
        if opened is None:
            return Absence.EVICTED
        try:
            self.context.cache.take_in(chain, opened.result())
        except BlobError as error:
            log.warning("A stored page is dropped: %s", error)
            self._store.drop_page(self._keys[chain])
            return Absence.DAMAGED
        return None

    def _cut(self, chain: bytes, absence: Absence) -> None:
        self.context.cache.cut_outside(chain)
        self._absence = absence
