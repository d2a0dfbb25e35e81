"""The engine's thread with the real starter model, seen from the window's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.chat import ReplySettings
from app.paths import AppPaths
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.cancel import CancelToken
from engine.events import CacheChanged
from engine.kv.precision import KVSpec
from engine.sampling import SamplingParams
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState, Failure
from ui.request_queue import Priority

EXACT = KVSpec.parse("16; page=64, hot=0, warm=0")
SHORT = ReplySettings(SamplingParams(temperature=0, max_tokens=8), EXACT, "")
LONG = ReplySettings(SamplingParams(temperature=0, repetition_penalty=1.2, max_tokens=2000), EXACT, "")
WAIT_MS = 60_000


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths(tmp_path)


@pytest.fixture
def store(paths: AppPaths) -> Iterator[ConversationStore]:
    store = ConversationStore.open(paths.conversations_db)
    yield store
    store.close()


@pytest.fixture
def engine(qtbot: QtBot, paths: AppPaths, store: ConversationStore) -> Iterator[EngineThread]:
    engine = EngineThread(paths)
    engine.start()
    yield engine
    engine.shutdown()


def load(qtbot: QtBot, engine: EngineThread, path: Path) -> None:
    with qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS):
        engine.load(path, EXACT)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)


def question(store: ConversationStore, text: str) -> Message:
    return store.add_user_message(store.create_conversation().id, None, text, [])


def test_a_model_loads_answers_and_is_ejected(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    progress: list[object] = []
    engine.load_progress.connect(progress.append)
    load(qtbot, engine, starter_gguf)
    assert engine.loaded is not None
    assert engine.loaded.info.num_layers == 30
    assert engine.loaded.plan.fitting_tokens > 1000
    assert progress

    asked = question(store, "Name a bird.")
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, SHORT)
    message = finished.args[0]
    assert message.state is MessageState.COMPLETE
    assert engine.take_text() == message.text
    assert store.message(message.id) == message

    with qtbot.waitSignal(engine.model_unloaded, timeout=WAIT_MS):
        engine.unload()
    assert engine.loaded is None


def test_a_reply_can_be_stopped_while_it_reads_and_while_it_writes(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    asked = question(store, "The ship sailed north. " * 80)
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        with qtbot.waitSignal(engine.prefill_progress, timeout=WAIT_MS):
            engine.reply(asked.conversation_id, asked.id, LONG)
        engine.stop()
    assert finished.args[0].state is MessageState.STOPPED
    assert finished.args[0].text == ""

    asked = question(store, "Tell me a long story.")
    written: list[str] = []

    def has_written() -> bool:
        written.append(engine.take_text())
        return any(written)

    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, LONG)
        qtbot.waitUntil(has_written, timeout=WAIT_MS)
        engine.stop()
    assert finished.args[0].state is MessageState.STOPPED
    assert finished.args[0].text.startswith("".join(written))


def test_loading_can_be_stopped(qtbot: QtBot, engine: EngineThread, starter_gguf: Path) -> None:
    with qtbot.waitSignal(engine.model_unloaded, timeout=WAIT_MS):
        with qtbot.waitSignal(engine.load_progress, timeout=WAIT_MS):
            engine.load(starter_gguf, EXACT)
        engine.stop()
    qtbot.waitUntil(lambda: engine.state is EngineState.EMPTY, timeout=WAIT_MS)
    load(qtbot, engine, starter_gguf)


def test_an_error_is_a_sentence_with_details_and_the_engine_goes_on(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(20))
    with qtbot.waitSignal(engine.failed, timeout=WAIT_MS) as failed:
        engine.load(broken, EXACT)
    failure = failed.args[0]
    assert isinstance(failure, Failure)
    assert "broken.gguf" in failure.message
    assert "Traceback" in failure.details
    load(qtbot, engine, starter_gguf)


def test_a_model_that_cannot_be_read_leaves_the_present_one(
    qtbot: QtBot, engine: EngineThread, starter_gguf: Path, tmp_path: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    with qtbot.waitSignal(engine.failed, timeout=WAIT_MS):
        engine.load(tmp_path / "missing.gguf", EXACT)
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    assert engine.loaded is not None


def test_shutting_down_in_mid_reply_saves_what_was_written(
    qtbot: QtBot, paths: AppPaths, store: ConversationStore, starter_gguf: Path
) -> None:
    engine = EngineThread(paths)
    engine.start()
    load(qtbot, engine, starter_gguf)
    asked = question(store, "Tell me a long story.")
    written: list[str] = []

    def has_written() -> bool:
        written.append(engine.take_text())
        return len("".join(written)) > 20

    engine.reply(asked.conversation_id, asked.id, LONG)
    qtbot.waitUntil(has_written, timeout=WAIT_MS)
    engine.shutdown()
    leaf_id = store.conversation(asked.conversation_id).leaf_id
    assert leaf_id is not None
    row = store.message(leaf_id)
    assert row.state is MessageState.STOPPED
    assert row.text.startswith("".join(written))


def test_a_precision_reaches_what_is_held_at_once_even_when_everything_else_is_stopped(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    asked = question(store, "The ship sailed north. " * 40)
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, SHORT)
    usage = finished.args[0].stats.kv_usage
    assert usage.requested == usage.effective == (16, 16)
    with qtbot.waitSignal(engine.kv_changed, timeout=WAIT_MS) as changed:
        engine.set_kv(KVSpec.parse("k4v3; page=64, hot=0, warm=0"))
        engine.stop()
    lower = changed.args[1].usage
    assert changed.args[1].kv == KVSpec.parse("k4v3; page=64, hot=0, warm=0")
    assert lower.requested == lower.effective == (4, 3)
    assert lower.cold_pages == usage.cold_pages > 0
    assert lower.nbytes < usage.nbytes
    with qtbot.waitSignal(engine.kv_changed, timeout=WAIT_MS) as changed:
        engine.set_kv(EXACT)
    higher = changed.args[1].usage
    assert (higher.requested, higher.effective) == ((16, 16), (4, 3))
    assert higher.num_below == lower.cold_pages


def test_a_precision_without_anything_held_waits_for_the_next_reply(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    engine.set_kv(KVSpec.parse("8"))
    load(qtbot, engine, starter_gguf)
    engine.set_kv(KVSpec.parse("2"))
    asked = question(store, "Name a bird.")
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, SHORT)
    assert finished.args[0].stats.kv == str(EXACT)


def test_a_precision_changed_before_the_reply_has_begun_is_not_lost(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    asked = question(store, "The ship sailed north. " * 40)
    wanted = KVSpec.parse("5; page=64, hot=0, warm=0")
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        engine.reply(asked.conversation_id, asked.id, SHORT)
        engine.set_kv(wanted)
    stats = finished.args[0].stats
    assert stats.kv == str(wanted)
    assert stats.kv_usage.effective == (5, 5)


def test_pages_of_another_size_wait_for_the_next_reply_and_the_bits_do_not(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    asked = question(store, "The ship sailed north. " * 80)
    changes: list[CacheChanged] = []
    engine.kv_changed.connect(lambda _, changed: changes.append(changed))
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        with qtbot.waitSignal(engine.prefill_progress, timeout=WAIT_MS):
            engine.reply(asked.conversation_id, asked.id, SHORT)
        engine.set_kv(KVSpec.parse("4; page=128, group=32, hot=0, warm=0"))
    assert {str(changed.kv) for changed in changes} == {str(EXACT), "4; page=64, hot=0, warm=0"}
    assert changes[-1].usage.requested == (4, 4)
    assert finished.args[0].stats.kv == "4; page=64, hot=0, warm=0"
    assert finished.args[0].stats.completion_tokens == 8
    with qtbot.waitSignal(engine.kv_changed, timeout=WAIT_MS) as signal:
        engine.set_kv(KVSpec.parse("2; page=128, group=32, hot=0, warm=0"))
    assert signal.args[1].kv == KVSpec.parse("2; page=64, hot=0, warm=0")


def test_of_many_precisions_wanted_in_a_reply_one_request_is_left_and_it_brings_the_newest(
    qtbot: QtBot, engine: EngineThread, store: ConversationStore, starter_gguf: Path
) -> None:
    load(qtbot, engine, starter_gguf)
    asked = question(store, "The ship sailed north. " * 80)
    with qtbot.waitSignal(engine.reply_finished, timeout=WAIT_MS) as finished:
        with qtbot.waitSignal(engine.prefill_progress, timeout=WAIT_MS):
            engine.reply(asked.conversation_id, asked.id, SHORT)
        for bits in (8, 6, 5, 4):
            engine.set_kv(KVSpec.parse(f"{bits}; page=64, hot=0, warm=0"))
        pending = engine._worker._requests._pending.values()
        assert sum(each.priority is Priority.CONTROL for each in pending) <= 1
    assert finished.args[0].stats.kv == "4; page=64, hot=0, warm=0"
    qtbot.waitUntil(lambda: engine.state is EngineState.READY, timeout=WAIT_MS)
    with qtbot.waitSignal(engine.kv_changed, timeout=WAIT_MS) as changed:
        engine.set_kv(KVSpec.parse("3; page=64, hot=0, warm=0"))
    assert changed.args[1].usage.effective == (3, 3)


class Endless:
    """An engine that changes the precision until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def apply_kv(self, kv: KVSpec, cancel: CancelToken) -> None:
        self.begun.set()
        while True:
            cancel.check()


