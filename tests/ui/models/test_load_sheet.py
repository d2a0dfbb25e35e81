from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.models.library import InstalledModel
from app.settings import DEFAULT_CUSTOM
from engine.backend import Backend, Device
from engine.engine import LoadedModel
from engine.kv.precision import PRESETS, KVSpec
from engine.memory_limits import MemoryLimits
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


def sheet_of(
    model: InstalledModel,
    kv: KVSpec,
    max_context: int | None = None,
    limits: MemoryLimits | None = None,
    present: LoadedModel | None = None,
) -> LoadSheet:
    profile = dataclasses.replace(DEFAULT_CUSTOM, kv=kv, max_context=max_context)
    return LoadSheet(model, profile, limits or MemoryLimits(), present)


@pytest.fixture
def sheet(qtbot: QtBot, tmp_path: Path, backend: Backend) -> LoadSheet:
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = sheet_of(model, KVSpec.parse("16"))
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    return sheet


def test_a_model_that_cannot_be_read_says_why_and_cannot_be_loaded(sheet: LoadSheet) -> None:
    assert "gone" in sheet._verdict.text()
    assert not sheet._load.isEnabled()


def test_a_model_that_does_not_fit_is_refused_with_the_numbers(sheet: LoadSheet, tmp_path: Path) -> None:
    sheet._on_inspected((info_of(tmp_path), 3 * GB, 0))
    assert not sheet._load.isEnabled()
    assert "3.0 GB can be had" in sheet._verdict.text()
    assert sheet._verdict.property("kind") == "danger"


def test_a_part_of_the_context_is_a_warning_and_a_lower_precision_holds_more(
    sheet: LoadSheet, tmp_path: Path, backend: Backend
) -> None:
    if backend.device is not Device.CPU:
        pytest.skip("the numbers are those of float32 activations")
    # At 16 bits room for 42 pages of 256 tokens: one that is open, 40 that are full and one to spare.
    weights_nbytes, reserve_nbytes, page_nbytes = round(4.4 * GB), 1 << 30, 256 * 20_480
    available_nbytes = weights_nbytes + reserve_nbytes + 42 * page_nbytes
    sheet._on_inspected((info_of(tmp_path), available_nbytes, 0))
    assert sheet._load.isEnabled()
    assert sheet._values["Context that fits"].text() == f"{41 * 256:,} of 32,768 tokens"
    assert sheet._values["KV cache per token"].text() == "20 KB once cold, 21 KB over 10,496 tokens"
    assert sheet._verdict.property("kind") == "warning"
    press(sheet, "Precise")
    assert sheet.kv == PRESETS["precise"]
    assert sheet._values["KV cache per token"].text().startswith("5.8 KB once cold, ")
    assert sheet._values["Context that fits"].text() == "32,768 of 32,768 tokens"


def test_weights_that_stay_packed_are_said_so_with_the_context_that_leaves_room_to_unpack_them(
    sheet: LoadSheet, tmp_path: Path, backend: Backend
) -> None:
    if not backend.dequantizes:
        pytest.skip("weights stay packed on a GPU")
    # Float32 weights of 28 GB and 43 pages at 16 bits: an open one, 41 that are full and one to spare.
    sheet._on_inspected((info_of(tmp_path), 28 * GB + (1 << 30) + 43 * 256 * 20_480, 0))
    words = sheet._verdict.text()
    assert "stay packed" in words and f"at most {42 * 256:,} tokens" in words
    assert sheet._values["Context that fits"].text() == "32,768 of 32,768 tokens"
    sheet.max_context = 42 * 256
    sheet._refresh()
    assert "packed" not in sheet._verdict.text()
    assert sheet._values["Weights in memory"].text() == "28.0 GB"


def press(sheet: LoadSheet, name: str) -> None:
    next(button for button in sheet.findChildren(QPushButton) if button.text() == name).click()


def test_a_precision_that_has_no_button_is_said_and_kept_until_one_is_pressed(
    qtbot: QtBot, tmp_path: Path, backend: Backend
) -> None:
    custom = KVSpec.parse("0-9:8, 0:k6v4; hot=3")
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = sheet_of(model, custom)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), 100 * GB, 0))
    assert sheet.kv == custom
    assert str(custom) in sheet._custom.text() and not sheet._custom.isHidden()
    press(sheet, "16-bit")
    assert sheet.kv == KVSpec.parse("16")
    assert sheet._custom.isHidden()


def test_a_precision_for_layers_that_the_model_lacks_is_refused_before_loading(
    qtbot: QtBot, tmp_path: Path, backend: Backend
) -> None:
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = sheet_of(model, KVSpec.parse("0-10:8"))
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), 100 * GB, 0))
    assert not sheet._load.isEnabled()
    assert "it has layers 0-9" in sheet._verdict.text()
    press(sheet, "Compact")
    assert sheet._load.isEnabled()


def test_the_starter_model_is_described_before_it_is_loaded(qtbot: QtBot, starter_gguf: Path) -> None:
    model = InstalledModel("starter", starter_gguf, "SmolLM2", 1, managed=True)
    sheet = sheet_of(model, PRESETS["balanced"])
    qtbot.addWidget(sheet)
    qtbot.waitUntil(sheet._load.isEnabled, timeout=WAIT_MS)
    assert sheet._title.text() == "SmolLM2-135M-Instruct"
    assert sheet._subtitle.text() == "llama · Q4_1 · 135 M parameters · GGUF file"
    assert "8,192 tokens" in sheet._values["Context that fits"].text()


