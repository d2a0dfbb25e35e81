"""The terminal commands, each imported when it is called: a short command starts fast."""

from __future__ import annotations

import importlib
from typing import Any

import click

INTERRUPTED = 130
"""Exit status after Ctrl+C, as shells know it."""

COMMANDS = {
    "ask": "app.cli.ask:ask",
    "bench": "app.cli.bench:bench",
    "doctor": "app.cli.doctor:doctor",
    "extract": "app.cli.extract:extract",
    "models": "app.cli.models:models",
    "plan": "app.cli.plan:plan",
    "prefixes": "app.cli.prefixes:prefixes",
    "monitor": "app.cli.monitor:monitor",
}


class _LazyGroup(click.Group):
    """A group whose commands lie in modules that are imported when one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl+C ends it without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


@click.group(cls=_LazyGroup)
@click.version_option(package_name="octavo", prog_name="octavo")
def cli() -> None:
    """Chat with quantized language models on your own computer.

    Without a command, or with files to attach, the window opens.
    """
