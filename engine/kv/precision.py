"""How many bits the KV cache spends on a value: by layer, by KV head, for keys and values, and by age."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import OctavoError

KV_BITS = (16, 8, 6, 5, 4, 3, 2)
"""Bits of a cached key or value; 16 means the model's own activation type, which has 4 bytes on the CPU."""
GROUP_SIZES = (32, 64, 128)
"""Quantized values that share one scale and one bias."""
PAGE_TOKENS = (64, 128, 256, 512)
"""Tokens in a page."""
MOST = 999_999
"""The largest layer, head or number of pages that can be written."""


class Tier(enum.Enum):
    """How exactly a page is kept at present."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True)
class BitsPair:
    """Bits a key and bits a value, each one of `KV_BITS`; prints as `8` when equal, else as `k8v4`."""

    keys: int
    values: int

    def __post_init__(self) -> None:
        for bits in (self.keys, self.values):
            if type(bits) is not int or bits not in KV_BITS:
                raise OctavoError(f"'{bits}' is no KV precision; choose {_either(KV_BITS)} bits.")

    def __str__(self) -> str:
        return f"{self.keys}" if self.keys == self.values else f"k{self.keys}v{self.values}"


@dataclass(frozen=True)
class PrecisionRule:
    """The bits of some layers: `first` to `last` inclusive, all from `first` on when `last` is None.

    With `head` the rule is about that KV head of those layers alone.
    """

    first: int
    last: int | None
    head: int | None
    bits: BitsPair

    def __post_init__(self) -> None:
        for number in (self.first, self.last, self.head):
            if number is not None:
                _require_count(f"{number}", number)
        if self.last is not None and self.last < self.first:
            raise OctavoError(
                f"'{self.first}-{self.last}' runs backwards; write it as {self.last}-{self.first}."
            )

    def __str__(self) -> str:
        last = "-" if self.last is None else "" if self.last == self.first else f"-{self.last}"
        where = f"{self.first}{last}" + ("" if self.head is None else f".h{self.head}")
        return f"{self.bits}" if where == "0-" else f"{where}:{self.bits}"

    def covers(self, layer: int, head: int) -> bool:
        """Return whether the rule is about this KV head of this layer."""
        in_range = self.first <= layer and (self.last is None or layer <= self.last)
        return in_range and self.head in (None, head)


@dataclass(frozen=True)
class LayerShape:
    """What one layer caches for a token: `num_kv_heads` keys and values of these many numbers each.

    A layer that caches nothing in pages (a linear or a sliding one) has 0 heads.
    """

    num_kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True)
class KVSpec:
    """The precision of a whole KV cache; `str` of it is text that `parse` reads back to an equal value.

    Attributes:
        rules: bits of the cold tier; a later rule wins, and what no rule names stays at 16 bits.
        page_tokens: tokens in a page, one of `PAGE_TOKENS`.
        group_size: quantized values that share a scale, one of `GROUP_SIZES`, at most `page_tokens`.
        hot_pages: newest sealed pages kept at 16 bits.
        warm_pages: pages after those kept at 8 bits at least.
        attention_pages: decode reads this many pages at each precision; None reads all.
        attention_grows: whether that number may grow by itself while it catches too little of the attention.
    """

    rules: tuple[PrecisionRule, ...]
    page_tokens: int = 256
    group_size: int = 64
    hot_pages: int = 1
    warm_pages: int = 4
    attention_pages: int | None = None
    attention_grows: bool = False

    def __post_init__(self) -> None:
        if not self.rules:
            raise OctavoError(f"A KV precision without rules says nothing; write {_HOW}.")
        _require_choice("page", self.page_tokens, PAGE_TOKENS)
        _require_choice("group", self.group_size, GROUP_SIZES)
        if self.group_size > self.page_tokens:
            raise OctavoError(
                f"'group={self.group_size}' is more than a page of {self.page_tokens} tokens holds; choose "
                f"{_either([size for size in GROUP_SIZES if size <= self.page_tokens])}, or a larger page."
            )
        _require_count(f"hot={self.hot_pages}", self.hot_pages)
        _require_count(f"warm={self.warm_pages}", self.warm_pages)
        if self.attention_pages is not None:
            _require_count(f"attend={self.attention_pages}", self.attention_pages, least=1)
        elif self.attention_grows:
            raise OctavoError("'grow=1' has nothing to grow; give a number of pages too, such as attend=8.")

    @classmethod
    def parse(cls, text: str) -> KVSpec:
        """Return what the text means, for example `0-7:8, 8-:k6v4, 12.h3:8; page=128, hot=2`.

        Before the `;` are rules, of which the first may be a preset's name; bits alone are for all layers.
        Case and spaces do not matter. What cannot be is an `OctavoError` that quotes it and names what can.
        """
        if inside := re.search(r"[0-9]+\s+[0-9]+", text):
            raise OctavoError(f"{_quoted(inside[0])} has a space between digits; put a comma between rules.")
        before, semicolon, after = "".join(text.split()).lower().partition(";")
        pieces = before.split(",")
        options = after.split(",") if semicolon else []
        if "" in pieces + options:
            raise OctavoError(f"{_quoted(text)} has an empty rule or option; write {_HOW}.")
        preset = PRESETS.get(pieces[0])
        rules = tuple(_rule(piece) for piece in (pieces[1:] if preset else pieces))
        if preset:
            return replace(preset, rules=preset.rules + rules, **_options(options))
        return cls(rules, **_options(options))

    def __str__(self) -> str:
        rules = ", ".join(str(rule) for rule in self.rules)
        options = ", ".join(
            f"{name}={int(getattr(self, field))}"
            for name, field in _OPTIONS.items()
            if getattr(self, field) != getattr(KVSpec, field)
        )
        return f"{rules}; {options}" if options else rules

    def bits(self, layer: int, head: int) -> BitsPair:
        """Return the bits of a KV head in the cold tier."""
        covering = (rule.bits for rule in reversed(self.rules) if rule.covers(layer, head))
        return next(covering, BitsPair(16, 16))

    def tier_bits(self, tier: Tier, layer: int, head: int) -> BitsPair:
        """Return the bits of a KV head in a page of this tier: 16 when hot, at least 8 when warm."""
        cold = self.bits(layer, head)
        least = {Tier.HOT: 16, Tier.WARM: 8, Tier.COLD: 2}[tier]
        return BitsPair(max(least, cold.keys), max(least, cold.values))

    def require_fit(self, num_layers: int, num_kv_heads: int) -> None:
        """Raise an `OctavoError` when a rule names a layer or a KV head that the model does not have."""
        for rule in self.rules:
            named = rule.first if rule.last is None else rule.last
            if named >= num_layers or (rule.head or 0) >= num_kv_heads:
                raise OctavoError(
                    f"'{rule}' names what this model does not have; it has layers 0-{num_layers - 1}, "
                    f"heads 0-{num_kv_heads - 1}."
                )

    def kv_nbytes_per_token(self, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
        """Return the bytes of a token in cold pages, with scales, biases and padding.

        A shape for every layer of the model, in order. An activation has 2 bytes on GPUs, 4 on the CPU.
        """
        nbytes = 0.0
        for layer, shape in enumerate(shapes):
            for head in range(shape.num_kv_heads):
                bits = self.bits(layer, head)
                group = value_group(shape.value_dim, self.group_size)
                padded = padded_dim(shape.value_dim, self.group_size)
                value_dim = shape.value_dim if bits.values == 16 else padded
                nbytes += _nbytes(shape.key_dim, bits.keys, self.group_size, activation_nbytes)
                nbytes += _nbytes(value_dim, bits.values, group, activation_nbytes)
        return nbytes

    def effective_bits(self, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
        """Return the bits that a cached number costs on average in cold pages; 0 where nothing is cached."""
        numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in shapes)
        return 8 * self.kv_nbytes_per_token(shapes, activation_nbytes) / numbers if numbers else 0.0


def value_group(head_dim: int, group_size: int) -> int:
    """Return the group of values quantized per token: the largest up to `group_size` that divides a head.

    Where none does it is 32, and the head is padded: see `padded_dim`.
    """
    fitting = [size for size in GROUP_SIZES if size <= group_size and head_dim % size == 0]
    return max(fitting, default=GROUP_SIZES[0])


def padded_dim(head_dim: int, group_size: int) -> int:
    """Return the numbers that a head's quantized value takes: whole groups of `value_group`."""
    group = value_group(head_dim, group_size)
    return -(-head_dim // group) * group


def _nbytes(numbers: int, bits: int, group: int, activation_nbytes: int) -> float:
    """Return the bytes of numbers at these bits; each group has a scale and a bias, both activations."""
    if bits == 16:
        return numbers * activation_nbytes
    return numbers * (bits / 8 + 2 * activation_nbytes / group)


def _rule(piece: str) -> PrecisionRule:
    """Return the rule that a piece of text without spaces means."""
    where, colon, bits = piece.rpartition(":")
    if not colon:
        return PrecisionRule(0, None, None, _bits(piece, piece))
    match = re.fullmatch(r"([0-9]+)(?:(-)([0-9]*))?(?:\.h([0-9]+))?", where)
    if match is None:
        problem = "names a head without its layer" if re.match(r"\.?h[0-9]", where) else "names no layers"
        raise OctavoError(f"{_quoted(piece)} {problem}; write {_HOW}.")
    first = _number(match[1])
    last = first if not match[2] else _number(match[3]) if match[3] else None
    return PrecisionRule(first, last, _number(match[4]) if match[4] else None, _bits(bits, piece))


def _bits(text: str, piece: str) -> BitsPair:
    """Return the bits that `text`, a part of `piece`, means."""
    if text in PRESETS:
        raise OctavoError(f"{_quoted(piece)} has a preset, which is for all layers: put it first and alone.")
    match = re.fullmatch(r"([0-9]+)|k([0-9]+)v([0-9]+)", text)
    if match is None:
        raise OctavoError(f"{_quoted(piece)} gives no KV precision; write {_HOW}.")
    return BitsPair(_number(match[1] or match[2]), _number(match[1] or match[3]))


def _options(pieces: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a `KVSpec` that the text after the `;` sets."""
    fields: dict[str, Any] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name not in _OPTIONS or not re.fullmatch(r"-?[0-9]+", value):
            known = _either([f"{option}=NUMBER" for option in _OPTIONS])
            raise OctavoError(f"{_quoted(piece)} is no option; choose {known}.")
        if _OPTIONS[name] in fields:
            raise OctavoError(f"{_quoted(piece)} is a second {name}; each option is given once.")
        fields[_OPTIONS[name]] = _flag(piece, value) if name == "grow" else _number(value)
    return fields


def _flag(piece: str, value: str) -> bool:
    if value not in ("0", "1"):
        raise OctavoError(f"{_quoted(piece)} cannot be; choose grow=0 or grow=1.")
    return value == "1"


def _number(digits: str) -> int:
    if len(digits) > 20:  # Python itself refuses thousands of digits with another error
        raise OctavoError(f"{_quoted(digits)} is too large; the largest number here is {MOST}.")
    return int(digits)


def _require_choice(name: str, value: int, allowed: Sequence[int]) -> None:
    if type(value) is not int or value not in allowed:
        raise OctavoError(f"'{name}={value}' cannot be; choose {_either(allowed)}.")


def _require_count(piece: str, value: int, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= MOST:
        raise OctavoError(f"'{piece}' cannot be; it is a whole number from {least} to {MOST}.")


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 40 else f"'{text[:40]}…'"


def _either(allowed: Iterable[object]) -> str:
    *most, last = (str(value) for value in allowed)
    return f"{', '.join(most)} or {last}"


PRESETS = {
    "precise": KVSpec((PrecisionRule(0, None, None, BitsPair(8, 8)),)),
    "balanced": KVSpec((PrecisionRule(0, None, None, BitsPair(4, 4)),)),
    "compact": KVSpec((PrecisionRule(0, None, None, BitsPair(4, 3)),), hot_pages=1, warm_pages=2),
}
"""Names that stand for a precision of all layers."""
_OPTIONS = {
    "page": "page_tokens",
    "group": "group_size",
    "hot": "hot_pages",
    "warm": "warm_pages",
    "attend": "attention_pages",
    "grow": "attention_grows",
}
_HOW = (
    f"{_either(KV_BITS)} bits as 8 or k8v4, for some layers as 0-7:8, 8-:4 or 12.h3:8, "
    f"or a preset ({_either(PRESETS)})"
)
