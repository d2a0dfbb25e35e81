from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from app.documents.containment import EXIT_OUT_OF_MEMORY
from app.documents.document import DocumentError
from app.documents.extract import extract
from engine.cancel import CancelToken
from engine.errors import Cancelled
from tests.app.documents import samples


def use_child(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let a Python program stand in for the reader, to see what becomes of its failures."""
    command = [sys.executable, "-c", f"import os, signal, sys, time\n{program}"]
    monkeypatch.setattr("app.documents.extract.app_command", lambda: command)


def refused(path: Path, encoding: str | None = None) -> str:
    with pytest.raises(DocumentError) as caught:
        extract(path, encoding=encoding)
    return str(caught.value)


def wait_for(path: Path) -> str:
    """Return the content of a file as soon as another process has written it."""
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return path.read_text()


def test_a_document_comes_back_from_the_reader_process(tmp_path: Path) -> None:
    path = tmp_path / "-naïve 📄.pdf"
    path.write_bytes(samples.pdf([["one"], ["two"], []], title="Title of It", pictures=True))
    seen: list[tuple[int, int]] = []
    document = extract(path, on_progress=lambda *parts: seen.append(parts))
    assert (document.title, document.kind, document.text) == ("Title of It", "pdf", "one\n\ntwo")
    assert (document.num_pages, document.num_textless_pages) == (3, 1)
    assert document.source == str(path)
    assert seen[0] == (0, 3)
    assert seen[-1] == (3, 3)


def test_a_relative_path_is_that_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app").mkdir()  # must not be taken for the package
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit(9)")
    (tmp_path / "a.txt").write_text("words")
    monkeypatch.chdir(tmp_path)
    assert extract(Path("a.txt")).text == "words"


def test_a_long_text_comes_through_unchanged(tmp_path: Path) -> None:
    text = "".join(f"{number} – строка 行 🙂\n" for number in range(200_000))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert extract(tmp_path / "a.txt").text == text


def test_the_encoding_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Привет".encode("cp866"))
    document = extract(tmp_path / "a.txt", encoding="cp866")
    assert (document.text, document.encoding, document.encoding_guessed) == ("Привет", "cp866", False)
    assert "no such text encoding" in refused(tmp_path / "a.txt", "klingon")


def test_the_readers_sentence_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(samples.encrypted_pdf())
    assert "protected by a password" in refused(tmp_path / "a.pdf")
    assert "was not found" in refused(tmp_path / "gone.pdf")
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refused(tmp_path / "pipe")


def test_a_crash_of_the_parser_becomes_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_child(monkeypatch, "os.kill(os.getpid(), signal.SIGSEGV)")
    assert "“a.pdf” could not be read: the file seems to be damaged" in refused(tmp_path / "a.pdf")


def test_an_end_without_a_result_becomes_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_child(monkeypatch, """print('{"type": "text", "text": "half"}')""")
    assert "could not be read" in refused(tmp_path / "a.pdf")
    use_child(monkeypatch, "raise RuntimeError('a bug')")
    assert "the reader failed" in refused(tmp_path / "a.pdf")


def test_limits_that_were_reached_become_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_child(monkeypatch, f"os._exit({EXIT_OUT_OF_MEMORY})")
    assert "more memory" in refused(tmp_path / "a.pdf")
    use_child(monkeypatch, "os.kill(os.getpid(), signal.SIGXCPU)")
    assert "within 5 minutes" in refused(tmp_path / "a.pdf")
    monkeypatch.setattr("app.documents.extract.TIME_LIMIT_S", 0)
    use_child(monkeypatch, """print('{"type": "opened"}', flush=True); time.sleep(600)""")
    assert "within 0 minutes" in refused(tmp_path / "a.pdf")


def test_a_drive_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.documents.extract.OPEN_LIMIT_S", 0)
    use_child(monkeypatch, "time.sleep(600)")
    message = refused(tmp_path / "a.pdf")
    assert "could not be opened within 0 seconds" in message
    assert "network drive" in message


def test_a_reader_that_floods_its_log_is_read_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_child(monkeypatch, "sys.stderr.write('x' * 5_000_000); sys.exit(1)")
    assert "the reader failed" in refused(tmp_path / "a.pdf")


def test_a_reader_that_does_not_start_becomes_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.documents.extract.app_command", lambda: [str(tmp_path / "nothing")])
    assert "did not start" in refused(tmp_path / "a.pdf")


@pytest.mark.parametrize("program", ["time.sleep(600)", "while True: pass", "signal.pause()"])
def test_cancel_ends_the_reader_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    pid_file = tmp_path / "pid"
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    use_child(monkeypatch, f"{deaf}\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\n{program}")
    cancel = CancelToken()

    def cancel_when_running() -> None:
        wait_for(pid_file)
        cancel.cancel()

    thread = threading.Thread(target=cancel_when_running)
    thread.start()
    with pytest.raises(Cancelled):
        extract(tmp_path / "a.pdf", cancel=cancel)
    thread.join()
    assert not psutil.pid_exists(int(pid_file.read_text()))


@pytest.mark.parametrize("call", ["os.open", "os.fstat"], ids=["while it is opened", "after that"])
def test_a_drive_that_hangs_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "a.txt").write_text("words")
    note = f"open({str(tmp_path / 'hangs')!r}, 'w').write('here')"
    use_child(
        monkeypatch,
        "from app.__main__ import main\n"
        "import app.documents.source\n"
        f"{call} = lambda *arguments: ({note}, time.sleep(600))\n"
        "main()",
    )
    cancel = CancelToken()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(extract, tmp_path / "a.txt", cancel=cancel)
        wait_for(tmp_path / "hangs")
        cancel.cancel()
        with pytest.raises(Cancelled):
            reading.result()
    assert not psutil.Process().children()


def test_a_cancelled_job_does_not_start(tmp_path: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        extract(tmp_path / "gone.pdf", cancel=cancel)


def test_an_error_in_the_callers_progress_ends_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(samples.pdf([["one"]]))

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        extract(tmp_path / "a.pdf", on_progress=fail)
    assert not psutil.Process().children()
