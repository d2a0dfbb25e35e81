"""A message of the user: its documents, and its text in a bubble or in the editor that changes it."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent, QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ledger.context import SpanState
from app.store.records import Message
from ui.chat.attachments import ShownWays
from ui.chat.buttons import IconButton
from ui.chat.document_chip import SentDocument
from ui.chat.flow_layout import FlowLayout
from ui.chat.message_editor import MessageEditor
from ui.chat.message_widget import MessageWidget
from ui.chat.text_view import TextView
from ui.markdown.style import MarkdownStyle
from ui.theme import Theme

_SHOWN_CHARS = 2_400
_SHOWN_LINES = 24
_LINK_PADDING = 5


class UserMessage(MessageWidget):
    """The user's message, at the trailing side of the column.

    Signals:
        edit_requested: the message was changed and is to be sent again: message id, new text.
        way_chosen: read a document in another way from now on: its attachment's id and the `DocumentWay`.
        text_wanted: show the extracted text of a document; its attachment's id.
    """

    edit_requested = Signal(int, str)
    way_chosen = Signal(int, object)
    text_wanted = Signal(int)

    def __init__(self, message: Message, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(message, style, parent)
        self.setAccessibleName("Your message")
        self._bubble = Bubble(message.text, style, self)
        self._bubble.setVisible(bool(message.text))
        self._bubble.view.link_activated.connect(self.link_activated)
        self._bubble.view.drag_moved.connect(self.drag_moved)
        self._editor: MessageEditor | None = None
        self._documents = {each.id: SentDocument(each) for each in message.attachments}
        for document in self._documents.values():
            document.way_chosen.connect(self.way_chosen)
            document.text_wanted.connect(self.text_wanted)
        self._edit = IconButton("edit", "Edit message", quiet=True)
        self._edit.clicked.connect(lambda: self.start_editing())
        self.action_bar.add(self._edit)
        self._footer = QWidget(self)
        footer = QHBoxLayout(self._footer)
        footer.setContentsMargins(0, 0, 0, 0)
        footer.addStretch()
        footer.addWidget(self.action_bar)
        footer.addWidget(self.versions)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        if self._documents:
            self._column.addWidget(self._document_row())
        self._column.addWidget(self._bubble)
        self._column.addWidget(self._footer)
        self.set_actions_enabled(True)

    @property
    def focus_stops(self) -> list[QWidget]:  # noqa: D102
        editor = self._editor.focus_stops if self._editor is not None else []
        documents = [stop for document in self._documents.values() for stop in document.focus_stops]
        return [
            *documents,
            *editor,
            *self._bubble.focus_stops,
            *self.action_bar.focus_stops,
            *self.versions.focus_stops,
        ]

    def set_actions_enabled(self, is_enabled: bool) -> None:  # noqa: D102
        super().set_actions_enabled(is_enabled)
        self._edit.setEnabled(is_enabled)
        if self._editor is not None:
            self._editor.set_sending_enabled(is_enabled)

    def apply_style(self, style: MarkdownStyle) -> None:  # noqa: D102
        super().apply_style(style)
        self._bubble.apply_style(style)
        for document in self._documents.values():
            document.restyle()

    def show_documents(self, states: Mapping[int, SpanState]) -> None:  # noqa: D102
        for document_id, document in self._documents.items():
            document.show_state(states.get(document_id, SpanState.IN_CONTEXT))

    def show_ways(self, ways: Mapping[int, ShownWays]) -> None:
        """Say of its documents, by their attachments' ids, how they are read."""
        for document_id, document in self._documents.items():
            document.show_ways(ways.get(document_id, ShownWays()))

    @property
    def unsent_edit(self) -> str | None:
        """The text of an open editor, where it is not the message's own."""
        text = self._editor.edit.toPlainText() if self._editor is not None else self.message.text
        return text if text != self.message.text else None

    def start_editing(self, text: str | None = None) -> None:
        """Put an editor in the place of the bubble; with `text` it goes on and leaves the focus alone."""
        if self._editor is not None:
            return
        allow_empty = bool(self.message.attachments)
        shown = self.message.text if text is None else text
        self._editor = MessageEditor(shown, self.text_style, allow_empty=allow_empty, parent=self)
        self._editor.set_sending_enabled(self.are_actions_enabled)
        self._editor.saved.connect(self._send_edit)
        self._editor.cancelled.connect(self.stop_editing)
        self._column.insertWidget(self._column.indexOf(self._bubble), self._editor)
        self._editor.show()
        self._bubble.hide()
        self._footer.hide()
        self.focus_stops_changed.emit(self)
        if text is None:
            self._editor.edit.setFocus()

    def stop_editing(self) -> None:
        """Put the bubble back."""
        if self._editor is None:
            return
        self._editor.hide()
        self._editor.deleteLater()
        self._editor = None
        self._bubble.setVisible(bool(self.message.text))
        self._footer.show()
        self._edit.setFocus()

    def _send_edit(self, text: str) -> None:
        # The editor stays: an accepted change shows the conversation anew, a refused one must not be lost.
        self.edit_requested.emit(self.message.id, text)

    def _document_row(self) -> QWidget:
        row = QWidget(self)
        layout = FlowLayout(row, spacing=8, align_end=True)
        for document in self._documents.values():
            layout.addWidget(document)
        return row


