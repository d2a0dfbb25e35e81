"""The Context panel: what it shows and what can be done in it."""

from __future__ import annotations

import dataclasses
import time

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton, QTextEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.ledger.progress import SummaryProgress
from engine.events import PrefillProgress
from tests.ui.inspector.context.samples import (
    SYSTEM,
    document,
    left,
    long_ledger,
    summary_row,
    turn,
    unread,
)
from ui.inspector.context.actions import Hindrances, LedgerAction
from ui.inspector.context.model import LedgerModel
from ui.inspector.context.panel import ContextPanel
from ui.live_precision import Reread


@pytest.fixture
def panel(qtbot: QtBot) -> ContextPanel:
    panel = ContextPanel()
    qtbot.addWidget(panel)
    panel.resize(238, 700)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def show(panel: ContextPanel, *entries: LedgerEntry, **changes: object) -> None:
    panel.show_report(dataclasses.replace(LedgerReport(entries, tokens=300, limit_tokens=512), **changes))


def choose(panel: ContextPanel, *keys: str) -> None:
    """Select rows, those that are folded away unfolded."""
    view = panel.view
    view.clearSelection()
    indexes = view.model().indexes()
    for key in keys:
        view.expand(view.model().parent(indexes[key]))
        view.setCurrentIndex(indexes[key])
        view.selectionModel().select(indexes[key], view.selectionModel().SelectionFlag.Select)
    model = view.selectionModel()
    for key in keys:
        model.select(indexes[key], model.SelectionFlag.Select)


def rows_in_sight(panel: ContextPanel) -> list[str]:
    """Return the keys of the rows that are not folded away, from the top."""
    view, keys = panel.view, []
    index = view.model().index(0, 0)
    while index.isValid():
        keys.append(next(key for key, other in view.model().indexes().items() if other == index))
        index = view.indexBelow(index)
    return keys


def button(panel: ContextPanel, text: str) -> QToolButton:
    (found,) = [each for each in panel.findChildren(QToolButton) if each.text() == text]
    return found


def said(panel: ContextPanel) -> str:
    labels = [label for label in panel.findChildren(QLabel) if label.isVisible()]
    return "\n".join(label.text() for label in labels).replace("\N{NO-BREAK SPACE}", " ")


# What is shown.


def test_what_summaries_stand_for_is_folded_away_and_documents_are_not(panel: ContextPanel) -> None:
    show(panel, SYSTEM, turn(1, parts=(document(1, "owls.pdf"),)), summary_row(1, 2, 14), turn(14))
    assert rows_in_sight(panel) == ["system", "m1", "a1", "s1", "m27"]
    panel.view.expand(panel.view.model().indexes()["s1"])
    assert len(rows_in_sight(panel)) == 5 + 12


def test_the_bar_tells_the_share_of_each_kind_and_what_is_free(panel: ContextPanel) -> None:
    shares = ((EntryKind.DOCUMENT, 100), (EntryKind.TURN, 200))
    show(panel, turn(1), shares=shares)
    (bar,) = [each for each in panel.findChildren(QWidget) if each.accessibleName().startswith("Share")]
    assert bar.accessibleName() == "Share of the context: Documents 100, Turns 200, Free 212"
    assert "System" not in said(panel)


def test_a_conversation_without_a_word_says_so(panel: ContextPanel) -> None:
    show(panel)
    assert said(panel) == "The conversation is empty. What you send, and what the model answers, shows here."
    show(panel, turn(1))
    assert "empty" not in said(panel)


def test_that_the_model_read_another_conversation_is_told(panel: ContextPanel) -> None:
    panel.show_report(LedgerReport((turn(1),), tokens=9, is_about=True), is_other_held=True)
    assert "another conversation" in said(panel)


def test_a_selected_summary_shows_its_text_and_who_wrote_it(panel: ContextPanel) -> None:
    show(panel, summary_row(2, 2, 14), turn(14))
    choose(panel, "s2")
    (text,) = panel.findChildren(QTextEdit)
    assert text.isVisible() and text.toPlainText().startswith("The budget is 12,400 euros.")
    assert "sentences of the text itself." in said(panel)
    choose(panel, "m27")
    assert not text.isVisible()


