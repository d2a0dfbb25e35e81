"""A conversation that is held by a script, and what is measured of each of its turns.

Imports MLX: the backend is to be prepared before.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from app.chat import ChatService, ReplyEnded, ReplyEvent, ReplySettings
from app.documents.document import Document
from app.ledger.context import ConversationContext
from app.ledger.positions import lacks_positions
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import SummarySource
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.bench.trim.figures import LongRun, SummaryCounts, TurnFigures
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import Token
from engine.memory_sensor import process_nbytes
from engine.requests import GenerationRequest


@dataclass
class ReplyTimes:
    """When a reply did what, in seconds; `now_s` is a clock's time.

    Attributes:
        started_s: when it was asked for.
        summary_s: how long summaries were written.
        first_token_s: when its first token came, None before that.
    """

    started_s: float
    summary_s: float = 0.0
    first_token_s: float | None = None
    _writing_s: float | None = field(default=None, init=False)

    def take(self, event: ReplyEvent, now_s: float) -> None:
        """Take note of an event that came at a time; what is told last of a summary is that it is stored."""
        match event:
            case SummaryProgress() if self._writing_s is None:
                self._writing_s = now_s
            case ContextChanged() if self._writing_s is not None:
                self.summary_s += now_s - self._writing_s
                self._writing_s = None
            case Token() if self.first_token_s is None:
                self.first_token_s = now_s

    @property
    def ready_s(self) -> float:
        """Seconds from the question to the first token, the writing of summaries left out; 0 without one."""
        if self.first_token_s is None:
            return 0.0
        return self.first_token_s - self.started_s - self.summary_s


@dataclass(frozen=True)
class Answered:
    """An answer and when it came.

    Attributes:
        question_id: of the message that it answers.
        message: the answer.
        times: when it came.
    """

    question_id: int
    message: Message
    times: ReplyTimes


class Talk:
    """A conversation; belongs to the engine's thread.

    Attributes:
        settings: how it is answered from now on.
        conversation_id: which one it is in the store.
        turns: the questions that were asked, and what was measured.
    """

    def __init__(self, store: ConversationStore, engine: Engine, settings: ReplySettings) -> None:
        self.settings = settings
        self.conversation_id = store.create_conversation().id
        self.turns: list[TurnFigures] = []
        self._store = store
        self._engine = engine
        self._service = ChatService(store, engine)
        self._leaf_id: int | None = None
        self._num_rebuilds = 0
        self._left_out_turns = 0

    @property
    def context(self) -> ConversationContext:
        """What the model reads of it now."""
        path = [] if self._leaf_id is None else self._store.path(self._leaf_id)
        return ConversationContext.of(path, self._store.ledger(self.conversation_id))

    def request_at(self, leaf_id: int) -> GenerationRequest:
        """Return what the engine is asked at a message, with what the model reads now."""
        context = ConversationContext.of(self._store.path(leaf_id), self._store.ledger(self.conversation_id))
        return self.settings.request(context, self.conversation_id)

    def add(self, question: str, answer: str) -> int:
        """Add a turn without asking the model; return the id of the question."""
        question_id = self.put(question)
        reply = self._store.begin_reply(self.conversation_id, question_id, "")
        self._leaf_id = self._store.finish_reply(reply.id, answer, MessageState.COMPLETE).id
        return question_id

    def put(self, question: str, document: Document | None = None) -> int:
        """Add a question, for `answer`; return its id."""
        attached = []
        if document is not None:
            attached = [self._store.add_attachment(self.conversation_id, document).id]
        asked = self._store.add_user_message(self.conversation_id, self._leaf_id, question, attached)
        self._leaf_id = asked.id
        return asked.id

    def answer(self) -> Answered:
        """Answer the question that was put last."""
        assert self._leaf_id is not None
        answered = self._answered(self._leaf_id)
        self._leaf_id = answered.message.id
        return answered

    def ask(self, question: str, document: Document | None = None) -> Answered:
        """Ask, wait for the answer, do what is done in idle time, and take the figures."""
        self.put(question, document)
        answered = self.answer()
        before, self._left_out_turns = self._left_out_turns, self.context.left_out_turns
        released = self._left_out_turns - before
        started_s = time.perf_counter()
        self._make_ready()
        self.turns.append(self._figures(answered, released, time.perf_counter() - started_s))
        return answered

    def ask_beside(self, question: str) -> str:
        """Ask in a branch and return the answer; the conversation goes on as if it had not been asked."""
        asked = self._store.add_user_message(self.conversation_id, self._leaf_id, question)
        answer = self._answered(asked.id).message.text
        self._store.set_leaf(self.conversation_id, self._leaf_id)
        return answer

    @property
    def run(self) -> LongRun:
        """What was measured of all turns that were asked."""
        sources = [each.source for each in self._store.ledger(self.conversation_id).summaries]
        counts = SummaryCounts(sources.count(SummarySource.MODEL), sources.count(SummarySource.EXTRACT))
        limit = self.settings.max_context or 0
        return LongRun(limit, tuple(self.turns), self._num_rebuilds, counts)

    def _answered(self, question_id: int) -> Answered:
        times = ReplyTimes(time.perf_counter())
        for event in self._service.reply(self.conversation_id, question_id, self.settings, CancelToken()):
            times.take(event, time.perf_counter())
            if isinstance(event, ReplyEnded):
                ended = event
        return Answered(question_id, ended.message, times)

    def _make_ready(self) -> None:
        """Do what the window does behind an answer: prepare the next summary, make positions free."""
        assert self._leaf_id is not None
        asked = (self.conversation_id, self._leaf_id, self.settings, CancelToken())
        list(self._service.prepare(*asked))
        lacks = lacks_positions(self._engine, self.conversation_id, self.settings)
        if lacks or list(self._service.trim_ahead(*asked)):
            self._num_rebuilds += 1
            list(self._service.close_gaps(*asked))

    def _figures(self, answered: Answered, released_turns: int, idle_s: float) -> TurnFigures:
        message, stats, held = answered.message, answered.message.stats, self._engine.held()
        prompt_tokens = stats.prompt_tokens if stats else 0
        return TurnFigures(
            number=len(self.turns) + 1,
            prompt_tokens=prompt_tokens,
            read_tokens=prompt_tokens - (stats.reused_tokens if stats else 0),
            written_tokens=stats.completion_tokens if stats else 0,
            nbytes=held.usage.nbytes if held else 0,
            process_nbytes=process_nbytes(os.getpid()),
            released_turns=released_turns,
            summary_s=answered.times.summary_s,
            first_token_s=answered.times.ready_s,
            idle_s=idle_s,
            is_answered=message.state is MessageState.COMPLETE and bool(message.text.strip()),
        )
