from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSlider,
    QSpinBox,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.settings import Settings, load_settings
from app.store.conversations import ConversationStore
from engine.kv.precision import PRESETS, KVSpec
from engine.sampling import SamplingParams
from tests.app.store.samples import USAGE
from ui.inspector.fold import Fold
from ui.inspector.pane import InspectorPane
from ui.inspector.precision_text import PrecisionText
from ui.live_precision import HeldCache
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings
from ui.theme import Theme


@pytest.fixture
def stored(qtbot: QtBot, tmp_path: Path) -> StoredSettings:
    return StoredSettings(tmp_path / "settings.toml", Settings())


@pytest.fixture
def profile(stored: StoredSettings, tmp_path: Path) -> Iterator[CurrentProfile]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    profile = CurrentProfile(store, stored)
    profile.open(store.create_conversation())
    yield profile
    profile.save()
    store.close()


@pytest.fixture
def pane(qtbot: QtBot, stored: StoredSettings, profile: CurrentProfile) -> InspectorPane:
    pane = InspectorPane(stored, profile)
    qtbot.addWidget(pane)
    pane.show()
    return pane


def shown_area(pane: InspectorPane) -> QScrollArea:
    """What the panel that is shown scrolls in."""
    return next(area for area in pane.findChildren(QScrollArea) if area.isVisible())


def unfold(pane: InspectorPane) -> None:
    """Show the part of the precision that is folded away."""
    pane.precision.findChild(Fold).findChild(QToolButton).click()


def named(pane: QWidget, kind: type, name: str) -> QWidget:
    return next(
        widget
        for widget in pane.findChildren(kind)
        if name in (widget.accessibleName(), widget.text() if hasattr(widget, "text") else "")
    )


@pytest.mark.parametrize("panel", ["Chat", "Precision", "Context", "Memory", "Pages"])
def test_nothing_is_wider_than_the_narrowest_pane(qtbot: QtBot, pane: InspectorPane, panel: str) -> None:
    Theme.current().set_choice("light")
    pane.set_held(HeldCache(1, KVSpec.parse("2; page=64"), USAGE), True)
    unfold(pane)
    named(pane, QDoubleSpinBox, "Repetition penalty").setValue(1)
    pane.tabs.show_panel(panel)
    pane.memory.show_figures()
    area = shown_area(pane)
    room = pane.minimumWidth() - area.verticalScrollBar().sizeHint().width()
    assert area.widget().minimumSizeHint().width() <= room
    assert pane.tabs.minimumSizeHint().width() <= pane.minimumWidth()


def test_the_panel_whose_title_is_pressed_is_shown(qtbot: QtBot, pane: InspectorPane) -> None:
    assert pane.chat.isVisible() and not pane.precision.isVisible()
    with qtbot.waitSignal(pane.tabs.current_changed) as changed:
        named(pane, QPushButton, "Precision panel").click()
    assert changed.args == ["Precision"]
    assert pane.precision.isVisible() and not pane.chat.isVisible()


def test_a_panel_that_there_is_not_changes_nothing(pane: InspectorPane) -> None:
    pane.tabs.show_panel("Precision")
    pane.tabs.show_panel("")
    assert pane.tabs.current == "Precision"


def test_slider_and_number_of_a_sampling_setting_agree(pane: InspectorPane, stored: StoredSettings) -> None:
    named(pane, QDoubleSpinBox, "Temperature").setValue(1.25)
    assert named(pane, QSlider, "Temperature slider").value() == 25
    assert stored.value.sampling.temperature == 1.25
    named(pane, QSlider, "Temperature slider").setValue(4)
    assert stored.value.sampling.temperature == 0.2


def test_a_slider_comes_to_where_it_is_pressed_and_follows_the_mouse(
    qtbot: QtBot, pane: InspectorPane, stored: StoredSettings
) -> None:
    slider = named(pane, QSlider, "Top-p slider")
    middle = slider.rect().center()
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=middle)
    assert stored.value.sampling.top_p == pytest.approx(0.5, abs=0.01)
    qtbot.mouseMove(slider, QPoint(slider.width() // 4, middle.y()))
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 4, middle.y()))
    assert stored.value.sampling.top_p == pytest.approx(0.25, abs=0.03)


