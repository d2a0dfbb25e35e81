"""Messages that do not fit, with a tiny model in a real window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.ledger.context import SpanState
from app.ledger.records import attachment_key
from app.profiles import BUILT_IN, DocumentMode, Overflow
from app.reading_speed import ReadingSpeed
from app.store.records import Message, MessageState, Role
from app.whole_question import whole_question_refusal
from engine.admission import AdmissionError, LookUp, LowerPrecision, reading_room_tokens
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.sampling import SamplingParams
from tests.engine.folders import write_folder
from tests.ui.conftest import WAIT_MS, Desk
from ui.chat.context_line import ContextLine
from ui.engine_worker import EngineState
from ui.main_window import MainWindow

POSITIONS = 2_048
SHORT = SamplingParams(temperature=0, max_tokens=8)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of bytes with 2,048 positions."""
    return write_folder(tmp_path_factory.mktemp("tiny") / "tiny", max_position_embeddings=POSITIONS)


@pytest.fixture
def window(desk: Desk, tiny_folder: Path) -> MainWindow:
    return desk.open_with_model(tiny_folder, SHORT)


def ask(window: MainWindow, qtbot: QtBot, text: str) -> None:
    window.composer.set_text(text)
    window.chat.session.set_draft(text)
    qtbot.waitUntil(lambda: window.chat._check.use(text.strip()).used_tokens is not None, timeout=WAIT_MS)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)


def wait_for_answer(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(
        lambda: window.chat.stream.conversation_id is None and bool(replies(window)), timeout=WAIT_MS
    )
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)


def replies(window: MainWindow) -> list[Message]:
    return [message for message in window.chat.session.messages if message.role is Role.ASSISTANT]


def talk(window: MainWindow, qtbot: QtBot, num_turns: int, length: int) -> None:
    """Ask and wait for the answers."""
    for number in range(num_turns):
        ask(window, qtbot, f"{number} " + "x" * length)
        qtbot.waitUntil(lambda: len(replies(window)) == number + 1, timeout=WAIT_MS)  # noqa: B023
        wait_for_answer(window, qtbot)


def offered(window: MainWindow) -> dict[str, QPushButton]:
    """Return the buttons with what would fit, by their words."""
    panel = window.composer.refusal
    buttons = [] if panel.isHidden() else panel.findChildren(QPushButton)
    return {button.text(): button for button in buttons if not button.isHidden()}


def states(window: MainWindow) -> list[SpanState]:
    """Return what became of each turn of the open conversation."""
    return [turn.state for turn in window.chat.session.context.turns]


def said(window: MainWindow) -> str:
    return " ".join(label.text() for label in window.composer.refusal.findChildren(QLabel))


def test_a_long_conversation_is_refused_with_its_oldest_turns_to_leave_out_in_one_click(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=1_024)
    talk(window, qtbot, 3, 250)
    text = "y" * 250
    ask(window, qtbot, text)
    assert window.composer.text == text
    assert len(replies(window)) == 3
    assert "Leave out 2 old turns" in offered(window), (offered(window), said(window))
    assert "tokens too many" in said(window)
    offered(window)["Leave out 2 old turns"].click()
    qtbot.waitUntil(lambda: len(replies(window)) == 4, timeout=WAIT_MS)
    wait_for_answer(window, qtbot)
    assert offered(window) == {}
    assert window.composer.text == ""
    assert states(window) == [SpanState.DROPPED] * 2 + [SpanState.IN_CONTEXT] * 2
    assert len(window.chat.session.messages) == 8
    assert window.profile.value.overflow is Overflow.ASK  # it was for that message only


def test_a_limit_that_was_set_is_made_longer_in_one_click_where_that_fits(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=512)
    ask(window, qtbot, "y" * 600)
    assert "Shorten the message, attach a long text as a document or allow a longer context." in said(window)
    assert list(offered(window)) == ["Allow a context of 2,048"]  # about 640 tokens and 1,024 for the answer
    offered(window)["Allow a context of 2,048"].click()
    wait_for_answer(window, qtbot)
    assert window.profile.value.max_context == 2_048
    assert window.chat.session.messages[0].text == "y" * 600


def test_a_profile_that_drops_old_turns_refuses_no_long_conversation_and_says_what_is_left_out(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=1_024, overflow=Overflow.DROP)
    talk(window, qtbot, 3, 250)
    text = "y" * 250
    window.composer.set_text(text)
    window.chat.session.set_draft(text)
    window.chat._refresh()
    qtbot.waitUntil(lambda: "left out" in window.composer._note.text(), timeout=WAIT_MS)
    announced = window.composer._note.text()
    ask(window, qtbot, text)
    assert offered(window) == {}
    qtbot.waitUntil(lambda: len(replies(window)) == 4, timeout=WAIT_MS)
    wait_for_answer(window, qtbot)
    assert announced == "2 old turns will be left out."
    assert states(window).count(SpanState.DROPPED) == 2


