"""What was planned beside what is."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from engine.figures import EngineFigures
from engine.wording import format_nbytes
from ui.plain_text import plain_label

_NONE = "–"
_ROWS = ("Weights", "KV cache", "Together")
_COLUMNS = ("planned", "actual", "difference")


class PlanTable(QWidget):
    """Weights, KV cache of the conversation in hand, and both together: planned, actual, difference."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: dict[tuple[str, str], QLabel] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(5)
        grid.setColumnStretch(0, 1)
        for place, title in enumerate(("Planned", "Actual", "Diff."), start=1):
            label = plain_label(title)
            label.setProperty("kind", "faint")
            grid.addWidget(label, 0, place, Qt.AlignmentFlag.AlignRight)
        for line, row in enumerate(_ROWS, start=1):
            name = plain_label(row)
            name.setProperty("kind", "muted")
            grid.addWidget(name, line, 0)
            for place, column in enumerate(_COLUMNS, start=1):
                cell = self._cells[row, column] = plain_label(_NONE)
                cell.setAccessibleName(f"{row} {column}")
                grid.addWidget(cell, line, place, Qt.AlignmentFlag.AlignRight)

    def show_figures(self, figures: EngineFigures) -> None:
        """Show the plan and the bytes of a moment."""
        weights = (figures.planned_weights_nbytes, figures.weights_nbytes)
        kv = (figures.planned_kv_nbytes, figures.kv.total - figures.kv.idle)
        both = (weights[0] + kv[0], weights[1] + kv[1])
        for row, (planned, actual) in zip(_ROWS, (weights, kv, both), strict=True):
            self._set(row, "planned", format_nbytes(planned) if planned else _NONE)
            self._set(row, "actual", format_nbytes(actual) if actual else _NONE)
            self._set(row, "difference", _difference(planned, actual))

    def _set(self, row: str, column: str, text: str) -> None:
        cell = self._cells[row, column]
        if cell.text() != text:
            cell.setText(text)


def _difference(planned: int, actual: int) -> str:
    """Return by how much more or less is taken than planned, in per cent."""
    if not planned or not actual:
        return _NONE
    percent = (actual - planned) / planned * 100
    if abs(percent) < 0.05:
        return "0 %"
    digits = 1 if abs(percent) < 9.95 else 0
    return f"{'+' if percent > 0 else '−'}{abs(percent):.{digits}f} %"
