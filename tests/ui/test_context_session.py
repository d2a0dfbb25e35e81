"""The context of the open conversation: changed, followed, estimated; with a tiny model in a real window."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.ledger.actions import drop, pin, restore
from app.ledger.context import SpanState
from app.ledger.progress import SummaryProgress
from app.ledger.records import Summary, SummarySource, SummaryState
from app.profiles import Overflow
from app.store.records import Message, MessageState
from engine.cancel import CancelToken
from engine.sampling import SamplingParams
from tests.engine.folders import write_folder
from tests.ui.conftest import WAIT_MS, Desk
from ui.context_work import PREPARING
from ui.conversation_session import ConversationSession
from ui.engine_notices import EngineNotices
from ui.engine_worker import EngineState
from ui.main_window import MainWindow
from ui.notifications import Notice, Notifications
from ui.request_queue import Priority

SHORT = SamplingParams(temperature=0, max_tokens=8)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("tiny") / "tiny", max_position_embeddings=2_048)


@pytest.fixture
def window(desk: Desk, tiny_folder: Path) -> MainWindow:
    return desk.open_with_model(tiny_folder, SHORT)


def talk(window: MainWindow, num_turns: int, length: int = 220) -> ConversationSession:
    """Open a conversation of so many answered turns."""
    store = window._store
    conversation = store.create_conversation()
    leaf_id = None
    for turn in range(num_turns):
        question = store.add_user_message(conversation.id, leaf_id, f"Question {turn}: " + "x" * length)
        reply = store.begin_reply(conversation.id, question.id, "tiny")
        answer = f"The answer to question {turn} is that it depends on the tide. " * 4
        leaf_id = store.finish_reply(reply.id, answer[:length], MessageState.COMPLETE).id
    window.chat.switcher.open(conversation.id)
    return window.chat.session


def settled(window: MainWindow, qtbot: QtBot) -> None:
    """Wait until the engine has done all, and what it told has arrived."""
    idle = lambda: window.chat.stream.conversation_id is None and window._engine.background == ""  # noqa: E731
    qtbot.waitUntil(lambda: idle() and not window._engine._worker._requests._pending, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall)


def write(window: MainWindow, qtbot: QtBot, text: str) -> None:
    window.composer.set_text(text)
    window.chat.session.set_draft(text)
    window.chat._refresh()
    qtbot.waitUntil(lambda: window.chat._check.use(text).used_tokens is not None, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: window.chat.counts._job is None, timeout=WAIT_MS)


def ask(window: MainWindow, qtbot: QtBot, text: str) -> Message:
    """Send and return the answer, once all is done that follows it."""
    write(window, qtbot, text)
    num_messages = len(window.chat.session.messages)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(window.chat.session.messages) == num_messages + 2, timeout=WAIT_MS)
    settled(window, qtbot)
    return window.chat.session.messages[-1]


def states(session: ConversationSession) -> list[SpanState]:
    return [turn.state for turn in session.context.turns]


def test_old_turns_are_announced_summarized_before_the_answer_and_shown_as_such(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=1_600, overflow=Overflow.SUMMARIZE)
    session = talk(window, 3)
    window.profile.update(max_context=1_600, overflow=Overflow.SUMMARIZE)
    waited: list[str] = []
    window.chat.stream.prefill_changed.connect(
        lambda progress: isinstance(progress, SummaryProgress) and waited.append(progress.words)
    )
    changes: list[list[SpanState]] = []
    session.context_changed.connect(lambda: changes.append(states(session)))
    text = "y" * 200
    write(window, qtbot, text)
    announced = window.composer._note.text()
    ask(window, qtbot, text)
    num_released = states(session).count(SpanState.SUMMARIZED)
    assert num_released > 0
    turns = "1 old turn" if num_released == 1 else f"{num_released} old turns"
    assert announced == f"{turns} will be summarized first."
    assert set(waited) == {"Summarizing 1 turn" if num_released == 1 else f"Summarizing {num_released} turns"}
    assert changes[-1] == states(session)
    assert session.conversation_id is not None
    assert session.context.rows == window._store.ledger(session.conversation_id)


def test_a_summary_chosen_after_a_refusal_is_for_that_message_only(window: MainWindow, qtbot: QtBot) -> None:
    session = talk(window, 3)
    window.profile.update(max_context=1_200, overflow=Overflow.ASK)
    text = "y" * 200
    write(window, qtbot, text)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    buttons = {button.text(): button for button in window.composer.refusal.findChildren(QPushButton)}
    assert "Leave out 2 old turns" in buttons
    buttons["Summarize 3 old turns"].click()  # one more, as summaries take room
    qtbot.waitUntil(lambda: len(session.messages) == 8, timeout=WAIT_MS)
    settled(window, qtbot)
    assert states(session) == [SpanState.SUMMARIZED] * 3 + [SpanState.IN_CONTEXT]
    assert window.profile.value.overflow is Overflow.ASK


def test_a_profile_that_asks_refuses_where_a_trim_is_due_and_lets_it_pass_on_request(
    window: MainWindow, qtbot: QtBot
) -> None:
    talk(window, 3)
    window.profile.update(max_context=2_048, overflow=Overflow.ASK)
    write(window, qtbot, "short")
    assert window.chat._check.admission("short") is None
    used = window.chat._check.use("short").used_tokens
    assert used is not None
    window.profile.update(trim_at=used / 2_048, keep_ratio=0.3)
    admission = window.chat._check.admission("short")
    assert admission is not None and admission.can_override
    assert "at which this profile asks what to do" in str(admission)


def test_each_change_of_a_context_can_be_undone_in_its_own_conversation(
    window: MainWindow, qtbot: QtBot
) -> None:
    first = talk(window, 3)
    first_id = first.conversation_id
    assert first_id is not None and not first.can_undo_context
    first.change_context(drop(first.context, first.context.turns[0].keys[0]))
    first.change_context(pin(first.context, first.context.turns[1].keys[0], True))
    session = talk(window, 2)
    assert not session.can_undo_context
    session.undo_context()
    assert window._store.ledger(first_id).marks
    window.chat.switcher.open(first_id)
    assert states(session)[0] is SpanState.DROPPED and session.context.turns[1].is_pinned
    session.undo_context()
    assert states(session)[0] is SpanState.DROPPED and not session.context.turns[1].is_pinned
    session.undo_context()
    assert states(session) == [SpanState.IN_CONTEXT] * 3
    assert not session.can_undo_context


def test_what_a_trim_has_changed_again_is_not_offered_to_be_undone(window: MainWindow, qtbot: QtBot) -> None:
    session = talk(window, 3)
    assert session.conversation_id is not None
    covers = (*session.context.turns[0].keys, *session.context.turns[1].keys)

    def trim() -> None:
        assert session.conversation_id is not None
        summary = Summary(0, "Of tides.", covers, SummarySource.MODEL, "", "tiny", 900, 9, SummaryState.USED)
        window._store.add_summary(session.conversation_id, summary)
        session.follow_ledger(session.conversation_id)

    trim()
    session.change_context(restore(session.context, "s1"))
    assert session.can_undo_context
    trim()
    assert not session.can_undo_context
    rows = session.context.rows
    session.undo_context()
    assert session.context.rows == rows
    session.change_context(restore(session.context, "s2"))
    session.undo_context()
    assert states(session) == [SpanState.SUMMARIZED] * 2 + [SpanState.IN_CONTEXT]


def test_a_change_of_a_turn_that_is_not_part_of_the_shown_version_is_not_undone_there(
    window: MainWindow, qtbot: QtBot
) -> None:
    session = talk(window, 3)
    former = session.messages[2]
    session.change_context(drop(session.context, session.context.turns[1].keys[0]))
    window.view.edit_requested.emit(former.id, "In other words")
    settled(window, qtbot)
    assert not session.can_undo_context
    window.view.sibling_requested.emit(former.id)
    assert session.can_undo_context


def test_what_the_user_leaves_out_leaves_memory_at_once(window: MainWindow, qtbot: QtBot) -> None:
    session = talk(window, 3)
    ask(window, qtbot, "And now?")
    held = window.precision.held
    assert held is not None
    session.change_context(drop(session.context, session.context.turns[0].keys[0]))
    settled(window, qtbot)
    left = window.precision.held
    assert left is not None
    length = sum(len(message.text) for message in session.messages[:2])
    assert held.usage.num_tokens - left.usage.num_tokens >= length


def test_the_ledger_of_another_conversation_is_not_taken_for_that_of_the_open_one(
    window: MainWindow,
) -> None:
    first = talk(window, 2)
    other_id = first.conversation_id
    assert other_id is not None
    change = drop(first.context, first.context.turns[0].keys[0])
    session = talk(window, 2)
    window._store.change_context(other_id, change)
    window._engine.ledger_changed.emit(other_id)
    assert states(session) == [SpanState.IN_CONTEXT] * 2
    window.chat.switcher.open(other_id)
    assert states(session)[0] is SpanState.DROPPED


def test_an_edited_turn_under_a_summary_is_read_itself_and_the_former_version_summarized_again(
    window: MainWindow, qtbot: QtBot
) -> None:
    session = talk(window, 3)
    assert session.conversation_id is not None
    covers = (*session.context.turns[0].keys, *session.context.turns[1].keys)
    window._store.add_summary(
        session.conversation_id,
        Summary(0, "Of tides.", covers, SummarySource.MODEL, "", "tiny", 900, 9, SummaryState.USED),
    )
    session.follow_ledger(session.conversation_id)
    assert states(session)[:2] == [SpanState.SUMMARIZED] * 2
    former = session.messages[2]
    window.view.edit_requested.emit(former.id, "In other words")
    settled(window, qtbot)
    assert states(session) == [SpanState.IN_CONTEXT] * 2
    window.view.sibling_requested.emit(former.id)
    assert states(session) == [SpanState.SUMMARIZED] * 2 + [SpanState.IN_CONTEXT]
    reply = ask(window, qtbot, "Go on.")
    assert reply.stats is not None
    assert reply.stats.prompt_tokens < 900 and reply.stats.left_out_turns == 2


def test_versions_of_a_conversation_are_not_read_again_when_one_goes_back_to_them(
    window: MainWindow, qtbot: QtBot
) -> None:
    session = talk(window, 2)
    ask(window, qtbot, "First words")
    former = next(message for message in session.messages if message.text == "First words")
    window.view.edit_requested.emit(former.id, "Other words")
    settled(window, qtbot)
    window.view.sibling_requested.emit(former.id)
    assert session.messages[4].id == former.id
    reply = ask(window, qtbot, "Go on.")
    assert reply.stats is not None
    assert reply.stats.prompt_tokens - reply.stats.reused_tokens < 60


def test_what_is_done_in_the_background_is_said_quietly_and_one_can_send(
    window: MainWindow, qtbot: QtBot
) -> None:
    talk(window, 1)
    write(window, qtbot, "Hello")
    window._engine._worker.told.background_changed.emit(PREPARING)
    assert window.composer._note.text() == PREPARING
    assert not window._menus.stop.isEnabled()
    assert window.chat._check.refusal("Hello") == ""
    window._engine._worker.told.background_changed.emit("")
    assert window.composer._note.text() == ""


def test_a_message_that_waits_for_a_summary_of_another_conversation_says_so(
    window: MainWindow, qtbot: QtBot
) -> None:
    talk(window, 1)
    write(window, qtbot, "Hello")
    begun, done = threading.Event(), threading.Event()

    def summarize(cancel: CancelToken) -> None:
        begun.set()
        done.wait(WAIT_MS / 1000)

    window._engine._worker.state_changed.emit(EngineState.SUMMARIZING)
    window._engine._worker.put(Priority.USER, summarize)
    assert begun.wait(WAIT_MS / 1000)
    words = "The message waits until a summary is written."
    assert words not in window.composer._note.text()
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert words in window.composer._note.text()
    done.set()
    qtbot.waitUntil(lambda: words not in window.composer._note.text(), timeout=WAIT_MS)
    settled(window, qtbot)


def test_reading_again_is_announced_while_it_is_done(window: MainWindow) -> None:
    notifications = Notifications()
    posted: list[Notice] = []
    withdrawn: list[str] = []
    notifications.posted.connect(posted.append)
    notifications.withdrawn.connect(withdrawn.append)
    notices = EngineNotices(window._engine, notifications, window)
    window._engine.rebuild_announced.emit(1, 1_234)
    assert "1,234 tokens" in posted[0].message
    assert withdrawn == []
    window._engine.background_changed.emit("")
    assert withdrawn == [posted[0].topic]
    notices.deleteLater()


def test_a_summary_that_the_user_asked_for_can_be_stopped_and_hinders_reading_again(
    window: MainWindow, qtbot: QtBot
) -> None:
    window._engine._worker.state_changed.emit(EngineState.SUMMARIZING)
    assert window._menus.stop.isEnabled()
    assert window.precision.reread.hindrance == "Wait until the summary is written."
    begun, stopped = threading.Event(), list[bool]()

    def summarize(cancel: CancelToken) -> None:
        begun.set()
        stopped.append(cancel.wait(WAIT_MS / 1000))

    window._engine._worker.put(Priority.USER, summarize)
    assert begun.wait(WAIT_MS / 1000)
    window._menus.stop.trigger()
    qtbot.waitUntil(lambda: bool(stopped), timeout=WAIT_MS)
    assert stopped == [True]
    window._engine._worker.state_changed.emit(EngineState.READY)
    assert not window._menus.stop.isEnabled()
