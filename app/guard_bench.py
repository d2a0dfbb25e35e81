"""A long conversation in less memory than it would take: what the guard does, and whether a word is lost.

Imports MLX: the backend is to be prepared before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.chat import ChatService, ReplyEnded, ReplySettings
from app.profiles import Overflow
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.backend import start_backend
from engine.bench.guard import (
    ANSWER_TOKENS,
    NUM_TURNS,
    ConversationRun,
    GuardBench,
    GuardBenchPlan,
    GuardEvent,
)
from engine.bench.prose import TEXT
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import Token
from engine.guard import Guard, GuardAction, GuardStep
from engine.memory import MemorySample
from engine.memory_limits import MemoryLimits
from engine.memory_linux import trim_heap
from engine.memory_sensor import process_nbytes
from engine.monitor import MemoryMonitor
from engine.sampling import SamplingParams

QUESTION = "What happens in this text? Answer in one sentence."
RESERVE_NBYTES = 64_000_000
"""Little, so that it is the guard that keeps the memory free and not the plan."""
INTERVAL_S = 0.5
PATIENCE_S = 15.0
"""A reply that is paused for longer than this is let go on, as a user would."""


def bench_guard(
    plan: GuardBenchPlan,
    on_event: Callable[[GuardEvent], None],
    on_question: Callable[[int, bool], None],
    questions: Sequence[str] | None = None,
) -> GuardBench:
    """Hold a conversation twice, and tell of each step of the guard as it is taken.

    `on_question` is told the number of each question, from 1, and whether there is a guard. Without
    `questions` they are about the benches' own text, 7,000 tokens of it.

    Raises:
        OctavoError: the model cannot be loaded, or its context is too short.
    """
    asked = long_questions() if questions is None else questions
    free = _hold(plan, asked, None, on_event, on_question)
    most = free.begun_nbytes + int(plan.share * (free.most_taken_nbytes - free.begun_nbytes))
    return GuardBench(free, _hold(plan, asked, most, on_event, on_question))


def long_questions(text: str = TEXT, num_turns: int = NUM_TURNS) -> list[str]:
    """Return a text in so many parts, cut between paragraphs, each with a question behind it."""
    paragraphs = text.split("\n\n")
    parts: list[list[str]] = [[] for _ in range(num_turns)]
    read = 0
    for paragraph in paragraphs:
        parts[min(num_turns - 1, read * num_turns // len(text))].append(paragraph)
        read += len(paragraph) + 2
    return ["\n\n".join([*part, QUESTION]) for part in parts if part]


def _hold(
    plan: GuardBenchPlan,
    questions: Sequence[str],
    most_nbytes: int | None,
    on_event: Callable[[GuardEvent], None],
    on_question: Callable[[int, bool], None],
) -> ConversationRun:
    """Hold the conversation once, with a guard where the memory is limited."""
    guard = Guard()
    limits = MemoryLimits(reserve_nbytes=RESERVE_NBYTES)
    engine = Engine(start_backend(), limits=limits, guard=None if most_nbytes is None else guard)
    engine.load(plan.model, plan.kv, cancel=CancelToken(), on_progress=lambda progress: None)
    trim_heap()
    begun_nbytes = process_nbytes(os.getpid())
    engine.limits = limits = dataclasses.replace(limits, most_nbytes=most_nbytes)
    watched, user = _Samples(), _ImpatientUser(guard)
    monitor = MemoryMonitor(guard, lambda: limits, interval_s=INTERVAL_S, rests=False)
    monitor.subscribe(watched)
    monitor.subscribe(user)
    monitor.start()
    try:
        with tempfile.TemporaryDirectory(prefix="octavo-bench-") as folder:
            talk = _Talk(Path(folder) / "conversations.db", engine, plan, on_event)
            for number, question in enumerate(questions, 1):
                on_question(number, most_nbytes is not None)
                talk.ask(question)
            problems = tuple(talk.problems())
    finally:
        monitor.stop()
        engine.unload()
    return ConversationRun(
        most_nbytes,
        begun_nbytes,
        tuple(watched.samples),
        tuple(talk.events),
        len(talk.asked),
        talk.num_tokens,
        talk.num_left_out_turns,
        user.num_overrides,
        problems,
    )


class _Samples:
    def __init__(self) -> None:
        self.samples: list[MemorySample] = []

    def __call__(self, sample: MemorySample, changed: bool) -> None:
        self.samples.append(sample)


class _ImpatientUser:
    """Lets a reply go on that was paused for too long."""

    def __init__(self, guard: Guard) -> None:
        self.num_overrides = 0
        self._guard = guard
        self._paused_s: float | None = None

    def __call__(self, sample: MemorySample, changed: bool) -> None:
        if self._guard.height is not GuardStep.PAUSE:
            self._paused_s = None
        elif self._paused_s is None:
            self._paused_s = sample.time_s
        elif sample.time_s - self._paused_s >= PATIENCE_S:
            self.num_overrides += 1
            self._guard.go_on()


class _Talk:
    """The conversation, in a store of its own, and what was seen of it on the way."""

    def __init__(
        self, file: Path, engine: Engine, plan: GuardBenchPlan, on_event: Callable[[GuardEvent], None]
    ) -> None:
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.events: list[GuardEvent] = []
        self.num_tokens = 0
        self.num_left_out_turns = 0
        self._file = file
        self._engine = engine
        self._on_event = on_event
        self._settings = ReplySettings(
            SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS),
            plan.kv,
            "",
            overflow=Overflow.DROP if plan.may_trim else Overflow.OFF,
            anyway=True,
        )
        self._conversation_id: int | None = None
        self._leaf_id: int | None = None

    def ask(self, question: str) -> None:
        """Ask the next question and wait for the answer; the store is open meanwhile only."""
        with contextlib.closing(ConversationStore.open(self._file)) as store:
            if self._conversation_id is None:
                self._conversation_id = store.create_conversation().id
            asked = store.add_user_message(self._conversation_id, self._leaf_id, question)
            self.asked.append(question)
            service = ChatService(store, self._engine)
            self._leaf_id = self._answer(service, self._conversation_id, asked.id).message.id
        for action in self._engine.relieve(CancelToken()):
            self._take(action)

    def _answer(self, service: ChatService, conversation_id: int, leaf_id: int) -> ReplyEnded:
        words: list[str] = []
        for event in service.reply(conversation_id, leaf_id, self._settings, CancelToken()):
            if isinstance(event, Token):
                words.append(event.text)
            elif isinstance(event, GuardAction):
                self._take(event)
            elif isinstance(event, ReplyEnded):
                ended = event
        self.answered.append("".join(words))
        if stats := ended.message.stats:
            self.num_tokens = max(self.num_tokens, stats.prompt_tokens + stats.completion_tokens)
            self.num_left_out_turns = max(self.num_left_out_turns, stats.left_out_turns)
        return ended

    def _take(self, action: GuardAction) -> None:
        event = GuardEvent(time.monotonic(), action, process_nbytes(os.getpid()))
        self.events.append(event)
        self._on_event(event)

    def problems(self) -> list[str]:
        """Return what is wrong with the conversation, read from its file again."""
        with contextlib.closing(ConversationStore.open(self._file)) as store:
            stored = [] if self._leaf_id is None else store.path(self._leaf_id)
        said = [text for turn in zip(self.asked, self.answered, strict=True) for text in turn]
        return list(problems_of(stored, said))


def problems_of(stored: Sequence[Message], said: Sequence[str]) -> Iterator[str]:
    """Yield how the messages that are stored differ from what was said, and which of them are not answers."""
    if len(stored) != len(said):
        yield f"{len(said)} messages were exchanged and {len(stored)} are stored"
    for number, (message, text) in enumerate(zip(stored, said, strict=False), 1):
        if message.text != text:
            yield f"message {number} is stored with other words"
        if message.state is not MessageState.COMPLETE:
            yield f"message {number} ended as {message.state.value}"
        if not message.text.strip():
            yield f"message {number} has no words"
