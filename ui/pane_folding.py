"""Side panes that give way where the window is too narrow for them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QSplitter, QWidget


class PaneFolding(QObject):
    """Hides side panes that have no room, the last one first, and brings them back once there is room.

    Attributes:
        folded: the panes that are hidden for want of room only.
        last: the pane that folds after the others, None where the right one is the first.

    Signals:
        hidden: the pane that the user does not want to see any more.
    """

    hidden = Signal(object)

    def __init__(self, window: QWidget, splitter: QSplitter) -> None:
        super().__init__(window)
        self._window = window
        self._splitter = splitter
        self._toggles: list[tuple[QAbstractButton, QWidget]] = []
        self._is_folding = False
        self.folded: list[QWidget] = []
        self.last: QWidget | None = None
        window.installEventFilter(self)

    def add(self, pane: QWidget, toggle: QAbstractButton, action: QAction) -> None:
        """Show and hide a pane by a button and a menu entry alike, also where there is no room for it."""
        toggle.toggled.connect(pane.setVisible)
        toggle.toggled.connect(action.setChecked)
        action.toggled.connect(toggle.setChecked)
        toggle.setChecked(not pane.isHidden())
        self._toggles.append((toggle, pane))
        toggle.toggled.connect(lambda is_shown: self._on_toggled(pane, is_shown))

    def set_wanted(self, pane: QWidget, is_wanted: bool) -> None:
        """Show or hide a pane as the user would, also one that needs another width than before."""
        self._toggle_of(pane).setChecked(is_wanted)
        self._on_toggled(pane, is_wanted)
        self._fit()

    def fold(self, pane: QWidget) -> None:
        """Hide a pane for want of room, after all others come back."""
        self._set_shown(pane, False)
        self.folded.insert(0, pane)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.Resize:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        panes = [pane for _, pane in reversed(self._toggles)]
        for pane in sorted(panes, key=lambda each: each is self.last):
            if not pane.isHidden() and self._lacking() > 0:
                self._fold(pane)
        while self.folded and self._lacking(self.folded[-1]) <= 0:
            self._set_shown(self.folded.pop(), True)

    def _fold(self, pane: QWidget) -> None:
        self._set_shown(pane, False)
        self.folded.append(pane)

    def _set_shown(self, pane: QWidget, is_shown: bool) -> None:
        self._is_folding = True
        self._toggle_of(pane).setChecked(is_shown)
        self._is_folding = False

    def _toggle_of(self, pane: QWidget) -> QAbstractButton:
        return next(toggle for toggle, its_pane in self._toggles if its_pane is pane)

    def _on_toggled(self, pane: QWidget, is_shown: bool) -> None:
        """Make room for a pane that the user wants: the others fold, then the window grows."""
        if self._is_folding:
            return
        if not is_shown:
            self.hidden.emit(pane)
            return
        if pane in self.folded:
            self.folded.remove(pane)
        for _, other in self._toggles:
            if other is not pane and not other.isHidden() and self._lacking(pane) > 0:
                self._fold(other)
        lacking = self._lacking(pane)
        if lacking > 0:
            self._window.resize(self._window.width() + lacking, self._window.height())

    def _lacking(self, wanted: QWidget | None = None) -> int:
        """Return the pixels that the panes shown, and `wanted`, need beyond the window's width."""
        panes = (self._splitter.widget(index) for index in range(self._splitter.count()))
        shown = [pane for pane in panes if pane is not None and (not pane.isHidden() or pane is wanted)]
        handles = (len(shown) - 1) * self._splitter.handleWidth()
        return sum(pane.minimumWidth() for pane in shown) + handles - self._window.width()
