"""Reading a KV precision from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.errors import OctavoError
from engine.kv.precision import HOW, MOST, OPTIONS, PRESETS, BitsPair, KVSpec, PrecisionRule, either


def parse(text: str) -> KVSpec:
    """Return what the text means: see `KVSpec.parse`."""
    if inside := re.search(r"[0-9]+\s+[0-9]+", text):
        raise OctavoError(f"{_quoted(inside[0])} has a space between digits; put a comma between rules.")
    before, semicolon, after = "".join(text.split()).lower().partition(";")
    pieces = before.split(",")
    options = after.split(",") if semicolon else []
    if "" in pieces + options:
        raise OctavoError(f"{_quoted(text)} has an empty rule or option; write {HOW}.")
    preset = PRESETS.get(pieces[0])
    rules = tuple(_rule(piece) for piece in (pieces[1:] if preset else pieces))
    if preset:
        return replace(preset, rules=preset.rules + rules, **_options(options))
    return KVSpec(rules, **_options(options))


def _rule(piece: str) -> PrecisionRule:
    """Return the rule that a piece of text without spaces means."""
    where, colon, bits = piece.rpartition(":")
    if not colon:
        return PrecisionRule(0, None, None, _bits(piece, piece))
    match = re.fullmatch(r"([0-9]+)(?:(-)([0-9]*))?(?:\.h([0-9]+))?", where)
    if match is None:
        problem = "names a head without its layer" if re.match(r"\.?h[0-9]", where) else "names no layers"
        raise OctavoError(f"{_quoted(piece)} {problem}; write {HOW}.")
    first = _number(match[1])
    last = first if not match[2] else _number(match[3]) if match[3] else None
    return PrecisionRule(first, last, _number(match[4]) if match[4] else None, _bits(bits, piece))


def _bits(text: str, piece: str) -> BitsPair:
    """Return the bits that `text`, a part of `piece`, means."""
    if text in PRESETS:
        raise OctavoError(f"{_quoted(piece)} has a preset, which is for all layers: put it first and alone.")
    match = re.fullmatch(r"([0-9]+)|k([0-9]+)v([0-9]+)", text)
    if match is None:
        raise OctavoError(f"{_quoted(piece)} gives no KV precision; write {HOW}.")
    return BitsPair(_number(match[1] or match[2]), _number(match[1] or match[3]))


def _options(pieces: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a `KVSpec` that the text after the `;` sets."""
    fields: dict[str, Any] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name not in OPTIONS or not re.fullmatch(r"-?[0-9]+", value):
            known = either([f"{option}=NUMBER" for option in OPTIONS])
            raise OctavoError(f"{_quoted(piece)} is no option; choose {known}.")
        if OPTIONS[name] in fields:
            raise OctavoError(f"{_quoted(piece)} is a second {name}; each option is given once.")
        fields[OPTIONS[name]] = _flag(piece, value) if name == "grow" else _number(value)
    return fields


def _flag(piece: str, value: str) -> bool:
    if value not in ("0", "1"):
        raise OctavoError(f"{_quoted(piece)} cannot be; choose grow=0 or grow=1.")
    return value == "1"


def _number(digits: str) -> int:
    if len(digits) > 20:  # Python itself refuses thousands of digits with another error
        raise OctavoError(f"{_quoted(digits)} is too large; the largest number here is {MOST}.")
    return int(digits)


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 40 else f"'{text[:40]}…'"
