"""A memory plan as a bar: what weights, context and reserve take of what there is."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.budget import LoadPlan
from engine.wording import format_nbytes
from ui.theme import Theme


class MemoryBar(QWidget):
    """The memory that is available, and how much of it weights and a context take."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan: LoadPlan | None = None
        self._context = "", 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_plan(self, plan: LoadPlan, context_tokens: int, context_nbytes: int) -> None:
        """Show `plan` with a context of so many tokens, whose keys and values take so many bytes."""
        self._plan = plan
        self._context = f"{context_tokens:,} tokens", context_nbytes
        self.setAccessibleName("Memory plan")
        self.setAccessibleDescription(
            ", ".join(f"{name} {format_nbytes(size)}" for name, size, _ in self._parts())
        )
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of the bar and its legend."""
        return QSize(200, 20 + self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar and the legend below it."""
        if self._plan is None:
            return
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        clip = QPainterPath()
        clip.addRoundedRect(0, 0, self.width(), 10, 5, 5)
        parts = self._parts()
        whole = max(self._plan.usable_nbytes, sum(size for _, size, _ in parts), 1)
        painter.save()
        painter.setClipPath(clip)
        painter.fillRect(0, 0, self.width(), 10, palette.color("border"))
        left = 0.0
        for _, size, role in parts:
            width = self.width() * size / whole
            painter.fillRect(round(left), 0, max(2, round(width)), 10, palette.color(role))
            left += width
        painter.restore()
        self._paint_legend(painter)

    def _paint_legend(self, painter: QPainter) -> None:
        palette = Theme.current().palette
        metrics = self.fontMetrics()
        left, baseline = 0, 18 + metrics.ascent()
        for name, size, role in self._parts():
            text = f"{name} {format_nbytes(size)}"
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(palette.color(role))
            painter.drawEllipse(left, baseline - 9, 8, 8)
            painter.setPen(palette.color("text_muted"))
            painter.drawText(left + 13, baseline, text)
            left += 13 + metrics.horizontalAdvance(text) + 18

    def _parts(self) -> list[tuple[str, int, str]]:
        if self._plan is None:
            return []
        return [
            ("Weights", self._plan.weights_nbytes, "accent"),
            (*self._context, "info"),
            ("Reserve", self._plan.reserve_nbytes, "text_faint"),
        ]
