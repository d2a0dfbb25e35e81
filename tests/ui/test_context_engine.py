"""What the engine's thread does for the context of a conversation, with a tiny model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat import ContextEvent
from app.ledger.actions import drop, restore
from app.ledger.context import ConversationContext, SpanState
from app.ledger.progress import SummaryProgress
from app.ledger.records import SummaryState
from app.paths import AppPaths
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.cancel import CancelToken
from engine.context_usage import ContextUsage
from engine.events import PrefillProgress
from engine.sampling import SamplingParams
from tests.engine.folders import write_folder
from tests.engine.small_engine import END_TOKEN, FOUR, SHORT, write_small_model
from ui.context_work import PREPARING, REBUILDING
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState

WAIT_MS = 60_000
ASKING = ReplySettings(SHORT, FOUR, "", 2_048, Overflow.ASK)
LONGER = SamplingParams(temperature=0, max_tokens=64)
SUMMARIZING = dataclasses.replace(ASKING, overflow=Overflow.SUMMARIZE)


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small") / "small")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(AppPaths(tmp_path).conversations_db)
    yield store
    store.close()


@pytest.fixture
def engine(
    qtbot: QtBot, tmp_path: Path, store: ConversationStore, small_model: Path
) -> Iterator[EngineThread]:
    engine = EngineThread(AppPaths(tmp_path))
    engine.start()
    with qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS):
        engine.load(small_model, FOUR)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    yield engine
    engine.shutdown()


def talk(store: ConversationStore, num_turns: int, length: int = 200) -> Message:
    """Write a conversation that was answered into the store and return a further question."""
    conversation = store.create_conversation()
    leaf_id = None
    for turn in range(num_turns):
        words = f"Turn {turn} is about the lighthouse number {turn} in the bay. "
        asked = store.add_user_message(conversation.id, leaf_id, (words * 9)[:length])
        reply = store.begin_reply(conversation.id, asked.id, "small")
        store.finish_reply(reply.id, (f"Lighthouse {turn} is old. " * 9)[:length], MessageState.COMPLETE)
        leaf_id = reply.id
    return store.add_user_message(conversation.id, leaf_id, "And now?")


def answer(qtbot: QtBot, engine: EngineThread, question: Message, settings: ReplySettings) -> Message:
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(question.conversation_id, question.id, settings)
    reply = finished.args[0]
    assert isinstance(reply, Message)
    return reply


def context_of(store: ConversationStore, leaf: Message) -> ConversationContext:
    return ConversationContext.of(store.path(leaf.id), store.ledger(leaf.conversation_id))


def usage_of(engine: EngineThread, qtbot: QtBot, conversation_id: int) -> ContextUsage:
    """Return what the engine holds of the conversation in hand, once all that was asked for is done."""
    qtbot.waitUntil(lambda: not engine._worker._requests._pending, timeout=WAIT_MS)
    with qtbot.waitSignal(engine.context_usage_changed, timeout=WAIT_MS) as told:
        engine.watch_context(True)
    engine.watch_context(False)
    whose, usage = told.args
    assert whose == conversation_id
    assert isinstance(usage, ContextUsage)
    return usage


def held_tokens(engine: EngineThread, qtbot: QtBot, conversation_id: int) -> int:
    return usage_of(engine, qtbot, conversation_id).num_tokens


class Order:
    """What the engine's thread told, in its order, noted on that thread."""

    def __init__(self, engine: EngineThread) -> None:
        self.events: list[str] = []
        told = engine._worker.told
        direct = Qt.ConnectionType.DirectConnection
        told.background_changed.connect(lambda words: self.events.append(f"background {words}"), direct)
        told.reply_started.connect(lambda message: self.events.append("started"), direct)
        told.ledger_changed.connect(lambda whose: self.events.append("ledger"), direct)
        told.prefill_progress.connect(lambda whose, progress: self.events.append("reads"), direct)


