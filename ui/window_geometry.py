"""Where the window stood and what it showed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings, QSize
from PySide6.QtWidgets import QMainWindow, QSplitter, QWidget

_WIDTH, _HEIGHT = 1240, 800
_LEFT_WIDTH, _RIGHT_WIDTH = 250, 320


class WindowGeometry:
    """Saves and restores the size of a window and of the panes in its splitter, and which are hidden."""

    def __init__(self, path: Path, window: QMainWindow, splitter: QSplitter) -> None:
        self._settings = QSettings(str(path), QSettings.Format.IniFormat)
        self._window = window
        self._splitter = splitter

    def restore(self) -> str:
        """Bring back what was saved, else the sizes for a first start; return the panel that was shown."""
        geometry, sizes = self._settings.value("geometry"), self._settings.value("splitter")
        if not isinstance(geometry, QByteArray) or not self._window.restoreGeometry(geometry):
            self._window.resize(QSize(_WIDTH, _HEIGHT).boundedTo(self._window.screen().availableSize()))
        if not isinstance(sizes, QByteArray) or not self._splitter.restoreState(sizes):
            self._splitter.setSizes([_LEFT_WIDTH, _WIDTH - _LEFT_WIDTH - _RIGHT_WIDTH, _RIGHT_WIDTH])
        for index, pane in enumerate(self._panes()):
            pane.setHidden(str(self._settings.value(f"hidden{index}", "0")) == "1")
        return str(self._settings.value("panel", ""))

    def save(self, folded: Collection[QWidget], panel: str) -> None:
        """Remember sizes and the panel as they are now; panes that are only `folded` are not hidden."""
        self._settings.setValue("geometry", self._window.saveGeometry())
        self._settings.setValue("splitter", self._splitter.saveState())
        for index, pane in enumerate(self._panes()):
            self._settings.setValue(f"hidden{index}", int(pane.isHidden() and pane not in folded))
        self._settings.setValue("panel", panel)
        self._settings.sync()

    def _panes(self) -> list[QWidget]:
        panes = (self._splitter.widget(index) for index in range(self._splitter.count()))
        return [pane for pane in panes if pane is not None]
