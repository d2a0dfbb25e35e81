"""How far a summary is that is being written."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QProgressBar, QPushButton, QSizePolicy, QWidget

from app.ledger.progress import SummaryProgress
from ui.plain_text import plain_label

_STEPS = 1000


class SummaryProgressBar(QWidget):
    """Says what is summarized, and offers to stop it; hidden while nothing is.

    Signals:
        stopped: it is to stop.
    """

    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = plain_label(wraps=True)
        self._words.setProperty("kind", "muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setRange(0, _STEPS)
        stop = QPushButton("Stop")
        stop.setAccessibleName("Stop the summary")
        stop.setToolTip("Stops the summary, and the reply that waits for it")
        stop.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        stop.clicked.connect(self.stopped)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(0, 1)
        grid.addWidget(self._words, 0, 0)
        grid.addWidget(self._bar, 1, 0)
        grid.addWidget(stop, 0, 1, 2, 1)
        self.show_progress(None)

    def show_progress(self, progress: SummaryProgress | None) -> None:
        """Show how far it is, None while none is written."""
        if progress is not None:
            self._words.setText(progress.words)
            self._bar.setValue(round(progress.share * _STEPS))
            self._bar.setAccessibleName(progress.words)
        self.setVisible(progress is not None)
