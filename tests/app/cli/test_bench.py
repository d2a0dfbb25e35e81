from __future__ import annotations

import csv
import dataclasses
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.bench import bench
from app.cli.kv_report import report
from app.models.starter import STARTER_FILE
from app.output_files import write_files
from engine.bench.decode import DecodeBench
from engine.bench.kv.figures import KVBench
from engine.bench.kv.kinds import COLD_4, FEW_PAGES, MLX_LM_4, MLX_LM_16, SPEED_KINDS
from engine.bench.measure import Measurement, Side
from engine.errors import ModelError, OctavoError
from tests.engine.bench.kv.test_figures import RESULT

DECODED = DecodeBench(tuple(Measurement(side, 10.0, 5.0, "CPU", "mlx 1") for side in Side))


@pytest.fixture
def own_model(octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only installed model, not the starter; the current folder is `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    return add_model(octavo_home, "own.gguf")


def add_model(octavo_home: Path, name: str) -> Path:
    path = octavo_home / "models" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no weights")
    return path


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(bench, list(arguments))
    return result.exit_code, result.output, result.exception


def blocked_while_measured(blocked: Path, result: object) -> Callable[..., object]:
    """Stand in for a bench during which the place of a file is taken by a folder."""

    def measure(*arguments: object, **named: object) -> object:
        blocked.unlink(missing_ok=True)
        blocked.mkdir()
        return result

    return measure


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


@pytest.mark.parametrize("blocked", ["octavo-kv.csv", "octavo-kv.png"])
def test_a_file_that_fails_costs_neither_the_tables_nor_the_other_file(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocked: str
) -> None:
    (tmp_path / blocked).write_text("former")
    monkeypatch.setattr("app.cli.bench.bench_kv", blocked_while_measured(tmp_path / blocked, RESULT))
    _, output, error = run("kv")
    assert "KL, 4/4 all cold, of mlx-lm 4's" in output and "Written" not in output
    assert isinstance(error, OctavoError)
    assert str(error) == f"{blocked} cannot be written: Is a directory."
    (other,) = {"octavo-kv.csv", "octavo-kv.png"} - {blocked}
    assert (tmp_path / other).stat().st_size > 0
    assert {path.name for path in tmp_path.iterdir()} == {"octavo", blocked, other}


def test_a_comparison_with_mlx_lm_is_printed_though_its_file_fails(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.bench.bench_decode", blocked_while_measured(tmp_path / "runs", DECODED))
    _, output, error = run("decode", "--csv", "runs")
    assert "ratio" in output
    assert isinstance(error, OctavoError) and str(error) == "runs cannot be written: Is a directory."
    assert {path.name for path in tmp_path.iterdir()} == {"octavo", "runs"}


def test_tables_that_cannot_be_printed_do_not_cost_the_files(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.bench.bench_kv", lambda *_: RESULT)

    def no_reader(*_: object) -> str:
        raise BrokenPipeError

    monkeypatch.setattr("app.cli.bench.report", no_reader)
    assert run("kv")[0] == 1
    with (tmp_path / "octavo-kv.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == len(RESULT.rows)
    assert (tmp_path / "octavo-kv.png").read_bytes().startswith(b"\x89PNG")


def test_a_disk_that_is_full_leaves_the_former_file_and_no_torn_one(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("former")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
    try:
        with pytest.raises(OctavoError, match=r"runs\.csv cannot be written: File too large\.$"):
            write_files({file: lambda: bytes(5000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["former"]


@pytest.mark.parametrize(
    "command",
    [
        ["kv", "--csv"],
        ["kv", "--picture"],
        ["decode", "--csv"],
        ["trim", "--picture"],
        ["conversation", "--document", "paper.txt", "--csv"],
        ["conversation", "--document", "paper.txt", "--picture"],
    ],
)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "is a directory"),
        ("link", "is a directory"),
        ("gone/file", "there is no folder"),
        ("file/inside", "there is no folder"),
        ("x" * 250, "cannot be written: File name too long"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_model_is_looked_for(
    octavo_home: Path, tmp_path: Path, command: list[str], name: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/inner")
    (tmp_path / "folder" / "inner").mkdir()
    (tmp_path / "file").write_text("x")
    code, output, _ = run(*command, str(tmp_path / name))
    assert code == 2
    assert reason in " ".join(output.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


def test_a_protected_file_is_refused_and_a_writable_one_is_not_touched(
    octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("former")
    assert isinstance(run("decode", "--csv", str(file))[2], ModelError)
    assert file.read_text() == "former"
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write what is protected
    code, output, _ = run("decode", "--csv", str(file))
    assert code == 2 and "is not writable" in output


def test_a_device_is_written_into_and_not_replaced(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.bench.bench_kv", lambda *_: RESULT)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("kv", "--csv", str(pipe))[0] == 0
        assert os.read(reader, 1 << 16).startswith(b"side,precision")
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "options",
    [
        ["--csv", "a", "--picture", "./a"],
        ["--text", "b/../a", "--csv", "a"],
        ["--text", "a", "--picture", "link"],
    ],
)
def test_one_file_for_two_purposes_is_refused_and_stays(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    (tmp_path / "a").write_text("my text")
    (tmp_path / "b").mkdir()
    (tmp_path / "link").symlink_to("a")
    code, output, _ = run("kv", *options)
    assert code == 2 and "as well" in output
    assert (tmp_path / "a").read_text() == "my text"


@pytest.mark.parametrize(
    ("command", "work"), [("kv", "bench_kv"), ("decode", "bench_decode"), ("stop", "bench_stop")]
)
def test_without_a_name_the_only_model_is_measured_else_the_starter(
    own_model: Path, octavo_home: Path, monkeypatch: pytest.MonkeyPatch, command: str, work: str
) -> None:
    def measure(path: Path, *arguments: object, **named: object) -> None:
        raise OctavoError(f"measured {path.name}")

    monkeypatch.setattr(f"app.cli.bench.{work}", measure)
    assert str(run(command)[2]) == "measured own.gguf"
    add_model(octavo_home, "second.gguf")
    assert "no model “starter”" in str(run(command)[2])
    add_model(octavo_home, STARTER_FILE)
    assert str(run(command)[2]) == f"measured {STARTER_FILE}"


@pytest.mark.parametrize(
    ("num_tokens", "own_text", "are_verdicts"),
    [(6000, True, True), (2000, True, False), (6000, False, False)],
)
def test_verdicts_are_given_for_the_setup_of_the_bars_only(
    num_tokens: int, own_text: bool, are_verdicts: bool
) -> None:
    text = report(dataclasses.replace(RESULT, num_tokens=num_tokens), own_text)
    bars = text[text.index("Bar, set for") :].splitlines()[1:]
    prefill = next(line for line in bars if line.startswith("prefill speed, of mlx-lm 4's"))
    assert prefill.split()[-3:] == (["2.500x", "not", "met"] if are_verdicts else ["3.00x", "2.500x", "–"])
    assert sum("met" in line.split() for line in bars) == (10 if are_verdicts else 0)
    assert text.count("The bars are for 6,000 tokens") == (0 if are_verdicts else 1)


def test_a_rest_below_nothing_is_said_to_be_noise() -> None:
    row = RESULT.row(MLX_LM_4)
    assert row.step is not None
    assert "noise" not in report(KVBench(6000, "", "", (row,)), True)
    less = dataclasses.replace(row, step=dataclasses.replace(row.step, total_s=0.08, attention_s=0.05))
    text = report(KVBench(6000, "", "", (less,)), True)
    line = next(line for line in text.splitlines() if "12.50" in line)
    assert line.split()[-7:] == ["80.0", "50.0", "50.0", "10.0", "noise", "20.0", "–"]
    assert text.count("the rest is within the noise") == 1


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
