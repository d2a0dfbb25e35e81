"""A line on standard error that is written over, for progress."""

from __future__ import annotations

import shutil
import sys

import click


class StatusLine:
    """One line that each text replaces on a terminal; elsewhere every text is a line of its own.

    Attributes:
        on_terminal: whether standard error is one.
    """

    def __init__(self) -> None:
        self.on_terminal = sys.stderr.isatty()
        self._width = 0

    def write(self, text: str) -> None:
        """Show a text, as much of it as fits."""
        if not self.on_terminal:
            click.echo(text, err=True)
            return
        text = text[: shutil.get_terminal_size().columns - 1]
        click.echo(f"\r{text:<{self._width}}", nl=False, err=True)
        self._width = len(text)

    def clear(self) -> None:
        """Take the text away, so that what follows stands in its place."""
        if self._width:
            click.echo(f"\r{'':<{self._width}}\r", nl=False, err=True)
            self._width = 0

    def end(self) -> None:
        """Leave the line, so that what follows stands below it."""
        if self._width:
            click.echo(err=True)
            self._width = 0
