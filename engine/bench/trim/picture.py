"""A picture of the memory of conversations that go on beyond their limit, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from engine.bench.trim.figures import LongRun

SIZE_INCHES = (13, 6.5)
_MB = 1e6
_COLOURS = ("#1d4ed8", "#c2410c", "#15803d", "#7c3aed")
_MARKERS = ("o", "s", "^", "D")
_LIMIT = "#555555"


def draw(runs: Mapping[str, LongRun], file: Path | BinaryIO) -> None:
    """Write the bytes and tokens of conversations, by name, as a PNG, without a display.

    A large mark is a turn before which others left the context.
    """
    figure = Figure(figsize=SIZE_INCHES, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True)
    for index, (name, run) in enumerate(runs.items()):
        numbers = [turn.number for turn in run.turns]
        _plot(above, index, name, run, numbers, [turn.nbytes / _MB for turn in run.turns])
        tokens = [turn.prompt_tokens + turn.written_tokens for turn in run.turns]
        _plot(below, index, name, run, numbers, tokens)
    for limit in sorted({run.limit_tokens for run in runs.values()}):
        below.axhline(limit, color=_LIMIT, linestyle="--", linewidth=1, label=f"limit of {limit:,} tokens")
    above.set_ylabel("MB of keys and values")
    below.set_ylabel("tokens in the context")
    below.set_xlabel("turn")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    below.legend(loc="lower right")
    figure.suptitle("Memory of a conversation that goes on; large marks are trims")
    figure.savefig(file, format="png")


def _plot(
    axes: Axes, index: int, name: str, run: LongRun, numbers: list[int], values: list[float] | list[int]
) -> None:
    colour, marker = _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]
    axes.plot(numbers, values, color=colour, linewidth=1.5, marker=marker, markersize=3, label=name)
    trimmed = [place for place, turn in enumerate(run.turns) if turn.is_trimmed]
    axes.plot(
        [numbers[place] for place in trimmed],
        [values[place] for place in trimmed],
        color=colour,
        linestyle="none",
        marker=marker,
        markersize=9,
    )
