"""One download in a row or card: a button, then a bar with words and a way to stop it."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.models.downloads import Downloads


class DownloadBar(QWidget):
    """Gets one model: *Get* or *Resume*, and while it runs how far it has come, with *Stop*."""

    def __init__(
        self, downloads: Downloads, source: str, title: str, words: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._downloads = downloads
        self._source = source
        self._words = words
        self._get = QPushButton(words)
        self._get.setAccessibleName(f"{words}: {title}" if title not in words else words)
        self._get.clicked.connect(self.start)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(f"Download of {title}")
        self._text = QLabel()
        self._text.setProperty("kind", "muted")
        self._stop = QPushButton("Stop")
        self._stop.setAccessibleName(f"Stop the download of {title}")
        self._stop.clicked.connect(lambda: downloads.stop(source))
        for button in (self._get, self._stop):
            button.setAutoDefault(False)  # else Enter in a dialog's text field would press it
        self._progress = QWidget()
        self._lay_out()
        downloads.changed.connect(self._on_changed)
        downloads.stopped.connect(self._on_changed)
        downloads.failed.connect(self._on_ended)
        downloads.finished.connect(self._on_ended)
        self._refresh()

    def set_primary(self) -> None:
        """Make the button the one to press first."""
        self._get.setProperty("kind", "primary")

    def start(self) -> None:
        """Start the download, or go on with it."""
        self._downloads.start(self._source)

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(4)
        words.addWidget(self._text)
        words.addWidget(self._bar)
        line = QHBoxLayout(self._progress)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(10)
        line.addLayout(words, 1)
        line.addWidget(self._stop)
        self._progress.setMinimumWidth(250)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._get)
        row.addWidget(self._progress)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def _refresh(self) -> None:
        status = self._downloads.status(self._source)
        had_focus = self._get.hasFocus() or self._stop.hasFocus()
        self._get.setVisible(status is None)
        self._progress.setVisible(status is not None)
        if had_focus:
            (self._get if status is None else self._stop).setFocus()
        if status is None:
            self._get.setText("Resume" if self._downloads.can_resume(self._source) else self._words)
        else:
            self._text.setText(status.text)
            fraction = status.fraction
            self._bar.setRange(0, 0 if fraction is None else 1000)
            self._bar.setValue(round((fraction or 0) * 1000))

    def _on_changed(self, source: str) -> None:
        if source == self._source:
            self._refresh()

    def _on_ended(self, source: str, _outcome: object) -> None:
        self._on_changed(source)
