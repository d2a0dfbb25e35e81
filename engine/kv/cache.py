"""The KV cache of one sequence, behind one interface.

Every layer with full attention is paged (`PagedLayer`): its sealed pages lie in a `PageStore` that forks
share, the newest tokens in an open buffer of 16 bits. Layers of other kinds (sliding-window, recurrent,
latent attention) keep mlx-lm's own cache, and `note` says so.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Sequence

import mlx.core as mx
import numpy as np

from engine.errors import OctavoError
from engine.kv.heat import Watcher
from engine.kv.layers import trim_to
from engine.kv.moving import MovableCache

READ_CHUNK_TOKENS = 256
"""Tokens that a rebuild or a splice reads in one forward pass."""


class SequenceCache(MovableCache):
    """A cache whose tokens can be taken out, put in, and shared with other sequences."""

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
        self._table.next_position = self._table.positions[length - 1] + 1 if length else 0
        self._keep(np.arange(self.num_tokens) < length)
        self._reopen()
        self._store.defragment()
        return True

    def fork(self, *, is_aside: bool = False) -> SequenceCache:
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

    def detach(self, start: int, stop: int) -> SequenceCache:
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
        self._store.defragment()
        return piece

    def attach(self, at: int, piece: SequenceCache) -> None:
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
        self._prepend(piece)
        self._prepend(head)
        self._settle()

    def part_outside(self, start: int, stop: int) -> tuple[SequenceCache, list[int]]:
        """Return the tokens from `start` to `stop` of a piece that is outside as a piece that is outside.

        Also the numbers of the blobs, as `move_out` wrote them, that are to be given to its `move_in`.
        """
        part = self.fork()
        return part, part._keep_outside(start, stop)

    def begin_splice(self, at: int) -> SequenceCache:
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

    def end_splice(self, at: int, head: SequenceCache) -> None:
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
        self._prepend(head)
        self._settle()

    def splice(self, at: int, tokens: Sequence[int]) -> None:
        """Read tokens in the gap of positions before the token at index `at`.

        They attend to what precedes them. What follows attends to them from now on and is not read again.

        Raises:
            OctavoError: some layers are not paged, or the gap has fewer positions than there are tokens.
        """
        self._require_paged("put into")
        if at >= self.num_tokens:
            self._read_all(tokens)
            return
        self._require_room(self.free_positions(at), len(tokens))
        head = self.begin_splice(at)
        head._read_all(tokens)
        self.end_splice(at, head)

    def rebuild(self) -> None:
        """Read the tokens again from position 0 on: all lost bits and unused positions come back.

        Where that is left half-way, the rest of the tokens is forgotten.
        """
        self._read_all(self.rewind())

    def rewind(self) -> list[int]:
        """Forget all keys and values and return the tokens, to be read again from the start; pins stay."""
        tokens, table = self.tokens, self._table
        pinned, pinned_text = (
            {index for index, position in enumerate(table.positions) if position in pins}
            for pins in (table.pinned, table.pinned_text)
        )
        self.clear()
        self._table.pinned, self._table.pinned_text = pinned, pinned_text
        return tokens

    def pin(self, start: int, stop: int) -> None:
        """Let the pages of these tokens be a tier higher than their age gives, while they have the bits."""
        self._table.pinned.update(self._table.positions[start:stop])

    def pin_text(self, stretches: Iterable[tuple[int, int]]) -> bool:
        """Do the same for the tokens of each stretch, instead of those of the last call.

        Returns: whether these are others than the ones of the last call.

        They may be tokens that are yet to be read. What was pinned in another way stays so.
        """
        stretches = list(stretches)
        table, count = self._table, self.num_tokens
        last = max((stop for _, stop in stretches), default=0)
        positions = [*table.positions, *range(table.next_position, table.next_position + last - count)]
        pinned = {at for start, stop in stretches for at in positions[start:stop]}
        former, table.pinned_text = table.pinned_text, pinned
        return pinned != former

    def pin_page(self, number: int, pinned: bool) -> bool:
        """Pin or unpin a page; return whether the sequence has it."""
        found = [reference for reference in self._table.references if reference.page.number == number]
        for reference in found:
            positions = np.array(reference.page.positions)[reference.valid].tolist()
            change = self._table.pinned.update if pinned else self._table.pinned.difference_update
            change(positions)
        return bool(found)

    def _require_paged(self, what: str) -> None:
        if not self.can_edit:
            raise OctavoError(
                f"Text cannot be {what} this conversation's cache without reading the rest again: {self.note}"
            )

    def _require_gap(self, at: int, other: SequenceCache, *, start: int) -> None:
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

    def _prepend(self, other: SequenceCache) -> None:
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

    def _read_all(self, tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), READ_CHUNK_TOKENS):
            self.read(tokens[start : start + READ_CHUNK_TOKENS])
