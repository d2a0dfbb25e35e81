from __future__ import annotations

import re

import pytest
from PySide6.QtWidgets import QApplication

from ui import panel_bench


def test_each_panel_has_a_line_with_its_cost(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(panel_bench, "FRAMES", 3)
    monkeypatch.setattr(panel_bench, "_PAGES", 400)
    panel_bench.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [scene.name for scene in panel_bench.scenes()]
    for line in lines:
        match = re.search(r" (\d+\.\d+) ms a frame, +(\d+\.\d)% of one core at 30 frames a second", line)
        assert match
        assert float(match[2]) == pytest.approx(float(match[1]) * 3, abs=0.1)


def test_scenes_change_what_their_panel_shows(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_bench, "FRAMES", 2)
    monkeypatch.setattr(panel_bench, "_PAGES", 400)
    for scene in panel_bench.scenes():
        panel_bench.measure(scene)
        scene.panel.show()
        before = scene.panel.grab().toImage()
        for frame in range(panel_bench.FRAMES_PER_S, 2 * panel_bench.FRAMES_PER_S):
            scene.step(frame)
        assert scene.panel.grab().toImage() != before, scene.name
        scene.panel.hide()
