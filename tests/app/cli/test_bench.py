from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.bench import bench
from engine.bench.kv.kinds import COLD_4, FEW_PAGES, MLX_LM_4, MLX_LM_16, SPEED_KINDS
from engine.errors import OctavoError


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    octavo_home: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(bench, ["decode", "--csv", str(tmp_path / "gone" / "runs.csv")])
    assert result.exit_code == 2
    assert "there is no folder" in result.output


@pytest.mark.parametrize("option", ["--csv", "--picture"])
def test_a_comparison_of_caches_is_not_begun_for_a_file_that_cannot_be_written(
    octavo_home: Path, tmp_path: Path, option: str
) -> None:
    result = CliRunner().invoke(bench, ["kv", option, str(tmp_path / "gone" / "file")])
    assert result.exit_code == 2
    assert "there is no folder" in result.output


def test_a_text_of_ones_own_that_is_too_short_is_one_sentence(
    starter_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "short.txt"
    text.write_text("Not much to read.", encoding="utf-8")
    options = ["--model", str(starter_gguf), "--text", str(text)]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(bench, ["kv", *options])
    assert isinstance(result.exception, OctavoError)
    assert str(result.exception).startswith("The text has 5 tokens and 6,000 are to be read;")


@pytest.mark.slow
def test_the_caches_are_compared_in_tables_a_csv_file_and_a_picture(
    starter_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.bench.kv.bench.QUALITY_KINDS", (MLX_LM_16, MLX_LM_4, COLD_4))
    options = ["--model", str(starter_gguf), "--tokens", "80", "--answer-tokens", "2", "--runs", "1"]
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(bench, ["kv", *options], catch_exceptions=False)
    assert result.exit_code == 0
    assert "of mlx-lm 4's" in result.output and "not measured" in result.output
    with (tmp_path / "octavo-kv.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    named = {(row["side"], row["precision"], row["at_more_bits"]): row for row in rows}
    assert len(named) == len(rows) == len({MLX_LM_16, MLX_LM_4, COLD_4, *SPEED_KINDS, FEW_PAGES})
    reference, cold = named["mlx-lm", "16", ""], named["Octavo", "4", "open page"]
    assert float(reference["quality_kl"]) < 1e-6
    assert float(cold["prefill_tps"]) > 0 and float(cold["step_attention_s"]) > 0
    assert named["Octavo", "4, best 8 pages", "open page"]["quality_kl"] == ""
    assert (tmp_path / "octavo-kv.png").read_bytes().startswith(b"\x89PNG")
