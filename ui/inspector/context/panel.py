"""The Context panel: what the model reads of the conversation, and what can be done about it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QLabel, QMenu, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.ledger.entries import LedgerReport
from app.ledger.progress import SummaryProgress
from ui.chat.flow_layout import FlowLayout
from ui.inspector.context.actions import Hindrances, LedgerAction, LedgerActions, doable
from ui.inspector.context.share_bar import ShareBar
from ui.inspector.context.summary_card import SummaryCard
from ui.inspector.context.summary_progress import SummaryProgressBar
from ui.inspector.context.view import LedgerView
from ui.inspector.context.words import beside_text, beside_tip, takes_text
from ui.inspector.reread_button import RereadButton
from ui.live_precision import Reread
from ui.plain_text import plain_label

_EMPTY = "The conversation is empty. What you send, and what the model answers, shows here."
_OTHER = (
    "The model read another conversation or version last. It takes this one up with the next message; until "
    "then the tokens are estimates."
)
_REBUILD_TIP = "Reads the context again from its beginning, and makes the empty positions free"
_LIST_HEIGHT = 160


class ContextPanel(QWidget):
    """Shows a `LedgerReport` and lets rows be pinned, left out, summarized and restored.

    Attributes:
        view: the rows.
        actions_of_rows: what can be done with those that are selected.

    Signals:
        requested(LedgerAction, tuple): what to do, and the keys of the rows to do it with.
        undo_requested: the last change is to be taken back.
        cost_wanted(tuple): the keys of rows that can be restored are selected; `show_cost` is to follow.
        rebuild_requested, rebuild_stopped: the context is to be read again, or that is to stop.
        summary_stopped: the summary that is written is to stop.
        shown: the panel is looked at, so that a report is wanted.
    """

    requested = Signal(object, object)
    undo_requested = Signal()
    cost_wanted = Signal(object)
    rebuild_requested = Signal()
    rebuild_stopped = Signal()
    summary_stopped = Signal()
    shown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report = LedgerReport()
        self._hindrances = Hindrances()
        self._priced: tuple[tuple[str, bool], ...] = ()
        self.view = LedgerView()
        self.view.setMinimumHeight(_LIST_HEIGHT)
        self.actions_of_rows = LedgerActions(self)
        self.actions_of_rows.requested.connect(self.requested)
        self.actions_of_rows.undo_requested.connect(self.undo_requested)
        self.view.addActions(self.actions_of_rows.all)
        self.view.selected.connect(self._on_selected)
        self.view.customContextMenuRequested.connect(self._show_menu)
        self._takes = plain_label(wraps=True)
        self._takes.setAccessibleName("What the context takes")
        self._bar = ShareBar()
        self._beside = _muted()
        self._words = _muted()
        self._progress = SummaryProgressBar()
        self._progress.stopped.connect(self.summary_stopped)
        self._buttons = QWidget()
        self._button_of = {action: _button(action) for action in self.actions_of_rows.all}
        self._cost = _muted()
        self._card = SummaryCard()
        self._rebuild = RereadButton("Rebuild exactly", _REBUILD_TIP)
        self._rebuild.requested.connect(self.rebuild_requested)
        self._rebuild.stopped.connect(self.rebuild_stopped)
        self._lay_out()
        self._refresh()

    def show_report(self, report: LedgerReport, *, is_other_held: bool = False) -> None:
        """Show the ledger of the open conversation; `is_other_held` where the model read other text last."""
        is_new = report.entries != self._report.entries
        self._report = report
        self._words.setText(_OTHER if is_other_held and report.entries else _EMPTY)
        self._words.setVisible(is_other_held or not report.entries)
        if is_new:
            self.view.set_entries(report.entries)
        self._refresh()

    def show_hindrances(self, hindrances: Hindrances) -> None:
        """Take why something cannot be done now."""
        self._hindrances = hindrances
        self._on_selected()

    def show_cost(self, keys: tuple[str, ...], sentence: str) -> None:
        """Tell what restoring some rows costs, if they are still selected."""
        if keys == self._priced_keys:
            _show_text(self._cost, sentence)

    def show_progress(self, progress: SummaryProgress | None) -> None:
        """Show how far a summary is, None while none is written."""
        self._progress.show_progress(progress)

    def set_reread(self, reread: Reread) -> None:
        """Show whether the context can be read again now, and how far that is."""
        self._rebuild.set_reread(reread)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: D102
        super().showEvent(event)
        self._keep_room_for_unpin()
        self.shown.emit()

    def _keep_room_for_unpin(self) -> None:
        """Let the buttons beside the one that pins stay where they are when it unpins."""
        button = self._button_of[self.actions_of_rows.pin]
        button.ensurePolished()
        room = button.fontMetrics().horizontalAdvance(LedgerAction.UNPIN.value)
        text = button.fontMetrics().horizontalAdvance(button.text())
        button.setMinimumWidth(button.sizeHint().width() + max(0, room - text))

    def _lay_out(self) -> None:
        flow = FlowLayout(self._buttons, spacing=4)
        for button in self._button_of.values():
            flow.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self._takes, self._bar, self._beside, self._words, self._progress, self._buttons):
            column.addWidget(widget)
        column.addWidget(self.view, 1)
        for below in (self._cost, self._card, self._rebuild):  # above it they would push the buttons away
            column.addWidget(below)
        column.addStretch(0)  # takes what the list leaves while it is hidden

    def _refresh(self) -> None:
        report = self._report
        self._takes.setText(takes_text(report))
        self._takes.setVisible(bool(report.entries))
        self._bar.show_report(report)
        self._bar.setVisible(bool(report.entries) and report.limit_tokens is not None)
        _show_text(self._beside, beside_text(report))
        self._beside.setToolTip(beside_tip(report))
        self.view.setVisible(bool(report.entries))
        self._buttons.setVisible(bool(report.entries))
        self._rebuild.show_tokens(report.tokens if report.nbytes is not None else None)
        self._on_selected()

    def _on_selected(self) -> None:
        chosen = self.view.chosen
        self.actions_of_rows.follow(chosen, self._hindrances)
        self._card.show_summary(chosen[0].summary if len(chosen) == 1 else None)
        restorable = doable(LedgerAction.RESTORE, chosen)
        priced = tuple((entry.key, entry.is_on_disk) for entry in restorable)
        if priced != self._priced:  # a row that left the disk costs something else than before
            self._priced = priced
            self._cost.hide()
            if priced:
                self.cost_wanted.emit(self._priced_keys)

    @property
    def _priced_keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self._priced)

    def _show_menu(self, place: QPoint) -> None:
        if not self.view.chosen:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setToolTipsVisible(True)
        menu.addActions(self.actions_of_rows.all)
        menu.popup(self.view.viewport().mapToGlobal(place))


def _show_text(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


def _muted() -> QLabel:
    label = plain_label(wraps=True)
    label.setProperty("kind", "muted")
    label.hide()
    return label


def _button(action: QAction) -> QToolButton:
    button = QToolButton()
    button.setProperty("kind", "small")
    button.setDefaultAction(action)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return button
