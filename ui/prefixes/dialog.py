"""The dialog "Prefix cache": what is kept on disk, how much it may be, and what is done with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.store.prefixes.records import PrefixFigures, PrefixSettings
from engine.prefixes.records import SaveMode
from ui.chat.flow_layout import FlowLayout
from ui.plain_text import plain_label
from ui.prefixes.problem import ProblemLine
from ui.prefixes.questions import may_clear, may_clear_what_is_of_no_use
from ui.prefixes.rows import PrefixRow
from ui.prefixes.settings_editor import PrefixSettingsEditor
from ui.prefixes.table import PrefixTable
from ui.prefixes.usage import PrefixUsage

_WHAT = (
    "What a model has read is kept on disk, so that it is not read again: after a restart, or in another "
    "conversation with the same document. Deleting it costs time, never words."
)
_READING = "Looking at what is on disk…"
_EMPTY = "Nothing is kept yet. What a model reads is saved a few seconds after the reply."
_EMPTY_NEVER = "Nothing is kept, as you chose above."
_MARGIN = 24
_LEAST_TABLE_HEIGHT = 140
_LEAST_SIZE, _SIZE = QSize(440, 380), QSize(760, 680)


class PrefixDialog(QDialog):
    """Shows what is kept on disk by conversation, and asks for what the user wants done.

    Signals:
        settings_changed: the `PrefixSettings` that the user set.
        open_requested: id of a conversation to open.
        pin_requested: `PrefixRow`s of conversations, and whether they are to be pinned.
        deletion_requested: the `PrefixRow`s that are to be deleted.
        clear_requested: all is to be deleted.
    """

    settings_changed = Signal(object)
    open_requested = Signal(int)
    pin_requested = Signal(object, bool)
    deletion_requested = Signal(object)
    clear_requested = Signal()

    def __init__(self, settings: PrefixSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Prefix cache")
        self._mode = settings.mode
        self._nbytes = self._num_pages = 0
        self._is_read = False
        self.problem = ProblemLine()
        self.editor = PrefixSettingsEditor()
        self.editor.set_settings(settings)
        self.editor.settings_changed.connect(self._on_settings)
        self.usage = PrefixUsage()
        self.table = PrefixTable()
        self.table.setMinimumHeight(_LEAST_TABLE_HEIGHT)
        self.table.selected.connect(self._refresh)
        self.table.opened.connect(self._open_chosen)
        self.table.deletion_asked.connect(self._delete)
        self._empty = plain_label(_READING, wraps=True)
        self._empty.setProperty("kind", "muted")
        self._empty.setMinimumHeight(_LEAST_TABLE_HEIGHT)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._make_buttons()
        self._lay_out()
        self._refresh()

    def show_figures(self, figures: PrefixFigures) -> None:
        """Show the figures of a moment, and what is wrong."""
        self._nbytes, self._num_pages = figures.nbytes, figures.num_pages
        self.usage.show_figures(figures)
        self.editor.show_figures(figures)
        self.problem.say(figures.problem or "")
        self._refresh()

    def show_rows(self, rows: Sequence[PrefixRow]) -> None:
        """Show what is kept."""
        self._is_read = True
        self.table.set_rows(rows)

    def _make_buttons(self) -> None:
        self._close = _button("Close", self.reject)
        self.open_button = _button("Open", self._open_chosen)
        self.open_button.setToolTip("Closes this and shows the conversation")
        self.open_button.setAccessibleName("Open the conversation")
        self.pin_button = _button("Unpin", self._pin)
        self.pin_button.setMinimumWidth(self.pin_button.sizeHint().width())  # so that none beside it moves
        self.pin_button.setToolTip("When room is needed, what is pinned goes last")
        self.delete_button = _button("Delete", self._delete)
        self.delete_button.setToolTip(
            "Deletes what is kept on disk until the conversation goes on; the conversation itself stays"
        )
        self.clear_button = _button("Clear all…", self._clear)
        self.clear_button.setProperty("kind", "danger")

    def _lay_out(self) -> None:
        title = QLabel("Prefix cache")
        title.setProperty("kind", "title")
        head = QHBoxLayout()
        head.setContentsMargins(_MARGIN, 20, _MARGIN, 0)
        head.addWidget(title, 1)
        head.addWidget(self._close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._contents(), 1)
        column.addWidget(self._foot())
        self.setMinimumSize(_LEAST_SIZE)
        self.resize(_SIZE)

    def _contents(self) -> QScrollArea:
        """Return all between title and buttons; it scrolls where the dialog is small."""
        what, by = plain_label(_WHAT, wraps=True), QLabel("By conversation")
        what.setProperty("kind", "muted")
        by.setProperty("kind", "section")
        contents = QWidget()
        contents.setObjectName("scrollContents")
        column = QVBoxLayout(contents)
        column.setContentsMargins(_MARGIN, 4, _MARGIN, 12)
        column.setSpacing(12)
        for widget in (what, self.problem, self.editor, _line(), self.usage, _line(), by):
            column.addWidget(widget)
        column.addWidget(self.table, 1)
        column.addWidget(self._empty, 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(contents)
        return area

    def _foot(self) -> QFrame:
        foot = QFrame()
        foot.setObjectName("sidePane")
        chosen = QWidget()
        flow = FlowLayout(chosen, spacing=8)
        for button in (self.open_button, self.pin_button, self.delete_button):
            flow.addWidget(button)
        row = QHBoxLayout(foot)
        row.setContentsMargins(_MARGIN, 14, _MARGIN, 16)
        row.addWidget(chosen, 1)
        row.addWidget(self.clear_button, 0, Qt.AlignmentFlag.AlignTop)
        return foot

    def _refresh(self) -> None:
        has_rows, chosen = bool(self.table.rows), self.table.chosen
        conversations = [row for row in chosen if row.is_conversation]
        self.table.setVisible(has_rows)
        self._empty.setVisible(not has_rows)
        if self._is_read:
            self._empty.setText(_EMPTY_NEVER if self._mode is SaveMode.NEVER else _EMPTY)
        self.open_button.setEnabled(len(chosen) == 1 and len(conversations) == 1)
        self.pin_button.setEnabled(bool(conversations))
        is_unpinning = bool(conversations) and all(row.is_pinned for row in conversations)
        self.pin_button.setText("Unpin" if is_unpinning else "Pin")
        self.delete_button.setEnabled(bool(chosen))
        self.clear_button.setEnabled(has_rows or self._num_pages > 0)

    def _on_settings(self, settings: PrefixSettings) -> None:
        was, self._mode = self._mode, settings.mode
        self.settings_changed.emit(settings)
        self._refresh()
        is_of_no_use = settings.mode is SaveMode.NEVER and was is not SaveMode.NEVER and self._num_pages > 0
        if is_of_no_use and may_clear_what_is_of_no_use(self, self._nbytes):
            self.clear_requested.emit()

    def _open_chosen(self) -> None:
        chosen = self.table.chosen
        if len(chosen) == 1 and chosen[0].is_conversation:
            self.open_requested.emit(chosen[0].conversation_ids[0])

    def _pin(self) -> None:
        rows = [row for row in self.table.chosen if row.is_conversation]
        self.pin_requested.emit(rows, not all(row.is_pinned for row in rows))

    def _delete(self) -> None:
        rows = self.table.chosen
        if rows:
            self.table.setFocus()  # else Qt moves on from the button, which is of no use then
            self.deletion_requested.emit(rows)

    def _clear(self) -> None:
        if may_clear(self, self._nbytes):
            self._close.setFocus()
            self.clear_requested.emit()


def _button(text: str, press: Callable[[], object]) -> QPushButton:
    button = QPushButton(text)
    button.setAutoDefault(False)
    button.clicked.connect(lambda: press())
    return button


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("kind", "line")
    return line
