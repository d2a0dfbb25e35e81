"""The text field in which messages are written."""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QTextOption,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from ui.chat.drop import paths_from_mime, refusal, refused_urls

_DOCUMENT_MARGIN = 2


class PromptEdit(QPlainTextEdit):
    """Plain text that grows with its lines up to `max_lines`, then scrolls.

    Enter is taken as the wish to send, Shift+Enter breaks the line; while an input method composes, Enter
    and Esc belong to it. Esc is the window's before it is the field's, unless the field `keeps_escape`. Files
    that are pasted are handed on; files that are dragged are left to the window.

    Signals:
        enter_pressed: send, as far as the user is concerned.
        escape_pressed: stop or cancel.
        edited: the user changed the text; `setPlainText` does not count.
        files_pasted: local files were pasted.
        long_text_pasted: a text of more than `max_pasted_chars` was pasted or dropped, and not taken in.
        paste_refused: what was pasted is no text and no local file; says so in a sentence.
        focus_changed: the keyboard focus came or went.
    """

    enter_pressed = Signal()
    escape_pressed = Signal()
    edited = Signal()
    files_pasted = Signal(object)
    long_text_pasted = Signal(str)
    paste_refused = Signal(str)
    focus_changed = Signal()

    def __init__(
        self,
        name: str,
        max_lines: int,
        parent: QWidget | None = None,
        *,
        max_pasted_chars: int | None = None,
        keeps_escape: bool = False,
    ) -> None:
        super().__init__(parent)
        self._max_lines = max_lines
        self._max_pasted_chars = max_pasted_chars
        self._keeps_escape = keeps_escape
        self._is_composing = False
        self._is_setting = False
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        document = self.document()
        document.setDocumentMargin(_DOCUMENT_MARGIN)
        option = QTextOption()
        option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(option)
        self.textChanged.connect(self._on_text_changed)
        self._fit_height()

    def set_text(self, text: str) -> None:
        """Replace the text without telling that the user did it; the cursor goes to the end."""
        self._is_setting = True
        self.setPlainText(text)
        self._is_setting = False
        self.moveCursor(self.textCursor().MoveOperation.End)

    def set_max_lines(self, max_lines: int) -> None:
        """Grow with the text up to so many lines from now on."""
        if max_lines != self._max_lines:
            self._max_lines = max_lines
            self._fit_height()

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self.height())

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(80, self._line_height())

    def canInsertFromMimeData(self, source: QMimeData) -> bool:  # noqa: D102
        return bool(source.hasText() or source.hasUrls() or source.hasImage())

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: D102
        paths: list[Path] = paths_from_mime(source)
        if paths:
            self.files_pasted.emit(paths)
        elif source.hasText():
            self._take_text(source.text())
        elif refused_urls(source) or source.hasImage():
            self.paste_refused.emit(refusal(source))

    def _take_text(self, text: str) -> None:
        if self._max_pasted_chars is not None and len(text) > self._max_pasted_chars:
            self.long_text_pasted.emit(text)
        else:
            self.insert_text(text)

    def insert_text(self, text: str) -> None:
        """Put a text where the cursor is, in place of what is selected."""
        self.textCursor().insertText(text)
        self.ensureCursorVisible()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:  # noqa: D102
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)
        self._fit_height()

    def event(self, event: QEvent) -> bool:  # noqa: D102
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            is_own = self._keeps_escape or self._is_composing
            if is_own and event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape and not self._is_composing:
            self.escape_pressed.emit()
        elif is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            if not self._is_composing and not event.isAutoRepeat():
                self.enter_pressed.emit()
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: D102
        if event.mimeData().hasUrls():
            event.ignore()
        else:
            super().dragEnterEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: D102
        if event.mimeData().hasUrls():
            event.ignore()
        else:
            super().dragMoveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: D102
        if event.mimeData().hasUrls():
            event.ignore()
            return
        super().dropEvent(event)
        if event.source() is None:  # moved, it would be taken out of the other program
            event.setDropAction(Qt.DropAction.CopyAction)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusOutEvent(event)
        self._is_composing = False
        self.focus_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit_height()

    def _on_text_changed(self) -> None:
        self._fit_height()
        if not self._is_setting:
            self.edited.emit()

    def _line_height(self) -> int:
        return self.fontMetrics().lineSpacing() + 2 * _DOCUMENT_MARGIN

    def _fit_height(self) -> None:
        limit = self.fontMetrics().lineSpacing() * self._max_lines
        height, block = 0.0, self.document().begin()
        while block.isValid() and height <= limit:
            height += self.blockBoundingRect(block).height()
            block = block.next()
        is_cut = height > limit
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_cut else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if self.verticalScrollBarPolicy() != policy:
            self.setVerticalScrollBarPolicy(policy)
        wanted = math.ceil(min(max(height, self.fontMetrics().lineSpacing()), limit)) + 2 * _DOCUMENT_MARGIN
        if wanted != self.height() or self.minimumHeight() != wanted:
            self.setFixedHeight(wanted)
