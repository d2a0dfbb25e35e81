"""What has to be read in parts, and the room for the parts, for notes on them and for the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.document_prompt import (
    PlacedDocument,
    placed_documents,
    replaced,
    with_documents_first,
    without_documents,
)
from app.segments.prompts import (
    join_prompt,
    notes_below_text,
    notes_text,
    question_or_default,
    segment_prompt,
)
from engine.admission import LEAST_SEGMENT_TOKENS, note_room_tokens
from engine.engine import Engine, GenerationRequest
from engine.model import ChatMessage
from engine.sampling import SamplingParams

SEGMENT_CONVERSATION = -1
"""The conversation of the part that is being read; the ids of the store are positive."""
NOTE_SHARE = 10
"""The notes on one part take this fraction of the context at most,"""
NOTE_TOKENS = (48, 600)
"""within these bounds."""
MARGIN_TOKENS = 8
"""What a text may take more in the middle of a prompt than alone."""
_MOST_NUMBER = 9999


@dataclass(frozen=True)
class SegmentPlan:
    """How a request is answered in parts.

    Attributes:
        request: what is to be answered.
        documents: those that are read in parts; the others are read whole, with the notes.
        question: the words of the last message.
        segment_tokens: the most tokens of one part.
        join_tokens: the most tokens of notes that are made shorter together.
        note_tokens: the most tokens of a note.
        writing_tokens: the most tokens that are written for a note, reasoning included.
        notes_tokens: room for the notes on one document beside the question and the answer.
    """

    request: GenerationRequest
    documents: tuple[PlacedDocument, ...]
    question: str
    segment_tokens: int
    join_tokens: int
    note_tokens: int
    writing_tokens: int
    notes_tokens: int

    @property
    def has_more(self) -> bool:
        """Whether there is something to answer from beside the documents that are read in parts.

        Summaries are that.
        """
        messages = self.request.messages
        is_read_whole = sum(len(message.documents) for message in messages) > len(self.documents)
        return is_read_whole or any(message.role == "assistant" for message in messages)

    def note_request(self, prompt: str) -> GenerationRequest:
        """Return the request that writes a note, in a conversation of its own."""
        return _note_request(self.request, prompt, self.writing_tokens)

    def answer_request(
        self, notes: Mapping[PlacedDocument, str], totals: Mapping[PlacedDocument, int]
    ) -> GenerationRequest:
        """Return the request that writes the answer, with notes in the place of documents."""
        texts = {
            document: notes_text(document.title, totals[document], text) for document, text in notes.items()
        }
        return with_notes(self.request, texts)


def plan_segments(engine: Engine, request: GenerationRequest) -> SegmentPlan | None:
    """Return how a request is answered in parts, the largest documents first; None where that is no way out.

    Raises:
        ModelError: no model is loaded.
    """
    documents = placed_documents(request.messages)
    largest_first = sorted(documents, key=lambda document: len(document.text), reverse=True)
    for count in range(1, len(documents) + 1):
        chosen = tuple(document for document in documents if document in largest_first[:count])
        plan = _plan(engine, request, chosen)
        if plan is not None:
            return plan
    return None


def _plan(
    engine: Engine, request: GenerationRequest, documents: tuple[PlacedDocument, ...]
) -> SegmentPlan | None:
    """Return the plan with these documents in parts, None where it has too little room."""
    question = question_or_default(_question(request))
    longest_title = max((document.title for document in documents), key=len)
    frame = engine.measure(
        _note_request(request, segment_prompt(longest_title, "", _MOST_NUMBER, _MOST_NUMBER, question), 1)
    )
    join_frame = engine.measure(_note_request(request, join_prompt(longest_title, "", question), 1))
    limit = frame.limit_tokens
    note_tokens = _note_tokens(limit)
    writing_tokens = max(note_tokens, note_room_tokens(limit))
    rest = engine.measure(with_room_for_notes(request, documents))
    answer_tokens = min(request.sampling.max_tokens, rest.limit_tokens // 4)
    plan = SegmentPlan(
        request=request,
        documents=documents,
        question=question,
        segment_tokens=limit - frame.num_tokens - writing_tokens - MARGIN_TOKENS,
        join_tokens=limit - join_frame.num_tokens - writing_tokens - MARGIN_TOKENS,
        note_tokens=note_tokens,
        writing_tokens=writing_tokens,
        notes_tokens=(rest.limit_tokens - rest.num_tokens - answer_tokens) // len(documents),
    )
    has_room = plan.segment_tokens >= LEAST_SEGMENT_TOKENS and plan.notes_tokens >= least_notes_tokens(limit)
    return plan if has_room and plan.join_tokens >= 2 * (note_tokens + MARGIN_TOKENS) else None


def _note_tokens(limit_tokens: int) -> int:
    return min(max(limit_tokens // NOTE_SHARE, NOTE_TOKENS[0]), NOTE_TOKENS[1])


def least_notes_tokens(limit_tokens: int) -> int:
    """Return the room that a context has at least for the notes on a document that is read in parts."""
    return _note_tokens(limit_tokens) + MARGIN_TOKENS


def with_notes(request: GenerationRequest, texts: Mapping[PlacedDocument, str]) -> GenerationRequest:
    """Return a request with something else written for documents, with the last question.

    A document of an earlier message leaves a line there, so that the notes follow all that was said. Nothing
    leaves the context of such a request while memory is short.
    """
    last = _last_question(request)
    own = {document: text for document, text in texts.items() if document.message == last}
    below = {document: notes_below_text(document.title) for document in texts if document.message != last}
    messages = list(replaced(request.messages, own | below))
    earlier = [(document.title, text) for document, text in texts.items() if document.message != last]
    messages[last] = with_documents_first(messages[last], earlier)
    return dataclasses.replace(request, messages=tuple(messages), shorter=())


def with_room_for_notes(request: GenerationRequest, documents: Sequence[PlacedDocument]) -> GenerationRequest:
    """Return a request with all that stands around the notes on documents, and no notes."""
    return with_notes(request, {each: notes_text(each.title, _MOST_NUMBER, "") for each in documents})


def without_document_texts(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return messages with a line in the place of each document."""
    below = {document: notes_below_text(document.title) for document in placed_documents(messages)}
    return replaced(messages, below)


def _last_question(request: GenerationRequest) -> int:
    return max(index for index, message in enumerate(request.messages) if message.role == "user")


def _question(request: GenerationRequest) -> str:
    message = request.messages[_last_question(request)]
    return without_documents(message.content, message.documents)


def _note_request(request: GenerationRequest, prompt: str, max_tokens: int) -> GenerationRequest:
    """Return a request for a note: the likeliest words, so that asking again gives the same."""
    sampling = SamplingParams(
        temperature=0, repetition_penalty=request.sampling.repetition_penalty, max_tokens=max_tokens
    )
    return GenerationRequest(
        (ChatMessage("user", prompt),),
        sampling,
        request.kv,
        request.max_context,
        SEGMENT_CONVERSATION,
        anyway=request.anyway,
    )