def test_a_long_change_of_precision_outlives_a_stop_and_not_the_window(
    qtbot: QtBot, paths: AppPaths, store: ConversationStore, starter_gguf: Path
) -> None:
    engine, endless = EngineThread(paths), Endless()
    engine.start()
    load(qtbot, engine, starter_gguf)
    engine._worker._works.engine.apply_kv = endless.apply_kv  # type: ignore[method-assign]
    engine.set_kv(KVSpec.parse("4"))
    assert endless.begun.wait(WAIT_MS / 1000)
    engine.stop()
    pending = engine._worker._requests._pending
    (cancel,) = (cancel for cancel, each in pending.items() if each.priority is Priority.CONTROL)
    assert not cancel.cancelled
    engine.shutdown()
    assert engine._worker.isFinished()


def test_a_precision_kept_from_another_model_gives_way_to_the_default(
    qtbot: QtBot, engine: EngineThread, starter_gguf: Path
) -> None:
    with (
        qtbot.waitSignal(engine.kv_refused, timeout=WAIT_MS) as refused,
        qtbot.waitSignal(engine.model_loaded, timeout=WAIT_MS),
    ):
        engine.load(starter_gguf, KVSpec.parse("0-30:8"))
    assert str(refused.args[0]).startswith("'0-30:8' names what this model does not have")
