"""How full the context is, by kind: a bar in parts, and what each part is."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.ledger.entries import EntryKind, LedgerReport
from ui.chat.flow_layout import FlowLayout
from ui.inspector.context.delegate import KIND_LOOKS
from ui.inspector.context.words import KIND_WORDS
from ui.plain_text import plain_label
from ui.theme import Theme

_HEIGHT, _GAP, _LEAST = 10, 2.0, 4.0
_ICON = 14


class ShareBar(QWidget):
    """A bar as wide as the context, filled in the order of the key below it, and that key with tokens.

    The key has the icons of the rows, so that no colour has to be told apart.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bar = _Bar()
        self._free_tokens = 0
        flow_area = QWidget()
        flow = FlowLayout(flow_area, spacing=2)
        self._items = {kind: _KeyItem(kind) for kind in EntryKind}
        for item in self._items.values():
            flow.addWidget(item)
        self._around = plain_label()
        self._around.setProperty("kind", "muted")
        flow.addWidget(self._around)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._bar)
        column.addWidget(flow_area)

    @property
    def words(self) -> str:
        """What the key says, and how much is free."""
        items = [each.text for each in self._items.values() if not each.isHidden()]
        items += [] if self._around.isHidden() else [self._around.text()]
        return ", ".join([*items, f"Free {self._free_tokens:,}"])

    def show_report(self, report: LedgerReport) -> None:
        """Show how the tokens of a context are shared."""
        shares = dict(report.shares)
        for kind, item in self._items.items():
            item.show_tokens(shares.get(kind, 0))
        self._around.setText(f"Template {report.around_tokens:,}")
        self._around.setVisible(report.around_tokens > 0)
        limit, used = report.limit_tokens or 0, report.tokens or 0
        self._free_tokens = max(0, limit - used)
        self._bar.show_shares(shares, max(limit, used, 1))
        self._bar.setAccessibleName(f"Share of the context: {self.words}")
        self._bar.setToolTip(self.words)


class _Bar(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._shares: Mapping[EntryKind, int] = {}
        self._whole = 1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        Theme.current().changed.connect(self.update)

    def show_shares(self, shares: Mapping[EntryKind, int], whole: int) -> None:
        self._shares, self._whole = shares, whole
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        shape.addRoundedRect(QRectF(self.rect()), _HEIGHT / 2, _HEIGHT / 2)
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), palette.color("border"))
        left = 0.0
        for kind, (_, role) in KIND_LOOKS.items():
            tokens = self._shares.get(kind, 0)
            if tokens:
                width = max(_LEAST, tokens / self._whole * self.width())
                painter.fillRect(QRectF(left, 0, width - _GAP, _HEIGHT), palette.color(role))
                left += width


class _KeyItem(QWidget):
    """The icon of a kind, its name and its tokens."""

    def __init__(self, kind: EntryKind) -> None:
        super().__init__()
        self._kind = kind
        self._icon = QLabel()
        self._text = plain_label()
        self._text.setProperty("kind", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 8, 0)
        row.setSpacing(4)
        row.addWidget(self._icon)
        row.addWidget(self._text)
        Theme.current().changed.connect(self._paint_icon)
        self._paint_icon()

    @property
    def text(self) -> str:
        return self._text.text()

    def show_tokens(self, tokens: int) -> None:
        self._text.setText(f"{KIND_WORDS[self._kind]} {tokens:,}")
        self.setVisible(tokens > 0)

    def _paint_icon(self) -> None:
        if self._kind is not None:
            self._icon.setPixmap(
                Theme.current().pixmap(KIND_LOOKS[self._kind][0], _ICON, KIND_LOOKS[self._kind][1])
            )
