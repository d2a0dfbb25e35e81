"""The bars by layer, in step with all else in the panel, with a model that is described and not loaded."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from engine.backend import Backend, Device
from engine.kv.precision import KVSpec
from tests.ui.inspector.panels import loaded_model, shown
from ui.inspector.layer_bars import LayerBars
from ui.inspector.layer_figures import describe_layers
from ui.inspector.layer_strokes import Place
from ui.inspector.precision import PrecisionPanel
from ui.inspector.slider import Slider

STOP = {2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 8: 5, 16: 6}
LEFT, ALT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier
SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def panel(qtbot: QtBot) -> PrecisionPanel:
    panel = shown(qtbot, KVSpec.parse("4"))
    panel.set_model(loaded_model(30, 3))
    panel.activateWindow()
    return panel


@pytest.fixture
def keys(panel: PrecisionPanel) -> LayerBars:
    return panel._equalizer._keys


@pytest.fixture
def values(panel: PrecisionPanel) -> LayerBars:
    return panel._equalizer._values


def at(bars: LayerBars, layer: int, bits: int) -> QPoint:
    return bars.geometry_now.block(Place(layer, STOP[bits])).center()


def drag(qtbot: QtBot, bars: LayerBars, *stops: tuple[int, int]) -> None:
    qtbot.mousePress(bars, LEFT, pos=at(bars, *stops[0]))
    for stop in stops[1:]:
        qtbot.mouseMove(bars, at(bars, *stop))
    qtbot.mouseRelease(bars, LEFT, pos=at(bars, *stops[-1]))


def text(panel: PrecisionPanel) -> str:
    fields = panel.findChildren(QLineEdit)
    return next(field.text() for field in fields if field.accessibleName() == "KV cache precision as text")


def heights(bars: LayerBars) -> list[int]:
    return [bar.bits for bar in bars.bars]


def test_a_stroke_over_the_keys_paints_them_and_chooses_once_it_ends(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars, values: LayerBars
) -> None:
    specs, grabs = list[KVSpec](), list[bool]()
    panel.spec_chosen.connect(specs.append)
    panel.grabbed.connect(grabs.append)
    qtbot.mousePress(keys, LEFT, pos=at(keys, 2, 8))
    qtbot.mouseMove(keys, at(keys, 6, 8))
    assert grabs == [True]
    assert heights(keys) == [4] * 2 + [8] * 5 + [4] * 23
    assert (text(panel), specs) == ("4, 2-6:k8v4", [])
    qtbot.mouseRelease(keys, LEFT, pos=at(keys, 6, 8))
    assert specs == [KVSpec.parse("4, 2-6:k8v4")]
    assert grabs == [True, False]
    assert heights(values) == [4] * 30


def test_keys_and_values_are_painted_together_when_that_is_wanted(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars, values: LayerBars
) -> None:
    panel._equalizer.findChild(QCheckBox).click()
    drag(qtbot, values, (0, 16), (29, 16))
    assert panel.spec == KVSpec.parse("16")
    drag(qtbot, keys, (0, 8), (7, 8))
    assert panel.spec == KVSpec.parse("0-7:8")


def test_bars_sliders_presets_and_text_show_the_same(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars, values: LayerBars
) -> None:
    field = next(f for f in panel.findChildren(QLineEdit) if f.accessibleName().endswith("as text"))
    field.selectAll()
    qtbot.keyClicks(field, "0-7:8,8-:4")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert heights(keys) == heights(values) == [8] * 8 + [4] * 22
    slider = next(s for s in panel.findChildren(Slider) if s.accessibleName() == "Bits of a cached key")
    assert slider.accessibleDescription() == "mixed"
    qtbot.mousePress(slider, LEFT, pos=QPoint(slider.centre_of(STOP[16]), slider.height() // 2))
    assert (heights(keys), heights(values)) == ([16] * 30, [8] * 8 + [4] * 22)  # while it is held
    qtbot.mouseRelease(slider, LEFT)
    assert text(panel) == "0-7:k16v8, 8-:k16v4"
    drag(qtbot, keys, (0, 4), (29, 4))
    drag(qtbot, values, (0, 4), (29, 4))
    assert panel.spec == KVSpec.parse("4")
    assert [b.text() for b in panel.findChildren(QPushButton) if b.isChecked()] == ["Balanced"]
    assert slider.accessibleDescription() == "4 bits"


def test_a_stroke_that_an_ejected_model_cut_off_paints_no_more(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    loaded, grabs = panel._loaded, list[bool]()
    panel.grabbed.connect(grabs.append)
    qtbot.mousePress(keys, LEFT, pos=at(keys, 2, 8))
    panel.set_model(None)
    assert grabs == [True, False]
    panel.set_model(loaded)
    before = heights(keys)
    qtbot.mouseMove(keys, at(keys, 9, 2))
    painted = heights(keys)
    qtbot.mouseRelease(keys, LEFT, pos=at(keys, 9, 2))
    assert painted == heights(keys) == before


def test_a_double_click_and_alt_set_back_what_was_chosen_for_all(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    drag(qtbot, keys, (3, 16), (25, 16))
    qtbot.mouseDClick(keys, LEFT, pos=at(keys, 3, 2))
    assert heights(keys) == [4] * 4 + [16] * 22 + [4] * 4
    qtbot.mousePress(keys, LEFT, ALT, at(keys, 3, 8))
    qtbot.mouseMove(keys, at(keys, 29, 8))
    qtbot.mouseRelease(keys, LEFT, ALT, at(keys, 29, 8))
    assert panel.spec == KVSpec.parse("4")


@pytest.mark.parametrize(("chosen", "usual"), [("k6v3", 6), ("0-9:8, 10-:3", 3)])
def test_what_is_set_back_gets_what_most_layers_had_before_the_strokes(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars, chosen: str, usual: int
) -> None:
    panel.set_spec(KVSpec.parse(chosen))
    drag(qtbot, keys, (0, 16), (29, 16))
    qtbot.mouseDClick(keys, LEFT, pos=at(keys, 3, 2))
    assert heights(keys) == [16] * 3 + [usual] + [16] * 26


def test_the_keyboard_moves_extends_changes_and_sets_back(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    keys.setFocus()
    qtbot.keyClick(keys, Qt.Key.Key_End)
    qtbot.keyClick(keys, Qt.Key.Key_Left)
    qtbot.keyClick(keys, Qt.Key.Key_Up)
    assert text(panel) == "4, 28:k5v4"
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_PageUp):
        qtbot.keyClick(keys, key, SHIFT)
    qtbot.keyClick(keys, Qt.Key.Key_Down)
    assert text(panel) == "4, 18-28:k3v4"
    qtbot.keyClick(keys, Qt.Key.Key_Delete)
    assert text(panel) == "4"
    qtbot.keyClick(keys, Qt.Key.Key_Home)
    for _ in range(9):
        qtbot.keyClick(keys, Qt.Key.Key_Up)
    assert text(panel) == "0:k16v4, 1-:4"


def test_strokes_are_taken_back_one_by_one_until_something_else_is_chosen(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars, values: LayerBars
) -> None:
    drag(qtbot, keys, (1, 8), (2, 8))
    drag(qtbot, values, (0, 2), (29, 2))
    qtbot.keyClick(values, Qt.Key.Key_Z, CTRL)
    assert text(panel) == "4, 1-2:k8v4"
    qtbot.keyClick(keys, Qt.Key.Key_Z, CTRL)
    qtbot.keyClick(keys, Qt.Key.Key_Z, CTRL)
    assert text(panel) == "4"
    drag(qtbot, keys, (1, 8), (2, 8))
    panel.set_spec(KVSpec.parse("8"))
    qtbot.keyClick(keys, Qt.Key.Key_Z, CTRL)
    assert text(panel) == "8"


def test_heads_with_rules_of_their_own_are_marked_and_kept(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    panel.set_spec(KVSpec.parse("4, 12.h1:8, 20-22.h2:k16v4; warm=7"))
    marked = [layer for layer, bar in enumerate(keys.bars) if bar.has_heads]
    assert marked == [12, 20, 21, 22]
    drag(qtbot, keys, (10, 2), (14, 2))
    assert panel.spec == KVSpec.parse("4, 10-14:k2v4, 12.h1:8, 20-22.h2:k16v4; warm=7")
    assert "head 1 has 8" in describe_layers(panel.spec, loaded_model(30, 3), 12, 12)


def test_the_layers_of_a_float32_model_take_four_bytes_on_metal() -> None:
    described = loaded_model(2, 1)
    loaded = dataclasses.replace(
        described,
        info=dataclasses.replace(described.info, is_float32=True),
        backend=Backend(Device.METAL, None),
    )
    # 2 layers x (64 keys and 64 values) x 4 bytes.
    assert describe_layers(KVSpec.parse("16"), loaded, 0, 1).endswith("1.0 KB of 1.0 KB a token")


def test_a_layer_says_what_it_has_and_costs(qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars) -> None:
    # On the CPU scales and biases have 4 bytes: 3 heads of 64 keys at 8 bits and 64 values at 4, by 64.
    layer, rest = 3 * (64 * 9 + 64 * 5) / 8, 29 * 3 * (64 * 5 + 64 * 5) / 8
    assert (layer, layer + rest) == (336, 7_296)
    drag(qtbot, keys, (12, 8))
    qtbot.mouseMove(keys, at(keys, 12, 2))
    said = panel._equalizer._said
    assert said.text() == "Layer 12: keys 8, values 4 bits, 336 bytes of 7.3 KB a token"
    keys.setFocus()
    qtbot.keyClick(keys, Qt.Key.Key_Left, SHIFT)
    qtbot.mouseMove(keys, QPoint(1, 1))
    assert said.text().startswith("Layers 11–12: keys 4–8, values 4 bits, ")


def test_a_screen_reader_is_told_the_layer_and_its_bits(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    def name() -> str:
        return QAccessible.queryAccessibleInterface(keys).text(QAccessible.Text.Name)

    qtbot.keyClick(keys, Qt.Key.Key_Right)
    assert name() == "Keys of layer 1: 4 bits"
    qtbot.keyClick(keys, Qt.Key.Key_Up)
    assert name() == "Keys of layer 1: 5 bits"
    qtbot.keyClick(keys, Qt.Key.Key_Right, SHIFT)
    assert name() == "Keys of layers 1 to 2, at layer 2: 4 bits"


def test_layers_without_pages_are_shown_as_such_and_cannot_be_set_alone(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    panel.set_model(loaded_model(12, 3, paged_every=4))
    assert [layer for layer, bar in enumerate(keys.bars) if bar.is_paged] == [0, 4, 8]
    drag(qtbot, keys, (1, 8), (3, 8))
    assert text(panel) == "4"
    drag(qtbot, keys, (0, 8), (11, 8))
    assert text(panel) == "k8v4"
    qtbot.mouseMove(keys, at(keys, 5, 8))
    said = panel._equalizer._said.text()
    assert said == "Layer 5: not paged. The model's own cache keeps 16 bits."
    qtbot.mouseMove(keys, at(keys, 4, 8))
    # 3 heads of 64 keys at 8 bits and 64 values at 4, with scales and biases of 4 bytes for 64 of them
    assert panel._equalizer._said.text() == ("Layer 4: keys 8, values 4 bits, 336 bytes of 1.0 KB a token")


def test_without_a_model_there_are_no_bars_to_reach(
    qtbot: QtBot, panel: PrecisionPanel, keys: LayerBars
) -> None:
    panel.set_model(None)
    assert keys.bars == ()
    assert not keys.isEnabled()
    assert panel._equalizer._said.text() == "Load a model to set its layers one by one."
    assert text(panel) == "4"
