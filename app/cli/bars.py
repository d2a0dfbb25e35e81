"""Figures against the limits that they are held against, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from engine.bench.kv.figures import Bar

_NONE = "–"


def bar_lines(bars: Iterable[Bar], setup: str, no_verdict: str = "") -> list[str]:
    """Return the lines of a table.

    Args:
        bars: figures and limits.
        setup: what the limits are set for.
        no_verdict: a sentence that says why these figures are not judged; empty where they are.
    """
    lines = [f"{f'Bar, set for {setup}':<52}{'asked':>14}{'measured':>15}"]
    for bar in bars:
        asked = f"{'≥' if bar.is_least else '≤'} {bar.limit:.2f}{bar.unit}"
        measured = _NONE if bar.figure is None else f"{bar.figure:.3f}{bar.unit}"
        lines.append(f"{bar.title:<52}{asked:>14}{measured:>15}   {_verdict(bar, not no_verdict)}")
    return [*lines, no_verdict] if no_verdict else lines


def _verdict(bar: Bar, is_meant: bool) -> str:
    if bar.met is None:
        return "not measured"
    if not is_meant:
        return _NONE
    return "met" if bar.met else "not met"
