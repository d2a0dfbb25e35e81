"""Text that left a conversation's context and is on disk, so that it can come back unread."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.context_usage import ReleasedSpan
from engine.errors import Cancelled
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.kv.page_map import TextSpan
from engine.spans import Prompt
from engine.spill import SpilledSequence, SpillFolder

log = logging.getLogger(__name__)

MOST_NBYTES = 1024**3
"""What released text of one conversation may take on disk."""

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave."""


@dataclass(frozen=True)
class ReleasedStretch:
    """Text that lies in one piece, and where it was.

    Attributes:
        tokens: its ids.
        spans: what they are, by index in `tokens`.
        positions: where each of them was.
    """

    tokens: tuple[int, ...]
    spans: tuple[TextSpan, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class _Part:
    """What a piece has of one key: its spans, by index of the piece's tokens."""

    key: str
    spans: tuple[TextSpan, ...]

    @property
    def start(self) -> int:
        return self.spans[0].start

    @property
    def stop(self) -> int:
        return self.spans[-1].stop


@dataclass(eq=False)
class _Piece:
    """A piece on disk.

    Attributes:
        cache: the piece, whose keys and values are outside.
        spilled: where these are.
        tokens: its ids.
        positions: of these.
        parts: what it has, in order; None in the place of what was taken or given up.
    """

    cache: SequenceCache
    spilled: SpilledSequence
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    parts: list[_Part | None]

    def find(self, keys: Sequence[str]) -> slice:
        """Return which parts are those of the first of these keys, as many as lie one behind another."""
        for first, part in enumerate(self.parts):
            if part is not None and keys and part.key == keys[0]:
                pairs = zip(self.parts[first:], keys, strict=False)
                same = itertools.takewhile(lambda pair: pair[0] is not None and pair[0].key == pair[1], pairs)
                return slice(first, first + len(list(same)))
        return slice(0)

    def of(self, found: slice) -> list[_Part]:
        """Return parts that are there."""
        return [part for part in self.parts[found] if part is not None]

    def stretch(self, found: slice) -> ReleasedStretch:
        """Return the text of some parts."""
        parts = self.of(found)
        start, stop = parts[0].start, parts[-1].stop
        spans = tuple(_moved(span, -start) for part in parts for span in part.spans)
        return ReleasedStretch(self.tokens[start:stop], spans, self.positions[start:stop])


class ReleasedText:
    """Pieces of one conversation's sequence, by the keys of what they say.

    They belong to the positions of that conversation and to the pages of its cache: where it is read again or
    gets another cache, `forget` them. What does not fit, what the disk does not take, and what does not come
    back whole is given up: it is read again, which nobody is told but the log.
    """

    def __init__(self, folder: SpillFolder | None, most_nbytes: int = MOST_NBYTES) -> None:
        self._folder = folder
        self._most_nbytes = most_nbytes
        self._pieces: list[_Piece] = []

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return sum(piece.spilled.nbytes for piece in self._pieces)

    @property
    def spans(self) -> tuple[ReleasedSpan, ...]:
        """What is there, the oldest first."""
        return tuple(
            ReleasedSpan(part.key, num_tokens, piece.spilled.nbytes * num_tokens // len(piece.tokens))
            for piece in self._pieces
            for part in piece.of(slice(None))
            for num_tokens in [part.stop - part.start]
        )

    def texts(self) -> Iterator[Prompt]:
        """Yield what is there, the text of one key at a time."""
        for piece in self._pieces:
            for number, part in enumerate(piece.parts):
                if part is not None:
                    stretch = piece.stretch(slice(number, number + 1))
                    yield Prompt(list(stretch.tokens), stretch.spans)

    def keep(self, spans: Sequence[TextSpan], piece: SequenceCache, check: Check = lambda: None) -> None:
        """Write a piece to disk, which is used up, and give its memory back.

        What was kept of the same keys before is given up, and the oldest of all where it becomes too much.

        Args:
            spans: what the piece's tokens are, by index in it, in order. Those without a key are not kept.
            piece: what was detached.
            check: called between pages. When it raises `Cancelled`, the piece is not kept.
        """
        parts = [
            _Part(key, tuple(same))
            for key, same in itertools.groupby(spans, key=lambda span: span.key)
            if key
        ]
        self.discard([part.key for part in parts])
        if self._folder is None or not parts or piece.referred_nbytes > self._most_nbytes:
            piece.close()
            return
        tokens, positions = tuple(piece.tokens), tuple(piece.positions)
        try:
            spilled = self._folder.spill(piece, check)
        except OSError as error:
            log.warning("Text that left the context is not kept: %s", error)
            piece.close()
            return
        except BaseException:
            piece.close()
            raise
        self._pieces.append(_Piece(piece, spilled, tokens, positions, list(parts)))
        while self.nbytes > self._most_nbytes:
            self._give_up(self._pieces[0])

    def find(self, keys: Sequence[str]) -> ReleasedStretch | None:
        """Return the text of the first of these keys, as many as lie one behind another in one piece.

        None where the first one was not kept. Nothing is read from disk.
        """
        for piece, found in self._found(keys):
            return piece.stretch(found)
        return None

    def take(
        self, keys: Sequence[str], check: Check = lambda: None, *, skipped: int = 0
    ) -> SequenceCache | None:
        """Return a piece with the text that `find` gives for these keys, which is kept no longer.

        The rest of the piece that it lay in stays on disk. The first `skipped` tokens are left out.

        Returns: None where nothing was kept, or where it is not what was written.

        Raises:
            Cancelled: `check`, which is called between pages, says so; all stays on disk.
        """
        for piece, found in self._found(keys):
            return self._restored(piece, found, skipped, check)
        return None

    def discard(self, keys: Sequence[str]) -> None:
        """Give up what was kept of these keys."""
        for piece in list(self._pieces):
            piece.parts = [None if part is None or part.key in keys else part for part in piece.parts]
            self._give_up_empty(piece)

    def discard_from(self, position: int) -> None:
        """Give up what lies behind a position: other text will be read there."""
        self.discard(
            [
                part.key
                for piece in self._pieces
                for part in piece.of(slice(None))
                if piece.positions[part.stop - 1] >= position
            ]
        )

    def forget(self) -> None:
        """Give up everything."""
        for piece in list(self._pieces):
            self._give_up(piece)

    def _found(self, keys: Sequence[str]) -> Iterator[tuple[_Piece, slice]]:
        for piece in self._pieces:
            found = piece.find(keys)
            if piece.of(found):
                yield piece, found

    def _restored(self, piece: _Piece, found: slice, skipped: int, check: Check) -> SequenceCache | None:
        assert self._folder is not None
        parts = piece.of(found)
        part, blobs = piece.cache.part_outside(parts[0].start + skipped, parts[-1].stop)
        try:
            self._folder.read(piece.spilled.part(blobs), part, check)
        except Cancelled:
            part.close()
            raise
        except (OSError, BlobError) as error:
            log.warning("Text that left the context will be read again: %s", error)
            part.close()
            self._give_up(piece)
            return None
        piece.parts[found] = [None] * len(parts)
        self._give_up_empty(piece)
        return part

    def _give_up_empty(self, piece: _Piece) -> None:
        if not piece.of(slice(None)):
            self._give_up(piece)

    def _give_up(self, piece: _Piece) -> None:
        assert self._folder is not None
        self._pieces.remove(piece)
        self._folder.discard(piece.spilled)
        piece.cache.close()


def _moved(span: TextSpan, by: int) -> TextSpan:
    return dataclasses.replace(span, start=span.start + by, stop=span.stop + by)
