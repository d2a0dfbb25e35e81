"""The history of the memory as a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QPushButton, QVBoxLayout, QWidget

from app.memory_csv import write_memory_csv
from engine.errors import OctavoError
from ui.memory_history import MemoryHistory
from ui.plain_text import plain_label


class CsvExport(QWidget):
    """A button that asks for a file and writes the samples to it.

    Signals:
        failed: the `OctavoError` that kept them from it.
        written: the file is there.
    """

    failed = Signal(object)
    written = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._history = MemoryHistory()
        self._button = QPushButton("Export as CSV…")
        self._button.setProperty("kind", "link")
        self._button.setToolTip("Writes all samples of memory since the start to a table")
        self._button.clicked.connect(self._ask)
        self._button.setEnabled(False)
        self._said = plain_label(wraps=True)
        self._said.setProperty("kind", "success")
        self._said.setAccessibleName("Outcome of the export")
        self._said.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._said)

    @property
    def said(self) -> str:
        """What is said of the last file, empty when it could not be written."""
        return self._said.text()

    def set_history(self, history: MemoryHistory) -> None:
        """Write what `history` holds when the button is pressed."""
        self._history = history
        self.refresh()

    def refresh(self) -> None:
        """Offer the file once there is something to write."""
        self._button.setEnabled(len(self._history) > 0)

    def write(self, path: Path) -> None:
        """Write all samples to `path`; what keeps them from it is signalled."""
        samples = self._history.samples()
        try:
            write_memory_csv(path, samples)
        except OctavoError as error:
            self._said.setText("")
            self._said.hide()
            self.failed.emit(error)
            return
        self._said.setText(f"{len(samples):,} samples are in {path.name}.")
        self._said.show()
        self.written.emit()

    def _ask(self) -> None:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        proposed = Path(folder) / f"octavo-memory-{datetime.now():%Y-%m-%d-%H%M}.csv"
        name, _ = QFileDialog.getSaveFileName(self, "Export memory", str(proposed), "CSV tables (*.csv)")
        if name:
            path = Path(name)
            self.write(path if path.suffix else path.with_suffix(".csv"))
