"""A picture of the memory that a conversation takes, with the steps of the guard marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from engine.bench.guard import ConversationRun, GuardBench, GuardEvent
from engine.memory import MemorySample

SIZE_INCHES = (13, 6.5)
LABELS = 1.2
"""The height is this much more than the curves need, so that the names of the steps are above them."""
_MB = 1e6

_PARTS = {"weights": "#8a94a6", "KV cache": "#1d4ed8", "MLX's free buffers": "#d9a441", "rest": "#d4d8df"}
_LIMIT, _EVENT, _FREE = "#c2410c", "#111827", "#c2410c"


def draw(result: GuardBench, file: Path | BinaryIO) -> None:
    """Write the picture as a PNG, without a display."""
    figure = Figure(figsize=SIZE_INCHES, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    free, guarded = result.free, result.guarded
    begun_s = guarded.samples[0].time_s
    _stack(axes, guarded.samples)
    axes.plot(
        _seconds(free.samples),
        [sample.process_nbytes / _MB for sample in free.samples],
        color=_FREE,
        linewidth=1,
        linestyle=":",
        label="the same conversation without a guard",
    )
    if guarded.most_nbytes is not None:
        axes.axhline(
            guarded.most_nbytes / _MB, color=_LIMIT, linewidth=1.5, linestyle="--", label="what it may take"
        )
    _mark(axes, guarded.events, begun_s)
    axes.set_xlabel("seconds")
    axes.set_ylabel("MB that the process takes")
    axes.margins(x=0)
    axes.set_ylim(0, axes.get_ylim()[1] * LABELS)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3)
    figure.suptitle(_title(guarded))
    figure.savefig(file, format="png")


def _title(run: ConversationRun) -> str:
    kept = "not kept whole" if run.problems else "every word kept"
    return f"A conversation of {run.num_tokens:,} tokens in {run.num_turns} turns, {kept}"


def _stack(axes: Axes, samples: Sequence[MemorySample]) -> None:
    """Draw what the process takes, part by part."""
    weights = [sample.engine.weights_nbytes for sample in samples]
    kv = [sample.engine.kv.total for sample in samples]
    buffers = [sample.cache_nbytes for sample in samples]
    rest = [
        max(0, sample.process_nbytes - sum(parts))
        for sample, parts in zip(samples, zip(weights, kv, buffers, strict=True), strict=True)
    ]
    stacked = [[nbytes / _MB for nbytes in part] for part in (weights, kv, buffers, rest)]
    axes.stackplot(_seconds(samples), stacked, labels=list(_PARTS), colors=list(_PARTS.values()), step="post")


def _mark(axes: Axes, events: Sequence[GuardEvent], begun_s: float) -> None:
    """Draw a line for each step, with its name beside it; one that is taken back is dashed."""
    for event in events:
        second = event.time_s - begun_s
        style = "--" if event.action.is_end else "-"
        axes.axvline(second, color=_EVENT, linewidth=1, linestyle=style)
        axes.annotate(
            event.title,
            (second, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -6),
            textcoords="offset points",
            rotation=90,
            horizontalalignment="right",
            verticalalignment="top",
            fontsize=9,
            color=_EVENT,
        )


def _seconds(samples: Sequence[MemorySample]) -> list[float]:
    return [sample.time_s - samples[0].time_s for sample in samples]