def test_a_summary_is_prepared_after_a_reply_while_the_engine_stays_ready(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    states: list[EngineState] = []
    question = talk(store, 4)
    with qtbot.waitSignal(engine.ledger_changed, timeout=WAIT_MS) as changed:
        reply = answer(qtbot, engine, question, SUMMARIZING)
        qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
        engine.state_changed.connect(states.append)
    assert changed.args == [question.conversation_id]
    summaries = store.ledger(question.conversation_id).summaries
    assert [summary.state for summary in summaries] == [SummaryState.PREPARED]
    assert context_of(store, reply).left_out_turns == 0
    qtbot.waitUntil(lambda: engine.background == "", timeout=WAIT_MS)
    assert states == []


def at_fifth_step(engine: EngineThread, order: Order, act: Callable[[], None]) -> None:
    """Do something on the engine's thread while a summary is being prepared for the first time."""
    chat = engine._worker._works.context._chat
    prepare = chat.prepare

    def watched(
        conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Iterator[ContextEvent]:
        for event in prepare(conversation_id, leaf_id, settings, cancel):
            order.events.append("step")
            if order.events.count("step") == 5:
                act()
                order.events.append("asked")
            yield event

    chat.prepare = watched  # type: ignore[method-assign]


def test_a_reply_that_comes_meanwhile_begins_at_once_and_the_summary_is_prepared_after_it(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 4)
    order = Order(engine)
    at_fifth_step(engine, order, lambda: engine.reply(question.conversation_id, question.id, SUMMARIZING))
    engine.reply(question.conversation_id, question.id, SUMMARIZING)
    qtbot.waitUntil(lambda: "ledger" in order.events, timeout=WAIT_MS)
    asked = order.events.index("asked")
    second = order.events.index("started", asked)
    assert order.events[asked:second].count("step") <= 1  # the chunk or token that was on its way
    assert "ledger" not in order.events[:second]
    assert order.events.index("ledger") > order.events.index("reads", second)
    summaries = store.ledger(question.conversation_id).summaries
    assert [summary.state for summary in summaries] == [SummaryState.PREPARED]


def test_what_is_prepared_is_begun_again_after_a_short_request(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 4)
    order = Order(engine)
    at_fifth_step(engine, order, lambda: engine.settle(question.conversation_id, SUMMARIZING))
    with qtbot.waitSignal(engine.ledger_changed, timeout=WAIT_MS):
        engine.reply(question.conversation_id, question.id, SUMMARIZING)
    quiet = [event for event in order.events if event.startswith("background")]
    assert quiet[:3] == [f"background {PREPARING}", "background ", f"background {PREPARING}"]


def test_a_stop_does_not_concern_what_is_prepared(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 4)
    direct = Qt.ConnectionType.DirectConnection
    engine._worker.told.background_changed.connect(lambda words: words and engine.stop(), direct)
    with qtbot.waitSignal(engine.ledger_changed, timeout=WAIT_MS):
        answer(qtbot, engine, question, SUMMARIZING)


def test_nothing_is_prepared_for_a_conversation_that_was_deleted_meanwhile(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 4)
    direct = Qt.ConnectionType.DirectConnection

    def delete() -> None:
        store_there = ConversationStore.open(engine._worker._paths.conversations_db)
        store_there.delete(question.conversation_id)
        store_there.close()
        engine.forget(question.conversation_id)

    failures: list[object] = []
    engine.failed.connect(failures.append)
    engine._worker.told.background_changed.connect(lambda words: words and delete(), direct)
    with qtbot.waitSignal(
        engine.background_changed, timeout=WAIT_MS, check_params_cb=lambda words: not words
    ):
        answer(qtbot, engine, question, SUMMARIZING)
    answer(qtbot, engine, talk(store, 1), ASKING)
    store.undo_delete(question.conversation_id)
    assert store.ledger(question.conversation_id).summaries == ()
    assert failures == []


def test_a_summary_that_a_reply_waits_for_is_told_to_have_ended_before_the_reply_is_read(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    told: list[object] = []
    direct = Qt.ConnectionType.DirectConnection
    engine._worker.told.summary_progress.connect(lambda _, progress: told.append(progress), direct)
    engine._worker.told.prefill_progress.connect(lambda _, progress: told.append(progress), direct)
    answer(qtbot, engine, talk(store, 5), SUMMARIZING)
    kinds = [kind for kind, _ in groupby(told, key=type)]
    assert kinds.index(SummaryProgress) < kinds.index(type(None)) < kinds.index(PrefillProgress)


def test_work_in_the_background_goes_on_when_somebody_looks_at_the_context(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    begun: list[str] = []

    def look(words: str) -> None:
        begun.append(words)
        if words:
            engine.watch_context(True)

    engine._worker.told.background_changed.connect(look, Qt.ConnectionType.DirectConnection)
    with qtbot.waitSignal(engine.ledger_changed, timeout=WAIT_MS):
        answer(qtbot, engine, talk(store, 4), SUMMARIZING)
    qtbot.waitUntil(lambda: not engine._worker._requests._pending, timeout=WAIT_MS)
    assert begun == [PREPARING, ""]


def test_a_turn_is_summarized_on_request_and_its_pages_are_given_back(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    reply = answer(qtbot, engine, talk(store, 3), ASKING)
    whole = held_tokens(engine, qtbot, reply.conversation_id)
    states: list[EngineState] = []
    progress: list[SummaryProgress | None] = []
    engine.state_changed.connect(states.append)
    engine.summary_progress.connect(lambda whose, told: progress.append(told))
    key = context_of(store, reply).turns[0].keys[0]
    with qtbot.waitSignal(engine.ledger_changed, timeout=WAIT_MS):
        engine.summarize(reply.conversation_id, reply.id, (key,), ASKING)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    assert EngineState.SUMMARIZING in states
    assert progress[-1] is None
    assert {told.num_turns for told in progress if told is not None} == {1}
    context = context_of(store, reply)
    assert context.turns[0].state is SpanState.SUMMARIZED
    assert held_tokens(engine, qtbot, reply.conversation_id) <= whole - 400


def test_a_summary_that_is_stopped_changes_nothing(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    reply = answer(qtbot, engine, talk(store, 3), ASKING)
    key = context_of(store, reply).turns[0].keys[0]
    direct = Qt.ConnectionType.DirectConnection
    engine._worker.told.summary_progress.connect(lambda whose, told: engine.stop(), direct)
    told: list[object] = []
    engine.ledger_changed.connect(told.append)
    with qtbot.waitSignal(engine.summary_progress, timeout=WAIT_MS, check_params_cb=lambda _, told: not told):
        engine.summarize(reply.conversation_id, reply.id, (key,), ASKING)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    assert told == []
    assert store.ledger(reply.conversation_id).summaries == ()


def test_what_is_left_out_while_a_reply_is_written_is_given_back_after_it_and_the_reply_is_kept(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 3)
    context = context_of(store, question)
    length = len(context.messages[0].content) + len(context.messages[1].content)

    def leave_out() -> None:
        store.change_context(question.conversation_id, drop(context, context.turns[0].keys[0]))
        engine.settle(question.conversation_id, ASKING)

    engine.reply_started.connect(leave_out)
    reply = answer(qtbot, engine, question, ASKING)
    assert reply.stats is not None
    full = reply.stats.prompt_tokens + reply.stats.completion_tokens
    held = held_tokens(engine, qtbot, question.conversation_id)
    assert full - length - 40 <= held <= full - length  # the markers of two messages are left out, too
    further = store.add_user_message(question.conversation_id, reply.id, "Go on.")
    next_reply = answer(qtbot, engine, further, ASKING)
    assert next_reply.stats is not None
    assert next_reply.stats.prompt_tokens - next_reply.stats.reused_tokens < 60


def test_the_cost_of_reading_what_was_left_out_is_told(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    question = talk(store, 3)
    context = context_of(store, question)
    key = context.turns[0].keys[0]
    store.change_context(question.conversation_id, drop(context, key))
    back = restore(context_of(store, question), key)
    with qtbot.waitSignal(engine.reading_cost_told, timeout=WAIT_MS) as told:
        engine.ask_reading_cost(question.conversation_id, question.id, ASKING, back)
    assert told.args[:2] == [question.conversation_id, back]
    length = len(context.messages[0].content) + len(context.messages[1].content)
    assert length <= told.args[2] <= length + 40


def test_what_the_parts_of_the_context_take_is_told_while_somebody_looks(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    told: list[tuple[int, ContextUsage | None]] = []
    engine.context_usage_changed.connect(lambda whose, usage: told.append((whose, usage)))
    question = talk(store, 2)
    answer(qtbot, engine, question, ASKING)
    assert told == []
    held_tokens(engine, qtbot, question.conversation_id)
    usage = told[-1][1]
    assert usage is not None
    keys = {message.key for message in context_of(store, question).messages}
    assert keys <= {span.key for span in usage.spans}


def test_a_conversation_whose_positions_run_out_is_announced_and_read_again(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    roomy = dataclasses.replace(ASKING, sampling=LONGER, overflow=Overflow.OFF, max_context=None)
    question = talk(store, 3, 450)
    reply = answer(qtbot, engine, question, roomy)
    context = context_of(store, reply)
    for turn in context.turns[:3]:
        store.change_context(question.conversation_id, drop(context, turn.keys[0]))
    engine.settle(question.conversation_id, roomy)
    usage = usage_of(engine, qtbot, question.conversation_id)
    assert usage.num_tokens < usage.next_position / 10
    most = usage.positions - usage.next_position - LONGER.max_tokens
    further = store.add_user_message(question.conversation_id, reply.id, "x" * (most - 60))
    told: list[str] = []
    engine.rebuild_announced.connect(lambda whose, tokens: told.append(f"{whose}: {tokens}"))
    engine.background_changed.connect(told.append)
    answer(qtbot, engine, further, roomy)
    qtbot.waitUntil(lambda: told[-1:] == [""], timeout=WAIT_MS)
    usage = usage_of(engine, qtbot, question.conversation_id)
    again = usage.num_tokens - len("User: ")  # what precedes the first gap stays
    assert told == [f"{question.conversation_id}: {again}", REBUILDING, ""]
    assert usage.next_position == usage.num_tokens


@pytest.mark.parametrize("interrupts", [False, True], ids=["at once", "in two goes"])
def test_a_trim_for_which_there_are_no_positions_is_made_and_read_in_idle_time(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, tmp_path: Path, interrupts: bool
) -> None:
    changes = {"hidden_size": 128, "max_position_embeddings": 1024, "eos_token_id": END_TOKEN}
    with qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS):
        engine.load(write_folder(tmp_path / "short", bits=None, **changes), FOUR)
    dropping = dataclasses.replace(ASKING, overflow=Overflow.DROP, max_context=None)
    question = talk(store, 4, 112)  # there is just room for it, but not for one like those before it
    whose, told = question.conversation_id, list[str]()

    def on_background(words: str) -> None:
        told.append(words)
        if interrupts and words and told.count(REBUILDING) == 1:
            engine.settle(whose, dropping)

    direct, thread = Qt.ConnectionType.DirectConnection, engine._worker.told
    thread.ledger_changed.connect(lambda _: told.append("ledger"), direct)
    thread.rebuild_announced.connect(lambda _, tokens: told.append(str(tokens)), direct)
    thread.background_changed.connect(on_background, direct)
    reply = answer(qtbot, engine, question, dropping)
    qtbot.waitUntil(lambda: told.count("") == 1 + interrupts, timeout=WAIT_MS)
    usage = usage_of(engine, qtbot, whose)
    assert usage.next_position == usage.num_tokens > 200
    again = [told[1], REBUILDING, ""]
    assert told == ["ledger", *again, *(again if interrupts else [])]
    left_out = context_of(store, reply).left_out_turns
    assert left_out > 0 and usage.num_tokens - int(told[1]) < 20
    last = answer(qtbot, engine, store.add_user_message(whose, reply.id, "And now?"), dropping)
    assert last.stats is not None
    assert last.stats.prompt_tokens - last.stats.reused_tokens <= len("\n\nUser: And now?\n\nAssistant:")
    assert context_of(store, last).left_out_turns == left_out
