"""The KV cache of one sequence, behind one interface.

Every layer with full attention is paged (`PagedLayer`): its sealed pages lie in a `PageStore` that forks
share, the newest tokens in an open buffer of 16 bits. Layers of other kinds (sliding-window, recurrent,
latent attention) keep mlx-lm's own cache, and `note` says so.
"""

from __future__ import annotations

import copy
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
        positions = self._table.positions
        gap = positions[at] - (positions[at - 1] + 1 if at else 0)
        if gap < len(tokens):
            raise OctavoError(
                f"There is room for {gap:,} tokens where the text was taken out, and {len(tokens):,} are to "
                "go there. Make the new text shorter."
            )
        head = self.fork()
        head.watch(self._watcher.before_layer)
        head.truncate(at)
        head._read_all(tokens)
        head._seal_rest()
        self._keep(np.arange(self.num_tokens) >= at)
        self._table.set_references((*head._table.references, *self._table.references))
        head.close()
        self._move_tiers()

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

    def pin_text(self, stretches: Iterable[tuple[int, int]]) -> None:
        """Do the same for the tokens of each stretch, instead of those of the last call.

        What was pinned in another way stays so.
        """
        positions = self._table.positions
        self._table.pinned_text = {at for start, stop in stretches for at in positions[start:stop]}

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

    def _seal_rest(self) -> None:
        """Make a page of all open tokens, which may be fewer than a page has."""
        if self._table.open_tokens:
            self._seal(len(self._table.open_tokens))
            self._move_tiers()

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
