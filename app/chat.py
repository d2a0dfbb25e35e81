"""Answering in a conversation: what the model reads, and what is kept of what it writes.

`ChatService` runs on the engine's thread and has its own connection to the store, so that a reply is saved
while it streams without the window's help.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from app.chat_documents import ChatDocuments
from app.ledger.asking import due_refusal, with_turn_choices
from app.ledger.context import ConversationContext
from app.ledger.keeper import ContextKeeper, Kept
from app.ledger.planning import TrimPlanner
from app.ledger.positions import lacks_positions_after
from app.ledger.preparing import due_trim, next_trim
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import ContextChange
from app.ledger.summarizer import Summarizer
from app.ledger.trimming import TrimPlan
from app.model_speeds import ModelSpeeds
from app.nothing_found import unwritten_answer
from app.profiles import Overflow
from app.reply_in_progress import ReplyEnded, ReplyInProgress
from app.reply_settings import ReplySettings
from app.segments.progress import SegmentEvent
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState, Role
from app.whole_question import require_no_whole_question
from engine.admission import AdmissionError
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError, sentence_of
from engine.events import (
    CacheChanged,
    ContextShortened,
    Finished,
    GenerationEvent,
    GenerationStats,
    StopReason,
)
from engine.guard import GuardAction
from engine.kv.precision import KVSpec

__all__ = ["ChatService", "ReplyEnded", "ReplyEvent", "ReplySettings", "ReplyStarted"]


@dataclass(frozen=True)
class ReplyStarted:
    """A reply has its place in the conversation: `message` is its row, still empty."""

    message: Message


ContextEvent = SummaryProgress | GuardAction | ContextChanged
ReplyEvent = ReplyStarted | SegmentEvent | SummaryProgress | ContextChanged | ReplyEnded


class ChatService:
    """Writes replies into a store with an engine, and keeps what the model reads; all on one thread."""

    def __init__(self, store: ConversationStore, engine: Engine, speeds: ModelSpeeds | None = None) -> None:
        """Make one that learns how fast the model is with `speeds`, of which there is one for an engine."""
        self._store = store
        self._engine = engine
        self._documents = ChatDocuments(store, engine, speeds or ModelSpeeds(engine, store))
        self._keeper = ContextKeeper(store, Summarizer(engine))

    def reply(
        self,
        conversation_id: int,
        leaf_id: int,
        settings: ReplySettings,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[ReplyEvent]:
        """Answer the message `leaf_id`: yield the reply's start, the engine's events and its end.

        `wanted_kv` tells the precision that the user wants while the reply is written, see `Engine.generate`.
        Whatever happens after the start, the reply ends with a final row; a failure of the engine is raised
        after that. Where the context is full, old turns are summarized or left out first, as `settings` say,
        and before that `SummaryProgress` tells how far it is. Turns stay in the conversation; what the model
        reads of it is stored, so that the next reply begins there, and told with `ContextChanged`. Then
        documents are read in segments or looked up where that is their way, and stored segment by segment:
        what has been read is not read again when the message is answered again.

        Raises:
            AdmissionError: the conversation does not fit, or the user is to be asked; no reply was started.
            OctavoError: the conversation cannot be answered; no reply was started.
        """
        planner = TrimPlanner(self._engine, conversation_id, settings)
        context = self._context(conversation_id, leaf_id)
        if not any(message.role == Role.USER.value for message in context.messages):
            raise OctavoError("There is nothing to answer: the message is empty.")
        undecided, context = context, self._documents.decided(context, planner, cancel)
        plan = self._admitted_plan(context, planner)
        started = self._store.begin_reply(conversation_id, leaf_id, planner.loaded.info.name)
        reply = ReplyInProgress(self._store, started)
        try:
            yield ReplyStarted(started)
            if context is not undecided:
                yield ContextChanged(conversation_id)
            if plan is not None:
                context = yield from self._trimmed(context, plan, planner, reply, cancel)
            yield from self._answer(context, planner, reply, cancel, wanted_kv)
        except GeneratorExit:
            reply.end(MessageState.STOPPED)
            raise
        except Exception as error:
            yield reply.end(MessageState.FAILED, error=sentence_of(error))
            raise
        yield reply.end(MessageState.STOPPED if reply.was_stopped else MessageState.COMPLETE)

    def _trimmed(
        self,
        context: ConversationContext,
        plan: TrimPlan,
        planner: TrimPlanner,
        reply: ReplyInProgress,
        cancel: CancelToken,
    ) -> Kept:
        """Carry out the trim that a reply waits for, and time its summaries for the figures."""
        started_s = time.monotonic()
        context = yield from self._keeper.trim(context, plan, planner, cancel)
        if plan.unwritten:
            reply.summary_s = time.monotonic() - started_s
        return context

    def _context(self, conversation_id: int, leaf_id: int) -> ConversationContext:
        return ConversationContext.of(self._store.path(leaf_id), self._store.ledger(conversation_id))

    def _admitted_plan(self, context: ConversationContext, planner: TrimPlanner) -> TrimPlan | None:
        """Return the trim that is due; refuse before anything is touched what would not fit after it."""
        require_no_whole_question(context, planner)
        settings, room = planner.settings, planner.room(context)
        is_trimmed = room.is_due and planner.may_trim
        plan = planner.plan(context, room, summarizes=planner.summarizes) if is_trimmed else None
        try:
            trimmed = context if plan is None else plan.context
            self._engine.admit(settings.request(trimmed, planner.conversation_id))
            self._documents.admit(trimmed, planner)
        except AdmissionError as error:
            raise with_turn_choices(error, planner, context) from None
        if room.is_due and settings.overflow is Overflow.ASK and not settings.anyway:
            refusal = due_refusal(planner, context)
            if refusal is not None:
                raise refusal
        return plan

    def _answer(
        self,
        context: ConversationContext,
        planner: TrimPlanner,
        reply: ReplyInProgress,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None,
    ) -> Generator[ReplyEvent, None, None]:
        """Read what the question needs of documents, then yield what is written, and remember its sources."""
        try:
            context, reply.readings = yield from self._documents.read(context, planner, cancel, wanted_kv)
        except Cancelled:
            reply.readings = self._documents.so_far(context, planner.conversation_id)
            stats = GenerationStats.of_nothing(planner.settings.kv, StopReason.STOPPED)
            yield reply.take(Finished(stats))
            return
        if reply.readings.readings:
            yield ContextChanged(planner.conversation_id)
        nothing = self._documents.nothing_found(context)
        if nothing is None:
            context = yield from self._written(context, planner, reply, cancel, wanted_kv)
        else:
            for event in unwritten_answer(nothing, planner.settings.kv):
                yield reply.take(event)
        reply.sources = self._documents.sources(reply, context)

    def _written(
        self,
        context: ConversationContext,
        planner: TrimPlanner,
        reply: ReplyInProgress,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None,
    ) -> Generator[ReplyEvent, None, ConversationContext]:
        """Yield the engine's events, and keep what leaves the context while memory is short; return it."""
        plan = planner.shorter(context)
        shorter = None if plan is None else plan.context
        request = planner.settings.request(
            context, planner.conversation_id, answer_key=reply.key, shorter=shorter
        )
        reply.left_out_turns = context.left_out_turns
        for event in self._engine.generate(request, cancel, wanted_kv):
            if isinstance(event, ContextShortened) and plan is not None:
                context = yield from self._keeper.shorten(context, plan, planner)
                reply.left_out_turns = context.left_out_turns
            yield reply.take(event)
        return context

    # Between replies.

    def prepare(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Iterator[ContextEvent]:
        """Write and store the summaries that the next trim will need, where it is near; for idle time.

        Not where turns are summarized for one message only, as the user was asked and chose.

        Raises:
            Cancelled: something else came first; what was being written is to be tried again.
            ModelError: no model is loaded.
        """
        if settings.overflow is not Overflow.SUMMARIZE or settings.is_once:
            return
        planner = TrimPlanner(self._engine, conversation_id, settings)
        found = next_trim(self._store.path(leaf_id), self._store.ledger(conversation_id), planner)
        if found is not None:
            yield from self._keeper.prepare(*found, planner, cancel)

    def trim_ahead(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Iterator[ContextEvent]:
        """Carry out the trim that the next message needs where the model has too few positions behind it.

        For idle time, and to be followed by `close_gaps`, so that the next reply need not read what stays.
        Nothing is told where nothing is done; what is told last is that the context changed.

        Raises:
            Cancelled: something else came first, and nothing has changed.
            ModelError: no model is loaded.
            StoreError: it could not be saved, and nothing has changed.
        """
        planner = TrimPlanner(self._engine, conversation_id, settings)
        if not planner.may_trim or settings.is_once:
            return
        found = due_trim(self._store.path(leaf_id), self._store.ledger(conversation_id), planner)
        if found is not None and lacks_positions_after(self._engine, planner, *found):
            yield from self._keeper.trim_ahead(*found, planner, cancel)

    def close_gaps(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Read a conversation again from its first unused position on; see `Engine.close_gaps`."""
        request = settings.request(self._context(conversation_id, leaf_id), conversation_id)
        return self._engine.close_gaps(request, cancel)

    def rebuild(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Iterator[GenerationEvent]:
        """Read all that the model is to read of a conversation again; see `Engine.rebuild`."""
        request = settings.request(self._context(conversation_id, leaf_id), conversation_id)
        return self._engine.rebuild(request, cancel)

    def summarize(
        self,
        conversation_id: int,
        leaf_id: int,
        keys: Sequence[str],
        settings: ReplySettings,
        cancel: CancelToken,
    ) -> Iterator[ContextEvent]:
        """Put one summary in the place of turns and summaries in a row, or of a document, as the user wants.

        Raises:
            Cancelled: the user stopped it, and nothing has changed.
            OctavoError: there is no model, the model does not read it, it waits for its answer, or it is too
                short for a summary.
        """
        planner = TrimPlanner(self._engine, conversation_id, settings)
        context = self._context(conversation_id, leaf_id)
        yield from self._keeper.summarize(context, keys, planner, cancel)

    def settle(self, conversation_id: int, leaf_id: int, settings: ReplySettings) -> CacheChanged | None:
        """Give back what the model no longer reads; return what is held then, None where nothing changes."""
        request = settings.request(self._context(conversation_id, leaf_id), conversation_id)
        return self._engine.settle(request)

    def reading_cost(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, change: ContextChange
    ) -> int:
        """Return how many more tokens are to be read before the next answer when a change is made.

        Raises:
            ModelError: no model is loaded.
        """
        context = self._context(conversation_id, leaf_id)
        after, before = (
            self._engine.measure(settings.request(each, conversation_id)).unread_tokens
            for each in (context.changed(change), context)
        )
        return max(0, after - before)
