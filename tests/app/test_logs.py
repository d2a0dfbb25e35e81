from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.logs import MAX_FILE_NBYTES, NUM_OLD_FILES, set_up_logging
from app.paths import AppPaths

log = logging.getLogger("app.something")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    loggers = [root, *(logging.getLogger(name) for name in ("app", "engine", "ui"))]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths(tmp_path / "octavo")


def test_the_file_gets_news_and_the_terminal_only_warnings(
    paths: AppPaths, capsys: pytest.CaptureFixture[str]
) -> None:
    path = set_up_logging(paths, verbose=False)
    assert path.parent == paths.logs
    log.debug("a detail")
    log.info("some news: %s", "Zażółć \udcff")
    log.warning("a warning")
    logging.getLogger("a.library").info("chatter")
    text = path.read_text(encoding="utf-8")
    assert "INFO    app.something [MainThread] some news: Zażółć \\udcff\n" in text
    assert "detail" not in text
    assert "chatter" not in text
    terminal = capsys.readouterr().err
    assert "a warning" in terminal
    assert "news" not in terminal


def test_verbose_shows_details_in_both(paths: AppPaths, capsys: pytest.CaptureFixture[str]) -> None:
    path = set_up_logging(paths, verbose=True)
    log.debug("a detail")
    assert "a detail" in path.read_text()
    assert "a detail" in capsys.readouterr().err


def test_warnings_of_libraries_are_logged(paths: AppPaths) -> None:
    path = set_up_logging(paths, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("this is old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "this is old" in path.read_text()


def test_the_files_stay_small(paths: AppPaths) -> None:
    path = set_up_logging(paths, verbose=False)
    for number in range(700):
        log.info("%d %s", number, "x" * 10_000)
    files = list(path.parent.iterdir())
    assert len(files) == NUM_OLD_FILES + 1
    assert max(file.stat().st_size for file in files) <= MAX_FILE_NBYTES
    assert "699 xxx" in path.read_text()


def test_a_second_call_replaces_the_first(
    paths: AppPaths, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first = set_up_logging(paths, verbose=False)
    second = set_up_logging(AppPaths(tmp_path / "moved"), verbose=False)
    log.warning("once")
    assert "once" not in first.read_text()
    assert second.read_text().count("once") == capsys.readouterr().err.count("once") == 1


def test_where_no_file_can_be_written_the_terminal_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "a file"
    home.write_text("")
    set_up_logging(AppPaths(home), verbose=False)
    log.warning("still heard")
    terminal = capsys.readouterr().err
    assert "no log is kept in" in terminal
    assert "still heard" in terminal


def test_without_a_terminal_the_file_is_enough(paths: AppPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    path = set_up_logging(paths, verbose=True)
    log.warning("written")
    assert "written" in path.read_text()
