"""Putting notes together: as they are where there is room, else made shorter by levels."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from app.segments.budget import MARGIN_TOKENS
from app.segments.notes import NoteTaker
from app.segments.numbering import NumberedNote
from app.segments.progress import SegmentEvent, SegmentProgress
from app.segments.splitting import split_text

BETWEEN = "\n\n"
_LEAST_NOTE_TOKENS = 16
"""A note is not made shorter than this; rather the last ones are left out."""


def joined_notes(
    notes: Sequence[NumberedNote], room_tokens: int, taker: NoteTaker, progress: SegmentProgress
) -> Generator[SegmentEvent, None, str]:
    """Return notes in a row, of at most `room_tokens` together.

    Those that are too long are made shorter, some neighbours together, until they fit; each keeps its numbers
    and the place where it begins.

    Raises:
        Cancelled: it was stopped.
        OctavoError: the model could not read them.
    """
    notes = list(notes)
    while len(notes) > 1 and _num_tokens(notes, taker) > room_tokens:
        shorter = []
        for batch in _batches(notes, room_tokens, taker):
            shorter.append((yield from _joined(batch, taker, progress)))
        if _num_tokens(shorter, taker) >= _num_tokens(notes, taker):
            break
        notes = shorter
    return _fitted(BETWEEN.join(note.words for note in notes), room_tokens, taker)


def _num_tokens(notes: Sequence[NumberedNote], taker: NoteTaker) -> int:
    return taker.count(BETWEEN.join(note.words for note in notes))


def _batches(notes: Sequence[NumberedNote], room_tokens: int, taker: NoteTaker) -> list[list[NumberedNote]]:
    """Return neighbours that are joined: no more together than is needed, as each join loses something."""
    most_notes = max(1, room_tokens // (taker.budget.note_tokens + MARGIN_TOKENS))
    sizes = [taker.count(note.words) + MARGIN_TOKENS for note in notes]
    share = min(taker.budget.join_tokens, sum(sizes) // most_notes)
    batches: list[list[NumberedNote]] = []
    filled = 0
    for note, size in zip(notes, sizes, strict=True):
        most = taker.budget.join_tokens if batches and len(batches[-1]) == 1 else share
        if not batches or filled + size > most:
            batches.append([])
            filled = 0
        batches[-1].append(note)
        filled += size
    return batches


def _joined(
    batch: Sequence[NumberedNote], taker: NoteTaker, progress: SegmentProgress
) -> Generator[SegmentEvent, None, NumberedNote]:
    if len(batch) == 1:
        return batch[0]
    numbers = tuple(number for note in batch for number in note.numbers)
    text = yield from taker.shorter([note.text for note in batch], progress)
    return NumberedNote(numbers, batch[0].place, text or batch[0].text)


def _fitted(text: str, room_tokens: int, taker: NoteTaker) -> str:
    """Return as much of the beginning of notes as there is room for."""
    most = max(room_tokens, _LEAST_NOTE_TOKENS)
    if taker.count(text) <= most:
        return text
    start, stop = split_text(text, most, taker.count)[0]
    return text[start:stop]
