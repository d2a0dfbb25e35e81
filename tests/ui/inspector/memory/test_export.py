from __future__ import annotations

import csv
from pathlib import Path

from pytestqt.qtbot import QtBot

from engine.errors import OctavoError
from tests.ui.inspector.memory.samples import BUSY, IDLE, at
from ui.inspector.memory.panel import MemoryPanel
from ui.memory_watch import MemoryWatch


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_sample_becomes_a_line_of_the_table(
    panel: MemoryPanel, watch: MemoryWatch, tmp_path: Path
) -> None:
    file = tmp_path / "memory.csv"
    watch.history.add(at(BUSY, IDLE.time_s + 600))
    panel.export.write(file)
    table, samples = rows(file), watch.history.samples()
    assert len(table) == len(samples) == 601
    assert [int(row["process_nbytes"]) for row in table] == [sample.process_nbytes for sample in samples]
    assert table[-1]["kv_cold_nbytes"] == "400000000"
    assert table[-1]["phase"] == "decode"
    assert table[-1]["seconds"] == "600.0"
    assert panel.export.said == "601 samples are in memory.csv."


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_said_to_be_there(
    qtbot: QtBot, panel: MemoryPanel, tmp_path: Path
) -> None:
    panel.export.write(tmp_path / "memory.csv")
    with qtbot.waitSignal(panel.failed) as failed:
        panel.export.write(tmp_path)
    assert isinstance(failed.args[0], OctavoError)
    assert str(tmp_path) in str(failed.args[0])
    assert panel.export.said == ""
    with qtbot.waitSignal(panel.export.written):
        panel.export.write(tmp_path / "memory.csv")
    with qtbot.assertNotEmitted(panel.export.written):
        panel.export.write(tmp_path)
    assert not panel.export._said.isVisible()
