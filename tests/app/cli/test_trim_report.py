from __future__ import annotations

import dataclasses
import json

from app.cli.trim_report import report, summary
from tests.engine.bench.trim.figures import OTHER_TEXT, RESULT, RUN, TEXT


def row(told: str, beginning: str) -> list[str]:
    """Return the cells of the first row that begins so."""
    return next(line for line in told.splitlines() if line.startswith(beginning)).split()


def test_times_are_told_beside_what_reading_takes() -> None:
    told = report(RESULT)
    assert "From a question over 6,000 tokens to the next token" in told
    assert row(told, "prose ") == (
        [
            "prose",
            "6,100",
            "3,000",
            "400",
            "3,500",
            "470",
            "2.00",
            "s",
            "30.0",
            "s",
            "25.0",
            "s",
            "15.0x",
            "6.5",
            "s",
        ]
    )


def test_an_extract_in_the_place_of_a_summary_is_marked() -> None:
    told = report(RESULT)
    assert row(told, "letters ")[3] == "400*"
    assert "*: an extract, as what the model wrote could not be used" in told
    assert "*" not in report(dataclasses.replace(RESULT, texts=(TEXT,)))


def test_perplexity_is_told_beside_that_of_the_text_read_again() -> None:
    told = report(RESULT)
    told = told[told.index("Perplexity") :]
    assert row(told, "prose ") == ["prose", "10.200", "10.000", "2.0%", "9.500"]


def test_the_long_run_is_told_with_what_it_took() -> None:
    told = report(RESULT)
    assert "60 turns beyond a limit of 2,048 tokens: 60 answered, trims: 19" in told
    assert "summaries: 3 by the model, 2 by rules; read again for positions: 1 times" in told
    assert "over the last 40 turns: 10 MB to 30 MB, 3.00x" in told


def test_verdicts_are_given_for_the_setup_of_the_bars_only() -> None:
    four = dataclasses.replace(RESULT, texts=(TEXT,) * 4)
    assert report(four).count("   met") == 4
    slow = dataclasses.replace(four, texts=(dataclasses.replace(TEXT, mlx_lm_s=2.0),) * 4)
    assert report(slow).count("not met") == 1
    for other in (RESULT, dataclasses.replace(four, limit_tokens=5999)):
        told = report(other)
        assert "met" not in told and told.endswith("no verdict on less.")


def test_all_figures_are_json() -> None:
    read = json.loads(json.dumps(summary(RESULT)))
    assert read["speedup"] == RESULT.speedup
    assert [text["speedup"] for text in read["texts"]] == [TEXT.speedup, OTHER_TEXT.speedup]
    assert read["texts"][0]["perplexity"]["trimmed"] == 10.2
    assert len(read["long_run"]["turns"]) == 60
    assert read["long_run"]["spread"] == RUN.spread
    assert [bar["met"] for bar in read["bars"]] == [bar.met for bar in RESULT.bars()]
