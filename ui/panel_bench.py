"""What it costs to paint the inspector's panels: `python -m ui.panel_bench`.

Each panel is painted whole into an image, over and over; what counts is the process's own CPU time.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from engine.figures import EngineFigures, KVBytes, Phase
from engine.guard import Guard, GuardAction, GuardStep
from engine.kv.page_map import PageCounters, PageMap, SpanKind, TextSpan
from engine.kv.precision import BitsPair, Tier
from engine.kv.usage import PageInfo
from engine.memory import MemorySample, PressureLevel
from engine.memory_limits import MemoryLimits
from ui.inspector.memory.panel import MemoryPanel
from ui.inspector.pages.panel import PagesPanel
from ui.memory_watch import MemoryWatch
from ui.theme import Theme

FRAMES = 300
FRAMES_PER_S = 30
_WIDTH = 300
_PAGES, _PAGE_TOKENS = 4096, 256
_READ_MUCH = 16
"""One page of so many is read much."""
_MAPS = 4
_TOKENS = (1,) * _PAGE_TOKENS
_BITS = {layer: (BitsPair(4, 4),) * 8 for layer in range(36)}
_MB = 1_000_000


@dataclass(frozen=True)
class Scene:
    """A panel with much to show, and what happens to it before each frame, by the frame's number."""

    name: str
    panel: QWidget
    step: Callable[[int], object]


@dataclass(frozen=True)
class Cost:
    """What a scene costs: milliseconds of CPU a frame, and the share of one core at 30 frames a second."""

    name: str
    frame_ms: float

    @property
    def core_share(self) -> float:
        """The share of one core at 30 frames a second."""
        return self.frame_ms * FRAMES_PER_S / 1000


def scenes() -> list[Scene]:
    """Return the scenes that are measured; there must be a QApplication."""
    return [
        memory_scene("Memory, a new sample each second", frames_per_sample=FRAMES_PER_S),
        memory_scene("Memory, a new sample each frame", frames_per_sample=1),
        pages_scene(f"Pages, {_PAGES:,}, a new map twice a second", frames_per_map=FRAMES_PER_S // 2),
        pages_scene(f"Pages, {_PAGES:,}, a new map each frame", frames_per_map=1),
    ]


def memory_scene(name: str, *, frames_per_sample: int) -> Scene:
    """Return the Memory panel with an hour of samples, a second apart."""
    watch = MemoryWatch(Guard(), MemoryLimits())
    for second in range(3600):
        watch.history.add(_sample(second))
    panel = MemoryPanel()
    panel.set_watch(watch)
    panel.show_figures()
    for _ in range(6):
        watch.take_action(GuardAction(GuardStep.CLEAR_CACHE, False, "swap grows", "40 MB were given back."))

    def step(frame: int) -> None:
        if frame % frames_per_sample == 0:
            watch.sampled.emit(_sample(3600 + frame))

    watch.setParent(panel)
    return Scene(name, panel, step)


def pages_scene(name: str, *, frames_per_map: int) -> Scene:
    """Return the Pages panel with thousands of pages, an eighth of which change with each map."""
    panel = PagesPanel()
    maps = [_page_map(number) for number in range(_MAPS)]  # making one is the engine's work
    panel.set_pages(maps[0], True)

    def step(frame: int) -> None:
        if frame % frames_per_map == 0:
            panel.set_pages(maps[frame // frames_per_map % len(maps)], True)

    return Scene(name, panel, step)


def measure(scene: Scene) -> Cost:
    """Paint a scene 300 times."""
    panel = scene.panel
    panel.resize(_WIDTH, 1)
    panel.show()
    panel.resize(_WIDTH, panel.sizeHint().height())
    QApplication.processEvents()
    image = QImage(panel.size(), QImage.Format.Format_RGB32)
    panel.render(image, QPoint())
    start = time.process_time()
    for frame in range(FRAMES):
        scene.step(frame)
        panel.render(image, QPoint())
    spent_s = time.process_time() - start
    panel.hide()
    return Cost(scene.name, spent_s / FRAMES * 1000)


def main() -> None:
    """Measure and print."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance() or QApplication([])
    Theme.current().set_choice("light")
    for scene in scenes():
        cost = measure(scene)
        sys.stdout.write(
            f"{cost.name:<36} {cost.frame_ms:6.2f} ms a frame, "
            f"{cost.core_share:5.1%} of one core at {FRAMES_PER_S} frames a second\n"
        )
    del app


def _sample(second: int) -> MemorySample:
    grown = second % 900
    kv = KVBytes(60 * _MB, 120 * _MB, grown * _MB, second % 40 * _MB, 260 * _MB)
    phase = tuple(Phase)[second // 30 % len(Phase)]
    engine = EngineFigures(phase, 1_900 * _MB, kv, 1_880 * _MB, kv.total - kv.idle)
    quiet = MemorySample(
        time_s=float(second),
        total_nbytes=16_000 * _MB,
        available_nbytes=6_000 * _MB,
        swap_nbytes=second % 300 * _MB,
        swap_rate=0.0,
        stalled=0.0,
        compressed_nbytes=None,
        process_nbytes=engine.weights_nbytes + kv.total + 700 * _MB,
        active_nbytes=engine.weights_nbytes + kv.total,
        cache_nbytes=250 * _MB,
        peak_nbytes=0,
        engine=engine,
        level=PressureLevel.NORMAL,
        reason="6.0 GB are free and swap is quiet.",
    )
    return dataclasses.replace(quiet, available_nbytes=quiet.available_nbytes - grown * _MB)


def _page_map(frame: int) -> PageMap:
    """Return a long document and an answer; every sixteenth page, another one each time, is read much."""
    pages = tuple(_page(number, is_hot=number % _READ_MUCH == frame % _READ_MUCH) for number in range(_PAGES))
    tokens = _PAGES * _PAGE_TOKENS
    spans = (
        TextSpan(SpanKind.DOCUMENT, "A long document", 0, tokens // 2),
        TextSpan(SpanKind.ASSISTANT, "A long answer", tokens // 2, tokens),
    )
    counters = PageCounters(hits=frame)
    return PageMap(pages, _PAGE_TOKENS, True, (1,) * 99, tokens + 99, frame, spans, counters, 8, 0.9)


def _page(number: int, *, is_hot: bool) -> PageInfo:
    tier = Tier.WARM if is_hot else Tier.COLD
    start = number * _PAGE_TOKENS
    return PageInfo(
        number=number,
        tier=tier,
        tokens=_TOKENS,
        first_position=start,
        last_position=start + _PAGE_TOKENS - 1,
        nbytes=1 * _MB,
        heat=0.002 if is_hot else 0.0001,
        last_access=0,
        pinned=number % 100 == 0,
        references=1 + (number % 50 == 0),
        bits=_BITS,
    )


if __name__ == "__main__":
    main()
