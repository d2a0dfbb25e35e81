"""What the centre shows before there is anything to read."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.models.catalogue import catalogue
from app.models.source import STARTER_ID
from engine.wording import format_nbytes
from ui.models.download_bar import DownloadBar
from ui.models.downloads import Downloads
from ui.theme import Theme, app_icon

_LOGO_MIN_HEIGHT = 360
"""In less than this the words need all the room."""


class Welcome(QWidget):
    """A card that gets the first model; with one, a line that invites to write.

    Signals:
        choose_requested: the user wants to choose a model.
    """

    choose_requested = Signal()

    def __init__(self, downloads: Downloads, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        starter = next(entry for entry in catalogue() if entry.id == STARTER_ID)
        self._logo = QLabel()
        self._logo.setPixmap(app_icon().pixmap(64, 64))
        self._title = QLabel()
        self._title.setProperty("kind", "title")
        self._text = QLabel()
        self._text.setProperty("kind", "muted")
        for label in (self._logo, self._title, self._text):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._text.setWordWrap(True)
        size = format_nbytes(starter.nbytes)
        self._get = DownloadBar(
            downloads, STARTER_ID, starter.title, f"Get the starter model ({size}, {starter.licence})"
        )
        self._get.set_primary()
        self._choose = QPushButton("Choose a model")
        self._choose.clicked.connect(self.choose_requested)
        self._lay_out()
        self.set_state(has_models=False, has_model=False, is_loading=False)
        Theme.current().changed.connect(self._restyle)

    def set_state(self, *, has_models: bool, has_model: bool, is_loading: bool) -> None:
        """Say what to do next: get a model, choose one, wait, or write."""
        self._get.setVisible(not has_models)
        self._choose.setVisible(not has_model and not is_loading)
        self._choose.setText("Choose a model" if has_models else "Choose another")
        self._choose.setProperty("kind", "primary" if has_models else "")
        self._restyle()
        if has_model:
            self._title.setText("What would you like to know?")
            self._text.setText("Write below, or drop a document into the window and ask about it.")
        elif is_loading:
            self._title.setText("Loading the model")
            self._text.setText("You can already write, or drop a document into the window.")
        elif has_models:
            self._title.setText("Choose a model to begin")
            self._text.setText("Models run on this computer. What you write stays here.")
        else:
            self._title.setText("Welcome to Octavo")
            self._text.setText(
                "Chat with language models on your own computer. What you write stays here. "
                "Begin with a small model to try it out; larger ones answer better."
            )

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        self._logo.setVisible(self.height() >= _LOGO_MIN_HEIGHT)

    def _lay_out(self) -> None:
        card = QFrame()
        card.setMaximumWidth(640)
        inner = QVBoxLayout(card)
        inner.setContentsMargins(16, 8, 16, 8)
        inner.setSpacing(10)
        for label in (self._logo, self._title, self._text):
            inner.addWidget(label)
        for button in (self._get, self._choose):
            inner.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(card, 20)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addStretch(2)
        column.addLayout(row)
        column.addStretch(3)

    def _restyle(self) -> None:
        self._choose.style().unpolish(self._choose)
        self._choose.style().polish(self._choose)
