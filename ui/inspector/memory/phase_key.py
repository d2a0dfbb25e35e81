"""What the colours below the memory curve mean."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.figures import Phase
from ui.chat.flow_layout import FlowLayout
from ui.inspector.memory.curve_painter import PHASE_LOOKS, event_mark, fill_phase, small_font
from ui.inspector.memory.kept_picture import KeptPicture
from ui.inspector.memory.parts import PHASE_WORDS
from ui.theme import Theme

_SWATCH_WIDTH, _SWATCH_HEIGHT = 12, 6


class PhaseKey(QWidget):
    """Each phase with its colour and pattern, and the mark of the guard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        flow = FlowLayout(self, spacing=10)
        for phase in (*PHASE_LOOKS, None):
            flow.addWidget(_Entry(phase))


class _Entry(KeptPicture):
    """One phase and its word; None stands for an action of the guard."""

    def __init__(self, phase: Phase | None) -> None:
        super().__init__()
        self._phase = phase
        self._word = "Guard acted" if phase is None else PHASE_WORDS[phase]
        self.setFont(small_font(self))
        self.setAccessibleName(self._word)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(_SWATCH_WIDTH + 5 + metrics.horizontalAdvance(self._word) + 1, metrics.height())

    def draw(self, painter: QPainter) -> None:
        palette = Theme.current().palette
        middle = self.height() / 2
        if self._phase is None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(palette.color("warning"))
            painter.setBrush(palette.color("warning"))
            painter.drawPolygon(event_mark(_SWATCH_WIDTH / 2, middle + 4))
        else:
            area = QRectF(0, middle - _SWATCH_HEIGHT / 2, _SWATCH_WIDTH, _SWATCH_HEIGHT)
            fill_phase(painter, area, self._phase)
        painter.setPen(palette.color("text_muted"))
        painter.drawText(_SWATCH_WIDTH + 5, self.fontMetrics().ascent(), self._word)
