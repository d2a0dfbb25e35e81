"""A long conversation about a document in a context that is far too short for it.

Everything goes the way that a chat goes: a store, `ChatService` and the engine. Imports MLX: the backend is
to be prepared before.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.documents.document import Document
from app.ledger.context import ConversationContext, SpanState
from app.ledger.entries import LedgerReport
from app.ledger.records import attachment_key, message_key
from app.ledger.report import ledger_report
from app.long_talk.facts import Fact, find_facts
from app.long_talk.figures import ConversationBench, FactCounts, HeldConversation
from app.long_talk.script import FACTS_PER_EXCERPT, TURNS_PER_EXCERPT, Step, script
from app.long_talk.talk import Talk
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from app.segments.splitting import CountTokens, split_text
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from engine.backend import start_backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from engine.sampling import SamplingParams

ANSWER_TOKENS = 48
EXCERPTS_PER_CONTEXT = 4
"""An excerpt is at most this fraction of the context."""

OnTurn = Callable[[Overflow, int, int], None]
"""Told the policy, the number of a question, from 1, and how many there are."""


@dataclass(frozen=True)
class ConversationPlan:
    """What is done.

    Attributes:
        document: what is talked about.
        num_turns: questions, without those at the end.
        max_context: tokens of the context.
        policies: what happens to old turns, one conversation for each.
    """

    document: Document
    num_turns: int
    max_context: int
    policies: tuple[Overflow, ...]


def bench_conversation(model: Path, plan: ConversationPlan, on_turn: OnTurn) -> ConversationBench:
    """Hold the conversation with each policy.

    Raises:
        OctavoError: the model cannot be loaded, or a question does not fit into the context.
    """
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as folder:
        engine = Engine(start_backend(), spill_folder=Path(folder) / "released")
        loaded = engine.load(
            model,
            DEFAULT_KV,
            max_context=plan.max_context,
            cancel=CancelToken(),
            on_progress=lambda progress: None,
        )
        count = loaded.counter.count
        excerpts = excerpts_of(plan.document.text, plan.num_turns, plan.max_context, count)
        try:
            with contextlib.closing(ConversationStore.open(Path(folder) / "conversations.db")) as store:
                held = tuple(
                    _Conversation(store, engine, plan, policy, excerpts).held(on_turn)
                    for policy in plan.policies
                )
        finally:
            engine.unload()
    return ConversationBench(
        plan.document.title,
        count(plan.document.text),
        sum(map(count, excerpts)),
        len(excerpts),
        held,
    )


def excerpts_of(text: str, num_turns: int, max_context: int, count: CountTokens) -> list[str]:
    """Return the parts of a text that are handed over in so many turns, from its beginning."""
    num_excerpts = -(-num_turns // TURNS_PER_EXCERPT)
    places = split_text(text, max_context // EXCERPTS_PER_CONTEXT, count)[:num_excerpts]
    return [text[start:stop] for start, stop in places]


class _Conversation:
    """Holds one conversation."""

    def __init__(
        self,
        store: ConversationStore,
        engine: Engine,
        plan: ConversationPlan,
        policy: Overflow,
        excerpts: Sequence[str],
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._policy = policy
        self._excerpts = excerpts
        self._facts = find_facts(excerpts, FACTS_PER_EXCERPT)
        sampling = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS)
        settings = ReplySettings(sampling, DEFAULT_KV, "", max_context=plan.max_context, overflow=policy)
        self._talk = Talk(store, engine, settings)
        self._handed: dict[int, int] = {}
        """The question that each excerpt came with."""
        self._asked: dict[Fact, bool] = {}
        """What was asked for, and whether the answer was right."""

    def held(self, on_turn: OnTurn) -> HeldConversation:
        """Hold it, and ask again at the end for what has left the context."""
        num_turns = self._plan.num_turns
        for number, step in enumerate(script(len(self._excerpts), self._facts, num_turns), 1):
            on_turn(self._policy, number, num_turns)
            self._take(step)
        context, run = self._talk.context, self._talk.run
        ledger = self._ledger(context)
        gone = [fact for fact in self._asked if self._is_gone(fact, context)]
        again = 0
        for number, fact in enumerate(gone, num_turns + 1):
            on_turn(self._policy, number, num_turns + len(gone))
            again += fact.is_in(self._talk.ask_beside(fact.question))
        self._engine.forget(self._talk.conversation_id)
        read, summaries = _read(context.messages), _summaries(context.messages)
        facts = FactCounts(
            asked=len(self._asked),
            right=sum(self._asked.values()),
            gone=len(gone),
            right_again=again,
            told=sum(fact.is_in(read) for fact in gone),
            summarized=sum(fact.is_in(summaries) for fact in gone),
        )
        return HeldConversation(self._policy, run, ledger, facts)

    def _take(self, step: Step) -> None:
        document = None if step.excerpt is None else self._part(step.excerpt)
        asked = self._talk.ask(step.question, document)
        if step.excerpt is not None:
            self._handed[step.excerpt] = asked.question_id
        if step.fact is not None:
            self._asked[step.fact] = step.fact.is_in(asked.message.text)

    def _part(self, excerpt: int) -> Document:
        document = self._plan.document
        title = f"{document.title}, part {excerpt + 1}"
        return Document(title, document.source, document.kind, self._excerpts[excerpt])

    def _is_gone(self, fact: Fact, context: ConversationContext) -> bool:
        """Whether the model reads none of the parts any more that have a fact."""
        questions = (self._handed[excerpt] for excerpt in fact.excerpts if excerpt in self._handed)
        turns = (context.turns[context.items.turn_of[message_key(question)]] for question in questions)
        return all(turn.state is not SpanState.IN_CONTEXT for turn in turns)

    def _ledger(self, context: ConversationContext) -> LedgerReport:
        loaded = self._engine.loaded
        assert loaded is not None
        counts = {message_key(each.id): loaded.counter.count(each.text) for each in context.path}
        for message in context.path:
            for each in message.attachments:
                counts[attachment_key(each.id)] = loaded.counter.count(each.text)
        return ledger_report(
            context, "", self._engine.context_usage(), counts, limit_tokens=self._plan.max_context
        )


def _read(messages: Sequence[ChatMessage]) -> str:
    return "\n".join(message.content for message in messages)


def _summaries(messages: Sequence[ChatMessage]) -> str:
    return "\n".join(
        message.content[each.start : each.stop]
        for message in messages
        for each in message.documents
        if each.kind is SpanKind.SUMMARY
    )
