"""Choosing a profile: the menu, and the button in the top bar that opens it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.profiles import CUSTOM, Profile
from ui.plain_text import plain_tip
from ui.profiles.current import CurrentProfile
from ui.profiles.name_dialog import ask_name
from ui.profiles.words import description
from ui.theme import Theme

MAX_NAME_WIDTH = 130
"""Pixels of a name in the top bar; a longer one is shortened."""


class ProfileMenu(QMenu):
    """All profiles with what they do, the present one ticked, and what makes a new one of it."""

    def __init__(self, current: CurrentProfile, title: str = "", parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self._current = current
        self._group: QActionGroup | None = None
        self.aboutToShow.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        self.clear()
        if self._group is not None:
            self._group.deleteLater()
        self._group = QActionGroup(self)
        for profile in self._current.choices:
            if profile.name == CUSTOM:
                self.addSeparator()
            self._add(self._current.value if profile.name == self._current.value.name else profile)
        self.addSeparator()
        save = self.addAction("&Save these settings as a profile…")
        save.triggered.connect(self._save)

    def _add(self, profile: Profile) -> None:
        # What stands behind the tab is the column in which a menu shows shortcuts.
        action = self.addAction(f"{_escaped(profile.name)}\t{description(profile)}")
        action.setCheckable(True)
        action.setChecked(profile.name == self._current.value.name)
        assert self._group is not None
        self._group.addAction(action)
        action.triggered.connect(lambda _checked=False, name=profile.name: self._current.choose(name))

    def _save(self) -> None:
        ask_name("Save these settings as a profile", "", self._current.save_as, self.window())


class ProfileButton(QPushButton):
    """Shows the name of the profile and opens the menu."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelButton")
        self._name = ""
        self._name_width = MAX_NAME_WIDTH
        self.hide()
        Theme.current().changed.connect(self._restyle)
        self._restyle()

    def connect_to(self, current: CurrentProfile) -> None:
        """Show this profile, and choose among those that there are."""
        menu = ProfileMenu(current, parent=self)
        menu.setAccessibleName("Profiles")
        self.setMenu(menu)
        current.changed.connect(self._show)
        self._show(current.value)
        self.show()

    def set_name_width(self, width: int) -> None:
        """Shorten the name to so many pixels."""
        self._name_width = width
        self._show_name()

    @property
    def shown_name_width(self) -> int:
        """Pixels that the name takes as it is shown."""
        return self.fontMetrics().horizontalAdvance(self.text())

    def _show_name(self) -> None:
        self.ensurePolished()  # the style sheet makes the letters wider
        name = self.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideRight, self._name_width)
        self.setText(_escaped(name))

    def _show(self, profile: Profile) -> None:
        self._name = profile.name
        self._show_name()
        self.setAccessibleName(f"Profile: {profile.name}. Choose another")
        self.setToolTip(plain_tip(f"Profile {profile.name}\n{description(profile)}"))

    def _restyle(self) -> None:
        self.setIcon(Theme.current().icon("settings"))
        self.setIconSize(QSize(18, 18))


def _escaped(name: str) -> str:
    """Return a name in which no letter becomes a shortcut."""
    return name.replace("&", "&&").replace("\t", " ")
