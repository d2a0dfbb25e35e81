"""Replies in a real store with the real starter model."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat import (
    ChatService,
    ReplyEnded,
    ReplyEvent,
    ReplySettings,
    ReplyStarted,
)
from app.documents.document import Document
from app.ledger.context import ConversationContext
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState, Role
from engine.admission import ContextOverflowError
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import ModelError, OctavoError
from engine.events import CacheChanged, GenerationStats, StopReason, Token
from engine.kv.precision import KVSpec
from engine.sampling import SamplingParams

SETTINGS = ReplySettings(
    sampling=SamplingParams(temperature=0, max_tokens=8), kv=KVSpec.parse("16"), system_prompt=""
)
PAPER = Document(title="Paper", source="/tmp/paper.pdf", kind="pdf", text="Owls hunt at night.", num_pages=1)


@pytest.fixture(scope="module")
def engine(starter_gguf: Path, backend: Backend) -> Engine:
    engine = Engine(backend)
    engine.load(starter_gguf, SETTINGS.kv, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


def ask(store: ConversationStore, text: str, *, parent: Message | None = None) -> Message:
    conversation_id = parent.conversation_id if parent else store.create_conversation().id
    return store.add_user_message(conversation_id, parent.id if parent else None, text, [])


def answer(
    store: ConversationStore,
    engine: Engine,
    question: Message,
    settings: ReplySettings = SETTINGS,
    cancel: CancelToken | None = None,
) -> Iterator[ReplyEvent]:
    service = ChatService(store, engine)
    return service.reply(question.conversation_id, question.id, settings, cancel or CancelToken())


def ended(events: list[ReplyEvent]) -> ReplyEnded:
    assert isinstance(events[-1], ReplyEnded)
    return events[-1]


def stats_of(events: list[ReplyEvent]) -> GenerationStats:
    stats = ended(events).message.stats
    assert stats is not None
    return stats


def test_a_reply_is_in_the_store_with_its_figures(store: ConversationStore, engine: Engine) -> None:
    question = ask(store, "What hunts at night?")
    events = list(answer(store, engine, question))
    assert isinstance(events[0], ReplyStarted)
    written = "".join(event.text for event in events if isinstance(event, Token))
    row = store.path(ended(events).message.id)[-1]
    assert row == ended(events).message
    assert row.role is Role.ASSISTANT
    assert row.state is MessageState.COMPLETE
    assert row.text == written
    assert row.stats is not None
    assert row.stats.completion_tokens == 8
    assert row.stats.stop_reason is StopReason.LENGTH
    assert store.conversation(question.conversation_id).leaf_id == row.id


def test_the_next_turn_reads_only_what_is_new(store: ConversationStore, engine: Engine) -> None:
    question = ask(store, "Name a bird. " * 40)
    first = list(answer(store, engine, question))
    follow_up = ask(store, "And another?", parent=ended(first).message)
    stats = stats_of(list(answer(store, engine, follow_up)))
    assert stats.reused_tokens >= stats_of(first).prompt_tokens
    assert stats.prompt_tokens - stats.reused_tokens < 40


def test_regenerating_writes_a_sibling_and_reads_almost_nothing(
    store: ConversationStore, engine: Engine
) -> None:
    question = ask(store, "Name a fish. " * 40)
    first, second = (list(answer(store, engine, question)) for _ in range(2))
    assert ended(second).message.siblings == (ended(first).message.id, ended(second).message.id)
    stats = stats_of(second)
    assert stats.reused_tokens == stats.prompt_tokens - 1


def test_a_stopped_reply_keeps_what_was_written(store: ConversationStore, engine: Engine) -> None:
    cancel = CancelToken()
    events: list[ReplyEvent] = []
    for event in answer(store, engine, ask(store, "Tell me a story."), cancel=cancel):
        events.append(event)
        if isinstance(event, Token):
            cancel.cancel()
    row = ended(events).message
    assert row.state is MessageState.STOPPED
    assert row.text == "".join(event.text for event in events if isinstance(event, Token)) != ""
    assert stats_of(events).stop_reason is StopReason.STOPPED


def test_a_partial_reply_is_saved_while_it_streams(
    store: ConversationStore, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.reply_in_progress.SAVE_INTERVAL_S", 0)
    events = answer(store, engine, ask(store, "Tell me a story."))
    started = next(events)
    assert isinstance(started, ReplyStarted)
    written = ""
    for event in events:
        if isinstance(event, Token) and event.text:
            written += event.text
            assert saved_by_another_connection(tmp_path, started.message.id) == written
    assert written


def saved_by_another_connection(folder: Path, message_id: int) -> str:
    """Return what another program finds for a message."""
    found: list[str] = []

    def read() -> None:
        other = ConversationStore.open(folder / "conversations.db")
        found.append(other.message(message_id).text)
        other.close()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    return found[0]


def test_a_conversation_that_does_not_fit_is_refused_with_the_numbers_and_leaves_no_empty_reply(
    store: ConversationStore, engine: Engine
) -> None:
    question = ask(store, "word " * 9000)
    with pytest.raises(ContextOverflowError, match=r"8,192.*tokens too many"):
        list(answer(store, engine, question))
    assert store.conversation(question.conversation_id).leaf_id == question.id
    assert store.message(question.id).text == question.text


def test_without_a_model_nothing_is_started(store: ConversationStore, backend: Backend) -> None:
    question = ask(store, "Hello?")
    with pytest.raises(ModelError, match="No model is loaded"):
        list(answer(store, Engine(backend), question))
    assert store.conversation(question.conversation_id).leaf_id == question.id


def test_an_empty_message_is_not_answered(store: ConversationStore, engine: Engine) -> None:
    with pytest.raises(OctavoError, match="nothing to answer"):
        list(answer(store, engine, ask(store, "")))


def test_a_failure_of_the_engine_ends_the_reply_and_leaves_the_engine_usable(
    store: ConversationStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ask(store, "Name a bird.")
    with monkeypatch.context() as patch:
        patch.setattr("engine.generate.Generation._forward", fail)
        with pytest.raises(ZeroDivisionError):
            list(answer(store, engine, question))
    failed = store.message(store.conversation(question.conversation_id).leaf_id or 0)
    assert failed.state is MessageState.FAILED
    assert failed.error is not None
    assert "ZeroDivisionError" in failed.error
    assert ended(list(answer(store, engine, question))).message.state is MessageState.COMPLETE


def fail(*_: object) -> None:
    raise ZeroDivisionError("broken on purpose")


def test_the_next_reply_is_written_at_a_lower_precision_without_reading_again(
    store: ConversationStore, engine: Engine
) -> None:
    question = ask(store, "Name a bird. " * 100)
    list(answer(store, engine, question, with_kv("16; page=64, hot=0, warm=0")))
    stats = stats_of(list(answer(store, engine, question, with_kv("4; page=64, hot=0, warm=0"))))
    assert stats.kv == "4; page=64, hot=0, warm=0"
    assert stats.kv_usage.effective == (4, 4)
    assert stats.reused_tokens == stats.prompt_tokens - 1


def test_a_precision_wanted_in_mid_reply_reaches_the_cache_and_the_reply_goes_on(
    store: ConversationStore, engine: Engine
) -> None:
    question = ask(store, "Name a fish. " * 100)
    wanted = [KVSpec.parse("16; page=64, hot=0, warm=0"), KVSpec.parse("3; page=64, hot=0, warm=0")]
    events: list[ReplyEvent] = []
    service = ChatService(store, engine)
    settings = ReplySettings(SETTINGS.sampling, wanted[0], "")
    for event in service.reply(
        question.conversation_id, question.id, settings, CancelToken(), lambda: wanted[0]
    ):
        if isinstance(event, Token) and len(wanted) > 1:
            del wanted[0]
        events.append(event)
    first_token = next(index for index, event in enumerate(events) if isinstance(event, Token))
    changed = next(event for event in events[first_token:] if isinstance(event, CacheChanged))
    assert changed.kv == wanted[0]
    assert changed.usage.requested == changed.usage.effective == (3, 3)
    assert stats_of(events).completion_tokens == 8
    assert stats_of(events).kv == "3; page=64, hot=0, warm=0"


def with_kv(text: str) -> ReplySettings:
    return dataclasses.replace(SETTINGS, kv=KVSpec.parse(text))


def test_the_system_prompt_comes_first_and_replies_without_words_are_left_out(
    store: ConversationStore,
) -> None:
    conversation = store.create_conversation()
    attachment = store.add_attachment(conversation.id, PAPER)
    question = store.add_user_message(conversation.id, None, "Who hunts?", [attachment.id])
    reply = store.begin_reply(conversation.id, question.id, "model")
    store.finish_reply(reply.id, "", MessageState.STOPPED)
    follow_up = store.add_user_message(conversation.id, reply.id, "Well?", [])
    context = ConversationContext.of(store.path(follow_up.id), store.ledger(conversation.id))
    settings = dataclasses.replace(SETTINGS, system_prompt="Be brief.")
    request = settings.request(context, conversation.id, answer_key="m9")
    assert [message.role for message in request.messages] == ["system", "user", "user"]
    assert request.messages[1].content.startswith("Document: Paper")
    assert request.answer_key == "m9"
    without = dataclasses.replace(settings, system_prompt=" ").request(context, conversation.id)
    assert without.messages == request.messages[1:]