def test_a_limit_beyond_what_fits_into_memory_is_said_beside_the_meter_and_kept(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=12_288)
    loaded = window._engine.loaded
    assert loaded is not None and window.composer._note.text() == ""
    plan = loaded.plan_at(window.profile.value.kv)
    half = plan.weights_nbytes + plan.reserve_nbytes + plan.kv_nbytes // 2
    window._settings.update(memory=MemoryLimits(most_nbytes=half))
    qtbot.waitUntil(lambda: window.composer._note.text() != "", timeout=WAIT_MS)
    fitting = window._engine.loaded.plan_at(window.profile.value.kv).fitting_tokens
    assert fitting < POSITIONS
    assert window.composer._note.text() == f"Of the limit of 12,288 tokens, {fitting:,} fit into memory."
    assert window.profile.value.max_context == 12_288


def long_document(window: MainWindow) -> str:
    """Open a conversation with a draft of a document that does not fit; return the document's key."""
    window.profile.update(document_mode=DocumentMode.WHOLE)
    conversation = window._store.create_conversation()
    document = Document("Long", "/x", "text", "z" * 4_000)
    attachment = window._store.add_attachment(conversation.id, document)
    window.chat.switcher.open(conversation.id)
    return attachment_key(attachment.id)


@pytest.mark.parametrize(
    ("choice", "way"),
    [("Read in about 3 segments", DocumentWay.SEGMENTS), ("Look up", DocumentWay.LOOK_UP)],
)
def test_a_document_that_is_too_long_can_be_read_in_segments_or_looked_up(
    window: MainWindow, qtbot: QtBot, choice: str, way: DocumentWay
) -> None:
    key = long_document(window)
    ask(window, qtbot, "What does it say?")
    assert window.composer.text == "What does it say?"
    assert len(window.chat.attachments.attachments) == 1
    with qtbot.waitSignal(window.chat.stream.busy_changed, timeout=WAIT_MS):
        offered(window)[choice].click()
    assert window.chat.session.context.rows.marks[key].way is way
    assert window.profile.value.document_mode is DocumentMode.WHOLE
    assert window.chat.session.messages[0].text == "What does it say?"
    assert len(window.chat.session.messages[0].attachments) == 1


def test_tiny_documents_beside_one_that_is_too_long_stay_whole(window: MainWindow, qtbot: QtBot) -> None:
    key = long_document(window)
    conversation = window.chat.session.conversation_id
    assert conversation is not None
    tiny = window._store.add_attachment(conversation, Document("README", "/x", "text", "z" * 24))
    window.chat.attachments.open(conversation)
    ask(window, qtbot, "What does it say?")
    with qtbot.waitSignal(window.chat.stream.busy_changed, timeout=WAIT_MS):
        offered(window)["Look up"].click()
    marks = window.chat.session.context.rows.marks
    assert marks[key].way is DocumentWay.LOOK_UP
    assert window.chat.session.context.ways.is_whole(attachment_key(tiny.id))


def test_reading_in_segments_tells_how_long_it_takes_once_a_speed_was_measured(
    window: MainWindow, qtbot: QtBot
) -> None:
    long_document(window)
    window.chat.refused.take_speed(ReadingSpeed())
    ask(window, qtbot, "What does it say?")
    assert "To read it in segments" not in said(window)
    window.chat.refused.forget()
    speed = ReadingSpeed().with_read(0, 1000, 100.0).with_written(0, 1000, 100.0)
    window.chat.refused.take_speed(speed)
    ask(window, qtbot, "What does it say?")
    # 4,000 tokens, and 130 and a note of 100 for each of 3 segments, at 10 a second.
    assert "To read it in segments takes about 8 minutes." in said(window)


def test_the_panel_goes_when_the_text_is_edited(window: MainWindow, qtbot: QtBot) -> None:
    ask(window, qtbot, "y" * 3_000)
    assert not window.composer.refusal.isHidden()
    assert offered(window) == {}  # no override where the model has no such positions
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Backspace)
    assert window.composer.refusal.isHidden()


