from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PIL import Image

from engine.bench.kv.figures import KVBench, Prefill, Quality, Row, Step
from engine.bench.kv.kinds import (
    COLD_3,
    COLD_4,
    DEFAULT_4,
    FEW_PAGES,
    MLX_LM_3,
    MLX_LM_4,
    MLX_LM_16,
    QUALITY_KINDS,
)
from engine.bench.kv.picture import draw

PREFILL = Prefill(tps=100, peak_nbytes=50, sealed_nbytes_per_token=10, nbytes=1000)
STEP = Step(total_s=0.1, attention_s=0.03, model_s=0.05, sampling_s=0.01, building_s=0.02, caught=None)


def quality(kl: float) -> Quality:
    return Quality(kl, perplexity=20 * (1 + kl), top1=1 - kl, nbytes_per_token=7200)


RESULT = KVBench(
    num_tokens=6000,
    setup="",
    versions="",
    rows=(
        Row(MLX_LM_16, quality(0), dataclasses.replace(PREFILL, tps=50), STEP),
        Row(MLX_LM_4, quality(0.1), PREFILL, STEP),
        Row(MLX_LM_3, quality(0.5), None, None),
        Row(
            COLD_4,
            quality(0.02),
            Prefill(tps=250, peak_nbytes=60, sealed_nbytes_per_token=10.1, nbytes=1100),
            dataclasses.replace(STEP, total_s=0.08),
        ),
        Row(DEFAULT_4, quality(0.006), PREFILL, STEP),
        Row(COLD_3, quality(0.1), None, None),
        Row(FEW_PAGES, None, None, dataclasses.replace(STEP, attention_s=0.01)),
    ),
)


def test_each_bar_is_a_ratio_and_is_met_on_its_side_of_the_limit() -> None:
    assert [(pytest.approx(bar.figure), bar.met) for bar in RESULT.bars()] == [
        (0.2, True),
        (0.06, False),
        (0.2, True),
        (1.01, True),
        (1.1, True),
        (2.5, False),
        (5, True),
        (1.25, True),
        (1.2, False),
        (3, True),
    ]


def test_a_bar_without_its_figures_is_not_measured() -> None:
    bars = KVBench(1, "", "", ()).bars()
    assert all(bar.figure is None and bar.met is None for bar in bars)


def test_the_parts_of_a_step_add_up_to_it() -> None:
    assert STEP.rest_s == pytest.approx(0.01)
    assert STEP.tps == pytest.approx(10)


def test_no_cache_is_measured_twice_and_the_reference_is_first() -> None:
    assert len(set(QUALITY_KINDS)) == len(QUALITY_KINDS)
    assert QUALITY_KINDS[0] == MLX_LM_16
    names = [(kind.side, kind.precision, kind.window) for kind in QUALITY_KINDS]
    assert len(set(names)) == len(names)


def test_the_picture_shows_both_sides_in_their_colours(tmp_path: Path) -> None:
    file = tmp_path / "picture.any"
    draw(RESULT, file)
    with Image.open(file) as image:
        assert image.format == "PNG"
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
    assert {(0xC2, 0x41, 0x0C), (0x1D, 0x4E, 0xD8)} <= colours
