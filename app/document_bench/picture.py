"""A picture of the memory that reading a document takes, way by way."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from app.document_bench.figures import BenchWay, DocumentBench

SIZE_INCHES = (13, 6.5)
_MB = 1e6
_COLOURS = {
    BenchWay.TRUNCATED: "#555555",
    BenchWay.WHOLE: "#7c3aed",
    BenchWay.SEGMENTS: "#1d4ed8",
    BenchWay.LOOK_UP: "#15803d",
}


def draw(result: DocumentBench, file: Path | BinaryIO) -> None:
    """Write the bytes of keys and values, and of MLX's arrays, over the time of each way, as a PNG."""
    figure = Figure(figsize=SIZE_INCHES, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True)
    for run in filter(lambda run: run.samples, result.runs):
        seconds = [sample.time_s - run.samples[0].time_s for sample in run.samples]
        colour, label = _COLOURS[run.way], run.way.value
        kv = [sample.engine.kv.total / _MB for sample in run.samples]
        above.plot(seconds, kv, color=colour, linewidth=1.2, label=label)
        active = [sample.active_nbytes / _MB for sample in run.samples]
        below.plot(seconds, active, color=colour, linewidth=1.2, label=label)
    above.set_ylabel("MB of keys and values")
    below.set_ylabel("MB of MLX's arrays")
    below.set_xlabel("seconds")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        axes.grid(alpha=0.3)
    above.legend(loc="upper right")
    figure.suptitle(f"Memory while a document of {result.num_tokens:,} tokens is asked about")
    figure.savefig(file, format="png")
