"""The settings as the window uses them: one current value, written to disk shortly after it changed."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.settings import Settings, SettingsError, save_settings

log = logging.getLogger(__name__)
_SAVE_DELAY_MS = 500


class StoredSettings(QObject):
    """Holds the current `Settings`.

    Attributes:
        value: the settings now.

    Signals:
        changed: the new `Settings`.
        save_failed: the `SettingsError` that kept them from the disk.
    """

    changed = Signal(object)
    save_failed = Signal(object)

    def __init__(self, path: Path, value: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.value = value
        self._path = path
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SAVE_DELAY_MS)
        self._timer.timeout.connect(self.save)

    def update(self, **changes: Any) -> None:
        """Replace fields of the settings by name."""
        value = dataclasses.replace(self.value, **changes)
        if value != self.value:
            self.value = value
            self._timer.start()
            self.changed.emit(value)

    def save(self) -> None:
        """Write the settings now."""
        self._timer.stop()
        try:
            save_settings(self._path, self.value)
        except SettingsError as error:
            log.warning("settings not saved", exc_info=True)
            self.save_failed.emit(error)
