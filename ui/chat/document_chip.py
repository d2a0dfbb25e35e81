"""A document that was sent, beside its message."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from app.documents.ways import DocumentWay
from app.ledger.context import SpanState
from app.store.records import Attachment
from ui.chat.attachments import ShownWays, size_text
from ui.chat.buttons import IconButton
from ui.chat.document_ways import way_menu
from ui.chat.elided_label import ElidedLabel
from ui.plain_text import plain_tip
from ui.theme import Theme

_MAX_TITLE_WIDTH = 330
_ICON_SIZE = 20


class SentDocument(QFrame):
    """A document that went with a message; its menu shows its text and changes the way it is read.

    Signals:
        way_chosen: read it in another way from now on; its attachment's id and the `DocumentWay`.
        text_wanted: show its extracted text; its attachment's id.
    """

    way_chosen = Signal(int, object)
    text_wanted = Signal(int)

    def __init__(self, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "row")
        self.setToolTip(plain_tip(attachment.source))
        self._attachment = attachment
        self._state = SpanState.IN_CONTEXT
        self._ways = ShownWays()
        title = ElidedLabel(attachment.title, _MAX_TITLE_WIDTH)
        self._detail = ElidedLabel("", _MAX_TITLE_WIDTH)
        self._detail.setProperty("kind", "faint")
        self._icon = QLabel()
        self._more = IconButton("more", f"View {attachment.title}, or change how it is read", self)
        self._more.clicked.connect(self._open_menu)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(title)
        words.addWidget(self._detail)
        row = QHBoxLayout(self)
        row.setContentsMargins(11, 7, 6, 7)
        row.setSpacing(9)
        row.addWidget(self._icon)
        row.addLayout(words)
        row.addWidget(self._more)
        self._show()
        self.restyle()

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab comes to."""
        return [self._more]

    def show_state(self, state: SpanState) -> None:
        """Say beside its size where the model does not read the document itself."""
        self._state = state
        self._show()

    def show_ways(self, ways: ShownWays) -> None:
        """Say how the document was read for its message; the menu marks how it is read for the next one."""
        self._ways = ways
        self._show()

    def _show(self) -> None:
        words = [size_text(self._attachment)]
        if self._state is not SpanState.IN_CONTEXT:
            words.append(self._state.value)
        elif self._ways.words:
            words.append(self._ways.words)
        detail = " · ".join(words)
        self._detail.setText(detail)
        self.setAccessibleName(f"Document: {self._attachment.title}, {detail}")

    def menu(self) -> QMenu:
        """Return the menu: the text, and the ways to read it."""
        menu = way_menu(self._ways.chosen, None, self)
        first = menu.actions()[0]
        view = QAction("View text", menu)
        menu.insertAction(first, view)
        menu.insertSeparator(first)
        menu.triggered.connect(self._take)
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def _open_menu(self) -> None:
        self.menu().popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def _take(self, action: QAction) -> None:
        if isinstance(action.data(), DocumentWay):
            self.way_chosen.emit(self._attachment.id, action.data())
        else:
            self.text_wanted.emit(self._attachment.id)

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        self._icon.setPixmap(Theme.current().pixmap("file-text", _ICON_SIZE))
        self._more.restyle()
