"""One line that names a passage of a document and opens it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.reading.shown import ShownPassage
from ui.plain_text import plain_tip
from ui.theme import Theme

_PADDING = 7
_GAP = 8
_RADIUS = 7
_PLACE_SHARE = 0.45
"""The share of a line that the place takes at most; the words of the passage have the rest."""


class PassageButton(QAbstractButton):
    """A number, a place and the first words of a passage.

    Signals:
        passage_requested: show it: its attachment's id, its first character, the one behind its last.
    """

    passage_requested = Signal(int, int, int)

    def __init__(
        self, passage: ShownPassage, parent: QWidget | None = None, *, names_document: bool = False
    ) -> None:
        """Name the document as well as the place where `names_document` or no place is known."""
        super().__init__(parent)
        self._passage = passage
        source, place = passage.source, passage.place
        with_title = names_document or not place.words
        self._number = f"{source.number}" if source.number else f"{source.share or 0:.0%}"
        self._place = ", ".join(filter(None, (passage.title if with_title else "", place.words)))
        spoken = ", ".join(filter(None, (passage.title if with_title else "", place.sentence_words)))
        number = f"Source {source.number}" if source.number else f"{source.share or 0:.0%} of the attention"
        self.setAccessibleName(f"{number}, {spoken}: {passage.words}")
        self.setToolTip(plain_tip(f"{self._place}\n{passage.words}"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self._ask)

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(300, self.fontMetrics().height() + 9)

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(80, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = Theme.current().palette
        if self.underMouse() or self.isDown():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(palette.color("pressed" if self.isDown() else "hover"))
            painter.drawRoundedRect(self.rect(), _RADIUS, _RADIUS)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(palette.color("accent"), 1))
            painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        left = self._paint_number(painter, _PADDING)
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        room = self.width() - left - _PADDING
        most = room if not self._passage.words else int(room * _PLACE_SHARE)
        left += self._paint_words(painter, self._place, bold, left, most, "text") + _GAP
        self._paint_words(
            painter, self._passage.words, self.font(), left, self.width() - left - _PADDING, "text_muted"
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:  # noqa: D102
        super().changeEvent(event)
        self.updateGeometry()

    def _paint_number(self, painter: QPainter, left: int) -> int:
        """Paint the number on a ground of its own and return where the words begin."""
        palette, metrics = Theme.current().palette, self.fontMetrics()
        width = max(metrics.height() + 2, metrics.horizontalAdvance(self._number) + 10)
        ground = QRect(left, 3, width, self.height() - 6)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(palette.color("accent_soft"))
        painter.drawRoundedRect(self._mirrored(ground), 5, 5)
        painter.setPen(palette.color("text"))
        painter.setFont(self.font())
        painter.drawText(self._mirrored(ground), Qt.AlignmentFlag.AlignCenter, self._number)
        return left + width + _GAP

    def _paint_words(
        self, painter: QPainter, words: str, font: QFont, left: int, room: int, role: str
    ) -> int:
        """Paint words, shortened to the room that they have, and return the width that they took."""
        metrics = QFontMetrics(font)
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, max(0, room))
        width = metrics.horizontalAdvance(shown)
        painter.setFont(font)
        painter.setPen(Theme.current().palette.color(role))
        rect = self._mirrored(QRect(left, 0, width + 2, self.height()))
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, shown)
        return width

    def _mirrored(self, rect: QRect) -> QRect:
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        return rect.translated(self.width() - rect.left() - rect.right() - 1, 0) if is_mirrored else rect

    def _ask(self) -> None:
        source = self._passage.source
        self.passage_requested.emit(source.attachment_id, source.start, source.stop)
