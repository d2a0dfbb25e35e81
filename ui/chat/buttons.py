"""Small icon buttons of the conversation."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from ui.plain_text import plain_tip
from ui.theme import Theme

_ICON = QSize(16, 16)
_CONFIRMED_MS = 1500


class IconButton(QToolButton):
    """A flat button with an icon of the theme, a tool tip and a name for screen readers.

    A *quiet* button is seen only while `set_revealed(True)` holds or it has the keyboard focus; it keeps its
    place and stays reachable with Tab.

    Signals:
        focus_changed: the keyboard focus came or went.
    """

    focus_changed = Signal()

    def __init__(self, icon: str, name: str, parent: QWidget | None = None, *, quiet: bool = False) -> None:
        super().__init__(parent)
        self._icon_name = icon
        self._role = "text_muted"
        self._is_quiet = quiet
        self._is_revealed = False
        self.setIconSize(_ICON)
        self.setToolTip(plain_tip(name))
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.restyle()

    def set_icon(self, icon: str, role: str = "text_muted") -> None:
        """Show another icon, in the colour of a palette role."""
        self._icon_name, self._role = icon, role
        self.restyle()

    def set_name(self, name: str) -> None:
        """Change the tool tip and the name for screen readers."""
        self.setToolTip(plain_tip(name))
        self.setAccessibleName(name)

    def restyle(self) -> None:
        """Take the icon in the theme's colours of now."""
        self.setIcon(Theme.current().icon(self._icon_name, self._role))

    def set_revealed(self, is_revealed: bool) -> None:
        """Show or hide a quiet button's face."""
        if is_revealed != self._is_revealed:
            self._is_revealed = is_revealed
            self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusOutEvent(event)
        self.focus_changed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        if not self._is_quiet or self._is_revealed or self.hasFocus():
            super().paintEvent(event)


class CopyButton(IconButton):
    """Puts a text on the clipboard and shows a tick for a moment."""

    def __init__(
        self, name: str, text: Callable[[], str], parent: QWidget | None = None, *, quiet: bool = False
    ) -> None:
        super().__init__("copy", name, parent, quiet=quiet)
        self._text = text
        self._restore = QTimer(self, singleShot=True, interval=_CONFIRMED_MS)
        self._restore.timeout.connect(self._show_idle)
        self.clicked.connect(self._copy)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())
        self.set_icon("check", "success")
        self._restore.start()

    def _show_idle(self) -> None:
        self.set_icon("copy")


class ActionBar(QWidget):
    """A row of quiet buttons that show themselves together: on hover, on focus, or all the time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._buttons: list[IconButton] = []
        self._is_pinned = False
        self._is_hovered = False
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)

    def add(self, button: IconButton) -> None:
        """Append a quiet button."""
        self._buttons.append(button)
        self._row.addWidget(button)
        button.focus_changed.connect(self._update)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The buttons, in order."""
        return list(self._buttons)

    def set_pinned(self, is_pinned: bool) -> None:
        """Keep the buttons in sight, or not."""
        self._is_pinned = is_pinned
        self._update()

    def set_hovered(self, is_hovered: bool) -> None:
        """Say whether the mouse is over what the buttons act on."""
        self._is_hovered = is_hovered
        self._update()

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        for button in self._buttons:
            button.restyle()

    def _update(self) -> None:
        has_focus = any(button.hasFocus() for button in self._buttons)
        for button in self._buttons:
            button.set_revealed(self._is_pinned or self._is_hovered or has_focus)
