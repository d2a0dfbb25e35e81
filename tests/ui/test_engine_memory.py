"""Refusals, the guard, pages and reading again through the engine's thread, with a tiny model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.chat import ReplySettings
from app.paths import AppPaths
from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixSettings
from app.store.records import Message, MessageState
from engine.admission import AdmissionError, LongerContext
from engine.events import CacheChanged, PrefillProgress
from engine.guard import GuardAction, GuardStep
from engine.kv.page_map import PageMap
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.sampling import SamplingParams
from tests.engine.small_engine import FOUR, write_small_model
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState

WAIT_MS = 60_000
SHORT = ReplySettings(SamplingParams(temperature=0, max_tokens=8), FOUR, "")
LONG = dataclasses.replace(SHORT, sampling=SamplingParams(temperature=0, max_tokens=3000))
TEXT = "The ship sailed north. " * 20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(AppPaths(tmp_path).conversations_db)
    yield store
    store.close()


@pytest.fixture
def engine(qtbot: QtBot, tmp_path: Path, store: ConversationStore, path: Path) -> Iterator[EngineThread]:
    engine = EngineThread(AppPaths(tmp_path))
    engine.start()
    with qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS):
        engine.load(path, FOUR)
    yield engine
    engine.shutdown()


def question(store: ConversationStore, text: str = TEXT) -> Message:
    return store.add_user_message(store.create_conversation().id, None, text, [])


def answer(qtbot: QtBot, engine: EngineThread, asked: Message, settings: ReplySettings = SHORT) -> Message:
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, settings)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    message: Message = finished.args[0]
    return message


def test_a_message_that_does_not_fit_is_refused_without_an_empty_reply(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked = question(store)
    started, failed = [], []
    engine.reply_started.connect(started.append)
    engine.failed.connect(failed.append)
    settings = dataclasses.replace(SHORT, max_context=100)
    with qtbot.waitSignal(engine.reply_refused, timeout=WAIT_MS) as refused:
        engine.reply(asked.conversation_id, asked.id, settings)
    conversation_id, leaf_id, error = refused.args
    assert (conversation_id, leaf_id) == (asked.conversation_id, asked.id)
    assert isinstance(error, AdmissionError) and isinstance(error.choices[0], LongerContext)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    assert not started and not failed
    assert store.conversation(asked.conversation_id).leaf_id == asked.id
    reply = answer(qtbot, engine, asked, dataclasses.replace(settings, anyway=True))
    assert reply.state is MessageState.COMPLETE


def test_a_model_that_does_not_fit_is_refused_and_the_present_one_stays(
    qtbot: QtBot, engine: EngineThread, path: Path
) -> None:
    failed: list[object] = []
    engine.failed.connect(failed.append)
    engine.set_limits(MemoryLimits(most_nbytes=1), PrefixSettings())
    assert engine.loaded is not None and engine.loaded.limits.most_nbytes == 1
    with qtbot.waitSignal(engine.load_refused, timeout=WAIT_MS) as refused:
        engine.load(path, FOUR, max_context=4096)
    assert refused.args[0] == path and isinstance(refused.args[1], AdmissionError)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    assert engine.loaded is not None and not failed
    with qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS):
        engine.load(path, FOUR, max_context=4096, anyway=True)


def test_a_reply_that_waits_for_memory_goes_on_when_the_user_says_so(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked, actions = question(store), []
    engine.guard_acted.connect(actions.append)
    engine.guard.height = GuardStep.PAUSE

    def paused() -> bool:
        return any(action.step is GuardStep.PAUSE for action in actions)

    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, SHORT)
        qtbot.waitUntil(paused, timeout=WAIT_MS)
        engine.go_on()
    assert finished.args[0].state is MessageState.COMPLETE
    assert [action.is_end for action in actions if action.step is GuardStep.PAUSE] == [False, True]


def test_a_reply_that_waits_for_memory_can_be_stopped(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked = question(store)
    engine.guard.height = GuardStep.PAUSE
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        with qtbot.waitSignal(engine.reply_started, timeout=WAIT_MS):
            engine.reply(asked.conversation_id, asked.id, SHORT)
        engine.stop()
    assert finished.args[0].state is MessageState.STOPPED


def test_between_replies_the_ladder_is_carried_out_when_asked_to(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    hot = dataclasses.replace(SHORT, kv=KVSpec.parse("4; page=64, group=32, hot=9"))
    answer(qtbot, engine, question(store), hot)

    actions: list[GuardAction] = []
    changes: list[CacheChanged] = []
    engine.guard_acted.connect(actions.append)
    engine.kv_changed.connect(lambda conversation_id, changed: changes.append(changed))
    engine.guard.height = GuardStep.LOWER_TIERS
    engine.relieve()
    engine.relieve()
    qtbot.waitUntil(lambda: bool(changes), timeout=WAIT_MS)
    assert [action.step for action in actions][-1:] == [GuardStep.LOWER_TIERS]
    assert changes[-1].usage.hot_pages == 0 < changes[-1].usage.cold_pages


def test_pages_are_told_while_they_are_watched_and_pinned_by_number(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked, told = question(store), []
    engine.pages_changed.connect(lambda conversation_id, pages: told.append((conversation_id, pages)))
    answer(qtbot, engine, asked)
    assert told == []
    with qtbot.waitSignal(engine.pages_changed, timeout=WAIT_MS):
        engine.watch_pages(True)
    conversation_id, pages = told[-1]
    assert conversation_id == asked.conversation_id and isinstance(pages, PageMap)
    number = pages.pages[1].number

    def is_pinned(conversation_id: int, pages: PageMap | None) -> bool:
        return pages is not None and [page.number for page in pages.pages if page.pinned] == [number]

    with qtbot.waitSignal(engine.pages_changed, timeout=WAIT_MS, check_params_cb=is_pinned):
        engine.pin(asked.conversation_id, number, True)
    engine.pin(asked.conversation_id + 1, number, False)
    engine.watch_pages(False)
    answer(qtbot, engine, question(store))
    assert told[-1][0] == asked.conversation_id


def test_pages_are_told_twice_a_second_at_most(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("ui.page_telling.time.monotonic", lambda: now[0])
    asked, told = question(store), []
    engine.pages_changed.connect(lambda conversation_id, pages: told.append(pages))
    with qtbot.waitSignal(engine.pages_changed, timeout=WAIT_MS):
        engine.watch_pages(True)
    answer(qtbot, engine, asked, dataclasses.replace(LONG, sampling=SamplingParams(max_tokens=50)))
    assert len(told) <= 2  # what is due when the engine is idle follows after half a second


def test_a_conversation_is_read_again_and_tells_how_far_it_is(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked, progress = question(store), []
    engine.rebuild_progress.connect(lambda conversation_id, done: progress.append((conversation_id, done)))
    answer(qtbot, engine, asked, dataclasses.replace(SHORT, kv=KVSpec.parse("2; page=64, group=32")))
    with qtbot.waitSignal(engine.kv_changed, timeout=WAIT_MS):
        engine.set_kv(KVSpec.parse("8; page=64, group=32"))
    states: list[EngineState] = []
    engine.state_changed.connect(states.append)
    engine.rebuild(asked.conversation_id + 1, SHORT)
    engine.rebuild(asked.conversation_id, SHORT)
    qtbot.waitUntil(lambda: states[-2:] == [EngineState.REBUILDING, EngineState.READY], timeout=WAIT_MS)
    assert {conversation_id for conversation_id, _ in progress} == {asked.conversation_id}
    last = progress[-1][1]
    assert isinstance(last, PrefillProgress) and last.done == last.total > 400
    reply = answer(qtbot, engine, asked, dataclasses.replace(SHORT, kv=KVSpec.parse("8; page=64, group=32")))
    assert reply.stats is not None and reply.stats.kv_usage is not None
    assert reply.stats.kv_usage.num_below == 0
    assert reply.stats.reused_tokens == reply.stats.prompt_tokens - 1


def test_a_stop_does_not_keep_a_deleted_conversation_in_memory(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    deleted = question(store)
    answer(qtbot, engine, deleted)
    forgotten: list[int] = []
    engine.kv_changed.connect(lambda number, changed: changed is None and forgotten.append(number))
    engine.guard.height = GuardStep.PAUSE
    with qtbot.waitSignal(engine.reply_started, timeout=WAIT_MS):
        engine.reply(deleted.conversation_id, deleted.id, LONG)
    engine.forget(deleted.conversation_id)
    engine.stop()
    qtbot.waitUntil(lambda: bool(forgotten), timeout=WAIT_MS)
    assert forgotten == [deleted.conversation_id]


def test_a_stop_does_not_keep_a_model_that_was_ejected(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore
) -> None:
    asked = question(store)
    engine.guard.height = GuardStep.PAUSE
    with qtbot.waitSignal(engine.reply_started, timeout=WAIT_MS):
        engine.reply(asked.conversation_id, asked.id, LONG)
    with qtbot.waitSignal(engine.model_unloaded, timeout=WAIT_MS):
        engine.unload()
        engine.stop()
