"""`octavo ask` in processes of its own, with the real starter model."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from app.cli.ask import ask as ask_command
from app.cli.ask_output import JsonOutput, TextOutput, ways_out
from app.cli.document_report import DocumentReport, PassageReport
from app.command_line import app_command
from engine.admission import (
    AdmissionError,
    ContextOverflowError,
    DropTurns,
    InSegments,
    LookUp,
    LowerPrecision,
    ReadWhole,
    ShorterContext,
    SmallerModel,
)
from engine.backend import Backend
from engine.events import Finished, GenerationStats, StopReason
from engine.guard import GuardAction, GuardStep
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage
from tests.app.word_models import write_talking_model
from tests.engine.folders import write_folder

QUESTION = "In one word: which bird hunts at night?"
SMALL_PAGES = "k8v4; page=64, hot=0, warm=0"


def ask(model: Path, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
    command = [*app_command(), "ask", "--model", str(model), "--temperature", "0", *arguments]
    return subprocess.run(command, input=input, capture_output=True, text=True)


@pytest.mark.slow
def test_the_answer_is_on_standard_output_and_nothing_else(octavo_home: Path, starter_gguf: Path) -> None:
    done = ask(starter_gguf, "-", "--max-tokens", "8", input=QUESTION)
    assert done.returncode == 0
    assert done.stdout.strip()
    assert done.stderr == ""
    assert ask(starter_gguf, QUESTION, "--max-tokens", "8").stdout == done.stdout


def test_nothing_that_the_command_begins_with_imports_mlx() -> None:
    """Once MLX is there, OpenBLAS comes too late, and prompts are read some twenty times slower."""
    code = "import sys, app.cli.ask; sys.exit('mlx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_json_tells_every_event_and_the_document_is_read(
    octavo_home: Path, starter_gguf: Path, tmp_path: Path
) -> None:
    paper = tmp_path / "paper.txt"
    paper.write_text("Owls hunt at night. " * 20)
    done = ask(
        starter_gguf, QUESTION, "--file", str(paper), "--kv", SMALL_PAGES, "--max-tokens", "4", "--json"
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(dict.fromkeys(event["event"] for event in events)) == [
        "load",
        "prefill",
        "token",
        "finished",
    ]
    figures = events[-1]
    assert figures["kv"] == SMALL_PAGES
    usage = figures["kv_usage"]
    assert usage["requested"] == [8, 4] and usage["effective"] == [8, 4]
    assert (usage["hot_pages"], usage["warm_pages"], usage["num_below"]) == (0, 0, 0)
    assert usage["cold_pages"] == usage["num_tokens"] // 64 >= 1
    assert usage["nbytes"] >= sum(usage[f"{tier}_nbytes"] for tier in ("hot", "warm", "cold")) > 0
    assert usage["caught"] is None
    assert figures["completion_tokens"] == 4 and figures["stop_reason"] == "length"
    assert figures["prompt_tokens"] > 20 * 4  # four words a sentence, none shorter than a token


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["everything", "documents", "never"])
def test_a_document_that_was_read_once_is_not_read_again_unless_nothing_may_be_kept(
    octavo_home: Path, tmp_path: Path, mode: str
) -> None:
    folder = write_folder(tmp_path / "tiny", eos_token_id=999, max_position_embeddings=2048)
    octavo_home.mkdir()
    (octavo_home / "settings.toml").write_text(f'[prefixes]\nmode = "{mode}"\n')
    paper = tmp_path / "paper.txt"
    paper.write_text("Owls hunt at night. They sleep in old barns by day. " * 20)
    asked = (QUESTION, "--file", str(paper), "--kv", "8; page=64", "--max-tokens", "4", "--json")
    first, second = ([json.loads(line) for line in ask(folder, *asked).stdout.splitlines()] for _ in range(2))
    assert first[-1]["reused_tokens"] == 0
    reused, total = second[-1]["reused_tokens"], second[-1]["prompt_tokens"]
    if mode == "never":
        assert reused == 0 and not (octavo_home / "prefixes.db").exists()
    else:
        # Tokens are bytes: the document's whole pages, and with the words of the question one or two more.
        assert total - 64 * (1 if mode == "everything" else 3) <= reused < total
    said = [[event["token_id"] for event in told if event["event"] == "token"] for told in (first, second)]
    assert said[0] == said[1]


def test_what_was_reused_is_told_with_the_reason_where_it_is_not_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stats = dataclasses.replace(
        GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.END), prompt_tokens=6031, prefill_tps=80.0
    )
    TextOutput().show(Finished(stats))
    told = capsys.readouterr().err
    assert "reused" not in told and told.startswith("[6,031 tokens read at 80/s")
    stats = dataclasses.replace(stats, reused_tokens=6012)
    TextOutput().show(Finished(stats))
    told = capsys.readouterr().err
    assert "[reused 6,012 of 6,031 tokens]" in told and told.startswith("[19 tokens read at 80/s")
    TextOutput().show(Finished(dataclasses.replace(stats, reread_note="A page was damaged.")))
    assert "[reused 6,012 of 6,031 tokens. A page was damaged]" in capsys.readouterr().err


def test_what_came_from_disk_with_fewer_bits_is_told_with_what_brings_them_back(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    usage = KVUsage(
        num_tokens=3338,
        open_tokens=10,
        hot_pages=1,
        warm_pages=5,
        cold_pages=7,
        hot_nbytes=11_796_480,
        warm_nbytes=16_588_800,
        cold_nbytes=7_741_440,
        nbytes=40_919_040,
        effective_bits=7.5,
        requested=(8.0, 8.0),
        effective=(2.0, 2.0),
        num_below=7,
        attention_pages=None,
        caught=None,
    )
    stats = dataclasses.replace(
        GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.END), reused_tokens=3328, kv_usage=usage
    )
    TextOutput().show(Finished(stats))
    told = "[7 pages were on disk with fewer bits; after `octavo prefixes --clear` all is read again]"
    assert told in capsys.readouterr().err
    exact = dataclasses.replace(usage, effective=(8.0, 8.0), num_below=0)
    TextOutput().show(Finished(dataclasses.replace(stats, kv_usage=exact)))
    assert "on disk" not in capsys.readouterr().err


@pytest.mark.slow
def test_documents_are_read_as_is_asked_for_and_what_was_read_is_told(
    octavo_home: Path, tmp_path: Path
) -> None:
    folder = write_talking_model(tmp_path / "model")
    paper = tmp_path / "paper.txt"
    paper.write_text("Owls hunt voles at night. They sleep in old barns by day. " * 200)
    question = "What do owls hunt?"
    options = ["--file", str(paper), "--kv", "8; page=64", "--context", "700", "--max-tokens", "8", "--json"]
    refused = ask(folder, question, *options, "--document-mode", "whole")
    assert refused.returncode == 1
    helps = [help["option"] for help in json.loads(refused.stdout.splitlines()[-1])["helps"]]
    assert {"--document-mode segments", "--document-mode look-up"} <= set(helps)
    for mode, way in (("segments", "segments"), ("look-up", "look_up")):
        done = ask(folder, question, *options, "--document-mode", mode)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        segments = [event for event in events if event["event"] == "segment"]
        assert {event["title"] for event in segments} == {"paper.txt"}
        assert max(event["total_tokens"] for event in segments) <= 700
        assert events[-2]["event"] == "finished" and events[-2]["completion_tokens"] > 0
        document = events[-1]
        assert (document["event"], document["way"], document["title"]) == ("document", way, "paper.txt")
        assert document["num_read"] == document["num_segments"] >= 1
        if mode == "segments":
            assert events[-2]["segments"] == document["num_read"] == segments[-1]["total"] >= 2
        for passage in document["passages"]:
            assert paper.read_text()[passage["start"] : passage["stop"]].startswith(passage["text"])
            assert "hunt" in passage["text"]


def test_many_documents_that_were_looked_up_in_vain_have_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    in_vain = [DocumentReport(f"Cats {number}", "look_up", 0, 0, 0, (), ()) for number in range(40)]
    TextOutput().rests_on([*in_vain, DocumentReport("Bats", "look_up", 2, 2, 0, (), ())])
    assert capsys.readouterr().err.splitlines() == [
        "Bats: Looked at 2 passages.",
        "40 documents: No passage has the words of the question.",
    ]


def test_what_an_answer_rests_on_is_told_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def passage(number: int, is_cited: bool, kind: str = "noted") -> PassageReport:
        return PassageReport(number, "p. 12, Owls", 0, 9, kind, is_cited, "They hunt\nvoles " * 20)

    noted = (passage(1, False), passage(2, True))
    TextOutput().rests_on(
        [
            DocumentReport("Owls", "segments", 4, 3, 1, ("The model broke.",), noted),
            DocumentReport("Bats", "look_up", 2, 2, 0, (), (passage(3, False, "looked_at"),)),
            DocumentReport("Cats", "look_up", 0, 0, 0, (), ()),
        ]
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Owls: 3 of its 4 segments were read; 1 could not be read. The model broke."
    assert lines[1].startswith("  [2] (p. 12, Owls) They hunt voles They hunt") and lines[1].endswith("…")
    assert lines[2] == "Bats: Looked at 2 passages." and lines[3].startswith("  [3] ")
    assert lines[4:] == ["Cats: No passage has the words of the question."]


@pytest.mark.slow
def test_a_configuration_file_names_model_precision_and_context(
    octavo_home: Path, starter_gguf: Path, tmp_path: Path
) -> None:
    config = tmp_path / "kv.toml"
    config.write_text(f'model = "{starter_gguf}"\n[kv_cache]\nlayers = "0-7:8, 8-:k6v4"\nmax_context = 512\n')
    command = [*app_command(), "ask", "--config", str(config), "--max-tokens", "1", "--json"]
    done = subprocess.run([*command, QUESTION], capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["kv"] == "0-7:8, 8-:k6v4"
    done = subprocess.run([*command, QUESTION, "--kv", "4"], capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["kv"] == "4"
    done = subprocess.run([*command, "word " * 600], capture_output=True, text=True)
    assert done.returncode == 1
    refused = json.loads(done.stdout.splitlines()[-1])
    assert "context is set to 512" in refused["message"]
    assert [way_out["option"] for way_out in refused["helps"]] == ["--context 2048"]
    done = subprocess.run([*command, "word " * 600, "--context", "1024"], capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "finished"


@pytest.mark.slow
def test_what_does_not_fit_the_memory_that_is_allowed_is_refused_with_options_that_do(
    octavo_home: Path, starter_gguf: Path
) -> None:
    arguments = ("Say hello.", "--max-tokens", "2", "--kv", "16")
    refused = ask(starter_gguf, *arguments, "--memory", "1.5G", "--context", "8000")
    assert refused.returncode == 1 and refused.stdout == ""
    sentence, *options = refused.stderr.splitlines()
    assert "for a context of 8,000 tokens" in sentence
    assert options[0].startswith("  --kv ") and options[-1].startswith("  --anyway: ")
    option, value = options[0].partition(":")[0].split(maxsplit=1)
    allowed = ("--memory", "1.5G", "--context", "8000", option, shlex.split(value)[0])
    assert ask(starter_gguf, *arguments[:3], *allowed).returncode == 0
    assert ask(starter_gguf, *arguments, "--memory", "1.5G", "--context", "8000", "--anyway").stdout


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("is_in_file", [False, True])
def test_a_context_beyond_the_models_own_is_refused_with_the_longest_one(
    is_json: bool, is_in_file: bool, octavo_home: Path, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny", max_position_embeddings=700)
    (tmp_path / "kv.toml").write_text("[kv_cache]\nmax_context = 701\n")
    asked = ["--config", str(tmp_path / "kv.toml")] if is_in_file else ["--context", "701"]
    arguments = ["Hello", "--model", str(folder), *asked, *(["--json"] if is_json else [])]
    result = CliRunner().invoke(ask_command, arguments)
    assert result.exit_code == 1
    sentence = "tiny was made for 700 tokens and cannot read 701."
    if is_json:
        helps = [{"option": "--context 700", "effect": "a shorter context"}]
        assert json.loads(result.stdout) == {"event": "error", "message": sentence, "helps": helps}
    else:
        assert result.stderr.splitlines() == [f"octavo: {sentence}", "  --context 700: a shorter context"]


@pytest.mark.slow
def test_memory_is_what_the_settings_allow_unless_an_option_says_otherwise(
    octavo_home: Path, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny", eos_token_id=999)
    octavo_home.mkdir()
    (octavo_home / "settings.toml").write_text(
        "[memory]\nmost_nbytes = 1_000_000\nreserve_nbytes = 900_000\n"
    )
    refused = ask(folder, "Hello", "--max-tokens", "1")
    assert refused.returncode == 1
    assert "900 KB to work in" in refused.stderr
    assert ask(folder, "Hello", "--max-tokens", "1", "--memory", "4G").returncode == 0
    refused = ask(folder, "Hello", "--max-tokens", "1", "--memory", "1M")
    assert refused.returncode == 1
    assert "900 KB to work in" in refused.stderr


@pytest.mark.slow
def test_weights_that_stay_packed_are_said_so_with_the_context_that_leaves_room_to_unpack_them(
    octavo_home: Path, starter_gguf: Path, backend: Backend
) -> None:
    if not backend.dequantizes:
        pytest.skip("weights stay packed on a GPU")
    arguments = ("Say hello.", "--max-tokens", "1", "--memory", "1.75G")
    done = ask(starter_gguf, *arguments)
    found = re.fullmatch(r"\[The weights stay packed for .* --context (\d+) leaves room.*\]\n", done.stderr)
    assert done.returncode == 0 and found is not None
    noted = ask(starter_gguf, *arguments, "--json").stdout.splitlines()
    assert "stay packed" in next(line["text"] for line in map(json.loads, noted) if line["event"] == "note")
    shorter = ask(starter_gguf, *arguments, "--context", str(int(found[1]) // 2))
    assert (shorter.returncode, shorter.stderr) == (0, "")


def test_a_refusal_names_the_options_that_would_help_the_mildest_first() -> None:
    choices = (
        LowerPrecision(KVSpec.parse("4; page=64, hot=0"), 9_000),
        ShorterContext(4_096),
        InSegments(5),
        LookUp(),
        ReadWhole(),
        DropTurns(2),
        SmallerModel(3_000_000_000),
    )
    error = AdmissionError("It does not fit.", needed_nbytes=2, available_nbytes=1, choices=choices)
    assert [way_out.option for way_out in ways_out(error)] == [
        "--kv '4; page=64, hot=0'",
        "--context 4096",
        "--document-mode segments",
        "--document-mode look-up",
        "--document-mode whole",
        "--model MODEL",
        "--anyway",
    ]
    assert list(ways_out(ContextOverflowError("Too long.", needed_tokens=2, limit_tokens=1))) == []


def test_what_the_guard_does_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    action = GuardAction(GuardStep.TRIM, False, "swap grows by 40 MB a second", "2 turns left.", 5)
    TextOutput().show(action)
    assert capsys.readouterr().err == "[2 turns left. Swap grows by 40 MB a second.]\n"
    JsonOutput().show(action)
    assert json.loads(capsys.readouterr().out) == {
        "event": "guard",
        "step": "trim",
        "is_end": False,
        "reason": "swap grows by 40 MB a second",
        "sentence": "2 turns left.",
        "freed_nbytes": 5,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kv", "7"], "'7' is no KV precision; choose 16, 8, 6, 5, 4, 3 or 2 bits."),
        (["--kv", "4; page=65"], "'page=65' cannot be; choose 64, 128, 256 or 512."),
        (["--config", "gone.toml"], "There is no configuration file gone.toml."),
    ],
)
def test_a_precision_that_cannot_be_is_one_sentence_before_anything_is_read(
    octavo_home: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    arguments = (QUESTION, "--file", str(tmp_path / "gone.pdf"), *options)
    done = ask(tmp_path / "model.gguf", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"octavo: {said}\n")
    (line,) = ask(tmp_path / "model.gguf", *arguments, "--json").stdout.splitlines()
    assert json.loads(line) == {"event": "error", "message": said}


@pytest.mark.slow
def test_ctrl_c_while_the_model_is_loaded_is_told_in_json(
    octavo_home: Path, starter_gguf: Path, attended: None
) -> None:
    command = [*app_command(), "ask", "Hello.", "--model", str(starter_gguf), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 130
    assert json.loads(rest.splitlines()[-1]) == {"event": "stopped"}


@pytest.mark.slow
def test_ctrl_c_ends_the_answer(octavo_home: Path, starter_gguf: Path) -> None:
    command = [*app_command(), "ask", "Tell me a very long story.", "--model", str(starter_gguf)]
    with subprocess.Popen(
        [*command, "--max-tokens", "4000", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"token"' in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stdout.read()
        assert process.wait() == 130
    assert json.loads(rest.splitlines()[-1])["stop_reason"] == "stopped"


def test_a_document_that_cannot_be_read_is_one_sentence(octavo_home: Path, tmp_path: Path) -> None:
    arguments = (QUESTION, "--file", str(tmp_path / "gone.pdf"))
    done = ask(tmp_path / "model.gguf", *arguments)
    assert done.returncode == 1
    assert done.stderr == "octavo: “gone.pdf” was not found. It may have been moved, renamed or deleted.\n"
    (line,) = ask(tmp_path / "model.gguf", *arguments, "--json").stdout.splitlines()
    assert json.loads(line)["event"] == "error"


def test_an_empty_question_is_refused_at_once(octavo_home: Path, tmp_path: Path) -> None:
    for done in (ask(tmp_path, ""), ask(tmp_path, "-", input=" \n")):
        assert done.returncode == 2
        assert "There is no question" in done.stderr


@pytest.mark.slow
def test_bytes_that_are_no_text_are_read_as_replacement_characters(
    octavo_home: Path, starter_gguf: Path
) -> None:
    command = [*app_command(), "ask", "--model", str(starter_gguf), "--max-tokens", "1"]
    done = subprocess.run([*command, "-"], input=b"caf\xe9?", capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    done = subprocess.run([*command, b"caf\xe9?", "--system", b"\xff"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def attended() -> Iterator[None]:
    """Children notice Ctrl+C, though the tests may run in the background, where a shell ignores it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_ctrl_c_before_the_model_is_loaded_ends_with_its_status_and_no_words(
    octavo_home: Path, attended: None
) -> None:
    command = [*app_command(), "ask", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(bytes(1 << 20))  # more than a pipe holds: it is being read
        process.stdin.flush()
        wait_until_asleep(process.pid)  # between two reads Python would notice the signal after the next one
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def wait_until_asleep(pid: int) -> None:
    """Wait until the process waits for something, its input for one."""
    process = psutil.Process(pid)
    deadline_s = time.monotonic() + 20
    while process.status() != psutil.STATUS_SLEEPING and time.monotonic() < deadline_s:
        time.sleep(0.01)
