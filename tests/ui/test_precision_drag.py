"""Precision dragged about while a reply is written, with the starter model and the real engine thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.store.records import MessageState
from engine.kv.precision import KV_BITS, KVSpec
from engine.sampling import SamplingParams
from tests.ui.conftest import WAIT_MS, Desk
from ui.engine_worker import EngineState
from ui.inspector.layer_bars import LayerBars
from ui.inspector.layer_strokes import Place
from ui.inspector.slider import Slider
from ui.main_window import MainWindow

pytestmark = pytest.mark.slow

SAMPLING = SamplingParams(temperature=0, repetition_penalty=1.2, max_tokens=120)
START = KVSpec.parse("8; page=64, hot=0, warm=0")
HZ = 50
NUM_EVENTS = 4 * HZ
REPLY_MS = 3 * WAIT_MS
LEFT = Qt.MouseButton.LeftButton


class Hand(QObject):
    """Does something fifty times a second, so many times, on the window's own event loop."""

    def __init__(self, act: Callable[[int], None], num_events: int, parent: QObject) -> None:
        super().__init__(parent)
        self.done = 0
        self._act = act
        self._num_events = num_events
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(1_000 // HZ)

    def _tick(self) -> None:
        self._act(self.done)
        self.done += 1
        if self.done == self._num_events:
            self._timer.stop()


def slide(window: MainWindow, number: int) -> None:
    """Drag the handle of the keys from end to end and back, letting go each time."""
    sliders = window.inspector.findChildren(Slider)
    slider = next(slider for slider in sliders if slider.accessibleName() == "Bits of a cached key")
    stops = [*range(len(KV_BITS)), *range(len(KV_BITS) - 2, 0, -1)]
    place = QPoint(slider.centre_of(stops[number % len(stops)]), slider.height() // 2)
    if number % len(stops) == 0:
        QTest.mousePress(slider, LEFT, pos=place)
    QTest.mouseMove(slider, place)
    if number % len(stops) == len(stops) - 1 or number == NUM_EVENTS - 1:
        QTest.mouseRelease(slider, LEFT, pos=place)


def paint(window: MainWindow, number: int) -> None:
    """Stroke over the bars of all values in waves, letting go every tenth time."""
    bars = window.inspector.findChildren(LayerBars)[number // 40 % 2]
    place = Place(number * 7 % len(bars.bars), number * 3 % len(KV_BITS))
    point = bars.geometry_now.block(place).center()
    if number % 10 == 0:
        QTest.mousePress(bars, LEFT, pos=point)
    QTest.mouseMove(bars, point)
    if number % 10 == 9:
        QTest.mouseRelease(bars, LEFT, pos=point)


def press_keys(window: MainWindow, number: int) -> None:
    """Choose another precision with each event, as a key that is held down does."""
    sliders = [each for each in window.inspector.findChildren(Slider) if "cached" in each.accessibleName()]
    QTest.keyClick(sliders[number % 2], Qt.Key.Key_Left if number // 14 % 2 else Qt.Key.Key_Right)


@pytest.mark.parametrize("act", [slide, paint, press_keys])
def test_fifty_events_a_second_disturb_no_reply_and_the_last_wish_is_what_is_held(
    desk: Desk, qtbot: QtBot, starter_gguf: Path, act: Callable[[MainWindow, int], None]
) -> None:
    window = desk.open_with_model(starter_gguf, SAMPLING, START)
    window.inspector.tabs.show_panel("Precision")
    window.composer.set_text("The lighthouse keeper counts the ships. " * 30)
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(window.chat.stream.text) > 10, timeout=REPLY_MS)
    before = len(window.chat.stream.text)
    hand = Hand(lambda number: act(window, number), NUM_EVENTS, window)
    qtbot.waitUntil(lambda: hand.done == NUM_EVENTS, timeout=REPLY_MS)
    assert window.chat.stream.conversation_id is not None, "the reply was over before the hand was"
    assert len(window.chat.stream.text) > before

    final = KVSpec.parse("0-9:k6v4, 10-:k4v3, 12.h1:8; page=64, hot=0, warm=0")
    window.inspector.precision.set_spec(final)
    window.inspector.precision.spec_chosen.emit(final)
    qtbot.waitUntil(lambda: window.chat.stream.conversation_id is None, timeout=REPLY_MS)
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: window.precision.held.kv == final, timeout=WAIT_MS)  # type: ignore[union-attr]
    answer = window.chat.session.messages[-1]
    assert answer.state is MessageState.COMPLETE
    assert answer.stats is not None
    assert answer.stats.completion_tokens == 120 or answer.stats.stop_reason.value == "end"
    assert answer.text == desk.store.message(answer.id).text == window.chat.stream.text.strip()
    assert "\N{REPLACEMENT CHARACTER}" not in answer.text
