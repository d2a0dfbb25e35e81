"""What helps where something does not fit, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.admission import (
    Choice,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    LowerPrecision,
    PackedWeights,
    ReadWhole,
    SummarizeTurns,
)

_WORDS = {
    LongerContext: "allow a longer context",
    PackedWeights: "load the model again with packed weights",
    LowerPrecision: "choose a lower KV precision",
    InSegments: "read documents in segments",
    LookUp: "look documents up",
    ReadWhole: "read documents whole",
    SummarizeTurns: "summarize old turns",
    DropTurns: "leave old turns out",
}


AS_DOCUMENT = "attach a long text as a document"
"""What helps where a message alone is longer than the context: documents can be read in segments."""


def remedies(choices: Iterable[Choice]) -> list[str]:
    """Return what choices do, as parts of a sentence, in their order."""
    return [_WORDS[type(choice)] for choice in choices if type(choice) in _WORDS]


def as_sentence(ways: Sequence[str]) -> str:
    """Return what can be done, one or the other, as a sentence."""
    *first, last = ways
    words = f"{', '.join(first)} or {last}" if first else last
    return f"{words[0].upper()}{words[1:]}."
