from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.models.library import InstalledModel
from engine.backend import Backend, Device
from engine.kv.precision import PRESETS, KVSpec
from engine.model_info import ModelFormat, ModelInfo
from tests.ui.conftest import WAIT_MS
from ui.models.load_sheet import LoadSheet

GB = 1_000_000_000


def info_of(path: Path) -> ModelInfo:
    """A model whose keys and values take 2 x 10 x 4 x 64 = 5,120 numbers a token."""
    return ModelInfo(
        path=path,
        format=ModelFormat.MLX,
        name="Big",
        architecture="llama",
        quantization="4-bit",
        num_layers=10,
        num_heads=8,
        num_kv_heads=4,
        head_dim=64,
        context_tokens=32_768,
        vocab_size=100,
        num_parameters=7 * GB,
        weights_nbytes=4 * GB,
        packed_nbytes=4 * GB,
        num_plain_values=GB // 10,
    )


@pytest.fixture
def sheet(qtbot: QtBot, tmp_path: Path, backend: Backend) -> LoadSheet:
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = LoadSheet(model, KVSpec.parse("16"), None)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    return sheet


def test_a_model_that_cannot_be_read_says_why_and_cannot_be_loaded(sheet: LoadSheet) -> None:
    assert "gone" in sheet._verdict.text()
    assert not sheet._load.isEnabled()


def test_a_model_that_does_not_fit_is_refused_with_the_numbers(sheet: LoadSheet, tmp_path: Path) -> None:
    sheet._on_inspected((info_of(tmp_path), 3 * GB))
    assert not sheet._load.isEnabled()
    assert "3.0 GB of memory are free" in sheet._verdict.text()
    assert sheet._verdict.property("kind") == "danger"


def test_a_part_of_the_context_is_a_warning_and_a_lower_precision_holds_more(
    sheet: LoadSheet, tmp_path: Path, backend: Backend
) -> None:
    if backend.device is not Device.CPU:
        pytest.skip("the numbers are those of float32 activations")
    # At 16 bits room for 42 pages of 256 tokens: one that is open, 39 that are full and two to spare.
    weights_nbytes, reserve_nbytes, page_nbytes = round(4.4 * GB), 1 << 30, 256 * 20_480
    available_nbytes = weights_nbytes + reserve_nbytes + 42 * page_nbytes
    sheet._on_inspected((info_of(tmp_path), available_nbytes))
    assert sheet._load.isEnabled()
    assert sheet._values["Context that fits"].text() == f"{40 * 256 - 1:,} of 32,768 tokens"
    assert sheet._values["KV cache per token"].text() == "20 KB"
    assert sheet._verdict.property("kind") == "warning"
    press(sheet, "Precise")
    assert sheet.kv == PRESETS["precise"]
    assert sheet._values["KV cache per token"].text() == "5.8 KB"
    assert sheet._values["Context that fits"].text() == "32,768 of 32,768 tokens"


def press(sheet: LoadSheet, name: str) -> None:
    next(button for button in sheet.findChildren(QPushButton) if button.text() == name).click()


def test_a_precision_that_has_no_button_is_said_and_kept_until_one_is_pressed(
    qtbot: QtBot, tmp_path: Path, backend: Backend
) -> None:
    custom = KVSpec.parse("0-9:8, 0:k6v4; hot=3")
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = LoadSheet(model, custom, None)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), 100 * GB))
    assert sheet.kv == custom
    assert str(custom) in sheet._custom.text() and not sheet._custom.isHidden()
    press(sheet, "16-bit")
    assert sheet.kv == KVSpec.parse("16")
    assert sheet._custom.isHidden()


def test_a_precision_for_layers_that_the_model_lacks_is_refused_before_loading(
    qtbot: QtBot, tmp_path: Path, backend: Backend
) -> None:
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = LoadSheet(model, KVSpec.parse("0-10:8"), None)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), 100 * GB))
    assert not sheet._load.isEnabled()
    assert "it has layers 0-9" in sheet._verdict.text()
    press(sheet, "Compact")
    assert sheet._load.isEnabled()


def test_the_starter_model_is_described_before_it_is_loaded(qtbot: QtBot, starter_gguf: Path) -> None:
    model = InstalledModel("starter", starter_gguf, "SmolLM2", 1, managed=True)
    sheet = LoadSheet(model, PRESETS["balanced"], None)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(sheet._load.isEnabled, timeout=WAIT_MS)
    assert sheet._title.text() == "SmolLM2-135M-Instruct"
    assert sheet._subtitle.text() == "llama · Q4_1 · 135 M parameters · GGUF file"
    assert "8,192 tokens" in sheet._values["Context that fits"].text()
