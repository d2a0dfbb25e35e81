"""Looking up: the passages of a document that fit a question, and how the model reads them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from app.documents.places import Places
from app.lookup.look_up import LookUp
from app.reading.question import ReadableDocument
from app.reading.records import ReadSegment, SegmentState
from app.segments.budget import most_fitting_tokens
from app.segments.joining import BETWEEN
from app.segments.numbering import NumberedNote
from app.segments.prompts import passages_text
from app.sources.evidence import fitting_sentence
from engine.cancel import CancelToken

MOST_INDEXES = 4
"""So many documents' indexes are kept, those that were used last."""


class PassageFinder:
    """Finds passages of documents; keeps their indexes while they are asked about."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[str, tuple[LookUp, Places]] = OrderedDict()

    def segments(
        self,
        document: ReadableDocument,
        question: str,
        first_number: int,
        room_tokens: int,
        count: Callable[[str], int],
        cancel: CancelToken,
    ) -> list[ReadSegment]:
        """Return the passages that fit a question, in the order of the text; none where nothing does.

        As `text` writes them from `first_number` on, they have at most `room_tokens`.

        Raises:
            Cancelled: it was stopped.
        """
        index, places = self._index(document, cancel)
        longest = max((heading.title for heading in places.headings), key=len, default="")
        least = NumberedNote((first_number,), f"p. 9,999, {longest}", "…").words
        around = count(passages_text(document.title, least, first_number, "…"))
        around += most_fitting_tokens(room_tokens)
        passages = index.passages(question, room_tokens - around, count)
        by_score = sorted(passages, key=lambda passage: passage.score)
        while passages:
            found = [ReadSegment(each.start, each.stop, SegmentState.READ) for each in passages]
            text = self.text(document, found, question, first_number, room_tokens, count, cancel)
            if count(text) <= room_tokens:
                return found
            worst = by_score.pop(0)
            passages = tuple(each for each in passages if each is not worst)
        return []

    def text(
        self,
        document: ReadableDocument,
        segments: Sequence[ReadSegment],
        question: str,
        first_number: int,
        room_tokens: int,
        count: Callable[[str], int],
        cancel: CancelToken,
    ) -> str:
        """Return what the model reads of passages, under numbers from `first_number` on."""
        _, places = self._index(document, cancel)
        notes = [
            NumberedNote((number,), places.at(each.start).words, document.text[each.start : each.stop])
            for number, each in enumerate(segments, first_number)
        ]
        words = BETWEEN.join(note.text for note in notes)
        fitting = fitting_sentence(question, words, most_fitting_tokens(room_tokens), count)
        passages = BETWEEN.join(note.words for note in notes)
        return passages_text(document.title, passages, first_number, fitting)

    def _index(self, document: ReadableDocument, cancel: CancelToken) -> tuple[LookUp, Places]:
        """Return the index of a document; texts that are equal share one."""
        if document.text not in self._indexes:
            places = Places.of(document.text, document.kind, document.page_starts)
            self._indexes[document.text] = LookUp(document.text, places, cancel), places
        self._indexes.move_to_end(document.text)
        while len(self._indexes) > MOST_INDEXES:
            self._indexes.popitem(last=False)
        return self._indexes[document.text]
