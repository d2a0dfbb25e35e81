"""The ways to read a document, as a row of buttons that say what each costs, or as a menu."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QMenu, QSizePolicy, QWidget

from app.document_cost import DocumentCost
from app.documents.ways import DocumentWay
from ui.chat.attachments import WAY_NAMES, WAY_TIPS
from ui.plain_text import plain_tip
from ui.theme import Theme

_PAD_X, _PAD_Y = 10, 5
_RADIUS = 8
_UNKNOWN_COST = "not known yet"


class WayChoice(QWidget):
    """Three buttons side by side, one of them chosen; what cannot be says why in its tool tip.

    Signals:
        chosen: the `DocumentWay` that the user has chosen.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._buttons = {way: WayButton(way, self) for way in DocumentWay}
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        for button in self._buttons.values():
            self._group.addButton(button)
            row.addWidget(button, 1)
            button.clicked.connect(lambda _checked, way=button.way: self.chosen.emit(way))
        self.setAccessibleName("How the document is read")

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab comes to, in order."""
        return list(self._buttons.values())

    def show_cost(self, title: str, cost: DocumentCost | None, way: DocumentWay | None) -> None:
        """Show what each way to read a document costs, and which is chosen."""
        for each, button in self._buttons.items():
            refusal = "" if cost is None else cost.of(each).refusal
            words = _UNKNOWN_COST if cost is None else cost.of(each).words
            button.show_cost(title, words, refusal)
            button.setChecked(each is way)


class WayButton(QAbstractButton):
    """A way to read a document: its name above, what it costs below.

    Attributes:
        way: which one.
    """

    def __init__(self, way: DocumentWay, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.way = way
        self._cost = ""
        self._refusal = ""
        self.setText(WAY_NAMES[way])
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_cost(self, title: str, words: str, refusal: str) -> None:
        """Show what it costs for the document of this title, and why it cannot be chosen where it cannot."""
        self._cost, self._refusal = words, refusal
        tip = (f"{self.text()}: {words}", WAY_TIPS[self.way], refusal)
        self.setToolTip(plain_tip("\n\n".join(filter(None, tip))))
        self.setAccessibleName(f"{self.text()}: {words} – {title}")
        self.setAccessibleDescription(refusal or WAY_TIPS[self.way])
        self.setEnabled(not refusal)
        self.update()

    @property
    def shown_cost(self) -> str:
        """What it costs; where there is no room for that, how long it takes, which comes last."""
        room = self.width() - 2 * _PAD_X
        has_room = self.fontMetrics().horizontalAdvance(self._cost) <= room
        return self._cost if has_room else self._cost.rpartition(", ")[2]

    def sizeHint(self) -> QSize:  # noqa: D102
        metrics = self.fontMetrics()
        width = max(metrics.horizontalAdvance(words) for words in (self.text(), self._cost))
        return QSize(width + 2 * _PAD_X, 2 * metrics.height() + 2 * _PAD_Y)

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(64, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_hovered = self.isEnabled() and (self.underMouse() or self.isDown())
        ground = "accent_soft" if self.isChecked() else "hover" if is_hovered else "surface"
        border = "accent" if self.isChecked() or self.hasFocus() else "border"
        painter.setBrush(palette.color(ground))
        painter.setPen(QPen(palette.color(border), 2 if self.hasFocus() else 1))
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)
        metrics = self.fontMetrics()
        room = self.rect().adjusted(_PAD_X, _PAD_Y, -_PAD_X, -_PAD_Y)
        room.setHeight(metrics.height())
        painter.setPen(palette.color("text" if self.isEnabled() else "text_faint"))
        _draw(painter, metrics, room, self.text())
        painter.setPen(palette.color("text_muted" if self.isEnabled() else "text_faint"))
        _draw(painter, metrics, room.translated(0, metrics.height()), self.shown_cost)


def way_menu(way: DocumentWay | None, cost: DocumentCost | None, parent: QWidget) -> QMenu:
    """Return a menu of the ways, the one that holds checked; each action's data is its `DocumentWay`."""
    menu = QMenu(parent)
    menu.setToolTipsVisible(True)
    for each in DocumentWay:
        refusal = "" if cost is None else cost.of(each).refusal
        words = "" if cost is None or refusal else f"  ({cost.of(each).words})"
        action = QAction(f"{WAY_NAMES[each]}{words}", menu)
        action.setData(each)
        action.setCheckable(True)
        action.setChecked(each is way)
        action.setEnabled(not refusal)
        action.setToolTip(plain_tip(refusal or WAY_TIPS[each]))
        menu.addAction(action)
    return menu


def _draw(painter: QPainter, metrics: QFontMetrics, room: QRect, words: str) -> None:
    painter.drawText(
        room,
        Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter,
        metrics.elidedText(words, Qt.TextElideMode.ElideRight, room.width()),
    )
