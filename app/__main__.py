"""The `octavo` command: the window, or one of the terminal commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from app.cli import COMMANDS, cli
from app.desktop import has_display
from app.durable_files import FULL_DISK
from app.standard_streams import give_up_output, prepare_standard_streams
from engine.errors import OctavoError

NO_DISPLAY = (
    "There is no display to open a window on. In a terminal, "
    '`octavo ask "your question" --file paper.pdf` does the same job.'
)


def main() -> None:
    """Run a terminal command, or open the window when there is none; arguments may be files to attach."""
    prepare_standard_streams()
    arguments = sys.argv[1:]
    is_command = bool(arguments) and arguments[0] in COMMANDS  # though there may be a file of that name
    if not is_command and all(Path(argument).exists() for argument in arguments):
        sys.exit(open_window([Path(argument) for argument in arguments]))
    if not is_command and not arguments[0].startswith("-"):
        missing = next(argument for argument in arguments if not Path(argument).exists())
        click.echo(
            f"octavo: There is no file or command “{missing}”. `octavo --help` lists the commands.", err=True
        )
        sys.exit(2)
    try:
        cli()
    except OctavoError as error:
        click.echo(f"octavo: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno not in FULL_DISK or error.filename is not None:
            raise
        give_up_output()
        click.echo(f"octavo: What is printed cannot be written: {error.strerror}.", err=True)
        sys.exit(1)


def open_window(files: list[Path]) -> int:
    """Open the window with `files` attached and return its exit status."""
    if not has_display() and not os.environ.get("QT_QPA_PLATFORM"):
        click.echo(NO_DISPLAY, err=True)
        return 2
    from app.paths import AppPaths
    from ui.application import main as run_window

    return run_window(AppPaths.from_environment(), files)


if __name__ == "__main__":
    main()
