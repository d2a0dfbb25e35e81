"""The documents of the conversation that the next question is read against, above the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QMenu, QSizePolicy, QToolButton, QWidget

from app.document_cost import DocumentCost
from app.documents.ways import DocumentWay
from ui.chat.attachments import WAY_WORDS
from ui.chat.document_ways import way_menu
from ui.chat.flow_layout import FlowLayout
from ui.plain_text import plain_tip

_MAX_TITLE_CHARS = 40
_MOST_SHOWN = 4
"""The others, as of a folder, are only counted: each can be changed beside its message."""


@dataclass(frozen=True)
class AskedDocument:
    """A document that was sent before and is not read whole.

    Attributes:
        attachment_id: of its attachment.
        title: what it is called.
        way: how it is read for the next question.
        cost: what that costs, None while that is not known.
    """

    attachment_id: int
    title: str
    way: DocumentWay
    cost: DocumentCost | None

    @property
    def words(self) -> str:
        """Its title, and how it is read for the next question."""
        short = (
            self.title if len(self.title) <= _MAX_TITLE_CHARS else f"{self.title[: _MAX_TITLE_CHARS - 1]}…"
        )
        if self.cost is None:
            return f"{short}: {WAY_WORDS[self.way]}"
        cost = self.cost.of(self.way)
        return f"{short}: {cost.words if cost.num_pieces else f'{WAY_WORDS[self.way]}, {cost.words}'}"


class AskedDocuments(QWidget):
    """A line of buttons, one a document, with a menu to change its way; hidden where there is none.

    Signals:
        way_chosen: read a document in another way; its attachment's id and the `DocumentWay`.
        text_wanted: show the extracted text of a document; its attachment's id.
    """

    way_chosen = Signal(int, object)
    text_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._documents: tuple[AskedDocument, ...] = ()
        self._buttons: list[QToolButton] = []
        self._flow = FlowLayout(self, spacing=6)
        self._label = QLabel()
        self._label.setProperty("kind", "faint")
        self._label.setMinimumHeight(self.fontMetrics().height() + 8)
        self._flow.addWidget(self._label)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab comes to, in order."""
        return list(self._buttons)

    def show_documents(self, documents: Sequence[AskedDocument]) -> None:
        """Show these documents; buttons that stay keep the focus."""
        if tuple(documents) == self._documents:
            return
        self._documents = tuple(documents)
        num_more = max(0, len(documents) - _MOST_SHOWN)
        self._label.setText(f"With your question ({num_more:,} more):" if num_more else "With your question:")
        self._label.setToolTip("The others can be changed beside their messages." if num_more else "")
        documents = documents[:_MOST_SHOWN]
        while len(self._buttons) < len(documents):
            self._buttons.append(self._make(len(self._buttons)))
        while len(self._buttons) > len(documents):
            button = self._buttons.pop()
            self._flow.removeWidget(button)
            button.hide()
            button.deleteLater()
        for button, document in zip(self._buttons, documents, strict=True):
            button.setText(f"{document.words} ▾")
            button.setAccessibleName(f"{document.words}. Change how it is read")
            button.setToolTip(plain_tip(document.title))
        self.setVisible(bool(documents))
        self._flow.invalidate()
        self.updateGeometry()

    def _make(self, index: int) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("kind", "small")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(lambda: self._open(index))
        self._flow.addWidget(button)
        button.show()
        return button

    def menu(self, index: int) -> QMenu:
        """Return the menu of one document: the ways to read it, and its text."""
        document = self._documents[index]
        menu = way_menu(document.way, document.cost, self)
        menu.addSeparator()
        menu.addAction(QAction("View text", menu))
        menu.triggered.connect(lambda action: self._take(document, action))
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def _open(self, index: int) -> None:
        button = self._buttons[index]
        self.menu(index).popup(button.mapToGlobal(button.rect().topLeft()))

    def _take(self, document: AskedDocument, action: QAction) -> None:
        if isinstance(action.data(), DocumentWay):
            self.way_chosen.emit(document.attachment_id, action.data())
        else:
            self.text_wanted.emit(document.attachment_id)
