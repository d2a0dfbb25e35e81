from __future__ import annotations

import dataclasses

import pytest
from pytestqt.qtbot import QtBot

from app.store.prefixes.records import GB, PrefixFigures, PrefixSettings
from engine.prefixes.records import SaveMode
from ui.prefixes.settings_editor import MODE_WORDS, PrefixSettingsEditor

FIGURES = PrefixFigures(0, 0, 10 * GB, 0, 20 * GB, 0, 0, 0, 0, 0, None)


@pytest.fixture
def editor(qtbot: QtBot) -> PrefixSettingsEditor:
    editor = PrefixSettingsEditor()
    qtbot.addWidget(editor)
    return editor


def choose(editor: PrefixSettingsEditor, mode: SaveMode) -> None:
    """Choose a mode as a user does."""
    index = editor._mode.findData(mode.value)
    editor._mode.setCurrentIndex(index)
    editor._mode.activated.emit(index)


def test_each_mode_can_be_chosen_and_says_what_it_means(qtbot: QtBot, editor: PrefixSettingsEditor) -> None:
    meanings = set()
    for mode in (SaveMode.NEVER, SaveMode.DOCUMENTS, SaveMode.EVERYTHING):
        with qtbot.waitSignal(editor.settings_changed) as changed:
            choose(editor, mode)
        assert changed.args == [PrefixSettings(mode)]
        meanings.add(editor._meaning.text())
    assert meanings == {meaning for _, meaning in MODE_WORDS.values()}
    assert len(meanings) == 3


def test_limits_are_set_in_gigabytes_and_one_leaves_the_other(
    qtbot: QtBot, editor: PrefixSettingsEditor
) -> None:
    with qtbot.waitSignal(editor.settings_changed) as changed:
        editor._most.setValue(2.5)
    assert changed.args == [PrefixSettings(most_nbytes=2_500_000_000)]
    with qtbot.waitSignal(editor.settings_changed) as changed:
        editor._written.setValue(7)
    assert changed.args == [PrefixSettings(most_nbytes=2_500_000_000, most_written_nbytes=7 * GB)]


def test_settings_that_are_shown_stay_to_the_byte(qtbot: QtBot, editor: PrefixSettingsEditor) -> None:
    settings = PrefixSettings(SaveMode.DOCUMENTS, 2_345_678_901, 1_234_567_890)
    with qtbot.assertNotEmitted(editor.settings_changed):
        editor.set_settings(settings)
    with qtbot.waitSignal(editor.settings_changed) as changed:
        choose(editor, SaveMode.NEVER)
    assert changed.args == [dataclasses.replace(settings, mode=SaveMode.NEVER)]


def test_a_limit_that_is_too_small_is_corrected_and_that_is_said(editor: PrefixSettingsEditor) -> None:
    editor._most.setValue(0)
    assert editor.settings.most_nbytes == 100_000_000
    assert editor._most.value() == 0.1
    assert "The least is 100 MB" in editor.word
    editor._most.setValue(3)
    assert editor.word == ""


def test_what_the_disk_leaves_is_said_where_it_is_less_than_the_limit(editor: PrefixSettingsEditor) -> None:
    editor.show_figures(FIGURES)
    assert "Never more than 10% of the free disk. " in editor._limit.text()
    editor.show_figures(dataclasses.replace(FIGURES, most_nbytes=4_200_000_000))
    assert "10% of the free disk: 4.2 GB now. " in editor._limit.text()
    editor._most.setValue(4)
    assert "now" not in editor._limit.text()
