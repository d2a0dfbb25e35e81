from __future__ import annotations

import csv
import dataclasses
import io
import json

from app.cli.prefix_report import csv_rows, report, summary
from app.csv_file import csv_content
from tests.engine.bench.prefix.figures import RESULT


def row(told: str, beginning: str) -> str:
    """Return the first row that begins so, one space between its cells."""
    line = next(line for line in told.splitlines() if line.startswith(beginning))
    return " ".join(line.removeprefix(beginning).split())


def test_first_tokens_are_told_by_what_was_found() -> None:
    told = report(RESULT)
    assert row(told, "nothing kept  ") == "6,040 0 75.0 s 1.0x 78.0 s"
    assert row(told, "the same conversation  ") == "6,080 6,050 0.60 s 125.0x 3.60 s"
    assert row(told, "a new one about the same document") == "6,042 5,888 2.50 s 30.0x 5.00 s"
    assert "Read again: Pages are whole." in told


def test_files_are_told_beside_mlx_lms() -> None:
    told = report(RESULT)
    assert row(told, "Octavo, 8") == "6,056 100 MB 104 MB 1.040x 0.80 s 0.40 s 250 0.30 s"
    assert row(told, "mlx-lm, 16") == "6,040 280 MB 281 MB 1.004x 0.30 s 0.50 s 562 0.40 s"
    assert row(told, "mlx-lm, 4") == "6,040 44 MB 44 MB 1.000x 0.10 s 0.10 s 440 2.00 s"
    assert "8.00 tokens/s with nothing to save, 7.80 while pages always waited" in told
    assert "(200 MB/s)" in told


def test_files_that_may_have_come_from_memory_are_said_to_be() -> None:
    sentence = "may have come from the system's own memory"
    assert sentence not in report(RESULT)
    assert sentence in report(dataclasses.replace(RESULT, from_disk=False))


def test_verdicts_are_given_for_the_length_of_the_bars_only() -> None:
    assert report(RESULT).count("   met") == 5
    assert row(report(RESULT), "from the disk into memory") == "≥ 200.00 MB/s 250.000 MB/s met"
    told = report(dataclasses.replace(RESULT, num_tokens=1000))
    assert "   met" not in told and told.endswith("no verdict on others.")


def test_every_measurement_is_a_row_of_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_content(csv_rows(RESULT)).decode())))
    named = {(row["measured"], row["number"]): row for row in rows}
    assert named["the same conversation", "2"]["ttft_s"] == "0.5"
    assert named["loaded by Octavo", "3"]["load_s"] == "0.505"
    assert named["kept by Octavo", "1"]["disk_nbytes"] == "104000000"
    assert named["answer while saving", "3"]["decode_tps"] == "7.6"
    mlx_lm = [row["bits"] for row in rows if row["measured"] == "saved and loaded by mlx-lm"]
    assert mlx_lm == ["16", "4"]
    assert {row["setup"] for row in rows} == {"CPU"}


def test_all_figures_are_json() -> None:
    read = json.loads(json.dumps(summary(RESULT)))
    assert [one["ttft_s"] for one in read["restarts"]["conversation"]] == [0.9, 0.5, 0.6]
    assert read["kept"]["first"]["ttft_s"] == 76.0
    assert [bar["met"] for bar in read["bars"]] == [True] * 5
    assert len(read["prompt_caches"]) == 2
