"""Light, dark or as the system: choosing the look of the window, which is remembered."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction

from ui.stored_settings import StoredSettings
from ui.theme import CHOICES, Theme


class Look(QObject):
    """Applies the look that was chosen last, at once: made before the widgets, each is styled only once."""

    def __init__(self, settings: StoredSettings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._actions: Mapping[str, QAction] = {}
        Theme.current().set_choice(settings.value.theme)

    def tick(self, actions: Mapping[str, QAction]) -> None:
        """Keep the menu entry of the present look ticked."""
        self._actions = actions
        actions[Theme.current().choice].setChecked(True)

    def choose(self, choice: str) -> None:
        """Show another look."""
        self._settings.update(theme=choice)
        Theme.current().set_choice(choice)
        self._actions[choice].setChecked(True)

    def choose_next(self) -> None:
        """Show the look that comes after the present one."""
        self.choose(CHOICES[(CHOICES.index(Theme.current().choice) + 1) % len(CHOICES)])
