"""Asks for the facts of a handbook, by each way to read it.

Everything goes the way that a chat goes: a store, `ChatService` and the engine, with a prefix cache; each
question begins a conversation of its own. Imports MLX: the backend is to be prepared before.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.chat import ChatService, ReplyEnded, ReplySettings
from app.document_bench.counting import CountingEngine
from app.document_bench.facts import PlantedFact
from app.document_bench.figures import AskedFact, BenchWay, DocumentBench, DocumentBenchPlan, WayRun
from app.document_bench.handbook import handbook
from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.ledger.records import ContextChange, ItemMark, attachment_key
from app.profiles import DocumentMode, Overflow
from app.reading.records import SourceKind
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from app.store.records import Message
from engine.admission import AdmissionError
from engine.backend import Backend, start_backend
from engine.bench.loading import package_versions, setup_words
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.guard import Guard
from engine.memory import MemorySample
from engine.memory_limits import MemoryLimits
from engine.model import ChatMessage
from engine.monitor import MemoryMonitor
from engine.requests import GenerationRequest
from engine.sampling import SamplingParams

ANSWER_TOKENS = 64
MARGIN_TOKENS = 128
"""What the question, and the words around a document, take beside it."""
INTERVAL_S = 0.25
_DOCUMENT_WAYS = {
    BenchWay.TRUNCATED: DocumentWay.WHOLE,
    BenchWay.WHOLE: DocumentWay.WHOLE,
    BenchWay.SEGMENTS: DocumentWay.SEGMENTS,
    BenchWay.LOOK_UP: DocumentWay.LOOK_UP,
}

OnQuestion = Callable[[BenchWay, int, int], None]
"""Told the way, the number of a question, from 1, and how many there are."""
OnAnswer = Callable[[BenchWay, AskedFact], None]
"""Told the way, and each answer once it has been written."""
EarlierAnswer = Callable[[BenchWay, PlantedFact], AskedFact | None]
"""Returns the answer of an earlier run, None where that has none."""


def bench_document(
    model: Path,
    plan: DocumentBenchPlan,
    on_question: OnQuestion,
    on_answer: OnAnswer = lambda way, asked: None,
    earlier: EarlierAnswer = lambda way, fact: None,
) -> DocumentBench:
    """Ask for facts by each way; what an earlier run has answered is not asked again.

    Raises:
        OctavoError: the model cannot be loaded, or the handbook has no room for so many facts.
    """
    backend = start_backend()
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as name:
        folder = Path(name)
        prefixes = PrefixService(folder / "prefixes.db")
        engine = CountingEngine(backend, spill_folder=folder / "spill", prefixes=prefixes)
        try:
            engine.load(
                model,
                DEFAULT_KV,
                max_context=plan.max_context,
                cancel=CancelToken(),
                on_progress=lambda progress: None,
            )
            with contextlib.closing(ConversationStore.open(folder / "conversations.db")) as store:
                return _Bench(engine, backend, store, plan, on_question, on_answer, earlier).run()
        finally:
            engine.unload()
            prefixes.close()


class _Bench:
    """One bench with a loaded model."""

    def __init__(
        self,
        engine: CountingEngine,
        backend: Backend,
        store: ConversationStore,
        plan: DocumentBenchPlan,
        on_question: OnQuestion,
        on_answer: OnAnswer,
        earlier: EarlierAnswer,
    ) -> None:
        assert engine.loaded is not None
        self._engine = engine
        self._store = store
        self._plan = plan
        self._on_question = on_question
        self._on_answer = on_answer
        self._earlier = earlier
        self._setup = setup_words(backend, engine.loaded.plan.dequantize)
        self._count = engine.loaded.counter.count
        self._handbook = handbook(plan.num_tokens, plan.num_facts, self._count)
        self._service = ChatService(store, engine)
        self._held_id: int | None = None

    def run(self) -> DocumentBench:
        """Ask by each way."""
        return DocumentBench(
            self._count(self._handbook.text),
            len(self._handbook.facts),
            self._limit_tokens(),
            str(DEFAULT_KV),
            self._setup,
            package_versions(),
            tuple(self._by(way) for way in self._plan.ways),
        )

    def _settings(self) -> ReplySettings:
        return ReplySettings(
            SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS),
            DEFAULT_KV,
            "",
            max_context=self._plan.max_context,
            overflow=Overflow.OFF,
            document_mode=DocumentMode.AUTO,
        )

    def _limit_tokens(self) -> int:
        settings = self._settings()
        words = (ChatMessage("user", self._handbook.title),)
        request = GenerationRequest(words, settings.sampling, settings.kv, settings.max_context)
        return self._engine.measure(request).limit_tokens

    def _by(self, way: BenchWay) -> WayRun:
        text, refusal = self._handbook.text, ""
        if way is BenchWay.TRUNCATED:
            text = beginning(text, self._limit_tokens() - ANSWER_TOKENS - MARGIN_TOKENS, self._count)
        asked: list[AskedFact] = []
        samples: list[MemorySample] = []
        facts = spread(self._handbook.facts, self._plan.num_asked)
        for number, fact in enumerate(facts, 1):
            answered = self._earlier(way, fact)
            if answered is None:
                self._on_question(way, number, len(facts))
                try:
                    answered = self._ask(way, text, fact, samples)
                except AdmissionError as error:
                    refusal = str(error)
                    break
                self._on_answer(way, answered)
            asked.append(answered)
        self._hold(None)
        return WayRun(way, tuple(asked), tuple(samples), refusal)

    def _hold(self, conversation_id: int | None) -> None:
        """Forget the conversation before, whose pages a new one about the same text may have begun from."""
        if self._held_id is not None:
            self._engine.forget(self._held_id)
        self._held_id = conversation_id

    def _ask(self, way: BenchWay, text: str, fact: PlantedFact, samples: list[MemorySample]) -> AskedFact:
        """Ask for a fact in a conversation of its own; add the samples of the memory meanwhile."""
        store, engine = self._store, self._engine
        conversation_id = store.create_conversation().id
        attached = store.add_attachment(
            conversation_id, Document(self._handbook.title, "handbook.md", "markdown", text)
        )
        chosen = ItemMark(attachment_key(attached.id), way=_DOCUMENT_WAYS[way])
        store.change_context(conversation_id, ContextChange((chosen,)))
        asked = store.add_user_message(conversation_id, None, fact.question, [attached.id])
        before, started_s = (engine.read_tokens, engine.written_tokens), time.perf_counter()
        with _watched(engine) as watched:
            answer = self._answer(conversation_id, asked.id)
        seconds = time.perf_counter() - started_s
        samples.extend(watched)
        self._hold(conversation_id)
        is_whole = _DOCUMENT_WAYS[way] is DocumentWay.WHOLE
        return AskedFact(
            fact,
            answer.text,
            fact.is_told_by(answer.text),
            fact.stop <= len(text) if is_whole else _has_source(answer, fact, is_cited=False),
            not is_whole and _has_source(answer, fact, is_cited=True),
            seconds,
            engine.read_tokens - before[0],
            engine.written_tokens - before[1],
            max(sample.engine.kv.total for sample in watched),
            max(max(sample.active_nbytes, sample.peak_nbytes) for sample in watched),
        )

    def _answer(self, conversation_id: int, question_id: int) -> Message:
        for event in self._service.reply(conversation_id, question_id, self._settings(), CancelToken()):
            if isinstance(event, ReplyEnded):
                ended = event
        return ended.message


def beginning(text: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return as many whole paragraphs of the beginning of a text as have so many tokens."""
    paragraphs, taken, num_tokens = text.split("\n\n"), 0, 0
    for paragraph in paragraphs:
        num_tokens += count_tokens(f"{paragraph}\n\n")
        if num_tokens > most_tokens:
            break
        taken += 1
    return "\n\n".join(paragraphs[:taken])


def spread(facts: Sequence[PlantedFact], count: int | None) -> Sequence[PlantedFact]:
    """Return so many of some facts, evenly spread over them; None for all."""
    most = min(count or len(facts), len(facts))
    return [facts[(2 * number + 1) * len(facts) // (2 * most)] for number in range(most)]


def _has_source(answer: Message, fact: PlantedFact, *, is_cited: bool) -> bool:
    """Whether an answer has, or cites, a passage in which a fact stands, or that stands in the fact."""
    return any(
        source.start < fact.stop and fact.start < source.stop and (source.is_cited or not is_cited)
        for source in answer.sources
        if source.kind in (SourceKind.NOTED, SourceKind.LOOKED_AT)
    )


@contextlib.contextmanager
def _watched(engine: Engine) -> Iterator[Sequence[MemorySample]]:
    """Take samples of the memory while this lasts; nothing is done about what they say."""
    samples: list[MemorySample] = []
    limits: MemoryLimits = engine.limits
    monitor = MemoryMonitor(Guard(), lambda: limits, interval_s=INTERVAL_S, rests=False)
    monitor.subscribe(lambda sample, changed: samples.append(sample))
    monitor.start()
    try:
        yield samples
    finally:
        monitor.stop()
