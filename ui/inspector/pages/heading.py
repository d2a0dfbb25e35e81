"""The heading of a group of pages: what their text is, its title, and how many they are."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter

from ui.inspector.pages.details import OTHER_TEXT
from ui.inspector.pages.groups import PageGroup
from ui.theme import Theme

_SPACE = 8


def paint_heading(painter: QPainter, rect: QRect, group: PageGroup) -> None:
    """Paint a heading in one line; a title without room ends in dots."""
    if rect.isEmpty():
        return
    palette, metrics = Theme.current().palette, painter.fontMetrics()
    middle = Qt.AlignmentFlag.AlignVCenter
    count = f"{group.count:,}"
    painter.setPen(palette.color("text_faint"))
    painter.drawText(rect, middle | Qt.AlignmentFlag.AlignRight, count)
    kind = OTHER_TEXT if group.span is None else group.span.kind.value.capitalize()
    painter.setPen(palette.color("text_muted"))
    painter.drawText(rect, middle, kind)
    title = "" if group.span is None else group.span.title.removeprefix(kind).lstrip()
    room = rect.adjusted(
        metrics.horizontalAdvance(kind) + _SPACE, 0, -metrics.horizontalAdvance(count) - _SPACE, 0
    )
    painter.setPen(palette.color("text"))
    painter.drawText(room, middle, metrics.elidedText(title, Qt.TextElideMode.ElideRight, room.width()))
