"""Taking a sequence's keys and values out of memory and back, so that it goes on as if they had stayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import mlx.core as mx
import numpy as np

from engine.kv.blob import Blob, DamagedBlobError
from engine.kv.codec import (
    OpenArrays,
    OpenedPage,
    OpenHeader,
    decode_open,
    encode_open,
    encode_page,
    open_page,
    place_pages,
)
from engine.kv.growing import GrowingCache
from engine.kv.page import BoolArray, IntArray, Page, still_marked
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.precision import Tier

BATCH_NBYTES = 16 * 1024**2
"""Blobs that are put into the pools at once: each pool then changes once for many pages."""


@dataclass(eq=False)
class Outside:
    """Where a sequence stands whose keys and values are elsewhere.

    Attributes:
        pages: those that are to come, in the order of their blobs, even if another sequence has them here.
        open_kept: which of the open tokens of the last blob it has; empty where there is no such blob.
        steps: the bits that pages are brought down to one after another, as in `HeldBits.array`, where that
            is not `Page.path`.
        taken: those pages that are here, each counted once.
        waiting: pages whose blobs were checked and are put into the pools with the next ones.
    """

    pages: tuple[Page, ...]
    open_kept: BoolArray
    steps: dict[Page, list[IntArray]] = field(default_factory=dict)
    taken: dict[Page, None] = field(default_factory=dict)
    waiting: dict[Page, OpenedPage] = field(default_factory=dict)

    def missing(self) -> list[Page]:
        """Return the pages that are still to come."""
        return [page for page in self.pages if page not in self.taken and page not in self.waiting]

    def part(self, references: Sequence[Page], open_kept: BoolArray) -> tuple[Outside, list[int]]:
        """Return the same for a sequence of these pages only, and which blobs these take."""
        needed = set(references)
        blobs = [number for number, page in enumerate(self.pages) if page in needed]
        pages = tuple(self.pages[number] for number in blobs)
        open_kept = still_marked(self.open_kept, open_kept)
        if not open_kept.any():
            return Outside(pages, open_kept[:0], self.steps), blobs
        return Outside(pages, open_kept, self.steps), [*blobs, len(self.pages)]


class MovableCache(GrowingCache):
    """A cache whose keys and values can leave memory and come back, bit for bit.

    Between the two it cannot be used, but knows its tokens, its precision, its pins and where its attention
    went.
    """

    _outside: Outside | None = None

    @property
    def can_move(self) -> bool:
        """Whether keys and values can leave: only where every layer is paged."""
        return not self._others

    @property
    def is_outside(self) -> bool:
        """Whether the keys and values have left."""
        return self._outside is not None

    @property
    def num_pages(self) -> int:
        """How many pages it has, here or outside."""
        return len(self._distinct_pages())

    @property
    def referred_nbytes(self) -> int:
        """Bytes of the pages that this sequence reads, shared ones too, and of what it shares with none."""
        here = [page for page in self._distinct_pages() if page in self._store.pages]
        return sum(page.nbytes for page in here) + self.open_nbytes

    @property
    def unused_nbytes(self) -> int:
        """Bytes of the room in the pages, and behind the open tokens, that no token uses."""
        (whole,) = self.span_usage([TextSpan(SpanKind.USER, "", 0, self.num_tokens)])
        return self.referred_nbytes - whole.nbytes

    def _distinct_pages(self) -> list[Page]:
        return list(dict.fromkeys(reference.page for reference in self._table.references))

    def close(self) -> None:
        """Give all memory back; the cache cannot be used after that."""
        if self._outside is not None:
            self._give_back(self._outside)
        super().close()

    def move_out(self, write: Callable[[Blob], None]) -> None:
        """Hand over all pages and the open tokens, one blob at a time, and give their memory back.

        Where `write` raises, nothing has changed.
        """
        mx.synchronize()
        table = self._table
        pages = self._distinct_pages()
        header = OpenHeader(table.open_tokens, table.open_positions)
        for page in pages:
            write(encode_page(page, self._form, self._store))
        if header.tokens:
            write(encode_open(header, self._open_arrays(), self._form))
        self._outside = Outside(tuple(pages), np.ones(len(header.tokens), dtype=np.bool_))
        table.let_go()
        for layer in self._paged:
            layer.clear()
        self._store.defragment()

    def move_in(self, blobs: Iterator[Blob]) -> None:
        """Take back what `move_out` handed over, in the same order.

        A page that another sequence still reads is shared with it again, with the bits that it has now.

        Raises:
            BlobError: something else came. Then, as when `blobs` raises, all is still outside.
        """
        outside = self._outside
        assert outside is not None
        try:
            for page in outside.pages:
                blob = next(blobs)
                if page in self._store.pages:
                    self._share(outside, page)
                else:
                    self._take(outside, page, open_page(blob, self._form))
            opened = decode_open(next(blobs), self._form)[1] if len(outside.open_kept) else {}
            self._place(outside)
        except BaseException:
            self._give_back(outside)
            raise
        self._return(outside, opened)

    def _share(self, outside: Outside, page: Page) -> None:
        """Have a page that is here for another sequence, which may give it up at any time."""
        self._store.retain(page)
        outside.taken[page] = None

    def _take(self, outside: Outside, page: Page, opened: OpenedPage) -> None:
        """Have the blocks of a page, which may be put into the pools with later ones.

        Raises:
            DamagedBlobError: they are another page's.
        """
        if opened.chain != page.chain or tuple(opened.header.positions) != page.positions:
            raise DamagedBlobError("it is another page")
        outside.waiting[page] = opened
        if sum(each.reader.nbytes for each in outside.waiting.values()) >= BATCH_NBYTES:
            self._place(outside)

    def _place(self, outside: Outside) -> None:
        """Put the pages that wait into the pools, with the bits and the tiers that they are to have."""
        num_more = len(outside.missing())
        waiting = {page: opened for page, opened in outside.waiting.items() if page not in self._store.pages}
        place_pages(list(waiting.items()), self._store, num_more)
        for page in outside.waiting:
            self._share(outside, page)
        outside.waiting = {}
        self._bring_down(list(waiting), [outside.steps.get(page, page.path) for page in waiting])
        for page, opened in waiting.items():
            page.tier = max(page.tier, Tier(opened.header.tier), key=list(Tier).index)
            page.note_bits()
        mx.clear_cache()  # each pool that has grown left a buffer

    def _bring_down(self, pages: Sequence[Page], steps: Sequence[Sequence[IntArray]]) -> None:
        """Take pages through the bits that each is to go through, which need not be as many for all."""
        for turn in range(max(map(len, steps), default=0)):
            now = [(page, each[turn]) for page, each in zip(pages, steps, strict=True) if turn < len(each)]
            now = [(page, bits) for page, bits in now if (page.held_bits().array > bits).any()]
            if now:
                self._store.lower_to(*zip(*now, strict=True))

    def _give_back(self, outside: Outside) -> None:
        """Have nothing here any more."""
        outside.waiting.clear()
        for page in outside.taken:
            self._store.release(page)
        outside.taken.clear()
        self._store.defragment()

    def _return(self, outside: Outside, opened: OpenArrays) -> None:
        """Go on with the pages, which are all here, and the open tokens, none where there are none."""
        self._table.hold()
        self._outside = None
        self._give_back(outside)
        if opened:
            self._reopen_with(opened, outside.open_kept)
        self._table.skip_to_end()
        for layer in self._paged:
            layer.offset = self._table.next_position

    def _keep_outside(self, start: int, stop: int) -> list[int]:
        """Have only some of the tokens that are outside; return the numbers of the blobs that these take."""
        outside, table = self._outside, self._table
        assert outside is not None
        index = np.arange(self.num_tokens)
        open_kept = table.keep((start <= index) & (index < stop))
        self._outside, blobs = outside.part(self._distinct_pages(), open_kept)
        table.next_position = 0  # what comes in says where it ends
        table.break_off()
        return blobs

    def _reopen_with(self, arrays: OpenArrays, kept: BoolArray) -> None:
        index = mx.array(np.flatnonzero(kept))
        for layer in self._paged:
            keys, values = arrays[layer.number]
            layer.set_open(keys[:, index], values[:, index], self._table.next_position)
            mx.eval(layer.state)

    def _open_arrays(self) -> OpenArrays:
        """Return the keys and values of the tokens that the table has; a queued pass may have put more."""
        count = len(self._table.open_tokens)
        return {layer.number: layer.first_open(count) for layer in self._paged}
