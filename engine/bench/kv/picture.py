"""A picture of the trade: KL and perplexity against the bytes of a token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from engine.bench.kv.figures import KVBench, Quality
from engine.bench.kv.kinds import MLX_LM_16, CacheKind, MlxLmKind

SIZE_INCHES = (13, 6.5)
LEAST_KL = 1e-6
"""What is nearer to the reference than this is rounding, and has no place on a logarithmic scale."""

NAMED_LOSS = 1.01
"""Points whose perplexity is less than this many times that of 16 bits hide each other and are not named."""

Points = list[tuple[CacheKind, Quality]]

_MLX_LM, _LENT, _COLD, _TIERS = "mlx-lm", "mlx-lm, open page lent", "Octavo, all pages cold", "Octavo, tiers"
_STYLES = {
    _MLX_LM: {"color": "#c2410c", "marker": "s", "linestyle": "-"},
    _LENT: {"color": "#c2410c", "marker": "s", "linestyle": ":", "markerfacecolor": "white"},
    _COLD: {"color": "#1d4ed8", "marker": "o", "linestyle": "-"},
    _TIERS: {"color": "#1d4ed8", "marker": "o", "linestyle": "none", "markerfacecolor": "white"},
}


def draw(result: KVBench, file: Path | BinaryIO) -> None:
    """Write the picture as a PNG, without a display."""
    figure = Figure(figsize=SIZE_INCHES, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    exact = result.row(MLX_LM_16).quality
    least_perplexity = exact.perplexity * NAMED_LOSS if exact else 0.0
    for title, points in _series(result).items():
        _plot(left, title, [(kind, quality, quality.kl) for kind, quality in points])
        _plot(
            right, title, [(kind, quality, quality.perplexity) for kind, quality in points], least_perplexity
        )
    if exact is not None:
        right.axhline(exact.perplexity, color="#555555", linestyle="--", linewidth=1, label="16 bits")
    left.set_ylabel("KL divergence from 16 bits, nats")
    right.set_ylabel("perplexity")
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("bytes of keys and values a token, everything counted")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(lambda value, _: _sparse(value))
        axes.grid(alpha=0.3, which="both")
        axes.margins(0.12)
        axes.legend()
    right.yaxis.set_minor_formatter(lambda value, _: f"{value:.4g}")
    figure.suptitle(f"{result.num_tokens:,} tokens of text; at the points: bits of keys and values")
    figure.savefig(file, format="png")


def _series(result: KVBench) -> dict[str, Points]:
    """Sort the measured caches into lines, fewest bytes first; what is exact has no place on them."""
    series: dict[str, Points] = {title: [] for title in _STYLES}
    for row in result.rows:
        if row.quality is not None and row.quality.kl > LEAST_KL:
            series[_title(row.kind)].append((row.kind, row.quality))
    for points in series.values():
        points.sort(key=lambda point: (point[1].nbytes_per_token, -point[1].kl))
    return series


def _title(kind: CacheKind) -> str:
    if isinstance(kind, MlxLmKind):
        return _LENT if kind.page_tokens else _MLX_LM
    return _TIERS if kind.spec.hot_pages + kind.spec.warm_pages else _COLD


def _plot(
    axes: Axes, title: str, points: Sequence[tuple[CacheKind, Quality, float]], least_named: float = 0.0
) -> None:
    """Draw a line, and name its points from `least_named` on."""
    if not points:
        return
    across = [quality.nbytes_per_token for _, quality, _ in points]
    axes.plot(across, [value for _, _, value in points], label=title, markersize=7, **_STYLES[title])  # type: ignore[arg-type]
    for index, (kind, _, value) in enumerate(points):
        if value >= least_named:
            has_neighbour = across[index] in across[index + 1 :]
            where = _place(isinstance(kind, MlxLmKind), has_neighbour)
            color = _STYLES[title]["color"]
            axes.annotate(kind.precision, (across[index], value), fontsize=9, color=color, **where)


def _place(above: bool, has_neighbour: bool) -> dict[str, Any]:
    """Return where a point's name stands, so that names keep apart: above for mlx-lm, below for Octavo."""
    right = above or has_neighbour
    return {
        "xytext": (6 if right else -6, 6 if above else -6),
        "textcoords": "offset points",
        "horizontalalignment": "left" if right else "right",
        "verticalalignment": "bottom" if above else "top",
    }


def _sparse(value: float) -> str:
    """Name the ticks 2 and 5 of each power of ten."""
    leading = round(value / 10 ** math.floor(math.log10(value)))
    return f"{value:,.0f}" if leading in (2, 5) else ""
