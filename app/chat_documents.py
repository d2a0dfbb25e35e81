"""The documents of a conversation that are not read whole: their ways, what is read of them, and sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence

from app.answer_sources import answer_sources, attended_sources, last_number
from app.document_reader import DocumentReader
from app.ledger.context import ConversationContext
from app.ledger.deciding import decided_ways
from app.ledger.planning import TrimPlanner
from app.ledger.records import NO_CHANGE, attachment_key
from app.model_speeds import ModelSpeeds
from app.nothing_found import nothing_found
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading.records import Reading, Source
from app.reading_run import DocumentReadings
from app.reply_in_progress import ReplyInProgress
from app.segments.progress import SegmentEvent
from app.store.conversations import ConversationStore
from app.store.records import Attachment
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.kv.precision import KVSpec


class ChatDocuments:
    """Reads what questions of conversations need of documents; belongs to the engine's thread."""

    def __init__(self, store: ConversationStore, engine: Engine, speeds: ModelSpeeds) -> None:
        self._store = store
        self._speeds = speeds
        self._reader = DocumentReader(engine, store)

    def decided(
        self, context: ConversationContext, planner: TrimPlanner, cancel: CancelToken
    ) -> ConversationContext:
        """Return the context with a way for each document that had none; what is decided is stored.

        Raises:
            OctavoError: it was stopped, or there is no memory to find out how fast the model is.
        """
        try:
            change = decided_ways(context, planner, self._speeds, cancel)
        except Cancelled:
            raise OctavoError("Stopped before anything was read. Send the message again.") from None
        if change == NO_CHANGE:
            return context
        self._store.change_context(planner.conversation_id, change)
        return context.with_rows(self._store.ledger(planner.conversation_id))

    def admit(self, context: ConversationContext, planner: TrimPlanner) -> None:
        """Refuse where there is too little room to read documents for the question that waits.

        Raises:
            AdmissionError: there is.
        """
        self._reader.admit(self._question(context, planner), self._to_read(context))

    def read(
        self,
        context: ConversationContext,
        planner: TrimPlanner,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None,
    ) -> Generator[SegmentEvent, None, tuple[ConversationContext, DocumentReadings]]:
        """Read what the question that waits needs; return the context with it, and what came of it.

        Raises:
            Cancelled: it was stopped; what was read until then is stored.
            OctavoError: a document could not be read at all, or what was read not be stored.
        """
        documents = self._to_read(context)
        if not documents:
            return context, DocumentReadings()
        question = self._question(context, planner)
        read = yield from self._reader.read(question, documents, cancel, wanted_kv)
        readings = self._store.ledger(planner.conversation_id).readings
        return context.with_rows(dataclasses.replace(context.rows, readings=readings)), read

    def so_far(self, context: ConversationContext, conversation_id: int) -> DocumentReadings:
        """Return what has been read for the question that waits, done or not, as the store has it."""
        stored = self._store.ledger(conversation_id).readings
        return DocumentReadings(tuple(each for each in stored if each.message_id == context.ways.question_id))

    def nothing_found(self, context: ConversationContext) -> str | None:
        """Return the answer where nothing that was read says anything about the question, else None."""
        readings, documents = _own_readings(context), _documents(context)
        titles = {document.id: document.title for document in documents}
        return nothing_found(readings, context.messages, titles)

    def sources(self, reply: ReplyInProgress, context: ConversationContext) -> tuple[Source, ...]:
        """Return the passages that a reply in this context may rest on, and those that it attended to."""
        own = _own_readings(context)
        earlier = _earlier_readings(context)
        documents = _documents(context)
        texts = {document.id: document.text for document in documents}
        sources = answer_sources(reply.text, own, earlier, texts, self._store)
        return sources + attended_sources(reply.attended, documents)

    def _to_read(self, context: ConversationContext) -> list[DocumentToRead]:
        question = context.ways.question_id
        if question is None:
            return []
        return [
            DocumentToRead(
                document.id,
                document,
                way,
                context.ways.reading(attachment_key(document.id), question),
            )
            for document, way in context.documents_to_read()
        ]

    def _question(self, context: ConversationContext, planner: TrimPlanner) -> DocumentQuestion:
        settings, message = planner.settings, context.path[-1]
        return DocumentQuestion(
            message_id=message.id,
            words=message.text,
            kv=settings.kv,
            room_tokens=planner.reading_room(context),
            conversation_id=planner.conversation_id,
            first_number=last_number(_earlier_readings(context), self._store) + 1,
            max_context=settings.max_context,
            repetition_penalty=settings.sampling.repetition_penalty,
            anyway=settings.anyway,
            reads_on=settings.reads_on,
        )


def _own_readings(context: ConversationContext) -> tuple[Reading, ...]:
    """Return what was read for the question that waits."""
    question = context.ways.question_id
    return () if question is None else context.ways.readings(question)


def _earlier_readings(context: ConversationContext) -> list[Reading]:
    """Return what was read for the questions before the one that waits."""
    before = (message.id for message in context.path if message.id != context.ways.question_id)
    return [reading for message_id in before for reading in context.ways.readings(message_id)]


def _documents(context: ConversationContext) -> Sequence[Attachment]:
    return tuple(context.items.documents.values())
