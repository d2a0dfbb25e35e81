"""Questions about a whole document, which looking up cannot answer: they are refused, with what would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.document_prompt import document_text
from app.document_size import about_tokens
from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.records import attachment_key
from app.lookup.question import is_about_whole, names_whole
from app.store.records import Attachment
from engine.admission import AdmissionError, Choice, InSegments, LookUp, ReadWhole, num_segments
from engine.reply_admission import MIN_ANSWER_TOKENS

_MOST_NAMED = 3
"""So many documents are named in a refusal."""


class WholeQuestionError(AdmissionError):
    """A question about the whole of documents that are to be looked up: not refused for want of room."""


def require_no_whole_question(context: ConversationContext, planner: TrimPlanner) -> None:
    """Refuse a question about the whole of documents that are to be looked up for it.

    Not where it was looked up before, where the user wants it all the same, or where the model reads notes on
    the document that were taken for such a question; for "and?", notes for any other will do.

    Raises:
        WholeQuestionError: the question is one; its choices are the other ways.
    """
    question = context.path[-1]
    if planner.settings.looks_up_anyway or not is_about_whole(question.text):
        return
    documents = [
        document
        for document, way in context.documents_to_read()
        if way is DocumentWay.LOOK_UP and not _is_known(document, context)
    ]
    if documents:
        titles = [document.title for document in documents]
        choices = tuple(_choices(documents, context, planner))
        raise whole_question_refusal(titles, question.text, choices)


def _is_known(document: Attachment, context: ConversationContext) -> bool:
    """Return whether the model reads what all of a document says, or what was looked up for the question."""
    question = context.path[-1]
    any_will_do = not names_whole(question.text)
    return any(
        message.id == question.id
        or (reading.way is DocumentWay.SEGMENTS and (any_will_do or is_about_whole(message.text)))
        for message in context.path
        for reading in context.ways.readings(message.id)
        if reading.attachment_id == document.id
    )


def whole_question_refusal(
    titles: Sequence[str], question: str, choices: tuple[Choice, ...]
) -> WholeQuestionError:
    """Return the refusal of a question about the whole of documents."""
    named = f"{len(titles):,} documents"
    if len(titles) <= _MOST_NAMED:
        named = " and ".join(f"“{title}”" for title in titles)
    asks = "The question is about all of" if question.strip() else "There is no question about"
    return WholeQuestionError(
        f"{asks} {named}. Looking up finds passages by the words of a question, and would miss most of it. "
        "Choose another way to read it, or ask about something in it.",
        needed_nbytes=0,
        available_nbytes=0,
        choices=choices,
        can_override=False,
    )


def _choices(
    documents: Sequence[Attachment], context: ConversationContext, planner: TrimPlanner
) -> Iterator[Choice]:
    keys = tuple(attachment_key(document.id) for document in documents)
    num_tokens = sum(
        about_tokens(document_text(document.title, document.text), planner.count) for document in documents
    )
    room = planner.room(context)
    question_tokens = planner.count(context.path[-1].text)
    segments = num_segments(num_tokens, question_tokens, room.limit_tokens, len(documents))
    if room.num_tokens + num_tokens + MIN_ANSWER_TOKENS <= room.limit_tokens:
        yield ReadWhole(num_tokens, keys)
    if segments is not None:
        yield InSegments(segments, num_tokens, keys)
    yield LookUp(keys)