def test_buttons_stay_where_they_are_whatever_is_selected(panel: ContextPanel) -> None:
    show(panel, turn(1), turn(2, is_pinned=True), summary_row(2, 3, 14), left(turn(15)))
    places = []
    for key in ("m1", "m3", "s2", "m29"):
        choose(panel, key)
        panel.show_cost((key,), "With it the next message reads 1,204 tokens more. " * 4)
        QApplication.processEvents()
        places.append([each.geometry() for each in panel.findChildren(QToolButton)])
    assert places[1:] == places[:-1]


def test_figures_that_change_leave_what_is_open_selected_and_in_sight(panel: ContextPanel) -> None:
    report = long_ledger()
    panel.resize(238, 560)
    panel.show_report(report)
    choose(panel, "s2", "m75")
    panel.view.expand(panel.view.model().indexes()["s3"])
    seen, place = rows_in_sight(panel), panel.view.verticalScrollBar().value()
    assert place > 0

    colder = tuple(dataclasses.replace(entry, heat_rate=0.5) for entry in report.entries)
    panel.show_report(dataclasses.replace(report, entries=colder))
    assert [entry.key for entry in panel.view.chosen] == ["s2", "m75"]
    assert panel.view.chosen[0].heat_rate == 0.5
    assert (rows_in_sight(panel), panel.view.verticalScrollBar().value()) == (seen, place)

    longer = (*colder, turn(41))
    panel.show_report(dataclasses.replace(report, entries=longer))
    assert [entry.key for entry in panel.view.chosen] == ["s2", "m75"]
    assert (rows_in_sight(panel), panel.view.verticalScrollBar().value()) == ([*seen, "m81"], place)
    assert panel.view.current is not None and panel.view.current.key == "m75"


def test_a_row_that_is_gone_is_no_longer_selected(panel: ContextPanel) -> None:
    show(panel, turn(1), turn(2))
    choose(panel, "m3")
    show(panel, turn(1))
    assert panel.view.chosen == []
    assert not button(panel, "Pin").isEnabled()


def test_the_rows_keep_the_rules_of_a_model() -> None:
    model = LedgerModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert model.set_entries(long_ledger().entries)
    assert not model.set_entries(long_ledger().entries)
    assert model.set_entries([SYSTEM, turn(1)])
    assert model.rowCount() == 2 and not model.rowCount(model.index(1, 0))
    assert tester.model() is model


def test_two_thousand_messages_are_shown_quickly(panel: ContextPanel) -> None:
    entries = tuple(turn(number) for number in range(1, 1_001))
    begin = time.perf_counter()
    show(panel, *entries)
    panel.grab()
    show(panel, *(dataclasses.replace(entry, heat_rate=2.0) for entry in entries))
    panel.grab()
    assert time.perf_counter() - begin < 5
    assert panel.view.model().rowCount() == 1_000


# What can be done.


@pytest.mark.parametrize(
    ("text", "key", "action"),
    [
        ("Leave out", Qt.Key.Key_Delete, LedgerAction.DROP),
        ("Summarize", Qt.Key.Key_S, LedgerAction.SUMMARIZE),
        ("Pin", Qt.Key.Key_P, LedgerAction.PIN),
    ],
)
def test_what_is_selected_is_asked_for_by_button_menu_and_key(
    qtbot: QtBot, panel: ContextPanel, text: str, key: Qt.Key, action: LedgerAction
) -> None:
    show(panel, turn(1), turn(2), turn(3))
    choose(panel, "m1", "m5")

    with qtbot.waitSignal(panel.requested) as by_button:
        button(panel, text).click()
    panel.view.setFocus()
    with qtbot.waitSignal(panel.requested) as by_key:
        qtbot.keyClick(panel.view, key)
    panel.view.customContextMenuRequested.emit(QPoint(5, 5))
    (menu,) = panel.findChildren(QMenu)
    (found,) = [each for each in menu.actions() if each.text() == text]
    with qtbot.waitSignal(panel.requested) as by_menu:
        found.trigger()
    menu.close()

    assert by_button.args == by_key.args == by_menu.args == [action, ("m1", "m5")]


