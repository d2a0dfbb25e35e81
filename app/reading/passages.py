"""Looking up: the passages of documents that fit a question, and how the model reads them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from app.documents.places import Places
from app.lookup.look_up import LookUp, Passage, SearchedText
from app.reading.question import ReadableDocument
from app.reading.records import ReadSegment, SegmentState
from app.segments.budget import most_fitting_tokens
from app.segments.joining import BETWEEN
from app.segments.numbering import NumberedNote
from app.segments.prompts import fitting_text, passages_text
from app.sources.evidence import fitting_sentence
from engine.cancel import CancelToken

MOST_INDEXES = 4
"""So many indexes are kept, those that were used last."""

_Index = tuple[LookUp, tuple[Places, ...]]


class PassageFinder:
    """Finds passages of documents that are searched together; keeps the index while they are asked about."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[tuple[str, str], ...], _Index] = OrderedDict()

    def segments(
        self,
        documents: Sequence[ReadableDocument],
        question: str,
        first_number: int,
        room_tokens: int,
        count: Callable[[str], int],
        cancel: CancelToken,
    ) -> list[list[ReadSegment]]:
        """Return for each document the passages that fit a question, in the order of the text.

        They are the best of all documents. As `texts` writes them from `first_number` on, they have at most
        `room_tokens` together; a document without one takes nothing.

        Raises:
            Cancelled: it was stopped.
        """
        index, places = self._index(documents, cancel)
        frames = [
            count(_around(document, each, first_number))
            for document, each in zip(documents, places, strict=True)
        ]
        title = max((each.title for each in documents), key=len) if len(documents) > 1 else ""
        fitting_tokens = most_fitting_tokens(room_tokens) + count(fitting_text("…", title))
        passages = index.passages(question, room_tokens - fitting_tokens, count, frames)
        by_score = sorted(passages, key=lambda passage: -passage.score)
        while by_score:
            found = _by_document(by_score, len(documents))
            texts = self.texts(documents, found, question, first_number, room_tokens, count, cancel)
            surplus = -room_tokens + sum(count(text) for text, each in zip(texts, found, strict=True) if each)
            if surplus <= 0:
                return found
            while surplus > 0 and by_score:
                worst = by_score.pop()
                surplus -= count(documents[worst.index].text[worst.start : worst.stop])
        return [[] for _ in documents]

    def texts(
        self,
        documents: Sequence[ReadableDocument],
        segments: Sequence[Sequence[ReadSegment]],
        question: str,
        first_number: int,
        room_tokens: int,
        count: Callable[[str], int],
        cancel: CancelToken,
    ) -> list[str]:
        """Return what the model reads of the passages of each document, under numbers from `first_number` on.

        Behind the last of them stands the sentence of all that fits the question best, next to the question.
        """
        _, places = self._index(documents, cancel)
        notes: list[list[NumberedNote]] = []
        number = first_number
        for document, each, found in zip(documents, places, segments, strict=True):
            notes.append([_note(document, each, *of) for of in enumerate(found, number)])
            number += len(found)
        words = [BETWEEN.join(note.text for note in each) for each in notes]
        fitting = fitting_sentence(question, BETWEEN.join(words), most_fitting_tokens(room_tokens), count)
        says = next((at for at, each in enumerate(words) if fitting in " ".join(each.split())), None)
        last = max((at for at, each in enumerate(notes) if each), default=None)
        is_of_other = says is not None and says != last
        return [
            passages_text(
                document.title,
                BETWEEN.join(note.words for note in each),
                each[0].numbers[0] if each else first_number,
                fitting if at == last else "",
                documents[says].title if says is not None and is_of_other else "",
            )
            for at, (document, each) in enumerate(zip(documents, notes, strict=True))
        ]

    def _index(self, documents: Sequence[ReadableDocument], cancel: CancelToken) -> _Index:
        """Return the index of documents; those with equal titles and texts share one."""
        key = tuple((document.title, document.text) for document in documents)
        if key not in self._indexes:
            places = tuple(Places.of(each.text, each.kind, each.page_starts) for each in documents)
            texts = [
                SearchedText(document.text, each, document.title)
                for document, each in zip(documents, places, strict=True)
            ]
            self._indexes[key] = LookUp(texts, cancel), places
        self._indexes.move_to_end(key)
        while len(self._indexes) > MOST_INDEXES:
            self._indexes.popitem(last=False)
        return self._indexes[key]


def _around(document: ReadableDocument, places: Places, first_number: int) -> str:
    """Return what stands around the first passage of a document, in the longest case."""
    longest = max((heading.title for heading in places.headings), key=len, default="")
    page = "p. 9,999" if places.num_pages else ""
    where = ", ".join(filter(None, (page, longest)))
    return passages_text(document.title, NumberedNote((first_number,), where, "…").words, first_number)


def _note(document: ReadableDocument, places: Places, number: int, segment: ReadSegment) -> NumberedNote:
    words = document.text[segment.start : segment.stop]
    return NumberedNote((number,), places.at(segment.start).words, words)


def _by_document(passages: Sequence[Passage], num_documents: int) -> list[list[ReadSegment]]:
    """Return passages as segments of each document, in the order of the text."""
    found: list[list[ReadSegment]] = [[] for _ in range(num_documents)]
    for each in sorted(passages, key=lambda passage: passage.start):
        found[each.index].append(ReadSegment(each.start, each.stop, SegmentState.READ))
    return found
