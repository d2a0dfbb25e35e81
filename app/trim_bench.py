"""What a trim costs: its time against reading again, the perplexity behind it, and memory over many turns.

Everything goes the way that a chat goes: a store, `ChatService` and the engine. Imports MLX: the backend is
to be prepared before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.chat import ReplySettings
from app.ledger.records import SummarySource
from app.long_talk.passages import Passages
from app.long_talk.talk import Answered, Talk
from app.profiles import Overflow
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from engine.backend import start_backend
from engine.bench.kv.kinds import MLX_LM_16
from engine.bench.kv.prefill import measure_prefill
from engine.bench.kv.subjects import MlxLmSubject, ignore
from engine.bench.loading import package_versions, setup_words
from engine.bench.trim.figures import LongRun, Perplexities, TrimBench, TrimmedText
from engine.bench.trim.watched import WatchedEngine
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.events import Token
from engine.sampling import SamplingParams

WARM_UP_WORDS = "These are a few words."
WARM_UP_TOKENS = 4
PASSAGE_TOKENS = 100
"""The least tokens of a message in a conversation that is trimmed once."""
QUESTION_TOKENS = 32
"""Those of the question that goes over the limit."""
SHORT_PASSAGE_TOKENS = 64
"""Those of a message in the conversation that goes on."""
ANSWER_TOKENS = 16
AGAIN_ID = -1
"""The conversation in which a trimmed text is read again; the store's are positive."""

OnStage = Callable[[str], None]
"""Told in words what is being measured."""


@dataclass(frozen=True)
class TrimBenchPlan:
    """What is measured.

    Attributes:
        num_tokens: of the conversations that are trimmed once, and their limit.
        continuation_tokens: what the perplexity is of, at least 2.
        num_turns: so many turns the other conversation goes on beyond its limit.
        long_run_tokens: the limit of that one.
    """

    num_tokens: int = 6000
    continuation_tokens: int = 256
    num_turns: int = 50
    long_run_tokens: int = 2048


def bench_trim(model: Path, texts: Mapping[str, str], plan: TrimBenchPlan, on_stage: OnStage) -> TrimBench:
    """Measure all; with the starter on two cores of a CPU it takes about half an hour.

    Args:
        model: a model's folder or file.
        texts: what is said in the conversations, by title.
        plan: how much of it.
        on_stage: told what is being done.

    Raises:
        OctavoError: the model cannot be loaded, its layers are not all paged, or a text is too short.
    """
    backend = start_backend()
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as folder:
        engine = WatchedEngine(backend, spill_folder=Path(folder) / "released")
        on_stage("loading the model")
        loaded = engine.load(model, DEFAULT_KV, cancel=CancelToken(), on_progress=lambda progress: None)
        try:
            with contextlib.closing(ConversationStore.open(Path(folder) / "conversations.db")) as store:
                bench = _TrimBench(store, engine, plan, on_stage)
                bench.warm_up()
                trimmed = tuple(bench.trimmed(title, text) for title, text in texts.items())
                long_run = bench.long_run(texts)
        finally:
            engine.unload()
    setup = setup_words(backend, loaded.plan.dequantize)
    return TrimBench(plan.num_tokens, setup, package_versions(), str(DEFAULT_KV), trimmed, long_run)


@dataclass(frozen=True)
class _Full:
    """A conversation that is held up to its limit, and a question that goes over it."""

    title: str
    talk: Talk
    held_tokens: int
    question_id: int
    continuation: Sequence[int]


