from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QPushButton, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.profiles import BUILT_IN, CUSTOM, DocumentMode, Overflow
from app.store.conversations import ConversationStore
from engine.kv.precision import KVSpec
from tests.ui.inspector.panels import loaded_model
from ui.profiles.current import CurrentProfile
from ui.profiles.editor import ProfileEditor


@pytest.fixture
def editor(qtbot: QtBot, current: CurrentProfile) -> ProfileEditor:
    editor = ProfileEditor(current)
    qtbot.addWidget(editor)
    editor.resize(238, 400)
    editor.show()
    return editor


def combo(editor: ProfileEditor, name: str) -> QComboBox:
    return next(box for box in editor.findChildren(QComboBox) if box.accessibleName() == name)


def choose(box: QComboBox, text: str) -> None:
    box.setCurrentText(text)
    box.activated.emit(box.currentIndex())


def buttons(editor: ProfileEditor) -> dict[str, QPushButton]:
    return {button.text(): button for button in editor.findChildren(QPushButton) if not button.isHidden()}


def texts(editor: ProfileEditor) -> list[str]:
    return [label.text() for label in editor.findChildren(QLabel) if not label.isHidden()]


def test_each_field_changes_its_setting_and_nothing_else(
    editor: ProfileEditor, current: CurrentProfile
) -> None:
    editor.findChild(QSpinBox).setValue(4_096)
    choose(combo(editor, "When the context is full"), "Ask what to do")
    choose(combo(editor, "Documents that do not fit whole"), "In segments")
    value = current.value
    assert (value.name, value.kv, value.max_context) == (CUSTOM, BUILT_IN[0].kv, 4_096)
    assert (value.overflow, value.document_mode) == (Overflow.ASK, DocumentMode.SEGMENTS)
    assert "Custom, changed from Chat" in texts(editor)


def test_the_limit_can_be_taken_away_and_comes_back_as_it_was(
    editor: ProfileEditor, current: CurrentProfile
) -> None:
    spin, limits = editor.findChild(QSpinBox), editor.findChild(QCheckBox)
    spin.setValue(4_096)
    limits.setChecked(False)
    assert current.value.max_context is None
    assert not spin.isEnabled()
    limits.setChecked(True)
    assert (current.value.max_context, spin.isEnabled()) == (4_096, True)


def test_another_conversations_settings_are_shown_and_not_changed(
    editor: ProfileEditor, current: CurrentProfile, store: ConversationStore
) -> None:
    current.choose("Long document")
    conversation = store.create_conversation()
    store.set_profile(conversation.id, BUILT_IN[0])
    current.open(store.conversation(conversation.id))
    assert current.value == BUILT_IN[0]
    assert editor.findChild(QSpinBox).value() == 12_288
    assert combo(editor, "When the context is full").currentText() == "Summarize old turns"
    assert combo(editor, "Documents that do not fit whole").currentText() == "In segments or look up"


def test_built_in_profiles_can_be_copied_and_not_changed(
    editor: ProfileEditor, current: CurrentProfile
) -> None:
    assert set(buttons(editor)) == {"Copy"}
    current.copy()
    assert set(buttons(editor)) == {"Copy", "Rename…", "Delete"}
    buttons(editor)["Delete"].click()
    assert current.own == ()
    assert current.value.name == CUSTOM


def test_a_change_can_be_kept_in_the_own_profile_or_taken_back(
    editor: ProfileEditor, current: CurrentProfile
) -> None:
    current.update(kv=KVSpec.parse("4"))
    assert set(buttons(editor)) == {"Back to Chat", "Save as a profile…"}
    buttons(editor)["Back to Chat"].click()
    assert current.value == BUILT_IN[0]
    current.save_as("Papers")
    current.update(max_context=2_048)
    buttons(editor)["Save in Papers"].click()
    assert (current.value.name, current.own[0].max_context) == ("Papers", 2_048)


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (4_096, lambda fitting: f"{fitting:,} tokens fit now."),
        (9_000, lambda fitting: f"The model itself has {fitting:,} tokens."),
    ],
)
def test_a_limit_beyond_what_fits_is_said_and_stays(
    editor: ProfileEditor, current: CurrentProfile, limit: int, sentence: Callable[[int], str]
) -> None:
    current.update(max_context=limit)
    editor.set_model(loaded_model(4, 2))
    assert sentence(8_192) in texts(editor)
    assert current.value.max_context == limit


def test_everything_that_takes_the_focus_has_a_name(editor: ProfileEditor, current: CurrentProfile) -> None:
    current.save_as("Papers")
    current.update(max_context=2_048)
    kinds = (QComboBox, QSpinBox, QCheckBox, QPushButton)
    widgets: list[QWidget] = [widget for kind in kinds for widget in editor.findChildren(kind)]
    shown = [widget for widget in widgets if widget.isVisible()]
    assert len(shown) == 9
    names = [QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name) for widget in shown]
    assert all(names)
