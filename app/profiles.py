"""Profiles: how the cache, the context and documents are treated together, under a name."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from engine.kv.precision import PRESETS, KVSpec


class Overflow(enum.Enum):
    """What happens when a conversation outgrows its context."""

    ASK = "ask"
    """The message is not sent; the user chooses what to do."""
    DROP = "drop"
    """The oldest turns are left out of what the model reads. The conversation keeps them, and says so."""


class DocumentMode(enum.Enum):
    """How documents are read."""

    WHOLE = "whole"
    """All of the text, in the context."""
    SEGMENTS = "segments"
    """In pieces, one after another; the answer is written from the notes taken on each. For documents that
    do not fit whole; one that fits is read whole."""


@dataclass(frozen=True)
class Profile:
    """Settings that belong together.

    Attributes:
        name: unique among the profiles.
        kv: precision of the KV cache, its attention budget included.
        max_context: tokens of prompt and answer together at most; None for what the model and memory give.
        overflow: what happens beyond that.
        document_mode: how documents are read.
    """

    name: str
    kv: KVSpec
    max_context: int | None
    overflow: Overflow
    document_mode: DocumentMode


CUSTOM = "Custom"
"""The profile of a conversation whose settings are its own."""

BUILT_IN = (
    Profile("Chat", PRESETS["precise"], 12_288, Overflow.DROP, DocumentMode.WHOLE),
    Profile(
        "Long document",
        KVSpec.parse("4; attend=16, grow=1"),
        None,
        Overflow.ASK,
        DocumentMode.SEGMENTS,
    ),
    Profile("Code", PRESETS["precise"], None, Overflow.ASK, DocumentMode.WHOLE),
)
"""The profiles that come with the program; a copy of one can be edited."""
