"""Files that a command writes when it is done: checked before it begins, written whole."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from app.durable_files import write_whole
from engine.errors import OctavoError

OUTPUT_FILE = click.Path(path_type=Path, dir_okay=False, readable=False, writable=True)
"""The type of an option that names such a file: no folder, and not write-protected."""


def require_writable(file: Path, option: str) -> None:
    """Refuse a file that its folder does not take, as far as that shows beforehand; it is not touched."""
    if _is_special(file):
        return
    target = file.resolve()
    if not target.parent.is_dir():
        raise click.BadParameter(f"there is no folder {target.parent}.", param_hint=option)
    try:
        with tempfile.NamedTemporaryFile(prefix=f"{target.name}.", suffix=".new", dir=target.parent):
            pass
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {_reason(error)}.", param_hint=option) from None


def require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two options that name the same file; None names none."""
    earlier: dict[Path, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        other = earlier.setdefault(file.resolve(), option)
        if other != option:
            raise click.BadParameter(f"{file} is the file of {other} as well.", param_hint=option)


def write_files(contents: Mapping[Path, Callable[[], bytes]]) -> None:
    """Make and write one file after the other, whole or not at all; one that fails does not stop the others.

    Raises:
        OctavoError: names each file that could not be written, and why.
    """
    failures = []
    for file, content in contents.items():
        try:
            if _is_special(file):
                file.write_bytes(content())
            else:
                write_whole(file, content())
        except OSError as error:
            failures.append(f"{file} cannot be written: {_reason(error)}.")
    if failures:
        raise OctavoError(" ".join(failures))


def _is_special(file: Path) -> bool:
    """Whether it is a device or a pipe, like /dev/null: written into, never replaced."""
    return file.exists() and not file.is_file() and not file.is_dir()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
