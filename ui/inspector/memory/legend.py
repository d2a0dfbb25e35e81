"""The parts of the memory with their colours and bytes at one moment: legend and table in one."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QFont, QHelpEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.memory import MemorySample
from engine.wording import format_nbytes
from ui.inspector.memory.kept_picture import KeptPicture
from ui.inspector.memory.parts import TIPS, Part, parts_of
from ui.theme import Theme

_SWATCH = 10
_ROW_PADDING = 4
_NONE = "–"
_ROWS = tuple(reversed(Part))


class MemoryLegend(KeptPicture):
    """A row for all of Octavo, one for each part in the order of the stack, and one for swap.

    It paints itself, as some twenty labels that change with every sample cost more than the curve.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sample: MemorySample | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Memory by part")
        self.show_sample(None)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The names and bytes as they are shown, from the top."""
        sample = self._sample
        if sample is None:
            return [(name, _NONE) for name in ("Octavo", *(part.title for part in _ROWS), "Swap in use")]
        parts = parts_of(sample)
        named = zip((part.title for part in _ROWS), reversed(parts), strict=True)
        return [
            ("Octavo", format_nbytes(sum(parts))),
            *((name, _bytes_text(nbytes)) for name, nbytes in named),
            ("Swap in use", _bytes_text(sample.swap_nbytes)),
        ]

    def show_sample(self, sample: MemorySample | None) -> None:
        """Show the bytes of a moment, None while nothing is known."""
        self._sample = sample
        self.setAccessibleDescription("; ".join(f"{name}: {text}" for name, text in self.rows))
        self.redraw()

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self._row_height * (len(_ROWS) + 2))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(160, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            row = event.y() // self._row_height - 1
            tip = TIPS[_ROWS[row]] if 0 <= row < len(_ROWS) else ""
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)

    def draw(self, painter: QPainter) -> None:  # noqa: D102
        palette = Theme.current().palette
        plain, bold = self.font(), QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        for line, (name, text) in enumerate(self.rows):
            row = QRect(0, line * self._row_height, self.width(), self._row_height)
            is_part = 0 < line <= len(_ROWS)
            if is_part:
                top = row.center().y() - _SWATCH // 2 + 1
                swatch = QRect(0, top, _SWATCH, _SWATCH)
                painter.fillRect(swatch, palette.color(_ROWS[line - 1].role))
            painter.setFont(bold if line == 0 else plain)
            painter.setPen(palette.color("text" if line == 0 else "text_muted"))
            left = _SWATCH + 8 if is_part else 0
            painter.drawText(row.adjusted(left, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, name)
            painter.setPen(palette.color("text_faint" if text == _NONE else "text"))
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)

    @property
    def _row_height(self) -> int:
        return self.fontMetrics().height() + _ROW_PADDING


def _bytes_text(nbytes: int) -> str:
    return format_nbytes(nbytes) if nbytes else _NONE
