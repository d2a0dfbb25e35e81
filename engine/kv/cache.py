"""The KV cache of one sequence, behind one interface.

Every layer with full attention is paged (`PagedLayer`): its sealed pages lie in a `PageStore` that forks
share, the newest tokens in an open buffer of 16 bits. Layers of other kinds (sliding-window, recurrent,
latent attention) keep mlx-lm's own cache, and `note` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import mlx.core as mx
import numpy as np

from engine.kv.attended import AnswerWatch, AttendedBin
from engine.kv.sharing import SharingCache

READ_CHUNK_TOKENS = 256
"""Tokens that a rebuild or a splice reads in one forward pass."""


class SequenceCache(SharingCache):
    """A cache of one sequence, with all that can be done to it."""

    def watch_answer(self) -> None:
        """Begin to add up what the tokens that are decoded from now on attend to."""
        layers = [layer.number for layer in self._paged]
        self._watcher.answer = AnswerWatch(layers, self.spec.page_tokens)

    @property
    def seen(self) -> list[mx.array]:
        """What layers have seen in the last pass beside its result: to be evaluated with that, in one go."""
        return self._watcher.seen

    def attended(self) -> list[AttendedBin]:
        """Return what was attended to since `watch_answer`, in the order of the text, and watch no longer."""
        answer, self._watcher.answer = self._watcher.answer, None
        return [] if answer is None else answer.bins(self.positions)

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

    def rewind(self, place_of: Callable[[int], int | None] = int) -> list[int]:
        """Forget all keys and values and return the tokens, to be read again from the start; pins stay.

        `place_of` says where the token at an index will be in what is read then, None for nowhere.
        """
        tokens, table = self.tokens, self._table
        pinned, pinned_text = (
            {place_of(index) for index, position in enumerate(table.positions) if position in pins}
            for pins in (table.pinned, table.pinned_text)
        )
        self.clear()
        self._table.pinned, self._table.pinned_text = (
            {place for place in places if place is not None} for places in (pinned, pinned_text)
        )
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

    def _read_all(self, tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), READ_CHUNK_TOKENS):
            self.read(tokens[start : start + READ_CHUNK_TOKENS])
