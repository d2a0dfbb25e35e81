"""What `octavo bench document` prints and writes."""

from __future__ import annotations

from collections.abc import Iterator

from app.document_bench.facts import FactKind
from app.document_bench.figures import BenchWay, DocumentBench, WayRun
from engine.wording import format_nbytes

_KINDS = {
    FactKind.NUMBER: "numbers",
    FactKind.NAME: "names",
    FactKind.DATE: "dates",
    FactKind.CODE: "nested clauses",
}
_COLUMNS = (
    ("found", 9),
    ("read", 9),
    ("cited", 9),
    ("first s", 10),
    ("later s", 10),
    ("tokens read", 13),
    ("peak KV", 10),
    ("peak MLX", 10),
)


def report(result: DocumentBench) -> str:
    """Return the tables: how much each way finds and takes, and how much of each kind."""
    lines = [
        f"A handbook of {result.num_tokens:,} tokens with {result.num_facts} facts, "
        f"{_asked_words(result)} asked for; a context of {result.limit_tokens:,}, KV cache {result.kv}",
        f"{result.setup}; {result.versions}",
        "",
        f"{'way':<11}" + "".join(f"{name:>{width}}" for name, width in _COLUMNS),
        *(_row(run) for run in result.runs if run.asked),
        "",
        f"{'found':<11}" + "".join(f"{words:>16}" for words in _KINDS.values()),
        *(_kinds_row(run) for run in result.runs if run.asked),
        *_refusals(result),
        "",
        "found: the answer tells the fact and nothing wrong that stands near it. read: its sentence is in",
        "what the answer was written from. cited: the answer cites it. later: the median of the others.",
    ]
    return "\n".join(lines)


def _asked_words(result: DocumentBench) -> str:
    """Return how many facts were asked for."""
    most = max((len(run.asked) for run in result.runs), default=0)
    return "all of them" if most == result.num_facts else f"{most} of them"


def _row(run: WayRun) -> str:
    total = len(run.asked)
    cited = "–" if run.way in (BenchWay.TRUNCATED, BenchWay.WHOLE) else f"{run.num_cited}/{total}"
    cells = (
        f"{run.num_found}/{total}",
        f"{run.num_read}/{total}",
        cited,
        f"{run.first_s:.1f}",
        f"{run.later_s:.1f}",
        f"{run.read_tokens:,}",
        format_nbytes(run.peak_kv_nbytes),
        format_nbytes(run.peak_mlx_nbytes),
    )
    widths = (width for _, width in _COLUMNS)
    return f"{run.way.value:<11}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)
    )


def _kinds_row(run: WayRun) -> str:
    cells = []
    for kind in _KINDS:
        asked = [one for one in run.asked if one.fact.kind is kind]
        cells.append(f"{sum(one.is_found for one in asked)}/{len(asked)}")
    return f"{run.way.value:<11}" + "".join(f"{cell:>16}" for cell in cells)


def _refusals(result: DocumentBench) -> Iterator[str]:
    for run in result.runs:
        if run.refusal:
            yield ""
            yield f"{run.way.value}: {run.refusal}"