def test_the_wheel_is_left_to_the_pane_and_changes_no_value(
    pane: InspectorPane, stored: StoredSettings
) -> None:
    kinds = (QSlider, QAbstractSpinBox, QComboBox)
    for widget in [widget for kind in kinds for widget in pane.findChildren(kind)]:
        centre = QPointF(widget.rect().center())
        event = QWheelEvent(
            centre,
            widget.mapToGlobal(centre),
            QPoint(),
            QPoint(0, -120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(widget, event)
        assert not event.isAccepted()
    assert stored.value == Settings()


@pytest.mark.parametrize(
    ("panel", "kept_name", "num_fields"), [("Chat", "Reset to defaults", 13), ("Precision", "Compact", 6)]
)
def test_the_wheel_gives_no_field_the_focus(
    qtbot: QtBot, pane: InspectorPane, panel: str, kept_name: str, num_fields: int
) -> None:
    pane.tabs.show_panel(panel)
    unfold(pane)
    pane.resize(pane.minimumWidth(), 1_400)
    pane.activateWindow()
    qtbot.waitExposed(pane)
    kept = named(pane.chat if panel == "Chat" else pane.precision, QPushButton, kept_name)
    named(pane, QDoubleSpinBox, "Top-k").setValue(7)
    kept.setFocus()
    window = pane.windowHandle()
    kinds = (QSlider, QAbstractSpinBox, QComboBox, QPlainTextEdit, QLineEdit)
    fields = [widget for kind in kinds for widget in pane.findChildren(kind) if widget.isVisible()]
    assert len(fields) > num_fields
    for field in fields:
        place = field.mapTo(pane, field.rect().center())
        assert pane.rect().contains(place)
        QTest.wheelEvent(window, QPointF(place), QPoint(0, -120))
        assert pane.focusWidget() is kept, field.accessibleName()


def test_what_the_mouse_presses_stays_there_while_a_reason_appears(
    qtbot: QtBot, pane: InspectorPane, profile: CurrentProfile
) -> None:
    pane.tabs.show_panel("Precision")
    unfold(pane)
    pane.resize(pane.minimumWidth(), 400)
    pane.activateWindow()
    qtbot.waitExposed(pane)
    field = named(pane, QLineEdit, "KV cache precision as text")
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "7")
    compact = named(pane, QPushButton, "Compact")
    place = compact.mapTo(pane, compact.rect().center())
    with qtbot.waitSignal(pane.precision.text_refused), qtbot.waitSignal(pane._reveal_timer.timeout):
        QTest.mousePress(pane.windowHandle(), Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseRelease(pane.windowHandle(), Qt.MouseButton.LeftButton, pos=place)
    assert profile.value.kv == PRESETS["compact"]


def test_a_reason_that_appears_below_the_bottom_is_scrolled_to(qtbot: QtBot, pane: InspectorPane) -> None:
    pane.tabs.show_panel("Precision")
    unfold(pane)
    area, text = shown_area(pane), pane.findChild(PrecisionText)
    field = named(pane, QLineEdit, "KV cache precision as text")
    for height in (300, 480, 560):
        pane.resize(pane.minimumWidth(), height)
        qtbot.waitUntil(lambda: pane.height() == height)  # noqa: B023
        area.verticalScrollBar().setValue(0)
        field.selectAll()
        qtbot.keyClicks(field, "7")
        qtbot.keyClick(field, Qt.Key.Key_Return)
        assert text.problem

        def is_seen() -> bool:
            place = text.mapTo(area.viewport(), QPoint(0, 0))
            return area.viewport().rect().contains(QRect(place, text.size()))

        qtbot.waitUntil(is_seen)
        assert text._problem.geometry().bottom() <= text.height()
        assert text._problem.height() >= text._problem.heightForWidth(text._problem.width())


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Top-p", "top_p", 0.5),
        ("Top-k", "top_k", 40),
        ("Min-p", "min_p", 0.05),
        ("Repetition penalty", "repetition_penalty", 1.3),
    ],
)
def test_each_number_sets_its_field(
    pane: InspectorPane, stored: StoredSettings, name: str, field: str, value: float
) -> None:
    named(pane, QDoubleSpinBox, name).setValue(value)
    assert stored.value.sampling == SamplingParams(**{field: value})


