"""The Context panel on the open conversation, without a model and with one that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.ledger.entries import EntryKind, EntryState, LedgerEntry
from app.ledger.records import Summary, SummarySource, SummaryState
from app.profiles import Overflow
from app.store.records import MessageState
from engine.sampling import SamplingParams
from tests.engine.small_engine import FOUR, write_small_model
from tests.ui.conftest import Desk
from ui.engine_state import EngineState
from ui.inspector.context.actions import LedgerAction
from ui.inspector.context.model import ENTRY_ROLE
from ui.main_window import MainWindow

WAIT_MS = 60_000
QUESTIONS = ("The ship sailed north. " * 10, "The owls hunt at night. " * 10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def window(desk: Desk, qtbot: QtBot, model: Path) -> MainWindow:
    """A window with two turns that the engine holds, whose Context panel is looked at."""
    window = desk.open_with_model(model, SamplingParams(temperature=0, max_tokens=2), FOUR)
    window.resize(1240, 800)
    window.inspector.tabs.show_panel("Context")
    for question in QUESTIONS:
        with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
            window.chat.send(question)
        wait_until_ready(window, qtbot)
    return window


@pytest.fixture
def modelless(desk: Desk) -> MainWindow:
    """A window without a model, with two turns from before."""
    window = desk.open()
    window.resize(1240, 800)
    window.inspector.tabs.show_panel("Context")
    conversation, parent = desk.store.create_conversation(), None
    for text in QUESTIONS:
        question = desk.store.add_user_message(conversation.id, parent, text)
        parent = desk.store.begin_reply(conversation.id, question.id, "a model").id
        desk.store.finish_reply(parent, "So it is.", MessageState.COMPLETE)
    window.chat.switcher.open(conversation.id)
    return window


def wait_until_ready(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)


def rows(window: MainWindow) -> dict[str, LedgerEntry]:
    model = window.inspector.context.view.model()
    return {key: index.data(ENTRY_ROLE) for key, index in model.indexes().items()}


def of_kind(window: MainWindow, kind: EntryKind) -> list[LedgerEntry]:
    return [entry for entry in rows(window).values() if entry.kind is kind]


def ask_for(window: MainWindow, action: LedgerAction, *keys: str) -> None:
    window.inspector.context.requested.emit(action, keys)


def choose(window: MainWindow, key: str) -> None:
    view = window.inspector.context.view
    view.clearSelection()
    view.setCurrentIndex(view.model().indexes()[key])


def test_turns_show_what_the_engine_holds_and_leave_it_at_once(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: all(turn.nbytes for turn in of_kind(window, EntryKind.TURN)), timeout=WAIT_MS)
    first, second = of_kind(window, EntryKind.TURN)
    length = len(QUESTIONS[0].strip())  # tokens are bytes; the answer and markers come to them
    assert first.tokens is not None and length + 2 < first.tokens < length + 60 and not first.is_about
    before = window.precision.held.usage.num_tokens

    ask_for(window, LedgerAction.DROP, first.key)

    def has_left() -> bool:
        return before - window.precision.held.usage.num_tokens >= length

    qtbot.waitUntil(has_left, timeout=WAIT_MS)
    assert rows(window)[first.key].state is EntryState.LEFT_OUT
    with qtbot.waitSignal(window._engine.reading_cost_told, timeout=WAIT_MS):
        choose(window, first.key)
    assert window.inspector.context._cost.text().startswith("With it the next message reads ")
    assert rows(window)[first.key].state is EntryState.LEFT_OUT
    assert rows(window)[second.key].state is EntryState.IN_CONTEXT


def test_summaries_that_were_asked_for_take_the_place_of_their_turns_and_are_undone_one_by_one(
    window: MainWindow, qtbot: QtBot
) -> None:
    first, second = of_kind(window, EntryKind.TURN)

    def are_read() -> list[bool]:
        return [rows(window)[key].state.is_in_context for key in (first.key, second.key)]

    ask_for(window, LedgerAction.SUMMARIZE, first.key)
    ask_for(window, LedgerAction.SUMMARIZE, second.key)
    qtbot.waitUntil(lambda: are_read() == [False, False], timeout=WAIT_MS)
    wait_until_ready(window, qtbot)
    summaries = of_kind(window, EntryKind.SUMMARY)
    assert [[part.key for part in each.parts] for each in summaries] == [[first.key], [second.key]]
    with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
        window.chat.send("And now?")  # the summaries are all that is left before it
    wait_until_ready(window, qtbot)

    def states() -> set[EntryState]:
        return {each.state for each in of_kind(window, EntryKind.SUMMARY)}

    qtbot.waitUntil(lambda: states() == {EntryState.IN_CONTEXT}, timeout=WAIT_MS)
    undo = window.inspector.context.actions_of_rows.undo
    undo.trigger()
    assert are_read() == [False, True]
    undo.trigger()
    assert are_read() == [True, True]
    assert not undo.isEnabled()


def test_turns_in_a_row_that_are_chosen_together_become_one_summary(window: MainWindow, qtbot: QtBot) -> None:
    keys = [turn.key for turn in of_kind(window, EntryKind.TURN)]
    ask_for(window, LedgerAction.SUMMARIZE, *keys)
    qtbot.waitUntil(lambda: bool(of_kind(window, EntryKind.SUMMARY)), timeout=WAIT_MS)
    wait_until_ready(window, qtbot)
    (summary,) = of_kind(window, EntryKind.SUMMARY)
    assert [part.key for part in summary.parts] == keys


def test_the_meter_and_the_panel_tell_the_same_tokens(window: MainWindow, qtbot: QtBot) -> None:
    panel, meter = window.inspector.context, window.composer._meter
    held = window.precision.held

    def tell(tokens: str) -> bool:
        return panel._takes.text().startswith(f"Takes {tokens} of ") and meter._numbers.text().startswith(
            f"{tokens} of "
        )

    assert held is not None
    qtbot.waitUntil(lambda: tell(f"{held.usage.num_tokens:,}"), timeout=WAIT_MS)
    first = of_kind(window, EntryKind.TURN)[0]
    ask_for(window, LedgerAction.DROP, first.key)
    qtbot.waitUntil(lambda: tell(f"{window.precision.held.usage.num_tokens:,}"), timeout=WAIT_MS)
    ask_for(window, LedgerAction.RESTORE, first.key)
    assert panel._report.tokens is not None
    qtbot.waitUntil(lambda: (panel._report.tokens or 0) > held.usage.num_tokens - 40, timeout=WAIT_MS)
    about = "about " if panel._report.is_about else ""
    assert tell(f"{about}{panel._report.tokens:,}")


def test_reading_again_reads_what_was_restored(window: MainWindow, qtbot: QtBot) -> None:
    first = of_kind(window, EntryKind.TURN)[0]
    ask_for(window, LedgerAction.DROP, first.key)
    whole = window.precision.held.usage.num_tokens
    qtbot.waitUntil(lambda: window.precision.held.usage.num_tokens < whole - 100, timeout=WAIT_MS)
    ask_for(window, LedgerAction.RESTORE, first.key)
    qtbot.waitUntil(lambda: rows(window)[first.key].state is EntryState.UNREAD, timeout=WAIT_MS)
    window.inspector.context.rebuild_requested.emit()
    qtbot.waitUntil(lambda: rows(window)[first.key].state is EntryState.IN_CONTEXT, timeout=WAIT_MS)
    wait_until_ready(window, qtbot)


def test_nothing_is_changed_while_a_reply_is_written_nor_shown_of_a_model_that_is_gone(
    window: MainWindow, qtbot: QtBot
) -> None:
    pin = window.inspector.context.actions_of_rows.pin
    choose(window, of_kind(window, EntryKind.TURN)[0].key)
    assert pin.isEnabled()
    with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
        with qtbot.waitSignal(window._engine.reply_started, timeout=WAIT_MS):
            window.chat.send("Wait.")
        assert not pin.isEnabled() and pin.toolTip() == "Wait until the reply is written."
    wait_until_ready(window, qtbot)
    qtbot.waitUntil(pin.isEnabled)

    with qtbot.waitSignal(window._engine.model_unloaded, timeout=WAIT_MS):
        window.models.eject()
    turns = of_kind(window, EntryKind.TURN)
    assert [(turn.nbytes, turn.tokens) for turn in turns] == [(None, None)] * 3


def test_without_a_model_the_context_is_changed_and_not_summarized(modelless: MainWindow) -> None:
    first, second = of_kind(modelless, EntryKind.TURN)
    assert (first.tokens, first.nbytes, first.heat) == (None, None, None)
    actions = modelless.inspector.context.actions_of_rows
    assert not actions.undo.isEnabled()
    choose(modelless, first.key)
    assert not actions.summarize.isEnabled() and actions.summarize.toolTip() == "Load a model first."

    actions.pin.trigger()
    assert rows(modelless)[first.key].is_pinned
    choose(modelless, second.key)
    actions.drop.trigger()
    assert rows(modelless)[second.key].state is EntryState.LEFT_OUT
    assert modelless.inspector.context._cost.text() == "What is restored is read with the next message."
    actions.undo.trigger()
    assert rows(modelless)[second.key].state is EntryState.UNREAD
    assert rows(modelless)[first.key].is_pinned
    actions.undo.trigger()
    assert not rows(modelless)[first.key].is_pinned and not actions.undo.isEnabled()


def test_restoring_one_of_several_turns_under_a_summary_tells_that_the_others_come_back(
    modelless: MainWindow,
) -> None:
    session = modelless.chat.session
    assert session.conversation_id is not None
    covers = tuple(key for turn in session.context.turns for key in turn.keys)
    both = Summary(0, "Ships.", covers, SummarySource.MODEL, "", "a model", 90, 9, SummaryState.USED)
    modelless._store.add_summary(session.conversation_id, both)
    session.follow_ledger(session.conversation_id)
    choose(modelless, covers[0])
    assert "1 other turn comes back, too" in modelless.inspector.context._cost.text()


def test_a_restored_context_that_is_trimmed_again_at_once_is_told_so(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel, first = window.inspector.context, of_kind(window, EntryKind.TURN)[0]
    ask_for(window, LedgerAction.DROP, first.key)
    with qtbot.waitSignal(window._engine.reading_cost_told, timeout=WAIT_MS):
        choose(window, first.key)
    assert "What you pin stays" not in panel._cost.text()
    panel.view.clearSelection()
    window.profile.update(max_context=600, trim_at=0.7, overflow=Overflow.SUMMARIZE)
    with qtbot.waitSignal(window._engine.reading_cost_told, timeout=WAIT_MS):
        choose(window, first.key)
    assert "old turns are summarized again. What you pin stays." in panel._cost.text()


def test_restoring_several_rows_is_undone_at_once(modelless: MainWindow) -> None:
    first, second = of_kind(modelless, EntryKind.TURN)
    ask_for(modelless, LedgerAction.DROP, first.key, second.key)
    assert {turn.state for turn in of_kind(modelless, EntryKind.TURN)} == {EntryState.LEFT_OUT}
    ask_for(modelless, LedgerAction.RESTORE, first.key, second.key)
    assert {turn.state for turn in of_kind(modelless, EntryKind.TURN)} == {EntryState.UNREAD}
    modelless.inspector.context.undo_requested.emit()
    assert {turn.state for turn in of_kind(modelless, EntryKind.TURN)} == {EntryState.LEFT_OUT}


def test_another_version_than_the_one_that_was_read_last_is_an_estimate(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel = window.inspector.context
    first = window.chat.session.messages[0]
    with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
        window.view.edit_requested.emit(first.id, "The owls sleep.")
    wait_until_ready(window, qtbot)
    qtbot.waitUntil(lambda: not panel._report.is_about, timeout=WAIT_MS)

    window.view.sibling_requested.emit(first.id)
    assert panel._report.is_about and "version" in panel._words.text() and panel._words.isVisible()
    edited = next(number for number in window.chat.session.messages[0].siblings if number != first.id)
    window.view.sibling_requested.emit(edited)
    assert not panel._report.is_about and not panel._words.isVisible()
