"""Taking text out of the KV cache of one sequence and putting text in, so that nothing else is read again."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from typing import Self

import mlx.core as mx
import numpy as np

from engine.errors import OctavoError
from engine.kv.heat import Watcher
from engine.kv.layers import trim_to
from engine.kv.page import Page
from engine.kv.storable import StorableCache


class EditableCache(StorableCache):
    """A cache whose tokens can be taken out, put back, and shared with other sequences."""

    @property
    def can_edit(self) -> bool:
        """Whether tokens can be dropped or spliced and sequences forked: only where every layer is paged."""
        return not self._others

    def truncate(self, length: int) -> bool:
        """Forget all tokens from `length` on; return False, unchanged, where a layer cannot do that."""
        length = max(0, length)
        if length >= self.num_tokens:
            return True
        if not trim_to(self._others, length):
            return False
        self._table.next_position = self._table.position(length - 1) + 1 if length else 0
        self._keep(np.arange(self.num_tokens) < length)
        self._reopen()
        self._table.break_off_at_end()
        self._store.defragment()
        return True

    def fork(self, *, is_aside: bool = False) -> Self:
        """Return a cache with the same tokens that shares all pages; only the open tokens are copied.

        A page that either lowers loses bits for both. An aside lowers no page that it shares, and where its
        attention goes is no heat: the other one goes on as if it had not been.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("branched")
        other = copy.copy(self)
        other._is_aside |= is_aside
        other._watcher = Watcher()
        other.layers = [layer.fork(other._watcher) for layer in self._paged]
        other._begin(self._table.fork())
        other._heat.num_decoded = self._heat.num_decoded  # by which its pages say when they were read
        other.realign()  # a queued pass has put a token into the layers that is not committed
        return other

    def drop(self, start: int, stop: int) -> None:
        """Forget the tokens from `start` to `stop`; later ones keep their positions and are not read again.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("taken out of")
        index = np.arange(self.num_tokens)
        self._keep((index < start) | (index >= stop))
        self._table.break_off()
        self._store.defragment()

    def gap(self, at: int) -> range:
        """Return the positions that are unused before the token at index `at`.

        Behind the last token those are all that follow, up to `sys.maxsize`; reading there begins at
        `next_position`.
        """
        start = self.position(at - 1) + 1 if at else 0
        return range(start, self.position(at) if at < self.num_tokens else sys.maxsize)

    def free_positions(self, at: int) -> int:
        """Return how many tokens could be spliced before the one at index `at`."""
        return len(self.gap(at))

    def detach(self, start: int, stop: int) -> Self:
        """Take the tokens from `start` to `stop` out and return them as a sequence, the piece.

        Later tokens keep their positions and are not read again. Nothing is copied but open tokens: a page of
        which both have tokens is shared. A piece can leave memory and come back, be detached from itself, and
        be attached where its positions are unused.

        A forward pass that is still queued must be finished and committed before (`mx.synchronize`,
        `commit`): what it has put into the layers would be forgotten.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("taken out of")
        index = np.arange(self.num_tokens)
        is_taken = (start <= index) & (index < stop)
        piece = self.fork()
        piece._keep(is_taken)
        piece._end_at_last_token()
        self._keep(~is_taken)
        for table in (piece._table, self._table):
            table.break_off()
        self._store.defragment()
        return piece

    def attach(self, at: int, piece: EditableCache) -> None:
        """Put a piece before the token at index `at`, at the positions that it has; nothing is read.

        What follows attends to it from now on. The piece is used up. A queued pass is as in `detach`.

        Raises:
            OctavoError: some layers are not paged, or positions of the piece are in use. Nothing has changed.
            ValueError: the piece comes from a sequence that shares no pages with this one.
        """
        self._require_paged("put into")
        self._require_gap(at, piece, start=0)
        index = np.arange(self.num_tokens)
        head = self.fork()
        head._keep(index < at)
        self._keep(index >= at)
        self._table.break_off()
        self._prepend(piece)
        self._prepend(head)
        self._settle()

    def part_outside(self, start: int, stop: int) -> tuple[Self, list[int]]:
        """Return the tokens from `start` to `stop` of a piece that is outside as a piece that is outside.

        Also the numbers of the blobs, as `move_out` wrote them, that are to be given to its `move_in`.
        """
        part = self.fork()
        return part, part._keep_outside(start, stop)

    def begin_splice(self, at: int) -> Self:
        """Return a fork that ends before the token at index `at`, the head: read the new text into it.

        So that can be done in chunks, be watched, and be given up (`close`), which changes nothing here.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("put into")
        head = self.fork()
        head.watch(self._watcher.before_layer)
        head.truncate(at)
        return head

    def end_splice(self, at: int, head: EditableCache) -> None:
        """Put what was read into the head since `begin_splice(at)` before the token at index `at`.

        What follows attends to it from now on and is not read again. The head is used up. This sequence must
        be as it was at `begin_splice`; a queued pass is as in `detach`.

        Raises:
            OctavoError: more was read than there are unused positions. Nothing has changed.
            ValueError: the head comes from a sequence that shares no pages with this one.
        """
        self._require_paged("put into")
        self._require_gap(at, head, start=at)
        self._keep(np.arange(self.num_tokens) >= at)
        self._table.break_off()
        self._prepend(head)
        self._settle()

    # What is shared.

    def shares_with(self, other: EditableCache) -> bool:
        """Whether both have their pages in one store, so that one can take over what the other has."""
        return self._store is other._store

    @staticmethod
    def pages_of(caches: Iterable[EditableCache]) -> set[Page]:
        """Return the pages that any of several sequences reads."""
        return {reference.page for cache in caches for reference in cache._table.references}

    @staticmethod
    def total_nbytes(caches: Iterable[EditableCache]) -> int:
        """Return the bytes of several sequences, what they share counted once."""
        caches = list(caches)
        stores = {cache._store for cache in caches}
        return sum(store.nbytes for store in stores) + sum(cache.open_nbytes for cache in caches)

    def _require_paged(self, what: str) -> None:
        if not self.can_edit:
            raise OctavoError(
                f"Text cannot be {what} this conversation's cache without reading the rest again: {self.note}"
            )

    def _require_gap(self, at: int, other: EditableCache, *, start: int) -> None:
        """Insist that the tokens of another sequence from `start` on may stand before the token at `at`."""
        if not self.shares_with(other):
            raise ValueError("These are the keys and values of another cache.")
        gap, last = self.gap(at), other.num_tokens - 1
        if last < start or (gap.start <= other.position(start) and other.position(last) < gap.stop):
            return
        self._require_room(len(gap), other.num_tokens - start)
        raise OctavoError("The positions of the text that is to come back are in use. It must be read again.")

    @staticmethod
    def _require_room(num_free: int, num_tokens: int) -> None:
        if num_free < num_tokens:
            raise OctavoError(
                f"There is room for {num_free:,} tokens where the text was taken out, and {num_tokens:,} are "
                "to go there. Make the new text shorter."
            )

    def _end_at_last_token(self) -> None:
        """Have the next token follow the last one, without a gap."""
        self._table.next_position = 0
        self._table.skip_to_end()
        self.realign()

    def _prepend(self, other: EditableCache) -> None:
        """Take over all that another sequence has, before what is here."""
        if self._table.references and other._table.open_tokens:
            other._seal_full()
            if other._table.open_tokens:
                other._seal(len(other._table.open_tokens))
        self._table.prepend(other._table)
        self.is_behind |= other.is_behind or other.spec != self.spec
        for layer, before in zip(self._paged, other._paged, strict=True):
            layer.prepend_open(before)
            layer.offset = self._table.next_position
        other._table.set_references(())
        other.layers = []

    def _settle(self) -> None:
        """Seal the pages that became full, bring all to their tiers, and give back what is no longer used."""
        self._seal_full()
        self._move_tiers()
        self._store.defragment()

    def _reopen(self) -> None:
        """Copy a page that truncating has left partly filled back to the open tokens, while it is exact.

        New tokens then fill that page up instead of beginning another. What was quantized stays where it is.
        """
        references = self._table.references
        if not references or self._table.open_tokens:
            return
        last = references[-1]
        if last.num_tokens == self.spec.page_tokens or not last.page.is_exact:
            return
        slots = mx.array(np.flatnonzero(last.valid))
        for layer in self._paged:
            keys, values = self._store.read(last.page, layer.number)
            layer.set_open(keys.swapaxes(1, 2)[:, slots], values[:, slots], layer.offset)
            mx.eval(layer.state)
        self._table.reopen_last()
