"""`octavo plan`: what a model would take in memory and what fits, before anything is loaded."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from app.cli.memory_size import MemorySize
from app.cli.output_file import OUTPUT_FILE, require_writable
from app.cli.plan_report import csv_rows, report, summary
from app.csv_file import csv_content
from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT
from app.memory_plan import plan_memory
from app.models.inspection import inspect, inspect_without_weights, is_bare_config
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from app.settings import DEFAULT_KV, load_memory_limits
from engine.backend import Backend, Device, start_backend
from engine.kv.precision import PRESETS, KVSpec
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelInfo

DEVICES = {device.value.lower(): device for device in Device}


@click.command()
@click.argument("model")
@click.option(
    "--kv",
    help=f"KV cache precision: 8, k8v4, '0-7:8, 8-:4', {', '.join(PRESETS)}.  [default: {DEFAULT_KV}]",
)
@click.option(
    "--context",
    type=click.IntRange(LEAST_CONTEXT, MOST_CONTEXT),
    help="Tokens of prompt and answer together.  [default: the model's]",
)
@click.option(
    "--memory",
    type=MemorySize(),
    help="Memory to plan with, such as 16G.  [default: what is free here and the settings allow]",
)
@click.option(
    "--reserve",
    type=MemorySize(may_be_none=True),
    help="Memory that is kept free beside weights and cache.  [default: that of the settings, at first 1GiB]",
)
@click.option(
    "--device", type=click.Choice(list(DEVICES)), help="What it computes on.  [default: this computer's]"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--csv", "csv_file", type=OUTPUT_FILE, help="Write a line for each precision and context.")
def plan(
    model: str,
    kv: str | None,
    context: int | None,
    memory: int | None,
    reserve: int | None,
    device: str | None,
    as_json: bool,
    csv_file: Path | None,
) -> None:
    """Tell what MODEL takes in memory and how long a context fits, without loading it.

    MODEL is a model's id, name or path: a GGUF file, an MLX folder, or a config.json alone.
    """
    if csv_file:
        require_writable(csv_file, "--csv")
    spec = DEFAULT_KV if kv is None else KVSpec.parse(kv)
    limits = _limits(memory, reserve)
    info = _inspected(model)
    spec.require_fit(info.num_layers, info.num_kv_heads)
    here = start_backend()
    result = plan_memory(
        info,
        here if device is None else Backend(DEVICES[device], None),
        spec,
        _free_nbytes(limits) if memory is None else memory,
        context=context,
        limits=limits,
    )
    try:
        click.echo(
            json.dumps(summary(result), indent=2) if as_json else report(result, is_here=memory is None)
        )
    finally:  # a reader that went away costs the table, not the file
        if csv_file:
            write_files({csv_file: lambda: csv_content(csv_rows(result))})


def _limits(memory: int | None, reserve: int | None) -> MemoryLimits:
    """Return what the user's settings allow, as far as the options do not say otherwise."""
    limits = load_memory_limits(AppPaths.from_environment().settings_file)
    if memory is not None:
        limits = dataclasses.replace(limits, most_nbytes=None)
    return limits if reserve is None else dataclasses.replace(limits, reserve_nbytes=reserve)


def _free_nbytes(limits: MemoryLimits) -> int:
    from engine.headroom import headroom_nbytes  # it imports MLX, which is to be prepared first

    return headroom_nbytes(limits)


def _inspected(model: str) -> ModelInfo:
    """Return what is known of a model of the library, of one that lies elsewhere, or of a bare config."""
    path = Path(model).expanduser()
    if model and is_bare_config(path):
        return inspect_without_weights(path)
    found = ModelLibrary(AppPaths.from_environment()).find(model)
    return dataclasses.replace(inspect(found.path), name=found.title)
