from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtWidgets import QLabel, QSpinBox
from pytestqt.qtbot import QtBot

from app.profiles import BUILT_IN, Overflow, require_trim
from ui.profiles.trim_fields import TrimFields


@pytest.fixture
def fields(qtbot: QtBot) -> TrimFields:
    fields = TrimFields()
    qtbot.addWidget(fields)
    fields.show_profile(BUILT_IN[0])
    return fields


def field(fields: TrimFields, name: str) -> QSpinBox:
    return next(box for box in fields.findChildren(QSpinBox) if box.accessibleName() == name)


def test_a_threshold_and_a_ratio_are_set_in_per_cent(fields: TrimFields, qtbot: QtBot) -> None:
    assert (field(fields, "Begin at").value(), field(fields, "Keep").value()) == (100, 60)
    with qtbot.waitSignal(fields.changed) as told:
        field(fields, "Keep").setValue(45)
    assert told.args == [1.0, 0.45]


@pytest.mark.parametrize(("name", "value"), [("Begin at", 40), ("Begin at", 60), ("Keep", 90)])
def test_what_is_kept_stays_below_the_threshold(
    fields: TrimFields, qtbot: QtBot, name: str, value: int
) -> None:
    with qtbot.waitSignal(fields.changed) as told:
        field(fields, name).setValue(value)
    require_trim(*told.args)
    assert field(fields, name).value() == value
    shown = field(fields, "Begin at").value() / 100, field(fields, "Keep").value() / 100
    assert shown == tuple(told.args)


def test_showing_a_profile_changes_nothing(fields: TrimFields, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(fields.changed):
        fields.show_profile(dataclasses.replace(BUILT_IN[0], trim_at=0.5, keep_ratio=0.25))
    assert (field(fields, "Begin at").value(), field(fields, "Keep").value()) == (50, 25)


def test_nothing_is_set_where_nothing_leaves(fields: TrimFields) -> None:
    fields.show_profile(dataclasses.replace(BUILT_IN[0], overflow=Overflow.OFF))
    assert fields.isHidden()
    fields.show_profile(BUILT_IN[0])
    assert not fields.isHidden()


def test_what_is_typed_out_of_bounds_becomes_the_nearest_and_the_bounds_are_told(fields: TrimFields) -> None:
    begin = field(fields, "Begin at")
    begin.lineEdit().setText("1 %")
    begin.interpretText()
    assert begin.value() == 40
    told = " ".join(label.text() for label in fields.findChildren(QLabel))
    assert "Begin at 40% or more." in told and "less than where it begins" in told
