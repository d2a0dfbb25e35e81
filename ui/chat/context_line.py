"""The line below messages that the model no longer reads, or of which it reads a summary."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ledger.left_out import LeftOutRun
from ui.inspector.context.summary_card import SummaryCard
from ui.plain_text import plain_label


class ContextLine(QWidget):
    """Says which messages above it the model no longer reads itself; opens to the summary that it reads.

    Signals:
        ledger_requested: the key of what is to be shown in the Context panel.
    """

    ledger_requested = Signal(str)

    def __init__(self, run: LeftOutRun, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._run = run
        self._words = plain_label(wraps=True)
        self._words.setProperty("kind", "muted")
        self._summary = _link("Show summary", "What the model reads in place of these messages")
        self._summary.setCheckable(True)
        self._summary.toggled.connect(self._on_toggled)
        self._ledger = _link("Open Context", "Shows them in the Context panel, where they can be restored")
        self._ledger.clicked.connect(lambda: self.ledger_requested.emit(self._run.key))
        self._card = SummaryCard()
        line = QFrame()
        line.setProperty("kind", "line")
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self._words, 1)
        for button in (self._summary, self._ledger):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(6)
        column.addWidget(line)
        column.addLayout(row)
        column.addWidget(self._card)
        self.show_run(run)

    @property
    def run(self) -> LeftOutRun:
        """What is shown."""
        return self._run

    @property
    def focus_stops(self) -> list[QWidget]:
        """What takes the keyboard focus."""
        return [self._summary, self._ledger] if self._run.summary is not None else [self._ledger]

    def show_run(self, run: LeftOutRun) -> None:
        """Say which messages above are left out, and what is read in their place."""
        self._run = run
        is_one = run.num_messages == 1
        which = "message above" if is_one else f"{run.num_messages:,} messages above"
        if run.summary is not None:
            self._words.setText(f"The model reads a summary of the {which}.")
        else:
            self._words.setText(
                f"The model no longer reads the {which}. {'It is' if is_one else 'They are'} kept."
            )
        self._summary.setVisible(run.summary is not None)
        self._show_summary()

    def _on_toggled(self) -> None:
        self._summary.setText("Hide summary" if self._summary.isChecked() else "Show summary")
        self._show_summary()

    def _show_summary(self) -> None:
        self._card.show_summary(self._run.summary if self._summary.isChecked() else None)


def _link(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("kind", "link")
    button.setToolTip(tip)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return button
