"""Painting the cells of the page map: one picture for each look, painted once."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap

from ui.inspector.pages.looks import LEVELS, CellLook, PageState
from ui.theme import Palette

_PALEST = 0.34
"""Of the tier's colour, the rest is the pane's, in a page that is hardly read."""
_HATCH_STEP, _HATCH_LINE, _HATCH_OPACITY = 4.0, 1.0, 0.6
_BAR_REACH = 0.32
_MIDDLE_LIGHTNESS = 0.55


class CellPainter:
    """Pictures of cells of one size, in one theme, for one kind of screen."""

    def __init__(self, size: int, ratio: float, palette: Palette) -> None:
        self.key = size, ratio, palette.panel
        self._size = size
        self._ratio = ratio
        self._palette = palette
        self._pictures: dict[CellLook | float, QPixmap] = {}

    def picture(self, look: CellLook) -> QPixmap:
        """Return the picture of a page."""
        if look not in self._pictures:
            self._pictures[look] = self._paint_page(look)
        return self._pictures[look]

    def open_picture(self, fill: float) -> QPixmap:
        """Return the picture of the open page, filled to a share from 0 to 1."""
        lines = round(fill * self._size * self._ratio) / (self._size * self._ratio)
        if lines not in self._pictures:
            self._pictures[lines] = self._paint_open(lines)
        return self._pictures[lines]

    def _paint_page(self, look: CellLook) -> QPixmap:
        pixmap, painter = self._begin()
        color = cell_color(self._palette, look.state, look.level)
        ink = ink_on(color)
        inside = self._frame(painter) if look.pinned else QRectF(0, 0, self._size, self._size)
        if look.state is PageState.DISK:
            ink = self._palette.color(look.state.role)
            _paint_hollow(painter, inside, ink)
        else:
            painter.fillPath(_rounded(inside), color)
        if look.shared:
            _paint_hatch(painter, inside, ink)
        _paint_mark(painter, look.state, inside, ink)
        painter.end()
        return pixmap

    def _paint_open(self, fill: float) -> QPixmap:
        pixmap, painter = self._begin()
        whole = QRectF(0, 0, self._size, self._size)
        painter.setClipPath(_rounded(whole))
        filled = QRectF(whole.left(), whole.bottom() - fill * whole.height(), whole.width(), whole.height())
        painter.fillRect(filled, self._palette.color("chart_open"))
        painter.setClipping(False)
        painter.setPen(QPen(self._palette.color("text_faint"), 1))
        painter.drawPath(_rounded(whole.adjusted(0.5, 0.5, -0.5, -0.5)))
        painter.end()
        return pixmap

    def _begin(self) -> tuple[QPixmap, QPainter]:
        side = round(self._size * self._ratio)
        pixmap = QPixmap(side, side)
        pixmap.setDevicePixelRatio(self._ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        return pixmap, painter

    def _frame(self, painter: QPainter) -> QRectF:
        """Paint the frame of a pinned page and return what is inside, behind a gap."""
        line = 2.0 if self._size >= 13 else 1.0
        whole = QRectF(0, 0, self._size, self._size)
        painter.setPen(QPen(self._palette.color("text"), line))
        painter.drawPath(_rounded(whole.adjusted(line / 2, line / 2, -line / 2, -line / 2)))
        inset = line + 1
        return whole.adjusted(inset, inset, -inset, -inset)


def cell_color(palette: Palette, state: PageState, level: int) -> QColor:
    """Return the colour of a page: its tier's, the paler the less the page is read.

    The steps are even in sRGB, which is close to even for the eye.
    """
    share = _PALEST + (1 - _PALEST) * level / (LEVELS - 1)
    pane, full = palette.color("panel"), palette.color(state.role)
    return QColor(
        round(share * full.red() + (1 - share) * pane.red()),
        round(share * full.green() + (1 - share) * pane.green()),
        round(share * full.blue() + (1 - share) * pane.blue()),
    )


def ink_on(color: QColor) -> QColor:
    """Return black or white, whichever shows better on a colour."""
    red, green, blue = color.redF(), color.greenF(), color.blueF()
    lightness = (0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2) ** (1 / 2.2)
    ink = QColor(Qt.GlobalColor.black if lightness > _MIDDLE_LIGHTNESS else Qt.GlobalColor.white)
    ink.setAlphaF(0.85)
    return ink


def _rounded(rect: QRectF) -> QPainterPath:
    path = QPainterPath()
    radius = min(3.0, rect.width() / 5)
    path.addRoundedRect(rect, radius, radius)
    return path


def _paint_hollow(painter: QPainter, inside: QRectF, color: QColor) -> None:
    line = 1.5 if inside.width() >= 10 else 1.0
    painter.setPen(QPen(color, line))
    painter.drawPath(_rounded(inside.adjusted(line / 2, line / 2, -line / 2, -line / 2)))
    painter.setPen(Qt.PenStyle.NoPen)


def _paint_hatch(painter: QPainter, inside: QRectF, ink: QColor) -> None:
    painter.save()
    painter.setClipPath(_rounded(inside))
    painter.setOpacity(_HATCH_OPACITY)
    painter.setPen(QPen(ink, _HATCH_LINE))
    corner = inside.topLeft()
    for line in range(int((inside.width() + inside.height()) / _HATCH_STEP) + 1):
        at = (line + 0.5) * _HATCH_STEP
        painter.drawLine(corner + QPointF(at, 0), corner + QPointF(0, at))
    painter.restore()


def _paint_mark(painter: QPainter, state: PageState, inside: QRectF, ink: QColor) -> None:
    """Paint what tells tiers apart without their colours: a dot when hot, a bar when warm."""
    side, centre = inside.width(), inside.center()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink)
    if state is PageState.HOT:
        radius = max(1.75, side * 0.17)
        painter.drawEllipse(centre, radius, radius)
    elif state is PageState.WARM:
        half, thick = side * _BAR_REACH, max(1.0, side // 6)
        painter.drawRect(QRectF(centre.x() - half, centre.y() - thick / 2, 2 * half, thick))
