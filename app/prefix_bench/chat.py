"""A process of the bench as far as all do the same: the model, the stores, questions and their times.

Everything goes the way that a chat goes: a store, `ChatService` and the engine. Imports MLX: the backend is
to be prepared before.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psutil

from app.chat import ChatService, ReplyEnded
from app.document_prompt import chat_message, document_passage
from app.documents.document import Document
from app.ledger.context import ConversationContext
from app.prefix_bench.order import Order
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.backend import start_backend
from engine.bench.loading import setup_words
from engine.bench.prefix.figures import FirstToken
from engine.bench.prose import require_tokens
from engine.bench.trim.watched import WatchedEngine
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.events import Finished, Token
from engine.prefixes.records import SaveMode
from engine.sampling import SamplingParams

QUESTION = "What is this text about?"
NEXT_QUESTION = "And how does it end?"
DIGEST_POLL_S = 0.02

OnToken = Callable[[], None]
"""Called between two tokens of an answer."""


def _do_nothing() -> None:
    """Do nothing."""


def process_started_s() -> float:
    """Return when this process was started, by the clock of the day."""
    return float(psutil.Process().create_time())


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes:
        first: when its first token came.
        leaf_id: of its message.
        decode_tps: tokens per second after the first one; 0 for a single one.
    """

    first: FirstToken
    leaf_id: int
    decode_tps: float


class BenchChat:
    """A loaded model that answers conversations of the bench's folder; belongs to one thread.

    Attributes:
        engine: with the model.
        prefixes: the prefix cache.
        setup: what it runs on, in words.
    """

    def __init__(
        self,
        order: Order,
        engine: WatchedEngine,
        prefixes: PrefixService,
        store: ConversationStore,
        setup: str,
    ) -> None:
        self.engine = engine
        self.prefixes = prefixes
        self.setup = setup
        self._order = order
        self._store = store
        self._service = ChatService(store, engine)

    def document(self) -> Document:
        """Return as much of the text as has the tokens that are wanted; an `OctavoError`: it has not."""
        tokenizer = self.engine.model.tokenizer
        text = self._order.text_file.read_text("utf-8")
        words = tokenizer.decode(require_tokens(tokenizer, text, self._order.num_tokens))
        return Document("text", str(self._order.text_file), "text", words)

    def prompt_tokens(self) -> Sequence[int]:
        """Return the tokens of the first question with the document, as the model reads them."""
        message = chat_message("user", QUESTION, [document_passage(self.document())])
        return self.engine.model.prompt((message,)).tokens

    def begin(self, question: str, answer_tokens: int) -> tuple[int, Answer]:
        """Begin a conversation about the document; return its id and the answer."""
        conversation_id = self._store.create_conversation().id
        attachment = self._store.add_attachment(conversation_id, self.document())
        asked = self._store.add_user_message(conversation_id, None, question, [attachment.id])
        return conversation_id, self._answer(conversation_id, asked.id, answer_tokens)

    def begin_ahead(self, question: str, answer_tokens: int) -> Answer:
        """Begin a conversation whose document is read before the question is asked."""
        conversation_id = self._store.create_conversation().id
        attachment = self._store.add_attachment(conversation_id, self.document())
        draft = ConversationContext.of((), self._store.ledger(conversation_id)).with_draft([attachment])
        request = _settings(answer_tokens).request(draft, conversation_id)
        collections.deque(self.engine.read_ahead(request, CancelToken()), maxlen=0)
        asked = self._store.add_user_message(conversation_id, None, question, [attachment.id])
        return self._answer(conversation_id, asked.id, answer_tokens)

    def go_on(self, question: str, answer_tokens: int, on_token: OnToken = _do_nothing) -> Answer:
        """Ask behind the last message of the conversation that is kept; each time at the same place."""
        order = self._order
        asked = self._store.add_user_message(order.conversation_id, order.leaf_id, question, [])
        return self._answer(order.conversation_id, asked.id, answer_tokens, on_token)

    def _answer(
        self, conversation_id: int, question_id: int, num_tokens: int, on_token: OnToken = _do_nothing
    ) -> Answer:
        arrivals_s: list[float] = []
        process_s = 0.0
        settings = _settings(num_tokens)
        asked_s = time.perf_counter()
        for event in self._service.reply(conversation_id, question_id, settings, CancelToken()):
            match event:
                case Token():
                    arrivals_s.append(time.perf_counter())
                    process_s = process_s or time.time() - process_started_s()
                    on_token()
                case Finished(stats):
                    figures = stats
                case ReplyEnded(message):
                    leaf_id = message.id
        # What the tokenizer holds back at the end comes as one more.
        times_s = arrivals_s[:num_tokens]
        speed = (len(times_s) - 1) / (times_s[-1] - times_s[0]) if len(times_s) > 1 else 0.0
        ttft_s = times_s[0] - asked_s
        first = FirstToken(
            figures.prompt_tokens, figures.reused_tokens, ttft_s, process_s, figures.reread_note
        )
        return Answer(first, leaf_id, speed)


def _settings(answer_tokens: int) -> ReplySettings:
    sampling = SamplingParams(temperature=0, max_tokens=answer_tokens)
    return ReplySettings(sampling, DEFAULT_KV, "", overflow=Overflow.OFF)


@contextlib.contextmanager
def opened(order: Order, mode: SaveMode) -> Iterator[BenchChat]:
    """Load the model, with the prefix cache in the bench's folder as far as `mode` lets it be used.

    At the end nothing more is kept, so that each process finds the same. The model never ends an answer.

    Raises:
        OctavoError: the model cannot be loaded.
    """
    backend = start_backend()
    settings = PrefixSettings(mode)
    prefixes = PrefixService(order.prefixes_db, settings)
    engine = WatchedEngine(backend, spill_folder=order.folder / "spill", prefixes=prefixes)
    loaded = engine.load(order.model, DEFAULT_KV, cancel=CancelToken(), on_progress=lambda progress: None)
    engine.model.tokenizer.eos_token_ids = ()
    setup = setup_words(backend, loaded.plan.dequantize)
    try:
        with contextlib.closing(ConversationStore.open(order.folder / "conversations.db")) as store:
            yield BenchChat(order, engine, prefixes, store, setup)
    finally:
        prefixes.settings = dataclasses.replace(settings, mode=SaveMode.NEVER)
        engine.unload()
        prefixes.close()


def wait_until_known(chat: BenchChat, order: Order) -> None:
    """Wait until the model's digest is there, without which nothing is kept."""
    while chat.prefixes.model_digest(order.model) is None:
        if problem := chat.prefixes.figures().problem:
            raise OctavoError(problem)
        time.sleep(DIGEST_POLL_S)
