"""`octavo bench trim` and `octavo bench conversation`, without the work itself."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.bench import bench
from app.models.starter import STARTER_FILE
from app.profiles import Overflow
from engine.bench.trim.figures import TrimBench
from engine.errors import OctavoError
from tests.app.cli.test_conversation_report import RESULT as CONVERSATIONS
from tests.app.cli.test_conversation_report import RUN, SUMMARIZED
from tests.engine.bench.trim.figures import RESULT, turn


@pytest.fixture(autouse=True)
def folder(octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model installed and a document."""
    models = octavo_home / "models"
    models.mkdir(parents=True)
    (models / STARTER_FILE).write_bytes(b"no weights")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper.txt").write_text("The harbour is full of boats.", encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(bench, list(arguments))
    return result.exit_code, result.stdout, result.exception


def test_a_trim_is_measured_about_the_given_texts_or_else_about_octavos_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[dict[str, str], int, int]] = []

    def measure(model: Path, texts: dict[str, str], tokens: int, turns: int) -> TrimBench:
        asked.append((texts, tokens, turns))
        return RESULT

    monkeypatch.setattr("app.cli.bench_trim._run", measure)
    code, told, _ = run("trim", "--text", "paper.txt", "--tokens", "2000", "--turns", "7")
    assert code == 0 and "13.500x" in told
    assert asked == [({"paper.txt": "The harbour is full of boats."}, 2000, 7)]
    run("trim")
    texts, tokens, turns = asked[1]
    assert (sorted(texts), tokens, turns) == (["atomic-commit", "constitution", "prose", "testing"], 6000, 50)
    assert all(len(text) > 25_000 for text in texts.values())


def test_a_trim_is_told_as_json_and_drawn(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("app.cli.bench_trim._run", lambda *_: RESULT)
    code, told, _ = run("trim", "--json", "--picture", "memory.png")
    assert code == 0 and json.loads(told)["limit_tokens"] == 6000
    assert (folder / "memory.png").read_bytes().startswith(b"\x89PNG")


def test_a_text_is_not_written_over_by_the_picture(folder: Path) -> None:
    code, _, _ = run("trim", "--text", "paper.txt", "--picture", "./paper.txt")
    assert code == 2
    assert (folder / "paper.txt").read_text() == "The harbour is full of boats."


@pytest.mark.parametrize(
    ("options", "policies"),
    [([], (Overflow.SUMMARIZE, Overflow.DROP)), (["--policy", "drop"], (Overflow.DROP,))],
)
def test_a_conversation_is_held_with_each_policy_or_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch, folder: Path, options: list[str], policies: tuple[Overflow, ...]
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        "app.cli.bench_conversation._run", lambda model, *plan: asked.append(plan) or CONVERSATIONS
    )
    code, told, _ = run("conversation", "--document", "paper.txt", *options)
    assert code == 0 and "60 of 60 turns answered" in told
    assert asked == [(Path("paper.txt"), 60, 4096, policies)]
    with (folder / "octavo-conversation.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 63
    assert (folder / "octavo-conversation.png").read_bytes().startswith(b"\x89PNG")


def test_a_turn_that_was_not_answered_is_an_error_behind_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    mute = dataclasses.replace(RUN, turns=(turn(1, 1), turn(2, 1, is_answered=False)))
    result = dataclasses.replace(CONVERSATIONS, conversations=(dataclasses.replace(SUMMARIZED, run=mute),))
    monkeypatch.setattr("app.cli.bench_conversation._run", lambda *_: result)
    _, told, error = run("conversation", "--document", "paper.txt", "--turns", "2")
    assert "1 of 2 turns answered" in told
    assert isinstance(error, OctavoError) and str(error) == "Not every turn was answered."