def test_pinned_rows_are_unpinned_and_with_one_that_is_not_all_are_pinned(
    qtbot: QtBot, panel: ContextPanel
) -> None:
    show(panel, turn(1, is_pinned=True), turn(2))
    choose(panel, "m1")
    with qtbot.waitSignal(panel.requested) as asked:
        button(panel, "Unpin").click()
    assert asked.args == [LedgerAction.UNPIN, ("m1",)]
    choose(panel, "m1", "m3")
    with qtbot.waitSignal(panel.requested) as asked:
        button(panel, "Pin").click()
    assert asked.args == [LedgerAction.PIN, ("m3",)]


def test_a_summary_is_summarized_again_with_a_turn_and_not_alone(qtbot: QtBot, panel: ContextPanel) -> None:
    show(panel, summary_row(1, 3, 5), turn(4))
    choose(panel, "s1")
    assert not button(panel, "Summarize").isEnabled()
    assert "Choose a turn beside it" in button(panel, "Summarize").toolTip()
    choose(panel, "s1", "m7")
    with qtbot.waitSignal(panel.requested) as asked:
        button(panel, "Summarize").click()
    assert asked.args == [LedgerAction.SUMMARIZE, ("s1", "m7")]


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("m3", "Leave out", "It waits for its answer, so it stays. Edit it in the chat to make it shorter."),
        ("system", "Leave out", "The system prompt always stays. Change it in the Chat panel."),
        ("m1", "Restore", "The model reads it already."),
        ("s1", "Pin", "A summary cannot be pinned."),
        ("m9", "Pin", "It is left out. Restore it first."),
    ],
)
def test_what_cannot_be_done_says_why(panel: ContextPanel, key: str, text: str, reason: str) -> None:
    show(panel, SYSTEM, turn(1), summary_row(1, 3, 5), left(turn(5)), unread(2))
    choose(panel, key)
    assert not button(panel, text).isEnabled()
    assert button(panel, text).toolTip() == reason


def test_nothing_is_changed_while_a_reply_is_written_or_without_a_model(panel: ContextPanel) -> None:
    show(panel, turn(1))
    assert button(panel, "Pin").toolTip() == "Choose a row first."
    choose(panel, "m1")
    panel.show_hindrances(Hindrances(change="Wait until the reply is written."))
    assert not button(panel, "Pin").isEnabled()
    assert button(panel, "Pin").toolTip() == "Wait until the reply is written."
    panel.show_hindrances(Hindrances(summarize="Load a model first.", undo="Nothing to undo."))
    assert button(panel, "Pin").isEnabled() and not button(panel, "Summarize").isEnabled()
    assert button(panel, "Summarize").toolTip() == "Load a model first."
    assert not button(panel, "Undo").isEnabled()


def test_undo_is_a_key_in_the_list(qtbot: QtBot, panel: ContextPanel) -> None:
    show(panel, turn(1))
    panel.view.setFocus()
    with qtbot.waitSignal(panel.undo_requested):
        qtbot.keyClick(panel.view, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)


def test_the_cost_is_asked_for_and_shown_before_anything_is_restored(
    qtbot: QtBot, panel: ContextPanel
) -> None:
    show(panel, turn(1), left(turn(2)), left(turn(3)))
    with qtbot.waitSignal(panel.cost_wanted) as asked:
        choose(panel, "m3")
    assert asked.args == [("m3",)]
    with qtbot.assertNotEmitted(panel.requested):
        panel.show_cost(("m3",), "Restoring costs nothing: it comes back at once.")
    assert "comes back at once" in said(panel)
    choose(panel, "m5")
    assert "comes back at once" not in said(panel)
    panel.show_cost(("m3",), "Too late.")
    assert "Too late." not in said(panel)
    choose(panel, "m1")
    panel.show_cost(("m5",), "Too late.")
    assert "Too late." not in said(panel)


