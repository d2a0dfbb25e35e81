"""Profiles in words."""

from __future__ import annotations

from app.profiles import DocumentMode, Overflow, Profile
from engine.kv.precision import KVSpec

OVERFLOW_WORDS = {
    Overflow.SUMMARIZE: "Summarize old turns",
    Overflow.DROP: "Drop old turns",
    Overflow.ASK: "Ask what to do",
    Overflow.OFF: "Off",
}
DOCUMENT_WORDS = {
    DocumentMode.AUTO: "In segments or look up",
    DocumentMode.WHOLE: "Ask what to do",
    DocumentMode.SEGMENTS: "In segments",
    DocumentMode.LOOK_UP: "Look up",
}
_OVERFLOW_PARTS = {
    Overflow.SUMMARIZE: "summarizes old turns",
    Overflow.DROP: "drops old turns",
    Overflow.ASK: "asks when full",
    Overflow.OFF: "no trimming",
}
_DOCUMENT_PARTS = {
    DocumentMode.AUTO: "",
    DocumentMode.WHOLE: "asks about long documents",
    DocumentMode.SEGMENTS: "long documents in segments",
    DocumentMode.LOOK_UP: "long documents looked up",
}


def description(profile: Profile) -> str:
    """Return a line such as `8-bit, up to 12,288 tokens, drops the oldest turns`."""
    parts = [precision_words(profile.kv)]
    if profile.kv.attention_pages is not None:
        parts.append("attention budget")
    limit = profile.max_context
    parts.append("all that fits" if limit is None else f"up to {limit:,} tokens")
    parts.append(_OVERFLOW_PARTS[profile.overflow])
    parts.append(_DOCUMENT_PARTS[profile.document_mode])
    return ", ".join(filter(None, parts))


def precision_words(kv: KVSpec) -> str:
    """Return the bits of a KV precision, such as `8-bit`, `8-bit keys and 4-bit values` or `mixed bits`."""
    if len(kv.rules) > 1 or (kv.rules[0].first, kv.rules[0].last, kv.rules[0].head) != (0, None, None):
        return "mixed bits"
    bits = kv.rules[0].bits
    if bits.keys == bits.values:
        return f"{bits.keys}-bit"
    return f"{bits.keys}-bit keys and {bits.values}-bit values"
