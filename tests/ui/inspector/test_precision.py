"""The choices in the panel of the KV precision, without a model."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QSpinBox, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from engine.errors import OctavoError
from engine.kv.precision import KV_BITS, PRESETS, BitsPair, KVSpec
from tests.ui.inspector.panels import CUSTOM, loaded_model, shown
from ui.inspector.precision import PrecisionPanel
from ui.inspector.slider import Slider

KEYS, VALUES = "Bits of a cached key", "Bits of a cached value"
TEXT = "KV cache precision as text"
W = TypeVar("W", bound=QWidget)


def named(panel: QWidget, kind: type[W], name: str) -> W:
    return next(widget for widget in panel.findChildren(kind) if widget.accessibleName() == name)


def chosen(panel: PrecisionPanel) -> list[KVSpec]:
    """Collect what the user chooses from now on."""
    specs: list[KVSpec] = []
    panel.spec_chosen.connect(specs.append)
    return specs


def checked(panel: PrecisionPanel) -> list[str]:
    return [button.text() for button in panel.findChildren(QPushButton) if button.isChecked()]


def test_every_stop_of_a_slider_is_a_precision_and_the_keyboard_reaches_it(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    specs = chosen(panel)
    slider = named(panel, Slider, KEYS)
    qtbot.keyClick(slider, Qt.Key.Key_End)
    for _ in KV_BITS[1:]:
        qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert [spec.bits(0, 0) for spec in specs] == [BitsPair(bits, 8) for bits in KV_BITS]
    assert slider.accessibleDescription() == "2 bits"
    qtbot.keyClick(named(panel, Slider, VALUES), Qt.Key.Key_Home)
    assert specs[-1] == KVSpec.parse("2")


def test_a_slider_that_is_dragged_chooses_once_it_is_let_go(qtbot: QtBot, panel: PrecisionPanel) -> None:
    panel.set_spec(KVSpec.parse("16"))
    specs = chosen(panel)
    slider = named(panel, Slider, VALUES)
    places = [QPoint(slider.centre_of(stop), slider.height() // 2) for stop in range(len(KV_BITS))]
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=places[-1])
    for place in reversed(places):
        qtbot.mouseMove(slider, place)
    assert slider.value() == 0
    assert specs == []
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=places[0])
    assert specs == [KVSpec.parse("k16v2")]


def test_another_mouse_button_ends_no_drag(qtbot: QtBot, panel: PrecisionPanel) -> None:
    panel.set_spec(KVSpec.parse("16"))
    specs = chosen(panel)
    slider = named(panel, Slider, KEYS)
    top, bottom = (QPoint(slider.centre_of(stop), slider.height() // 2) for stop in (len(KV_BITS) - 1, 0))
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=top)
    qtbot.mouseMove(slider, bottom)
    qtbot.mouseClick(slider, Qt.MouseButton.RightButton, pos=bottom)
    qtbot.mouseMove(slider, top)
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=top)
    assert specs == []


@pytest.mark.parametrize("bits", KV_BITS)
def test_a_press_on_a_number_or_on_the_groove_above_it_moves_the_handle_there(
    qtbot: QtBot, panel: PrecisionPanel, bits: int
) -> None:
    slider = named(panel, Slider, KEYS)
    stop = sorted(KV_BITS).index(bits)
    for nudge in (-6, 0, 6):
        panel.set_spec(KVSpec.parse("2" if bits == 16 else "16"))
        place = QPoint(slider.centre_of(stop) + nudge, slider.height() // 2)
        qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=place)
        assert panel.spec.bits(0, 0).keys == bits
        assert not slider.isSliderDown()
    panel.set_spec(KVSpec.parse("2" if bits == 16 else "16"))
    stops = slider.parentWidget().layout().itemAt(2).widget()
    qtbot.mouseClick(stops, Qt.MouseButton.LeftButton, pos=QPoint(slider.centre_of(stop), 5))
    assert panel.spec.bits(0, 0).keys == bits


def test_a_preset_is_down_exactly_while_it_is_what_is_chosen(qtbot: QtBot, panel: PrecisionPanel) -> None:
    specs = chosen(panel)
    for name, spec in PRESETS.items():
        named(panel, QPushButton, f"{name.capitalize()} KV cache precision").click()
        assert specs[-1] == panel.spec == spec
        assert checked(panel) == [name.capitalize()]
    named(panel, QSpinBox, "Hot pages").setValue(7)
    assert checked(panel) == []
    named(panel, QSpinBox, "Hot pages").setValue(PRESETS["compact"].hot_pages)
    assert checked(panel) == ["Compact"]


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_keeps_page_and_group_size_which_cost_a_re_read(panel: PrecisionPanel, name: str) -> None:
    panel.set_model(loaded_model(30, 3))
    panel.set_spec(KVSpec.parse("k6v3; page=128, group=32, hot=3, warm=7, attend=4, grow=1"))
    button = named(panel, QPushButton, f"{name.capitalize()} KV cache precision")
    before = button.toolTip()
    specs = chosen(panel)
    button.click()
    assert specs == [dataclasses.replace(PRESETS[name], page_tokens=128, group_size=32)]
    assert checked(panel) == [name.capitalize()]
    panel.set_spec(dataclasses.replace(specs[0], page_tokens=512, group_size=128))
    assert checked(panel) == [name.capitalize()]
    assert button.toolTip() != before
    panel.set_spec(dataclasses.replace(specs[0], attention_pages=8))
    assert checked(panel) == []


def test_rules_by_layer_are_shown_and_outlive_every_other_change(qtbot: QtBot) -> None:
    panel = shown(qtbot, CUSTOM)
    assert named(panel, QLineEdit, TEXT).text() == str(CUSTOM)
    assert named(panel, Slider, KEYS).accessibleDescription() == "mixed"
    assert named(panel, QComboBox, "Attention budget").currentText() == "10 pages"
    named(panel, QSpinBox, "Warm pages").setValue(3)
    assert panel.spec == dataclasses.replace(CUSTOM, warm_pages=3)
    qtbot.mouseClick(named(panel, Slider, KEYS), Qt.MouseButton.LeftButton, pos=handle_of(panel, KEYS))
    assert panel.spec.rules == CUSTOM.rules


def handle_of(panel: PrecisionPanel, name: str) -> QPoint:
    slider = named(panel, Slider, name)
    return QPoint(slider.centre_of(slider.value()), slider.height() // 2)


def test_the_slider_of_values_leaves_the_keys_of_each_layer(qtbot: QtBot) -> None:
    panel = shown(qtbot, CUSTOM)
    panel.set_model(loaded_model(30, 3))
    qtbot.keyClick(named(panel, Slider, VALUES), Qt.Key.Key_Left)
    rest = "page=128, group=32, hot=2, warm=0, attend=10, grow=1"
    assert panel.spec == KVSpec.parse(f"0-7:k8v3, 8-:k6v3; {rest}")
    assert named(panel, Slider, KEYS).accessibleDescription() == "mixed"
    assert named(panel, Slider, VALUES).accessibleDescription() == "3 bits"
    qtbot.keyClick(named(panel, Slider, KEYS), Qt.Key.Key_Left)
    assert panel.spec == KVSpec.parse(f"k5v3; {rest}")


def test_a_press_on_the_number_at_which_a_mixed_slider_stands_gives_it_to_all(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    panel.set_model(loaded_model(30, 3))
    panel.set_spec(KVSpec.parse("0-7:8, 8-:4"))
    slider = named(panel, Slider, KEYS)
    stops = slider.parentWidget().layout().itemAt(2).widget()
    qtbot.mouseClick(stops, Qt.MouseButton.LeftButton, pos=QPoint(handle_of(panel, KEYS).x(), 5))
    assert panel.spec == KVSpec.parse("0-7:k4v8, 8-:4")


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("Page size", "512 tokens", {"page_tokens": 512}),
        ("Group size", "128", {"group_size": 128}),
        ("Attention budget", "16 pages", {"attention_pages": 16}),
        ("Attention budget", "off", {"attention_pages": None}),
    ],
)
def test_each_choice_sets_its_field(
    qtbot: QtBot, panel: PrecisionPanel, name: str, text: str, changes: dict[str, int]
) -> None:
    before = KVSpec.parse("0-7:8; attend=4")
    panel.set_spec(before)
    pick(qtbot, panel, name, text)
    assert panel.spec == dataclasses.replace(before, **changes)


def pick(qtbot: QtBot, panel: PrecisionPanel, name: str, text: str) -> None:
    """Go to a choice with the arrow keys."""
    if not panel._details.isVisible():
        panel.findChild(QToolButton).click()
    combo = named(panel, QComboBox, name)
    steps = combo.findText(text) - combo.currentIndex()
    for _ in range(abs(steps)):
        qtbot.keyClick(combo, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)
    assert combo.currentText() == text


def test_a_budget_that_grows_is_a_choice_while_there_is_a_budget(qtbot: QtBot, panel: PrecisionPanel) -> None:
    grows = next(box for box in panel.findChildren(QCheckBox) if box.text() == "Let attention grow")
    assert not grows.isEnabled()
    pick(qtbot, panel, "Attention budget", "8 pages")
    grows.click()
    assert panel.spec == KVSpec.parse("8; attend=8, grow=1")
    pick(qtbot, panel, "Attention budget", "4 pages")
    assert panel.spec == KVSpec.parse("8; attend=4, grow=1")
    pick(qtbot, panel, "Attention budget", "off")
    assert panel.spec == KVSpec.parse("8")
    assert not grows.isChecked() and not grows.isEnabled()


def test_a_group_never_outgrows_its_page(qtbot: QtBot, panel: PrecisionPanel) -> None:
    panel.set_spec(KVSpec.parse("8; page=256, group=128"))
    pick(qtbot, panel, "Page size", "64 tokens")
    assert (panel.spec.page_tokens, panel.spec.group_size) == (64, 64)
    group = named(panel, QComboBox, "Group size")
    assert [group.itemText(index) for index in range(group.count())] == ["32", "64"]


def test_a_number_of_pages_that_is_typed_counts_once_it_is_complete(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    panel.findChild(QToolButton).click()
    specs = chosen(panel)
    spin = named(panel, QSpinBox, "Warm pages")
    spin.selectAll()
    qtbot.keyClicks(spin, "120")
    assert specs == []
    qtbot.keyClick(spin, Qt.Key.Key_Return)
    assert specs == [KVSpec.parse("8; warm=120")]


def test_the_text_is_the_whole_precision_and_what_cannot_be_is_said(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    specs = chosen(panel)
    field = named(panel, QLineEdit, "KV cache precision as text")
    assert field.text() == "8"
    field.selectAll()
    qtbot.keyClicks(field, "0-7:8, 8-:7")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert panel._text.problem == "'7' is no KV precision; choose 16, 8, 6, 5, 4, 3 or 2 bits."
    assert specs == []
    qtbot.keyClick(field, Qt.Key.Key_Backspace)
    assert panel._text.problem == ""
    qtbot.keyClicks(field, "k6v4;grow=1,attend=10,hot=2,warm=0,group=32,page=128")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert specs == [CUSTOM]
    assert field.text() == str(CUSTOM)


@pytest.mark.parametrize("text", ["0-99:8", "12.h3:8", "30:4"])
def test_a_text_for_layers_or_heads_that_the_model_lacks_is_refused_like_one_that_cannot_be(
    qtbot: QtBot, panel: PrecisionPanel, text: str
) -> None:
    panel.set_model(loaded_model(30, 3))
    specs = chosen(panel)
    field = named(panel, QLineEdit, "KV cache precision as text")
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    with pytest.raises(OctavoError) as refusal:
        KVSpec.parse(text).require_fit(30, 3)
    assert panel._text.problem == str(refusal.value)
    assert specs == [] and panel.spec == KVSpec.parse("8")
    assert field.text() == text
    panel.set_model(None)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert specs == [KVSpec.parse(text)]
    panel.set_model(loaded_model(30, 3))
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert panel._text.problem == ""  # it is the present one, of which the figures tell


def test_a_field_that_is_folded_away_gives_the_focus_to_the_line_above_it(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    toggle = panel.findChild(QToolButton)
    toggle.click()
    named(panel, QComboBox, "Page size").setFocus()
    qtbot.mouseClick(toggle, Qt.MouseButton.LeftButton)
    assert panel.window().focusWidget() is toggle


def test_the_rest_is_folded_away_until_it_is_wanted(panel: PrecisionPanel) -> None:
    toggle = panel.findChild(QToolButton)
    assert toggle.text() == "More"
    assert not panel._details.isVisible()
    toggle.click()
    assert panel._details.isVisible()
    toggle.click()
    assert not panel._details.isVisible()