class Bubble(QWidget):
    """Plain text on a soft ground, as wide as it needs to be; long text shows its beginning first."""

    def __init__(self, text: str, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._beginning = _beginning(text)
        self._sizes: dict[int, tuple[int, int]] = {}
        self.view = TextView("Your message text", self, tints_focus=False)
        self.view.focus_changed.connect(self.update)
        self._more: QPushButton | None = None
        if self._beginning != text:
            self._more = QPushButton(f"Show all {len(text):,} characters", self)
            self._more.setProperty("kind", "link")
            self._more.setCursor(Qt.CursorShape.PointingHandCursor)
            self._more.clicked.connect(self._show_all)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.apply_style(style)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The text and, while there is one, the button that shows all of it."""
        return [self.view] if self._more is None else [self.view, self._more]

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts from `style`."""
        self._pad_x = round(style.em * 0.95)
        self._pad_top, self._pad_bottom = round(style.em * 0.72), round(style.em * 0.46)
        self.view.apply_style(style)
        self._show(self._text if self._more is None else self._beginning)

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self.heightForWidth(self.width()))

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        _, height = self._text_size(width)
        return height + self._more_height() + self._pad_top + self._pad_bottom

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        width, height = self._text_size(self.width())
        left = (
            0
            if self.layoutDirection() == Qt.LayoutDirection.RightToLeft
            else self.width() - self._outer(width)
        )
        self.view.setGeometry(left + self._pad_x, self._pad_top, width, height)
        if self._more is not None:
            hint = self._more.sizeHint()
            self._more.move(left + self._pad_x - _LINK_PADDING, self._pad_top + height + 4)
            self._more.resize(hint)
        super().resizeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = Theme.current().palette
        outline = QPen(palette.color("accent"), 1)
        painter.setPen(outline if self.view.has_keyboard_focus else Qt.PenStyle.NoPen)
        painter.setBrush(palette.color("bubble"))
        text = self.view.geometry()
        ground = QRect(text.left() - self._pad_x, 0, self._outer(text.width()), self.height())
        painter.drawRoundedRect(QRectF(ground).adjusted(0.5, 0.5, -0.5, -0.5), 16, 16)

    def _outer(self, text_width: int) -> int:
        return text_width + 2 * self._pad_x

    def _more_height(self) -> int:
        return 0 if self._more is None else self._more.sizeHint().height() + 4

    def _text_size(self, width: int) -> tuple[int, int]:
        if width not in self._sizes:
            available = max(40, round(width * 0.86) - 2 * self._pad_x)
            least = 0 if self._more is None else self._more.sizeHint().width()
            wanted = min(available, max(least, self.view.ideal_width(available)))
            self._sizes[width] = (wanted, self.view.heightForWidth(wanted))
        return self._sizes[width]

    def _show(self, text: str) -> None:
        self._sizes = {}
        document = self.view.document()
        document.setPlainText(text)
        line_height = QTextBlockFormat()
        line_height.setLineHeight(135, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor = QTextCursor(document)
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(line_height)
        self.updateGeometry()
        self.update()

    def _show_all(self) -> None:
        assert self._more is not None
        self._more.hide()
        self._more.deleteLater()
        self._more = None
        self.view.setFocus()
        self._show(self._text)


def _beginning(text: str) -> str:
    """Return what is shown of a long message until all of it is asked for."""
    lines = text.split("\n", _SHOWN_LINES)
    shown = "\n".join(lines[:_SHOWN_LINES])[:_SHOWN_CHARS]
    return text if len(text) <= len(shown) * 1.2 else shown.rstrip() + " …"