def test_the_ends_of_every_slider_are_allowed_values(pane: InspectorPane, stored: StoredSettings) -> None:
    for slider in pane.findChildren(QSlider):
        slider.setValue(slider.maximum())
        slider.setValue(slider.minimum())
        slider.setValue(slider.maximum())
    assert stored.value.sampling.top_k == 200


def test_seed_is_none_until_it_is_fixed(pane: InspectorPane, stored: StoredSettings) -> None:
    check = named(pane, QCheckBox, "Fixed seed")
    check.setChecked(True)
    assert stored.value.sampling.seed is not None
    named(pane, QSpinBox, "Seed").setValue(42)
    assert stored.value.sampling.seed == 42
    check.setChecked(False)
    assert stored.value.sampling.seed is None


def test_reset_brings_the_defaults_back(pane: InspectorPane, stored: StoredSettings) -> None:
    named(pane, QDoubleSpinBox, "Top-k").setValue(7)
    named(pane, QCheckBox, "Fixed seed").setChecked(True)
    reset = named(pane.chat, QPushButton, "Reset to defaults")
    assert reset.isEnabled()
    reset.setFocus()
    reset.click()
    assert stored.value.sampling == SamplingParams()
    assert not reset.isEnabled()
    assert (
        pane.focusWidget() is pane.chat.sampling
    )  # and not the system prompt, which would take what is typed


def test_settings_reach_the_disk_by_themselves(
    qtbot: QtBot, pane: InspectorPane, stored: StoredSettings, tmp_path: Path
) -> None:
    pane.chat.system_prompt.setPlainText("  Answer in French. ")
    named(pane, QDoubleSpinBox, "Temperature").setValue(0.1)
    qtbot.waitUntil(lambda: load_settings(tmp_path / "settings.toml")[0].system_prompt == "Answer in French.")
    qtbot.waitUntil(lambda: load_settings(tmp_path / "settings.toml")[0].sampling.temperature == 0.1)


def test_a_second_pane_shows_what_was_chosen(
    qtbot: QtBot, stored: StoredSettings, profile: CurrentProfile
) -> None:
    stored.update(sampling=SamplingParams(top_p=0.5, seed=3), system_prompt="Hi")
    profile.update(kv=KVSpec.parse("4"))
    pane = InspectorPane(stored, profile)
    qtbot.addWidget(pane)
    assert pane.precision.spec == KVSpec.parse("4")
    assert named(pane, QSlider, "Bits of a cached key").value() == 2
    assert named(pane, QDoubleSpinBox, "Top-p").value() == 0.5
    assert named(pane, QSpinBox, "Seed").value() == 3
    assert pane.chat.system_prompt.toPlainText() == "Hi"


def test_a_full_disk_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stored = StoredSettings(tmp_path / "file" / "settings.toml", Settings())
    with qtbot.waitSignal(stored.save_failed):
        stored.update(system_prompt="Hi")


@pytest.mark.parametrize("panel", ["Chat", "Precision", "Memory"])
def test_tab_comes_to_the_title_of_a_panel_and_then_into_the_panel(
    qtbot: QtBot, pane: InspectorPane, panel: str
) -> None:
    window, before = QWidget(), QLineEdit()
    qtbot.addWidget(window)
    row = QHBoxLayout(window)
    row.addWidget(before)
    row.addWidget(pane)
    row.addWidget(QLineEdit())
    window.show()
    window.activateWindow()
    qtbot.waitExposed(window)
    title = named(pane, QPushButton, f"{panel} panel")
    qtbot.mouseClick(title, Qt.MouseButton.LeftButton)
    before.setFocus()
    qtbot.keyClick(before, Qt.Key.Key_Tab)
    assert window.focusWidget() is title
    qtbot.keyClick(title, Qt.Key.Key_Tab)
    assert shown_area(pane).isAncestorOf(window.focusWidget())
    pane.setParent(None)  # it is closed by its fixture
