"""`octavo doctor`: what may be wrong on this computer."""

from __future__ import annotations

import json
import logging
import sys

import click

from app.doctor import Check, Status, examine
from app.paths import AppPaths

COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}
NAME_WIDTH = 14


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list instead.")
def doctor(as_json: bool) -> None:
    """Look for what may be wrong here; the exit status is 1 when something that is needed does not work."""
    # The findings say what the engine's warnings would say.
    logging.getLogger("engine").addHandler(logging.NullHandler())
    checks = []
    for check in examine(AppPaths.from_environment()):
        checks.append(check)
        if not as_json:
            _print(check)
    if as_json:
        fields = [{"name": one.name, "status": one.status.value, "sentence": one.sentence} for one in checks]
        click.echo(json.dumps(fields, indent=2, ensure_ascii=False))
    if any(check.status is Status.FAIL for check in checks):
        sys.exit(1)


def _print(check: Check) -> None:
    status = click.style(f"{check.status.value:<5}", fg=COLOURS[check.status])
    click.echo(f"{status}{check.name:<{NAME_WIDTH}}{check.sentence}")
