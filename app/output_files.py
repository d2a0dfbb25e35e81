"""Files that are written whole when something is done, or into a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from app.durable_files import write_whole
from engine.errors import OctavoError


def write_files(contents: Mapping[Path, Callable[[], bytes]]) -> None:
    """Make and write one file after the other, whole or not at all; one that fails does not stop the others.

    Raises:
        OctavoError: names each file that could not be written, and why.
    """
    failures = []
    for file, content in contents.items():
        try:
            if is_special(file):
                file.write_bytes(content())
            else:
                write_whole(file, content())
        except OSError as error:
            failures.append(f"{file} cannot be written: {error_reason(error)}.")
    if failures:
        raise OctavoError(" ".join(failures))


def is_special(file: Path) -> bool:
    """Whether it is a device or a pipe, like /dev/null: written into, never replaced."""
    return file.exists() and not file.is_file() and not file.is_dir()


def error_reason(error: OSError) -> str:
    """Return why a file cannot be written, in the system's words."""
    return error.strerror or str(error)
