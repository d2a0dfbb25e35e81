"""How short memory is in the whole system, in a word, a picture and a sentence."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from engine.memory import MemorySample, PressureLevel
from engine.wording import format_nbytes
from ui.plain_text import plain_label
from ui.theme import Theme

_BAR_HEIGHT = 10
_LOOKS = {
    PressureLevel.NORMAL: ("Normal", "check", "success", ""),
    PressureLevel.WARNING: ("Short", "warning", "warning", "warning"),
    PressureLevel.CRITICAL: ("Very short", "error", "danger", "error"),
}
"""Word, icon, colour of the icon, and the kind of notice behind it all."""


class PressureGauge(QFrame):
    """The level with its icon, a bar of the whole memory, and the reason."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._level: PressureLevel | None = None
        self._limit_nbytes: int | None = None
        self._sample: MemorySample | None = None
        self._icon = QLabel()
        self._word = plain_label("Not measured yet")
        self._word.setProperty("kind", "heading")
        self._bar = _MemoryBar()
        self._use = plain_label(wraps=True)
        self._use.setProperty("kind", "muted")
        self._reason = plain_label(wraps=True)
        for label, name in ((self._word, "Memory pressure"), (self._reason, "Reason of the memory pressure")):
            label.setAccessibleName(name)
        self._column = QVBoxLayout(self)
        self._lay_out()
        Theme.current().changed.connect(self._show_level)

    def show_sample(self, sample: MemorySample) -> None:
        """Show the pressure of a moment."""
        self._sample = sample
        octavo, total = sample.process_nbytes, sample.total_nbytes
        others = max(0, total - sample.available_nbytes - octavo)
        limit = "" if self._limit_nbytes is None else f" of your {format_nbytes(self._limit_nbytes)}"
        # While there is enough, the reason says what is free.
        is_short = sample.level is not PressureLevel.NORMAL
        free = f", free {format_nbytes(sample.available_nbytes)}" if is_short else ""
        self._use.setText(f"Octavo {format_nbytes(octavo)}{limit}, others {format_nbytes(others)}{free}")
        self._reason.setText(_sentence(sample.reason))
        self._use.show()
        self._reason.setVisible(bool(sample.reason))
        self._bar.show_bytes(octavo, others, total, self._limit_nbytes)
        if sample.level is not self._level:
            self._level = sample.level
            self._show_level()

    def set_limit(self, nbytes: int | None) -> None:
        """Mark what Octavo may take at most, None where nothing limits it."""
        self._limit_nbytes = nbytes
        if self._sample is not None:
            self.show_sample(self._sample)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon)
        head.addWidget(self._word, 1)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addLayout(head)
        for widget in (self._bar, self._use, self._reason):
            self._column.addWidget(widget)
        for label in (self._icon, self._use, self._reason):
            label.hide()

    def _show_level(self) -> None:
        if self._level is None:
            return
        word, icon, role, notice = _LOOKS[self._level]
        self._word.setText(word)
        self._icon.setPixmap(Theme.current().pixmap(icon, 18, role))
        self._icon.show()
        if self.property("notice") != notice:
            self.setProperty("notice", notice)
            padding = 10 if notice else 0
            self._column.setContentsMargins(padding, padding, padding, padding)
            for widget in (self, self._word):
                widget.style().unpolish(widget)
                widget.style().polish(widget)


def _sentence(words: str) -> str:
    """Return a reason, which may be a part of a sentence, as one of its own."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""


class _MemoryBar(QWidget):
    """The whole memory: Octavo's share with a mark where its limit is, then that of all others."""

    def __init__(self) -> None:
        super().__init__()
        self._octavo = self._others = 0.0
        self._limit: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_bytes(self, octavo: int, others: int, total: int, limit: int | None) -> None:
        self._octavo, self._others = octavo / max(1, total), others / max(1, total)
        self._limit = None if limit is None else limit / max(1, total)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, _BAR_HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, painter = Theme.current().palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        radius = self.height() / 2
        shares = (
            (1.0, "border"),
            (self._octavo + self._others, "border_strong"),
            (self._octavo, "accent"),
        )
        for share, role in shares:
            if share > 0:
                width = max(2 * radius, self.width() * min(1.0, share))
                painter.setBrush(palette.color(role))
                painter.drawRoundedRect(QRectF(0, 0, width, self.height()), radius, radius)
        if self._limit is not None and self._limit < 1:
            mark = QRectF(round(self.width() * self._limit) - 1, 0, 2, self.height())
            painter.fillRect(mark, palette.color("danger"))
