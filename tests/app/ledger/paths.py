"""Paths and summaries for ledgers under test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from app.documents.ways import DocumentWay
from app.ledger.records import ItemMark, LedgerRows, Summary, SummarySource, SummaryState
from app.reading.records import Reading
from app.store.records import Attachment, Message, MessageState, Role

OWLS = Attachment(7, "Owls", "owls.txt", "text", "They hunt.", None, None, False)
BATS = Attachment(8, "Bats", "bats.txt", "text", "They hang.", None, None, False)


def question(number: int, text: str | None = None, *documents: Attachment) -> Message:
    """Return a user's message with its number as id."""
    return _message(number, Role.USER, f"Question {number}" if text is None else text, documents)


def answer(number: int, text: str | None = None) -> Message:
    """Return a reply with its number as id."""
    return _message(number, Role.ASSISTANT, f"Answer {number}" if text is None else text, ())


def turns(count: int) -> list[Message]:
    """Return questions 1, 3, 5... with answers 2, 4, 6..."""
    return [
        message for number in range(1, 2 * count, 2) for message in (question(number), answer(number + 1))
    ]


def summary(
    number: int, *covers: str, text: str | None = None, state: SummaryState = SummaryState.USED
) -> Summary:
    """Return a summary of what has these keys."""
    words = f"Summary {number}" if text is None else text
    return Summary(number, words, covers, SummarySource.MODEL, "", "A model", 100, 10, state)


def rows(*summaries: Summary, dropped: Sequence[str] = (), pinned: Sequence[str] = ()) -> LedgerRows:
    """Return rows with these summaries and marks."""
    keys = [*dropped, *pinned]
    marks = {key: ItemMark(key, key in pinned, key in dropped) for key in keys}
    return LedgerRows(marks, summaries)


def reading(
    number: int,
    question_number: int,
    document: Attachment = OWLS,
    way: DocumentWay = DocumentWay.SEGMENTS,
    text: str | None = None,
) -> Reading:
    """Return what was read of a document for a question; it is not done where its text is empty."""
    words = f"Notes {number}" if text is None else text
    return Reading(number, question_number, document.id, way, "A model", words, 2, 2, 0)


def _message(number: int, role: Role, text: str, documents: tuple[Attachment, ...]) -> Message:
    return Message(
        id=number,
        conversation_id=1,
        parent_id=None,
        role=role,
        text=text,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        state=MessageState.COMPLETE,
        attachments=documents,
        siblings=(number,),
        stats=None,
        model=None,
        error=None,
    )
