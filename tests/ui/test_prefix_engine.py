"""What the engine's thread keeps on disk and finds there again, with a tiny model and a real store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

import engine.kv.moving
import ui.page_telling
import ui.prefix_work
from app.paths import AppPaths
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixEntry, PrefixSettings
from app.store.prefixes.service import PrefixService
from app.store.records import Message
from engine.engine import Engine
from engine.events import CacheChanged, GenerationStats
from engine.kv.page_map import PageMap
from engine.memory_limits import MemoryLimits
from engine.prefixes.digest import model_digest
from engine.prefixes.records import SaveMode
from tests.engine.small_engine import FOUR, SHORT, write_small_model
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState

WAIT_MS = 60_000
SETTINGS = ReplySettings(SHORT, FOUR, "")
OWLS = "Owls hunt at night, and what they catch they carry home before the sun is up. " * 6


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small") / "small")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be quiet as soon as nothing is asked for, and save then whenever that was."""
    monkeypatch.setattr(ui.prefix_work, "SAVE_AFTER_S", 0)
    monkeypatch.setattr(ui.prefix_work, "SAVE_APART_S", 0)


@pytest.fixture
def never_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui.prefix_work, "SAVE_AFTER_S", 1_000)


class Program:
    """A data folder and the engine on it; ending and starting again is a restart."""

    def __init__(self, qtbot: QtBot, home: Path, model: Path) -> None:
        self.store = ConversationStore.open(AppPaths(home).conversations_db)
        self._paths = AppPaths(home)
        self._qtbot = qtbot
        self._model = model
        self.start()

    def start(self) -> None:
        """Start the engine, without a model."""
        self.stored = PrefixService(self._paths.prefixes_db)
        self.engine = EngineThread(self._paths, self.stored)
        self.engine.start()

    def load(self) -> None:
        """Load the model, and wait until it is known which one it is."""
        with self._qtbot.waitSignal(self.engine.model_loaded, timeout=WAIT_MS):
            self.engine.load(self._model, FOUR)
        self.wait_until(lambda: self.engine.state is EngineState.READY)
        self.wait_until(lambda: self.stored.model_digest(self._model) is not None)

    def end(self) -> None:
        """End it as a window does."""
        self.engine.shutdown()
        self.stored.close()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        self._qtbot.waitUntil(is_so, timeout=WAIT_MS)

    def question(self, text: str = OWLS) -> Message:
        return self.store.add_user_message(self.store.create_conversation().id, None, text)

    def answer(self, question: Message) -> Message:
        with self._qtbot.waitSignal(self.engine.reply_finished, timeout=WAIT_MS) as finished:
            self.engine.reply(question.conversation_id, question.id, SETTINGS)
        message = finished.args[0]
        assert isinstance(message, Message)
        return message

    def answered(self) -> Message:
        """Load the model and have a question answered; return the answer."""
        self.load()
        return self.answer(self.question())

    def is_kept(self, conversation_id: int) -> bool:
        """Return whether a whole conversation is on disk now."""
        assert self.stored.flush(WAIT_MS / 1000)
        return any(entry.conversation_id == conversation_id and entry.num_tokens for entry in self.kept())

    def kept(self) -> tuple[PrefixEntry, ...]:
        return self.stored.entries()


@pytest.fixture
def program(qtbot: QtBot, tmp_path: Path, small_model: Path) -> Iterator[Program]:
    program = Program(qtbot, tmp_path, small_model)
    yield program
    program.end()
    program.store.close()


def stats_of(message: Message) -> GenerationStats:
    assert message.stats is not None
    return message.stats


@pytest.mark.usefixtures("at_once")
def test_what_was_read_is_saved_once_it_is_quiet_and_there_again_before_anything_is_asked(
    qtbot: QtBot, program: Program
) -> None:
    reply = program.answered()
    program.wait_until(lambda: program.is_kept(reply.conversation_id))
    program.end()

    program.start()
    with qtbot.waitSignal(program.engine.kv_changed, timeout=WAIT_MS) as told:
        program.engine.opened(reply.conversation_id)
        program.load()
    whose, changed = told.args
    assert whose == reply.conversation_id
    assert isinstance(changed, CacheChanged)
    first = stats_of(reply)
    assert changed.usage.num_tokens >= first.prompt_tokens
    assert changed.kv == FOUR

    again = stats_of(program.answer(program.store.add_user_message(whose, reply.id, "And by day?")))
    assert again.reused_tokens >= first.prompt_tokens
    assert again.prompt_tokens - again.reused_tokens < 64


