from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QPushButton
from pytestqt.qtbot import QtBot

from engine.memory_limits import MemoryLimits
from tests.ui.inspector.memory.samples import GB
from ui.inspector.memory.limits_editor import LimitsEditor


@pytest.fixture
def editor(qtbot: QtBot) -> LimitsEditor:
    editor = LimitsEditor()
    qtbot.addWidget(editor)
    editor.set_total(16 * GB)
    editor.show()
    qtbot.waitExposed(editor)
    return editor


def changes(editor: LimitsEditor) -> list[MemoryLimits]:
    seen: list[MemoryLimits] = []
    editor.limits_changed.connect(seen.append)
    return seen


def test_without_a_limit_octavo_may_use_everything(editor: LimitsEditor) -> None:
    seen, box = changes(editor), editor.findChild(QCheckBox)
    assert not editor._most.isEnabled()
    box.click()
    assert editor._most.isEnabled()
    assert seen == [MemoryLimits(most_nbytes=16 * GB)]
    editor._most.setValue(6.5)
    box.click()
    assert [limits.most_nbytes for limits in seen] == [16 * GB, 6_500_000_000, None]


def test_each_field_changes_its_own_limit_only(editor: LimitsEditor) -> None:
    seen = changes(editor)
    editor._share.setValue(75)
    editor._reserve.setValue(2.5)
    assert seen == [
        MemoryLimits(safe_share=0.75),
        MemoryLimits(reserve_nbytes=2_500_000_000, safe_share=0.75),
    ]


def test_showing_limits_tells_nobody(editor: LimitsEditor) -> None:
    seen = changes(editor)
    editor.set_limits(MemoryLimits(4 * GB, 2 * GB, 0.5))
    assert (editor._most.value(), editor._reserve.value(), editor._share.value()) == (4.0, 2.0, 50)
    assert seen == []


def test_what_cannot_be_is_corrected_with_a_word(editor: LimitsEditor) -> None:
    editor.findChild(QCheckBox).click()
    editor._most.setValue(64)
    assert editor.limits.most_nbytes == 16 * GB
    assert editor.word == "This computer has 16.0 GB."
    editor._most.setValue(0.2)
    assert editor.limits.most_nbytes == 1 * GB
    assert editor.word == "Octavo needs 1.0 GB at least. At most half can be kept free: 500 MB."
    assert editor.limits.reserve_nbytes == GB // 2
    editor._share.setValue(3)
    assert editor.limits.safe_share == 0.1
    assert editor.word == "It can be from 10 to 100 %."
    editor._share.setValue(150)
    assert editor.limits.safe_share == 1.0
    editor._share.setValue(50)
    assert editor.word == ""


def test_a_reserve_leaves_half_of_the_memory(editor: LimitsEditor) -> None:
    editor._reserve.setValue(20)
    assert editor.limits.reserve_nbytes == 8 * GB
    assert editor._reserve.value() == 8.0
    assert editor.word == "At most half can be kept free: 8.0 GB."


def test_what_is_kept_free_comes_back_with_a_higher_limit(editor: LimitsEditor) -> None:
    editor.findChild(QCheckBox).click()
    editor._reserve.setValue(3)
    editor._most.setValue(4)
    assert editor.limits.reserve_nbytes == 2 * GB
    editor._share.setValue(50)
    editor._most.setValue(5)
    assert editor.limits.reserve_nbytes == 2_500_000_000
    editor._most.setValue(8)
    assert editor.limits.reserve_nbytes == 3 * GB
    assert editor.word == ""
    editor._most.setValue(4)
    editor._reserve.setValue(1)
    editor._most.setValue(8)
    assert editor.limits.reserve_nbytes == 1 * GB


def test_a_limit_is_told_once_it_is_typed(qtbot: QtBot, editor: LimitsEditor) -> None:
    editor.findChild(QCheckBox).click()
    seen = changes(editor)
    editor._most.setFocus()
    editor._most.selectAll()
    qtbot.keyClicks(editor._most, "12")
    assert seen == []
    qtbot.keyClick(editor._most, Qt.Key.Key_Return)
    assert [limits.most_nbytes for limits in seen] == [12 * GB]


def test_reset_brings_the_defaults_back(editor: LimitsEditor) -> None:
    editor.set_limits(MemoryLimits(4 * GB, 2 * GB, 0.5))
    seen = changes(editor)
    editor.findChild(QPushButton).click()
    assert seen == [MemoryLimits()]
    assert not editor.findChild(QPushButton).isEnabled()


def test_a_word_stays_when_the_settings_answer_with_what_was_set(editor: LimitsEditor) -> None:
    editor.limits_changed.connect(editor.set_limits)
    editor._share.setValue(3)
    editor.set_limits(MemoryLimits(safe_share=0.1))
    assert editor.word == "It can be from 10 to 100 %."
    editor.set_limits(MemoryLimits())
    assert editor.word == ""


def test_what_is_being_typed_stays_when_other_settings_change(qtbot: QtBot, editor: LimitsEditor) -> None:
    editor._reserve.setFocus()
    editor._reserve.selectAll()
    qtbot.keyClicks(editor._reserve, "3")
    editor.set_limits(MemoryLimits())
    assert editor._reserve.lineEdit().text().startswith("3")