WEIGHTS_NBYTES, RESERVE_NBYTES = round(4.4 * GB), 1 << 30
"""What the weights of `info_of` take packed on the CPU, and what a plan keeps free."""


def room_for(num_pages: int) -> int:
    """Return the memory with room for so many pages at 16 bits beside weights and reserve."""
    return WEIGHTS_NBYTES + RESERVE_NBYTES + num_pages * 256 * 20_480


def offered(sheet: LoadSheet) -> dict[str, QPushButton]:
    """Return the buttons with what would fit, by their words."""
    buttons = [] if sheet._choices.isHidden() else sheet._choices.findChildren(QPushButton)
    return {button.text(): button for button in buttons if not button.isHidden()}


SHORTER = 37 * 256
"""Of room for 42 pages, one is open and one is spare; another 20 MB, four pages, may be gone by then."""


@pytest.fixture
def limited(qtbot: QtBot, tmp_path: Path, backend: Backend) -> LoadSheet:
    """A sheet whose context limit of 12,288 tokens does not fit at 16 bits."""
    if backend.device is not Device.CPU:
        pytest.skip("the numbers are those of float32 activations")
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    sheet = sheet_of(model, KVSpec.parse("16"), max_context=12_288)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), room_for(42), 0))
    return sheet


def test_a_context_limit_that_does_not_fit_is_refused_and_never_made_smaller_by_itself(
    limited: LoadSheet,
) -> None:
    assert not limited._load.isEnabled()
    assert "a context of 12,288 tokens" in limited._verdict.text()
    assert limited._values["Context limit"].text() == "12,288 tokens"
    assert limited.max_context == 12_288
    # The text, the bar and the bytes per token are about the context that was asked for.
    size = limited._verdict.text().split(" for its weights, ")[1].split(" for a context")[0]
    assert f"12,288 tokens {size}" in limited._bar.accessibleDescription()
    assert limited._values["KV cache per token"].text().endswith("over 12,288 tokens")
    assert list(offered(limited)) == [
        "Use 8-bit KV cache",
        "Shorten the context to 9,472",
        "Choose a smaller model…",
        "Load anyway…",
    ]


def test_a_lower_precision_that_fits_is_one_click(limited: LoadSheet) -> None:
    offered(limited)["Use 8-bit KV cache"].click()
    assert limited._load.isEnabled()
    assert (limited.kv.bits(0, 0).keys, limited.max_context) == (8, 12_288)
    assert offered(limited) == {}


def test_a_shorter_context_that_fits_is_one_click(limited: LoadSheet) -> None:
    offered(limited)["Shorten the context to 9,472"].click()
    assert limited._load.isEnabled()
    assert (limited.kv, limited.max_context) == (KVSpec.parse("16"), SHORTER)
    assert limited._values["Context limit"].text() == "9,472 tokens"


def test_a_smaller_model_is_asked_for_with_what_its_weights_may_take(
    qtbot: QtBot, limited: LoadSheet
) -> None:
    limited.open()
    with qtbot.waitSignal(limited.smaller_wanted) as wanted:
        offered(limited)["Choose a smaller model…"].click()
    assert 0 < wanted.args[0] < WEIGHTS_NBYTES
    assert not limited.isVisible()


@pytest.mark.parametrize(("pressed", "is_loaded"), [("Load anyway", True), ("Cancel", False)])
def test_loading_anyway_asks_once_and_tells_what_may_happen(
    qtbot: QtBot, limited: LoadSheet, pressed: str, is_loaded: bool
) -> None:
    asked: list[str] = []

    def answer() -> bool:
        box = next((box for box in limited.findChildren(QMessageBox) if box.isVisible()), None)
        if box is None:
            return False
        asked.append(box.text())
        next(button for button in box.buttons() if button.text().strip("&") == pressed).click()
        return True

    limited.open()
    timer = QTimer(limited)
    timer.timeout.connect(lambda: answer() and timer.stop())
    timer.start(5)
    offered(limited)["Load anyway…"].click()
    assert "may swap and hang" in asked[0]
    assert (limited.anyway, limited.isVisible()) == (is_loaded, not is_loaded)


def test_the_safe_context_and_a_limit_that_was_set_are_shown(
    qtbot: QtBot, tmp_path: Path, backend: Backend
) -> None:
    if backend.device is not Device.CPU:
        pytest.skip("the numbers are those of float32 activations")
    model = InstalledModel("big", tmp_path / "gone", "Big", 4 * GB, managed=True)
    limits = MemoryLimits(most_nbytes=room_for(100), safe_share=0.5)
    sheet = sheet_of(model, KVSpec.parse("16"), limits=limits)
    qtbot.addWidget(sheet)
    qtbot.waitUntil(lambda: sheet._verdict.text() != "", timeout=WAIT_MS)
    sheet._on_inspected((info_of(tmp_path), 100 * GB, 0))
    assert sheet._values["Memory available"].text().endswith(", as set")
    # Of 50 pages two are to spare: pools grow by a sixteenth.
    assert sheet._values["Safe context"].text() == f"{48 * 256:,} tokens, 50 % of the room"
    assert sheet._values["Context limit"].text() == "none"