@pytest.mark.usefixtures("at_once")
def test_what_is_open_comes_back_once_it_is_known_which_model_is_loaded(
    qtbot: QtBot, program: Program, small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = program.answered()
    program.wait_until(lambda: program.is_kept(reply.conversation_id))
    program.end()
    (small_model / "config.json").touch()
    is_to_know = threading.Event()

    def slow_digest(path: Path, check: Callable[[], None]) -> str:
        assert is_to_know.wait(WAIT_MS / 1000)
        return model_digest(path, check)

    monkeypatch.setattr("app.store.prefixes.digests.model_digest", slow_digest)
    program.start()
    looked_for: list[int] = []
    prefetch = Engine.prefetch

    def noting(engine: Engine, conversation_id: int, *rest: Any) -> CacheChanged | None:
        changed = prefetch(engine, conversation_id, *rest)
        looked_for.append(conversation_id)
        return changed

    monkeypatch.setattr(Engine, "prefetch", noting)
    with qtbot.waitSignal(program.engine.kv_changed, timeout=WAIT_MS) as told:
        program.engine.opened(reply.conversation_id)
        program.engine.load(small_model, FOUR)
        program.wait_until(lambda: bool(looked_for))
        is_to_know.set()
    assert told.args[0] == reply.conversation_id
    assert told.args[1].usage.num_tokens >= stats_of(reply).prompt_tokens


@pytest.mark.usefixtures("at_once")
def test_pages_are_shown_while_they_come_from_disk(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui.page_telling, "INTERVAL_S", 0)
    monkeypatch.setattr(engine.kv.moving, "BATCH_NBYTES", 1)
    reply = program.answered()
    program.wait_until(lambda: program.is_kept(reply.conversation_id))
    program.end()

    program.start()
    maps: list[PageMap] = []
    program.engine.pages_changed.connect(lambda whose, pages: maps.append(pages) if pages else None)
    program.load()
    program.engine.watch_pages(True)
    program.engine.opened(reply.conversation_id)
    program.wait_until(lambda: bool(maps) and not any(page.is_on_disk for page in maps[-1].pages))
    num_pages = len(maps[0].pages)
    on_disk = [sum(page.is_on_disk for page in pages.pages) for pages in maps]
    assert num_pages > 4
    steps = list(dict.fromkeys(on_disk))  # some are told together where they come faster
    assert steps == sorted(steps, reverse=True)
    assert (steps[0], steps[-1]) == (num_pages, 0)
    assert len(steps) > 2
    assert len({tuple(page.tokens for page in pages.pages) for pages in maps}) == 1
    assert maps[-1].counters.restores == num_pages


@pytest.mark.usefixtures("never_quiet")
def test_opening_another_conversation_saves_what_was_read_before(program: Program) -> None:
    reply = program.answered()
    assert not program.is_kept(reply.conversation_id)
    program.engine.opened(program.store.create_conversation().id)
    program.wait_until(lambda: program.is_kept(reply.conversation_id))


@pytest.mark.usefixtures("never_quiet")
@pytest.mark.parametrize("end", [EngineThread.unload, EngineThread.shutdown], ids=["ejecting", "closing"])
def test_a_model_that_goes_saves_first(
    qtbot: QtBot, program: Program, end: Callable[[EngineThread], None]
) -> None:
    reply = program.answered()
    end(program.engine)
    program.wait_until(lambda: program.is_kept(reply.conversation_id))


@pytest.mark.usefixtures("never_quiet")
def test_an_end_that_is_left_at_once_saves_no_more(program: Program) -> None:
    reply = program.answered()
    program.engine.leave()
    program.engine.shutdown()
    assert not program.is_kept(reply.conversation_id)


@pytest.mark.usefixtures("at_once")
def test_a_deleted_conversation_leaves_the_disk_and_is_kept_again_when_that_is_undone(
    program: Program,
) -> None:
    reply = program.answered()
    program.wait_until(lambda: program.is_kept(reply.conversation_id))
    program.engine.forget(reply.conversation_id)
    assert program.stored.flush(WAIT_MS / 1000)
    assert program.kept() == ()
    program.engine.restored(reply.conversation_id)
    program.answer(program.store.add_user_message(reply.conversation_id, reply.id, "And by day?"))
    program.wait_until(lambda: program.is_kept(reply.conversation_id))


@pytest.mark.usefixtures("at_once")
def test_what_may_not_be_kept_is_not_written(tmp_path: Path, program: Program) -> None:
    program.engine.set_limits(MemoryLimits(), PrefixSettings(mode=SaveMode.NEVER))
    program.load()
    program.answer(program.question())
    program.end()
    assert program.kept() == ()
    program.start()