def test_a_refusal_of_the_engine_is_shown_in_its_conversation_and_answered_after_a_choice(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.choose("Chat")
    talk(window, qtbot, 1, 10)
    session = window.chat.session
    assert session.conversation_id is not None
    question = window._store.add_user_message(session.conversation_id, session.leaf_id, "Second")
    refused_id = session.conversation_id
    window.chat.switcher.new()
    four_bit = KVSpec.parse("4; hot=0, warm=0")
    error = AdmissionError(
        "It takes too much.", needed_nbytes=2, available_nbytes=1, choices=(LowerPrecision(four_bit, 900),)
    )
    window._engine.reply_refused.emit(refused_id, question.id, error)
    assert window.composer.refusal.isHidden()
    window.chat.switcher.open(refused_id)
    assert list(offered(window)) == ["Use 4-bit KV cache", "Try again", "Send anyway…"]
    assert "It takes too much. It can be edited in the chat." in said(window)
    offered(window)["Use 4-bit KV cache"].click()
    qtbot.waitUntil(lambda: len(replies(window)) == 2, timeout=WAIT_MS)
    wait_for_answer(window, qtbot)
    assert replies(window)[-1].parent_id == question.id
    assert window.profile.value.kv == four_bit
    assert window.composer.refusal.isHidden()
    window.chat.switcher.new()
    assert window.profile.value == BUILT_IN[0]


def test_a_conversation_begins_with_the_profile_that_was_chosen_last(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.choose("Code")
    ask(window, qtbot, "Hello")
    wait_for_answer(window, qtbot)
    first = window.chat.session.conversation_id
    window.chat.switcher.new()
    window.profile.choose("Chat")
    assert first is not None
    window.chat.switcher.open(first)
    assert window.profile.value == BUILT_IN[2]
    assert window.top_bar.profile_button.text() == "Code"


def test_a_document_for_which_no_way_was_chosen_is_counted_as_the_profile_will_have_it_read(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(document_mode=DocumentMode.SEGMENTS)
    conversation = window._store.create_conversation()
    attachment = window._store.add_attachment(conversation.id, Document("Long", "/x", "text", "z" * 4_000))
    question = window._store.add_user_message(conversation.id, None, "What does it say?", [attachment.id])
    answer = window._store.begin_reply(conversation.id, question.id, "tiny")
    window._store.finish_reply(answer.id, "Nothing.", MessageState.COMPLETE)
    window.chat.switcher.open(conversation.id)
    window.profile.update(document_mode=DocumentMode.SEGMENTS)
    qtbot.waitUntil(lambda: window.chat._check.use("And now?").used_tokens is not None, timeout=WAIT_MS)
    assert window.chat._check.admission("And now?") is None
    use = window.chat._check.use("And now?")
    assert use.used_tokens is not None and use.used_tokens < 300
    assert use.reading_tokens == reading_room_tokens(use.limit_tokens or 0)
    window.profile.update(document_mode=DocumentMode.WHOLE)
    assert window.chat._check.admission("And now?") is not None


def test_a_refusal_is_shown_only_as_long_as_its_message_is_the_last(desk: Desk) -> None:
    window = desk.open()
    session = window.chat.session
    assert session.conversation_id is not None
    question = window._store.add_user_message(session.conversation_id, None, "First")
    session._show_path(question.id)
    error = AdmissionError("No.", needed_nbytes=2, available_nbytes=1)
    window._engine.reply_refused.emit(session.conversation_id, question.id, error)
    assert not window.composer.refusal.isHidden()
    other = window._store.add_user_message(session.conversation_id, None, "In other words")
    session._show_path(other.id)
    assert window.composer.refusal.isHidden()
    session._show_path(question.id)
    assert not window.composer.refusal.isHidden()


def test_a_question_that_looking_up_does_not_answer_is_not_said_to_be_too_long(desk: Desk) -> None:
    window = desk.open()
    session = window.chat.session
    assert session.conversation_id is not None
    question = window._store.add_user_message(session.conversation_id, None, "Summarize this")
    session._show_path(question.id)
    error = whole_question_refusal(["Book"], question.text, (LookUp(("a1",)),))
    window._engine.reply_refused.emit(session.conversation_id, question.id, error)
    assert "Looking up does not answer this" in said(window) and "fit" not in said(window)
    assert list(offered(window)) == ["Look up"]


def test_the_button_that_has_the_focus_stays_while_other_things_change(desk: Desk) -> None:
    window = desk.open()
    session = window.chat.session
    assert session.conversation_id is not None
    question = window._store.add_user_message(session.conversation_id, None, "First")
    session._show_path(question.id)
    error = AdmissionError("No.", needed_nbytes=2, available_nbytes=1)
    window._engine.reply_refused.emit(session.conversation_id, question.id, error)
    button = offered(window)["Try again"]
    button.setFocus()
    window.chat._refresh()
    assert offered(window)["Try again"] is button
    assert window.focusWidget() is button
    window.composer.refusal.dismiss()
    assert window.focusWidget() is window.composer.edit


def test_all_old_turns_can_be_left_out_for_a_message_that_fits_alone(
    window: MainWindow, qtbot: QtBot
) -> None:
    talk(window, qtbot, 1, 1_000)
    ask(window, qtbot, "y" * 1_200)
    assert "Leave out 1 old turn" in offered(window), said(window)
    offered(window)["Leave out 1 old turn"].click()
    qtbot.waitUntil(lambda: len(replies(window)) == 2, timeout=WAIT_MS)
    wait_for_answer(window, qtbot)
    assert states(window) == [SpanState.DROPPED, SpanState.IN_CONTEXT]
    line = window.view.findChild(ContextLine)
    assert line.isVisibleTo(window.view)
    assert "2 messages above" in line.findChild(QLabel).text()


def test_a_refusal_goes_when_what_is_written_fits_after_all(window: MainWindow, qtbot: QtBot) -> None:
    window.profile.update(max_context=512)
    ask(window, qtbot, "y" * 600)
    before = said(window)
    window.profile.update(max_context=600)
    assert said(window) != before and not window.composer.refusal.isHidden()
    window.profile.update(max_context=1_024)
    assert window.composer.refusal.isHidden()
    assert window.composer.text == "y" * 600


def test_a_choice_that_cannot_be_tried_now_changes_nothing_and_stays(window: MainWindow) -> None:
    session, kv = window.chat.session, window.profile.value.kv
    assert session.conversation_id is not None
    question = window._store.add_user_message(session.conversation_id, None, "First")
    session._show_path(question.id)
    lower = LowerPrecision(KVSpec.parse("4"), 900)
    error = AdmissionError("No.", needed_nbytes=2, available_nbytes=1, choices=(lower,))
    window._engine.reply_refused.emit(session.conversation_id, question.id, error)
    window.chat.stream.conversation_id = session.conversation_id + 1  # a reply is written elsewhere
    for words in ("Use 4-bit KV cache", "Try again", "Send anyway…"):
        offered(window)[words].click()
        assert list(offered(window)) == ["Use 4-bit KV cache", "Try again", "Send anyway…"]
    assert window.profile.value.kv == kv
    assert "A reply is being written" in window.composer._hint_line.text()
    window.chat.stream.conversation_id = None


def test_a_refusal_is_whole_in_the_smallest_window(window: MainWindow, qtbot: QtBot) -> None:
    window.profile.update(max_context=512)
    window.resize(window.minimumSize())
    ask(window, qtbot, "y " * 400)
    panel = window.composer.refusal
    qtbot.waitUntil(lambda: panel.height() >= panel.layout().heightForWidth(panel.width()))
    field = window.composer.edit
    frame = field.parentWidget()
    assert field.document().size().height() > 8  # lines: more than the field ever shows
    buttons = [button for button in frame.findChildren(QAbstractButton) if button.parentWidget() is frame]
    assert len(buttons) == 2
    for button in buttons:
        assert not button.geometry().intersects(field.geometry())
        assert frame.rect().contains(button.geometry())


def test_the_model_is_loaded_again_with_packed_weights_in_one_click_and_then_answers(
    desk: Desk, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What this process takes beside so small a model changes by more than that.
    monkeypatch.setattr("engine.model_slot.taken_nbytes", lambda: 0)
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: 1 << 30)
    folder = write_folder(tmp_path / "packed", bits=4, max_position_embeddings=POSITIONS)
    window = desk.open_with_model(folder, SHORT)
    loaded = window._engine.loaded
    assert loaded is not None
    if not loaded.plan.dequantize:
        pytest.skip("weights stay packed on a GPU")
    packed = loaded.packed_plan_at(window.profile.value.kv)
    assert packed is not None
    text = "y" * 1_500
    most = packed.weights_nbytes + packed.reserve_nbytes + packed.kv_nbytes
    assert packed.kv_nbytes > loaded.plan.weights_nbytes - packed.weights_nbytes > 0
    window._settings.update(memory=MemoryLimits(most_nbytes=most, reserve_nbytes=packed.reserve_nbytes))
    ask(window, qtbot, text)
    assert "that Octavo may take" in said(window)
    offered(window)["Load again with packed weights"].click()
    wait_for_answer(window, qtbot)
    loaded = window._engine.loaded
    assert loaded is not None and not loaded.plan.dequantize
    assert window.chat.session.messages[0].text == text and window.composer.text == ""


def test_a_refused_first_message_is_counted_and_no_turn_is_called_left_out(
    window: MainWindow, qtbot: QtBot
) -> None:
    window.profile.update(max_context=1_024, overflow=Overflow.DROP)
    conversation = window._store.create_conversation()
    window._store.add_user_message(conversation.id, None, "y" * 3_000)
    window.chat.switcher.open(conversation.id)
    qtbot.waitUntil(lambda: window.chat._check.use("").used_tokens is not None, timeout=WAIT_MS)
    use = window.chat._check.use("")
    assert (use.used_tokens or 0) > 3_000 and use.released_turns == 0
    assert "left out" not in window.composer._note.text()
