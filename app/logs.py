"""The log file, and what of it also goes to the terminal."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path

from app.paths import AppPaths

MAX_FILE_NBYTES = 1_000_000
NUM_OLD_FILES = 4
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s [%(threadName)s] %(message)s"
_OWN_PACKAGES = ("app", "engine", "ui")


def set_up_logging(paths: AppPaths, verbose: bool) -> Path:
    """Write the log to `octavo.log` and its four older parts, warnings also to the terminal; return its path.

    With `verbose`, everything that Octavo's own packages tell goes to both. Where no log file can be written
    the terminal alone is used. A second call replaces what the first one set up.
    """
    path = paths.logs / "octavo.log"
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if handler.name == _NAME]:
        root.removeHandler(handler)
        handler.close()
    if sys.stderr is not None:
        _add(root, logging.StreamHandler(sys.stderr), logging.DEBUG if verbose else logging.WARNING)
    root.setLevel(logging.WARNING)
    for package in _OWN_PACKAGES:
        logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.captureWarnings(True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _add(root, _file_handler(path), logging.DEBUG)
    except OSError as error:
        logging.getLogger(__name__).warning("no log is kept in %s: %s", path, error)
    return path


_NAME = "octavo"


def _file_handler(path: Path) -> logging.Handler:
    return logging.handlers.RotatingFileHandler(
        path, maxBytes=MAX_FILE_NBYTES, backupCount=NUM_OLD_FILES, encoding="utf-8", errors="backslashreplace"
    )


def _add(root: logging.Logger, handler: logging.Handler, level: int) -> None:
    handler.set_name(_NAME)
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
