"""Panels side by side, one shown at a time, each scrolling by itself."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)


class PanelTabs(QWidget):
    """A row of titles and, below it, the panel of the one that is down.

    Signals:
        current_changed: the title of the panel that is shown now.
    """

    current_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._group = QButtonGroup(self)
        self._stack = QStackedWidget()
        self._stack.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        bar = QFrame()
        bar.setObjectName("tabs")
        self._bar = QHBoxLayout(bar)
        self._bar.setContentsMargins(10, 6, 10, 0)
        self._bar.setSpacing(4)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(bar)
        column.addWidget(self._stack, 1)
        self._group.idClicked.connect(self._show)

    def add(self, title: str, panel: QWidget, *, fills: bool = False) -> QScrollArea:
        """Add a panel behind the others and return the area that it scrolls in.

        One that `fills` it takes all the height there is; it scrolls only where that is not enough.
        """
        contents = QWidget()
        contents.setObjectName("scrollContents")
        column = QVBoxLayout(contents)
        column.setContentsMargins(16, 12, 16, 16)
        column.addWidget(panel, int(fills))
        column.addStretch(int(not fills))
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(contents)
        number = self._stack.count()
        button = QPushButton(title)
        button.setProperty("kind", "tab")
        button.setCheckable(True)
        button.setChecked(number == 0)
        button.setAccessibleName(f"{title} panel")
        self._group.addButton(button, number)
        self._bar.addWidget(button)  # as wide as its title needs: five of them just fit
        self._stack.addWidget(area)  # behind its title, as Tab follows the order of addition
        if number:
            self.setTabOrder(self._group.button(number - 1), button)
        return area

    @property
    def current(self) -> str:
        """The title of the panel that is shown."""
        return self._group.buttons()[self._stack.currentIndex()].text()

    def show_panel(self, title: str) -> None:
        """Show the panel with this title; one that there is not changes nothing."""
        for button in self._group.buttons():
            if button.text() == title:
                with QSignalBlocker(self._group):
                    button.setChecked(True)
                self._show(self._group.id(button))

    def _show(self, number: int) -> None:
        for button in self._group.buttons():  # Tab comes to the title that is down; arrow keys to the others
            is_down = self._group.id(button) == number
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if is_down else Qt.FocusPolicy.ClickFocus)
        if number != self._stack.currentIndex():
            self._stack.setCurrentIndex(number)
            self.current_changed.emit(self.current)
