"""About how long reading takes, from the speeds that were measured last."""

from __future__ import annotations

from engine.admission import InSegments
from engine.events import GenerationStats

_NOTE_TOKENS = 100
"""About what a model writes on a part."""
_MINUTE_S = 60


def reading_s(choice: InSegments, stats: GenerationStats | None) -> float | None:
    """Return the seconds that documents read in parts take, None before a speed was measured."""
    if stats is None or stats.prefill_tps <= 0 or not choice.document_tokens:
        return None
    writing_s = choice.num_segments * _NOTE_TOKENS / stats.decode_tps if stats.decode_tps > 0 else 0.0
    return choice.document_tokens / stats.prefill_tps + writing_s


def duration_words(seconds: float) -> str:
    """Return a duration as people say it: `less than a minute`, `about 12 minutes`, `about 3 hours`."""
    if seconds < _MINUTE_S:
        return "less than a minute"
    minutes = round(seconds / _MINUTE_S)
    count, unit = (minutes, "minute") if minutes < 90 else (round(seconds / 3600), "hour")
    return f"about {count:,} {unit}{'' if count == 1 else 's'}"


def short_duration(seconds: float) -> str:
    """Return a duration as it can be known, on one line: `about 40 s`, `about 3 min`."""
    if seconds < 1:
        return "less than a second"
    if seconds < 10:
        return f"about {seconds:.0f}\N{NO-BREAK SPACE}s"
    if seconds < 2 * _MINUTE_S:
        return f"about {round(seconds, -1):.0f}\N{NO-BREAK SPACE}s"
    return f"about {seconds / _MINUTE_S:.0f}\N{NO-BREAK SPACE}min"
