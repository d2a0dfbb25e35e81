"""Taking a sequence's keys and values out of memory and back, so that it goes on as if they had stayed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from engine.kv.blob import Blob, BlobFormat
from engine.kv.codec import OpenArrays, OpenHeader, decode_open, decode_page, encode_open, encode_page
from engine.kv.growing import GrowingCache
from engine.kv.page import BoolArray, Page, still_marked
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.page_table import PageReference


@dataclass(eq=False)
class _HandedOver:
    """A page that was handed over; all parts of a sequence have this in common.

    Attributes:
        page: what it is here, while another sequence or a part that came back still reads it.
    """

    page: weakref.ref[Page]


@dataclass(frozen=True, eq=False)
class _Outside:
    """What stays here of a sequence whose keys and values are elsewhere.

    Attributes:
        form: what its blobs have in common, None where there are none.
        pages: those that were handed over.
        references: which of these pages the sequence reads, in order, and which of their tokens.
        open_kept: which of the open tokens that were handed over it has; empty where none were.
    """

    form: BlobFormat | None
    pages: tuple[_HandedOver, ...]
    references: tuple[tuple[int, BoolArray], ...]
    open_kept: BoolArray

    def part(self, kept: BoolArray) -> tuple[_Outside, list[int]]:
        """Return the same for a sequence of the tokens that are marked only, and which blobs these take."""
        references, start = [], 0
        for number, valid in self.references:
            count = int(valid.sum())
            valid = still_marked(valid, kept[start : start + count])
            start += count
            if valid.any():
                references.append((number, valid))
        blobs = sorted({number for number, _ in references})
        renumbered = tuple((blobs.index(number), valid) for number, valid in references)
        open_kept = still_marked(self.open_kept, kept[start:])
        pages = tuple(self.pages[number] for number in blobs)
        if not open_kept.any():
            return _Outside(self.form, pages, renumbered, open_kept[:0]), blobs
        return _Outside(self.form, pages, renumbered, open_kept), [*blobs, len(self.pages)]


class MovableCache(GrowingCache):
    """A cache whose keys and values can leave memory and come back, bit for bit.

    Between the two it cannot be used, but knows its precision, its pins and where its attention went.
    """

    _outside: _Outside | None = None

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
        return len(self._outside.pages) if self._outside else len(self._distinct_pages())

    @property
    def referred_nbytes(self) -> int:
        """Bytes of the pages that this sequence reads, shared ones too, and of what it shares with none."""
        return sum(page.nbytes for page in self._distinct_pages()) + self.open_nbytes

    @property
    def unused_nbytes(self) -> int:
        """Bytes of the room in the pages, and behind the open tokens, that no token uses."""
        (whole,) = self.span_usage([TextSpan(SpanKind.USER, "", 0, self.num_tokens)])
        return self.referred_nbytes - whole.nbytes

    def _distinct_pages(self) -> list[Page]:
        return list(dict.fromkeys(reference.page for reference in self._table.references))

    def move_out(self, write: Callable[[Blob], None]) -> None:
        """Hand over all pages and the open tokens, one blob at a time, and give their memory back.

        Where `write` raises, nothing has changed.
        """
        mx.synchronize()
        table = self._table
        form = self._format() if self.num_tokens else None
        pages = self._distinct_pages()
        header = OpenHeader(table.open_tokens, table.open_positions)
        if form is not None:
            for page in pages:
                write(encode_page(page, form, self._store))
            if header.tokens:
                write(encode_open(header, self._open_arrays(), form))
        places = {page: index for index, page in enumerate(pages)}
        references = tuple((places[reference.page], reference.valid) for reference in table.references)
        handed_over = tuple(_HandedOver(weakref.ref(page)) for page in pages)
        self._outside = _Outside(form, handed_over, references, np.ones(len(header.tokens), dtype=np.bool_))
        table.set_references(())
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
        if outside.form is not None:
            pages, opened = self._taken_in(blobs, outside, outside.form)
            self._table.set_references(
                [PageReference(pages[index], valid) for index, valid in outside.references]
            )
            for page in pages:
                self._store.release(page)
            if opened:
                self._reopen_with(opened, outside.open_kept)
            self._table.skip_to_end()
        for layer in self._paged:
            layer.offset = self._table.next_position
        self._outside = None

    def _taken_in(
        self, blobs: Iterator[Blob], outside: _Outside, form: BlobFormat
    ) -> tuple[list[Page], OpenArrays]:
        """Return the pages, each retained once, and the open tokens, none where there are none."""
        pages: list[Page] = []
        try:
            for handed_over in outside.pages:
                blob, page = next(blobs), handed_over.page()
                if page is None or page not in self._store.pages:
                    page = decode_page(blob, form, self._store)
                    handed_over.page = weakref.ref(page)
                    mx.clear_cache()  # each pool that has grown left a buffer
                self._store.retain(page)  # what others read may be given up at any time
                pages.append(page)
            return pages, decode_open(next(blobs), form)[1] if len(outside.open_kept) else {}
        except BaseException:
            for page in pages:
                self._store.release(page)
            self._store.defragment()
            raise

    def _keep_outside(self, start: int, stop: int) -> list[int]:
        """Have only some of the tokens that are outside; return the numbers of the blobs that these take."""
        outside, table = self._outside, self._table
        assert outside is not None
        num_sealed = sum(int(valid.sum()) for _, valid in outside.references)
        index = np.arange(num_sealed + len(table.open_tokens))
        self._outside, blobs = outside.part((start <= index) & (index < stop))
        opened = slice(max(0, start - num_sealed), max(0, stop - num_sealed))
        table.open_tokens = table.open_tokens[opened]
        table.open_positions = table.open_positions[opened]
        table.next_position = 0  # what comes in says where it ends
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

    def _format(self) -> BlobFormat:
        """Return what the blobs of this sequence have in common; it must have tokens."""
        if self._table.open_tokens:
            types = {
                number: (keys.dtype, values.dtype) for number, (keys, values) in self._open_arrays().items()
            }
        else:
            page = self._table.references[0].page
            types = {number: self._store.activation_types(page, number) for number in self._store.shapes}
        return BlobFormat.of(self._store, types)
