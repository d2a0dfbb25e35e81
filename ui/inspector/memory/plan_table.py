"""What was planned beside what is."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.figures import EngineFigures
from engine.wording import format_nbytes
from ui.inspector.memory.kept_picture import KeptPicture
from ui.theme import Theme

_NONE = "–"
_COLUMNS = ("Planned", "Actual", "Diff.")
_COLUMN_GAP, _ROW_GAP = 8, 5
_TIP = (
    "Planned is the most that these tokens take at the precision that is set. Actual is less while pages are "
    "still to come, and after the memory guard has lowered bits."
)


class PlanTable(KeptPicture):
    """Weights, KV cache of the conversation in hand, and both together: planned, actual, difference."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._figures = EngineFigures()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Memory as planned and as it is")
        self.setToolTip(_TIP)
        self._describe()

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """What is shown: the name, what was planned, what is, and the difference."""
        figures = self._figures
        weights = (figures.planned_weights_nbytes, figures.weights_nbytes)
        kv = (figures.planned_kv_nbytes, figures.kv.total - figures.kv.idle)
        both = (weights[0] + kv[0], weights[1] + kv[1])
        return [
            (name, _bytes_text(planned), _bytes_text(actual), _difference(planned, actual))
            for name, (planned, actual) in (("Weights", weights), ("KV cache", kv), ("Together", both))
        ]

    def show_figures(self, figures: EngineFigures) -> None:
        """Show the plan and the bytes of a moment."""
        if figures != self._figures:
            self._figures = figures
            self._describe()
            self.updateGeometry()
            self.redraw()

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self._row_height * (len(self.rows) + 1) - _ROW_GAP)

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(sum(self._widths()) + 3 * _COLUMN_GAP, self.sizeHint().height())

    def draw(self, painter: QPainter) -> None:  # noqa: D102
        self._draw_row(painter, 0, ("", *_COLUMNS), ("text_faint",) * 4)
        roles = ("text_muted", "text", "text", "text")
        for line, row in enumerate(self.rows, start=1):
            self._draw_row(painter, line, row, roles)

    def _draw_row(self, painter: QPainter, line: int, texts: tuple[str, ...], roles: tuple[str, ...]) -> None:
        """Write a row, its name at the left and its numbers from the right on."""
        palette, right = Theme.current().palette, self.width()
        top, height = line * self._row_height, self.fontMetrics().height()
        numbers = list(zip(texts, roles, self._widths(), strict=True))[1:]
        for text, role, width in reversed(numbers):
            painter.setPen(palette.color(role))
            painter.drawText(QRect(right - width, top, width, height), Qt.AlignmentFlag.AlignRight, text)
            right -= width + _COLUMN_GAP
        painter.setPen(palette.color(roles[0]))
        painter.drawText(QRect(0, top, right, height), Qt.AlignmentFlag.AlignLeft, texts[0])

    def _widths(self) -> list[int]:
        """Return the widths of the columns, each that of its longest text."""
        columns = zip(("", *_COLUMNS), *self.rows, strict=True)
        return [max(map(self.fontMetrics().horizontalAdvance, texts)) for texts in columns]

    def _describe(self) -> None:
        sentences = (
            f"{name}: planned {planned}, actual {actual}, difference {difference}"
            for name, planned, actual, difference in self.rows
        )
        self.setAccessibleDescription("; ".join(sentences))

    @property
    def _row_height(self) -> int:
        return self.fontMetrics().height() + _ROW_GAP


def _bytes_text(nbytes: int) -> str:
    return format_nbytes(nbytes) if nbytes else _NONE


def _difference(planned: int, actual: int) -> str:
    """Return by how much more or less is taken than planned, in per cent."""
    if not planned or not actual:
        return _NONE
    percent = (actual - planned) / planned * 100
    if abs(percent) < 0.05:
        return "0 %"
    digits = 1 if abs(percent) < 9.95 else 0
    return f"{'+' if percent > 0 else '−'}{abs(percent):.{digits}f} %"
