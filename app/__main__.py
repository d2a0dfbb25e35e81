"""The `octavo` command: the window, or one of the terminal commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

NO_DISPLAY = (
    "There is no display to open a window on. In a terminal, "
    '`octavo ask "your question" --file paper.pdf` does the same job.'
)


def main() -> None:
    """Run a terminal command, or open the window when there is none; arguments may be files to attach."""
    arguments = sys.argv[1:]
    if all(Path(argument).is_file() for argument in arguments):
        sys.exit(open_window([Path(argument) for argument in arguments]))
    from app.cli import cli
    from engine.errors import OctavoError

    try:
        cli()
    except OctavoError as error:
        click.echo(f"octavo: {error}", err=True)
        sys.exit(1)


def open_window(files: list[Path]) -> int:
    """Open the window with `files` attached and return its exit status."""
    if not _has_display():
        click.echo(NO_DISPLAY, err=True)
        return 2
    from app.paths import AppPaths
    from ui.application import main as run_window

    return run_window(AppPaths.from_environment(), files)


def _has_display() -> bool:
    """Return whether Qt will find a display; only Linux can be without one."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


if __name__ == "__main__":
    main()
