"""Options that name a file which a command writes when it is done, checked before it begins."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from app.output_files import error_reason, is_special

OUTPUT_FILE = click.Path(path_type=Path, dir_okay=False, readable=False, writable=True)
"""The type of an option that names such a file: no folder, and not write-protected."""


def require_writable(file: Path, option: str) -> None:
    """Refuse a file that its folder does not take, as far as that shows beforehand; it is not touched."""
    if is_special(file):
        return
    target = file.resolve()
    if not target.parent.is_dir():
        raise click.BadParameter(f"there is no folder {target.parent}.", param_hint=option)
    try:
        with tempfile.NamedTemporaryFile(prefix=f"{target.name}.", suffix=".new", dir=target.parent):
            pass
    except OSError as error:
        raise click.BadParameter(
            f"{file} cannot be written: {error_reason(error)}.", param_hint=option
        ) from None


def require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two options that name the same file; None names none."""
    earlier: dict[Path, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        other = earlier.setdefault(file.resolve(), option)
        if other != option:
            raise click.BadParameter(f"{file} is the file of {other} as well.", param_hint=option)
