"""The comparison with mlx-lm."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.bench.decode import DecodeBench, bench_decode
from engine.bench.measure import Measurement, Side
from engine.errors import OctavoError

BENCH = [sys.executable, "-P", "-m", "app", "bench"]

MLX_LM_ALONE = """
import sys
from pathlib import Path
from engine.bench.measure import Side, measure
from engine.bench.mlx_folder import write_mlx_folder
folder = Path(sys.argv[2])
write_mlx_folder(Path(sys.argv[1]), folder)
measure(Side.MLX_LM, folder, prompt_tokens=8, answer_tokens=2)
print("libopenblas" in Path("/proc/self/maps").read_text())
"""


def measurement(side: Side, prefill_tps: float, decode_tps: float) -> Measurement:
    return Measurement(side, prefill_tps, decode_tps, setup="", versions="")


def test_ratios_are_those_of_the_medians() -> None:
    result = DecodeBench(
        (
            measurement(Side.OCTAVO, 100, 10),
            measurement(Side.MLX_LM, 10, 5),
            measurement(Side.OCTAVO, 1, 1),
            measurement(Side.MLX_LM, 8, 4),
            measurement(Side.OCTAVO, 120, 12),
            measurement(Side.MLX_LM, 1000, 1000),
        )
    )
    assert (result.prefill_tps(Side.OCTAVO), result.prefill_tps(Side.MLX_LM)) == (100, 10)
    assert (result.prefill_ratio, result.decode_ratio) == (10, 2)


def test_a_process_that_fails_is_an_error_with_its_last_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('first\\nno such model')"]
    with pytest.raises(OctavoError, match=r"^A process of the bench failed: no such model$"):
        bench_decode(tmp_path, command, runs=1, prompt_tokens=8, answer_tokens=2, on_measured=print)


@pytest.mark.slow
def test_both_sides_are_measured_by_turns(starter_gguf: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    options = ["--model", str(starter_gguf), "--runs", "2", "--prompt-tokens", "16", "--tokens", "3"]
    done = subprocess.run(
        [*BENCH, "decode", *options, "--json", "--csv", str(file)], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert [run["side"] for run in told["runs"]] == ["Octavo", "mlx-lm"] * 2
    assert all(run["prefill_tps"] > 0 and run["decode_tps"] > 0 for run in told["runs"])
    medians = told["medians"]
    assert told["decode_ratio"] == medians["Octavo"]["decode_tps"] / medians["mlx-lm"]["decode_tps"]
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["prefill_tps"]) for row in rows] == [run["prefill_tps"] for run in told["runs"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="MLX brings its own BLAS elsewhere")
def test_mlx_lm_runs_as_installed_without_openblas(starter_gguf: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MLX_LM_ALONE, str(starter_gguf), str(tmp_path / "folder")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == "False"