def test_the_cost_is_asked_for_again_when_what_was_on_disk_is_gone(qtbot: QtBot, panel: ContextPanel) -> None:
    show(panel, left(turn(1), is_on_disk=True))
    choose(panel, "m1")
    panel.show_cost(("m1",), "Restoring costs nothing: it comes back at once.")
    with qtbot.assertNotEmitted(panel.cost_wanted):
        show(panel, left(turn(1), is_on_disk=True, is_about=True))
    with qtbot.waitSignal(panel.cost_wanted) as asked:
        show(panel, left(turn(1)))
    assert asked.args == [("m1",)]
    assert "comes back at once" not in said(panel)


def test_rebuilding_shows_its_cost_first_and_how_far_it_is(qtbot: QtBot, panel: ContextPanel) -> None:
    show(panel, turn(1), nbytes=9)
    panel.set_reread(Reread(prefill_tps=50))
    assert "Reading again takes about 300 tokens, about 6 s." in said(panel)
    (rebuild,) = [each for each in panel.findChildren(QPushButton) if each.text() == "Rebuild exactly"]
    with qtbot.waitSignal(panel.rebuild_requested):
        rebuild.click()
    panel.set_reread(Reread(progress=PrefillProgress(100, 300, 0)))
    assert "Reading again: 100 of 300 tokens" in said(panel)
    with qtbot.waitSignal(panel.rebuild_stopped):
        rebuild.click()


def test_nothing_is_rebuilt_where_nothing_is_held(panel: ContextPanel) -> None:
    show(panel, turn(1), nbytes=None)
    assert "Reading again" not in said(panel)


def test_a_summary_that_is_written_shows_how_far_it_is_and_can_be_stopped(
    qtbot: QtBot, panel: ContextPanel
) -> None:
    show(panel, turn(1))
    panel.show_progress(SummaryProgress(3, 20, 80))
    assert "Summarizing 3 turns" in said(panel)
    (stop,) = [each for each in panel.findChildren(QPushButton) if each.text() == "Stop"]
    with qtbot.waitSignal(panel.summary_stopped):
        stop.click()
    panel.show_progress(None)
    assert "Summarizing" not in said(panel)


# For everybody.


def test_a_report_is_wanted_when_the_panel_is_looked_at(qtbot: QtBot, panel: ContextPanel) -> None:
    panel.hide()
    with qtbot.waitSignal(panel.shown):
        panel.show()


def test_every_widget_that_takes_the_focus_has_a_name(panel: ContextPanel) -> None:
    panel.show_report(long_ledger())
    choose(panel, "s2")
    panel.show_progress(SummaryProgress(3, 20, 80))
    for widget in panel.findChildren(QWidget):
        if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus and widget.isVisible():
            assert QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name), widget


def test_a_row_is_told_to_who_cannot_see_it(panel: ContextPanel) -> None:
    show(panel, left(turn(12), EntryState.SUMMARIZED, title="What is the budget?"))
    index = panel.view.model().index(0, 0, QModelIndex())
    told = index.data(Qt.ItemDataRole.AccessibleTextRole)
    assert told == "Turn 12, What is the budget?, 120 tokens, summarized"


def test_a_title_with_tags_is_shown_as_it_is(panel: ContextPanel) -> None:
    show(panel, document(1, "<b>owls</b>.pdf"))
    tip = panel.view.model().index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "&lt;b&gt;owls" in tip


def test_nothing_is_cut_at_the_narrowest(panel: ContextPanel) -> None:
    panel.show_report(long_ledger())
    choose(panel, "s2")
    panel.show_progress(SummaryProgress(12, 20, 80))
    QApplication.processEvents()
    assert panel.minimumSizeHint().width() <= 227
    for each in panel.findChildren(QToolButton):
        assert panel.rect().contains(each.mapTo(panel, each.rect().bottomRight()))
