from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from app.profiles import BUILT_IN, CUSTOM, DocumentMode, Overflow, Profile
from engine.kv.precision import KVSpec
from ui.profiles.current import CurrentProfile
from ui.profiles.menu import ProfileButton, ProfileMenu
from ui.profiles.name_dialog import NameDialog
from ui.profiles.words import description


def entries(menu: ProfileMenu) -> dict[str, QAction]:
    menu.aboutToShow.emit()
    return {action.text().partition("\t")[0]: action for action in menu.actions() if action.text()}


@pytest.fixture
def menu(qtbot: QtBot, current: CurrentProfile) -> ProfileMenu:
    menu = ProfileMenu(current)
    qtbot.addWidget(menu)
    return menu


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (BUILT_IN[0], "8-bit, up to 12,288 tokens, summarizes old turns"),
        (BUILT_IN[1], "4-bit, attention budget, all that fits, asks when full"),
        (BUILT_IN[2], "8-bit, all that fits, asks when full"),
        (
            Profile("", KVSpec.parse("k8v4"), 512, Overflow.DROP, DocumentMode.WHOLE),
            "8-bit keys and 4-bit values, up to 512 tokens, drops old turns, asks about long documents",
        ),
        (
            Profile("", KVSpec.parse("0-3:8"), None, Overflow.ASK, DocumentMode.SEGMENTS),
            "mixed bits, all that fits, asks when full, long documents in segments",
        ),
    ],
)
def test_a_profile_says_in_a_line_what_it_does(profile: Profile, words: str) -> None:
    assert description(profile) == words


def test_every_profile_is_offered_and_the_present_one_ticked(
    menu: ProfileMenu, current: CurrentProfile
) -> None:
    current.choose("Code")
    current.save_as("R&D")
    shown = entries(menu)
    assert list(shown) == ["Chat", "Long document", "Code", "R&&D", CUSTOM, *list(shown)[-1:]]
    assert [name for name, action in shown.items() if action.isChecked()] == ["R&&D"]
    assert shown["Chat"].text().endswith("summarizes old turns")
    shown["Long document"].trigger()
    assert current.value == BUILT_IN[1]
    assert [name for name, action in entries(menu).items() if action.isChecked()] == ["Long document"]


def test_settings_of_the_conversations_own_are_ticked_with_what_they_are(
    menu: ProfileMenu, current: CurrentProfile
) -> None:
    current.update(max_context=4_096)
    custom = entries(menu)[CUSTOM]
    assert custom.isChecked()
    assert "up to 4,096 tokens" in custom.text()


def test_the_button_shows_the_profile(qtbot: QtBot, current: CurrentProfile) -> None:
    button = ProfileButton()
    qtbot.addWidget(button)
    button.connect_to(current)
    assert (button.text(), button.accessibleName()) == ("Chat", "Profile: Chat. Choose another")
    current.choose("Code")
    assert button.text() == "Code"
    assert "8-bit, all that fits" in button.toolTip()
    current.save_as("x" * 40)
    assert button.text().endswith("…")
    assert "x" * 40 in button.accessibleName()


def test_a_name_that_cannot_be_is_said_and_can_be_corrected(qtbot: QtBot, current: CurrentProfile) -> None:
    dialog = NameDialog("Save", "chat", current.save_as)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.save.click()
    assert dialog.isVisible()
    assert "comes with Octavo" in dialog.problem.text()
    dialog.field.setText("Mine")
    dialog.save.click()
    assert not dialog.isVisible()
    assert current.value == dataclasses.replace(BUILT_IN[0], name="Mine")