class _TrimBench:
    """Measures with one engine and one store."""

    def __init__(
        self, store: ConversationStore, engine: WatchedEngine, plan: TrimBenchPlan, on_stage: OnStage
    ) -> None:
        self._store = store
        self._engine = engine
        self._plan = plan
        self._on_stage = on_stage

    def warm_up(self) -> None:
        """Have both sides read and write a little, so that nothing is measured the first time."""
        tokens = self._tokens(WARM_UP_WORDS)[:WARM_UP_TOKENS]
        for _ in self._mlx_lm().stream(tokens, WARM_UP_TOKENS):
            pass
        talk = self._talk(_settings(None, ANSWER_TOKENS))
        talk.ask(WARM_UP_WORDS)
        self._engine.forget(talk.conversation_id)

    def trimmed(self, title: str, text: str) -> TrimmedText:
        """Hold a conversation up to its limit, go over it, and measure what that takes."""
        full = self._full(title, Passages(title, text, self._count))
        self._on_stage(f"{title}: what follows, with nothing left out")
        whole = self._engine.perplexity(self._prompt(full), full.continuation)
        self._on_stage(f"{title}: going over the limit")
        full.talk.settings = _settings(self._plan.num_tokens, 1)
        answered = full.talk.answer()
        prompt = self._prompt(full)
        trimmed = self._engine.perplexity(prompt, full.continuation)
        self._on_stage(f"{title}: reading the {len(prompt):,} tokens that are left with mlx-lm")
        theirs = measure_prefill(self._mlx_lm(), prompt, ignore)
        self._on_stage(f"{title}: reading them with Octavo")
        read_again_s = self._read_again_s(full)
        read_again = self._engine.perplexity(prompt, full.continuation)
        for conversation_id in (AGAIN_ID, full.talk.conversation_id):
            self._engine.forget(conversation_id)
        perplexity = Perplexities(trimmed, read_again, whole)
        return self._figures(full, answered, len(prompt) / theirs.tps, read_again_s, perplexity)

    def long_run(self, texts: Mapping[str, str]) -> LongRun:
        """Hold a conversation that goes on beyond its limit."""
        plan = self._plan
        prose = Passages("of all turns", "\n\n".join(texts.values()), self._count)
        talk = self._talk(_settings(plan.long_run_tokens, ANSWER_TOKENS))
        self._fill(talk, prose, SHORT_PASSAGE_TOKENS, plan.long_run_tokens)
        for number in range(1, plan.num_turns + 1):
            self._on_stage(
                f"turn {number} of {plan.num_turns} beyond a limit of {plan.long_run_tokens:,} tokens"
            )
            talk.ask(prose.take(SHORT_PASSAGE_TOKENS))
        return talk.run

    def _full(self, title: str, prose: Passages) -> _Full:
        num_tokens = self._plan.num_tokens
        self._on_stage(f"{title}: reading {num_tokens:,} tokens")
        talk = self._talk(_settings(None, ANSWER_TOKENS))
        self._fill(talk, prose, PASSAGE_TOKENS, num_tokens - PASSAGE_TOKENS)
        talk.put(prose.take(PASSAGE_TOKENS))
        talk.answer()
        question_id = talk.put(prose.take(QUESTION_TOKENS))
        wanted = self._plan.continuation_tokens
        continuation = self._tokens(prose.take(wanted))[:wanted]
        return _Full(title, talk, self._engine.context.cache.num_tokens, question_id, continuation)

    def _fill(self, talk: Talk, prose: Passages, passage_tokens: int, num_tokens: int) -> None:
        """Add turns until the conversation has so many tokens; nothing is read yet."""
        measured = 0
        while measured < num_tokens:
            question_id = talk.add(prose.take(passage_tokens), prose.take(passage_tokens))
            measured = self._engine.measure(talk.request_at(question_id)).num_tokens + passage_tokens

    def _read_again_s(self, full: _Full) -> float:
        """Return the seconds from the request to read what is left, of which nothing is held, to a token."""
        request = dataclasses.replace(full.talk.request_at(full.question_id), conversation_id=AGAIN_ID)
        started_s = time.perf_counter()
        events = self._engine.generate(request, CancelToken())
        token_s = [time.perf_counter() for event in events if isinstance(event, Token)]
        return token_s[0] - started_s

    def _figures(
        self, full: _Full, answered: Answered, mlx_lm_s: float, read_again_s: float, perplexity: Perplexities
    ) -> TrimmedText:
        summaries = self._store.ledger(full.talk.conversation_id).summaries
        stats = answered.message.stats
        if not summaries or stats is None:
            raise OctavoError(f"No turn of the conversation about {full.title} could leave the context.")
        return TrimmedText(
            title=full.title,
            held_tokens=full.held_tokens,
            released_tokens=sum(each.source_tokens for each in summaries),
            summary_tokens=sum(each.num_tokens for each in summaries),
            is_extract=any(each.source is SummarySource.EXTRACT for each in summaries),
            trimmed_tokens=stats.prompt_tokens,
            read_tokens=stats.prompt_tokens - stats.reused_tokens,
            summary_s=answered.times.summary_s,
            ready_s=answered.times.ready_s,
            mlx_lm_s=mlx_lm_s,
            read_again_s=read_again_s,
            perplexity=perplexity,
        )

    def _talk(self, settings: ReplySettings) -> Talk:
        return Talk(self._store, self._engine, settings)

    def _mlx_lm(self) -> MlxLmSubject:
        return MlxLmSubject(self._engine.model, MLX_LM_16)

    def _prompt(self, full: _Full) -> list[int]:
        """Return the tokens that the model reads of a conversation now, up to its question."""
        return self._engine.model.prompt(full.talk.request_at(full.question_id).messages).tokens

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._engine.model.tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def _count(self, text: str) -> int:
        return len(self._tokens(text))


def _settings(max_context: int | None, answer_tokens: int) -> ReplySettings:
    """Return how a conversation is answered: greedily, so that the same comes again."""
    return ReplySettings(
        SamplingParams(temperature=0, max_tokens=answer_tokens),
        DEFAULT_KV,
        "",
        max_context=max_context,
        overflow=Overflow.SUMMARIZE,
    )
