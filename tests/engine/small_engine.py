"""An engine with a tiny random model, and a guard and memory that a test sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.events import Finished, GenerationStats, Token
from engine.guard import Guard, GuardStep
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.model import ChatMessage
from engine.prefixes.records import PrefixStore
from engine.sampling import SamplingParams
from engine.turns import turn_starts
from tests.engine.folders import write_folder

FOUR = KVSpec.parse("4; page=64, group=32, hot=1, warm=1")
SHORT = SamplingParams(temperature=0, max_tokens=8)
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
END_TOKEN = 999
"""No token of the vocabulary: the model never ends its turn, so that a test knows how long an answer is."""


def write_small_model(folder: Path) -> Path:
    """Write a model of two layers whose tokens are bytes and whose template is `User: …`."""
    return write_folder(
        folder, bits=None, hidden_size=128, max_position_embeddings=4096, eos_token_id=END_TOKEN
    )


def write_templated_model(folder: Path) -> Path:
    """Write the same with a template that writes an answer where it was generated: `user: …`."""
    write_small_model(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def small_engine(
    path: Path,
    backend: Backend,
    guard: Guard | None = None,
    spill_folder: Path | None = None,
    limits: MemoryLimits | None = None,
    prefixes: PrefixStore | None = None,
) -> Engine:
    engine = Engine(
        backend,
        guard=guard,
        spill_folder=spill_folder,
        limits=limits or MemoryLimits(),
        prefixes=prefixes,
    )
    engine.load(path, FOUR, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


def conversation(num_turns: int, length: int = 60) -> tuple[ChatMessage, ...]:
    """Return so many turns, each of a question and an answer of a different letter, and a last question."""
    messages: list[ChatMessage] = []
    for turn in range(num_turns):
        letter = chr(ord("a") + turn)
        messages += [ChatMessage("user", letter * length), ChatMessage("assistant", letter.upper() * length)]
    return (*messages, ChatMessage("user", "And what is it that follows?"))


def keyed(messages: Sequence[ChatMessage], start: int = 0) -> tuple[ChatMessage, ...]:
    """Return the messages as those of a conversation that is stored, with the keys `m0`, `m1`..."""
    return tuple(
        dataclasses.replace(message, key=f"m{number}") for number, message in enumerate(messages, start)
    )


def answer(engine: Engine, request: GenerationRequest) -> tuple[str, GenerationStats]:
    """Return the text of a reply and its figures."""
    events = list(engine.generate(request, CancelToken()))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return "".join(event.text for event in events if isinstance(event, Token)), finished.stats


def without_oldest(messages: Sequence[ChatMessage], num_turns: int) -> tuple[ChatMessage, ...]:
    """Return the messages without so many of the oldest turns; what precedes the first stays."""
    starts = turn_starts(messages)
    return (*messages[: starts[0]], *messages[starts[num_turns] :])


def asked(
    messages: tuple[ChatMessage, ...], kv: KVSpec = FOUR, sampling: SamplingParams = SHORT, **fields: object
) -> GenerationRequest:
    return GenerationRequest(messages, sampling, kv, **fields)  # type: ignore[arg-type]


def readable_answers(
    engine: Engine, messages: tuple[ChatMessage, ...], kv: KVSpec, count: int = 1
) -> dict[str, SamplingParams]:
    """Return answers that the template writes as they were, and how they come: most are no valid text."""
    found: dict[str, SamplingParams] = {}
    for seed in range(300):
        sampling = SamplingParams(temperature=1, max_tokens=3, seed=seed)
        text, _ = answer(engine, asked(messages, kv, sampling, conversation_id=9))
        if text.isascii() and text.isprintable() and text == text.strip():
            found[text] = sampling
        if len(found) == count:
            break
    return found


def in_hand(engine: Engine) -> SequenceCache:
    assert engine._session is not None
    context = engine._session._held.in_hand
    assert context is not None
    return context.cache


def rendered(engine: Engine, messages: tuple[ChatMessage, ...]) -> list[int]:
    assert engine._session is not None
    return engine._session._model.render(messages)


class WaitingToken(CancelToken):
    """Does something instead of waiting, for a reply that is paused."""

    def __init__(self, on_wait: Callable[[WaitingToken], None]) -> None:
        super().__init__()
        self.num_waits = 0
        self._on_wait = on_wait

    def wait(self, timeout_s: float) -> bool:
        self.num_waits += 1
        self._on_wait(self)
        return self.cancelled


def guard_at(step: GuardStep) -> Guard:
    guard = Guard()
    guard.height, guard.reason = step, "memory is short"
    return guard
