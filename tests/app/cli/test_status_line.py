from __future__ import annotations

import sys
from typing import Any

import pytest

from app.cli.ask_output import TextOutput
from app.cli.status_line import StatusLine
from engine.events import PrefillProgress, Token


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True)


def seen(written: str) -> str:
    """Return what a terminal shows of a line."""
    shown: list[str] = []
    place = 0
    for letter in written:
        if letter == "\r":
            place = 0
            continue
        shown[place : place + 1] = [letter]
        place += 1
    return "".join(shown).rstrip()


@pytest.mark.usefixtures("terminal")
def test_a_line_is_written_over_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    line = StatusLine()
    line.write("a long text")
    line.write("short")
    written = capsys.readouterr().err
    assert seen(written) == "short"
    line.clear()
    written += capsys.readouterr().err
    assert seen(written) == ""
    line.clear()
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_an_answer_begins_where_its_progress_stood(capsys: pytest.CaptureFixture[str]) -> None:
    output = TextOutput()
    output.show(PrefillProgress(10, 20, 0))
    assert seen(capsys.readouterr().err) == "Reading 10 of 20 tokens"
    output.show(Token("An owl", 1))
    assert capsys.readouterr().out == "An owl"


def test_progress_of_an_answer_is_left_out_where_there_is_no_terminal(capsys: Any) -> None:
    output = TextOutput()
    output.show(PrefillProgress(10, 20, 0))
    output.show(Token("An owl", 1))
    assert capsys.readouterr() == ("An owl", "")
