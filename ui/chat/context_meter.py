"""How full the context would be with what is being written."""

from __future__ import annotations

import enum

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from ui.theme import Theme

_NEAR_SHARE = 0.85
_BAR_WIDTH, _BAR_HEIGHT = 96, 5


class Fill(enum.Enum):
    """How the used part stands to the limit; the value is the colour's role."""

    ROOM = "accent"
    NEAR = "warning"
    OVER = "danger"


def fill_of(used_tokens: int, limit_tokens: int) -> Fill:
    """Return whether there is room, little room or none."""
    if used_tokens > limit_tokens:
        return Fill.OVER
    return Fill.NEAR if used_tokens >= _NEAR_SHARE * limit_tokens else Fill.ROOM


class ContextMeter(QWidget):
    """A thin bar and `3,410 of 8,192 in context`; the part that is not sent yet is paler."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bar = _Bar(self)
        self._numbers = QLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._bar)
        row.addWidget(self._numbers)
        self.hide()

    def show_use(
        self,
        used_tokens: int | None,
        limit_tokens: int | None,
        draft_tokens: int,
        *,
        is_about: bool = False,
    ) -> None:
        """Show `used_tokens`, `draft_tokens` of them not sent yet; hidden while one of them is unknown.

        `is_about` calls the number an estimate.
        """
        is_known = used_tokens is not None and limit_tokens is not None and limit_tokens > 0
        self.setVisible(is_known)
        if used_tokens is None or limit_tokens is None or limit_tokens <= 0:
            return
        fill = fill_of(used_tokens, limit_tokens)
        text = f"{'about ' if is_about else ''}{used_tokens:,} of {limit_tokens:,} in context"
        self._numbers.setText(text)
        kind = "faint" if fill is Fill.ROOM else fill.value
        if self._numbers.property("kind") != kind:
            self._numbers.setProperty("kind", kind)
            self._numbers.style().polish(self._numbers)
        self._bar.show_shares(
            max(0, used_tokens - draft_tokens) / limit_tokens, used_tokens / limit_tokens, fill
        )
        self.setAccessibleName(f"Context: {text}")


class _Bar(QWidget):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._sent = self._used = 0.0
        self._fill = Fill.ROOM
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_shares(self, sent: float, used: float, fill: Fill) -> None:
        self._sent, self._used, self._fill = min(1.0, sent), min(1.0, used), fill
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_BAR_WIDTH, _BAR_HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        strong = palette.color(self._fill.value)
        pale = palette.color(self._fill.value)
        pale.setAlphaF(0.45)
        for share, color in ((1.0, palette.color("border")), (self._used, pale), (self._sent, strong)):
            if share > 0:
                painter.setBrush(color)
                width = max(float(self.height()), self.width() * share)
                left = self.width() - width if self.layoutDirection() == Qt.LayoutDirection.RightToLeft else 0
                painter.drawRoundedRect(QRectF(left, 0, width, self.height()), 2.5, 2.5)


def draft_text(text_tokens: int | None, attachment_tokens: int | None) -> str:
    """Return the tokens of a text and its documents, such as `312 + 10,554 tokens`; empty where none are."""
    if text_tokens is None or not (text_tokens or attachment_tokens):
        return ""
    parts = [tokens for tokens in (text_tokens, attachment_tokens) if tokens]
    return f"{' + '.join(f'{tokens:,}' for tokens in parts)} token{'' if parts == [1] else 's'}"
