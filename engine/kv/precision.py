"""How many bits the KV cache spends on a value: by layer, by KV head, for keys and values, and by age."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.errors import OctavoError

KV_BITS = (16, 8, 6, 5, 4, 3, 2)
"""Bits of a cached key or value; 16 means the model's own activation type, which has 4 bytes on the CPU."""
GROUP_SIZES = (32, 64, 128)
"""Quantized values that share one scale and one bias."""
PAGE_TOKENS = (64, 128, 256, 512)
"""Tokens in a page."""
MOST = 999_999
"""The largest layer, head or number of pages that can be written."""


class PrecisionError(OctavoError):
    """A precision that the loaded model cannot have."""


class Tier(enum.Enum):
    """How exactly a page is kept at present."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


LEAST_BITS = {Tier.HOT: 16, Tier.WARM: 8, Tier.COLD: 2}
"""What a tier keeps at least, whatever the rules say."""


@dataclass(frozen=True)
class BitsPair:
    """Bits a key and bits a value, each one of `KV_BITS`; prints as `8` when equal, else as `k8v4`."""

    keys: int
    values: int

    def __post_init__(self) -> None:
        for bits in (self.keys, self.values):
            if type(bits) is not int or bits not in KV_BITS:
                raise OctavoError(f"'{bits}' is no KV precision; choose {either(KV_BITS)} bits.")

    def __str__(self) -> str:
        return f"{self.keys}" if self.keys == self.values else f"k{self.keys}v{self.values}"


_UNNAMED = BitsPair(16, 16)
"""What a layer has that no rule names."""


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
        if layer < self.first or (self.last is not None and layer > self.last):
            return False
        return self.head is None or self.head == head


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
            raise OctavoError(f"A KV precision without rules says nothing; write {HOW}.")
        _require_choice("page", self.page_tokens, PAGE_TOKENS)
        _require_choice("group", self.group_size, GROUP_SIZES)
        if self.group_size > self.page_tokens:
            raise OctavoError(
                f"'group={self.group_size}' is more than a page of {self.page_tokens} tokens holds; choose "
                f"{either([size for size in GROUP_SIZES if size <= self.page_tokens])}, or a larger page."
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
        from engine.kv.precision_text import parse  # it builds these classes

        return parse(text)

    def __str__(self) -> str:
        rules = ", ".join(str(rule) for rule in self.rules)
        options = ", ".join(
            f"{name}={int(getattr(self, field))}"
            for name, field in OPTIONS.items()
            if getattr(self, field) != getattr(KVSpec, field)
        )
        return f"{rules}; {options}" if options else rules

    def bits(self, layer: int, head: int) -> BitsPair:
        """Return the bits of a KV head in the cold tier."""
        for rule in reversed(self.rules):
            if rule.covers(layer, head):
                return rule.bits
        return _UNNAMED

    def tier_bits(self, tier: Tier, layer: int, head: int) -> BitsPair:
        """Return the bits of a KV head in a page of this tier: 16 when hot, at least 8 when warm."""
        cold = self.bits(layer, head)
        least = LEAST_BITS[tier]
        return BitsPair(max(least, cold.keys), max(least, cold.values))

    def require_fit(self, num_layers: int, num_kv_heads: int) -> None:
        """Raise a `PrecisionError` when a rule names a layer or a KV head that the model does not have."""
        for rule in self.rules:
            named = rule.first if rule.last is None else rule.last
            if named >= num_layers or (rule.head or 0) >= num_kv_heads:
                raise PrecisionError(
                    f"'{rule}' names what this model does not have; it has layers 0-{num_layers - 1}, "
                    f"heads 0-{num_kv_heads - 1}. Change the KV precision, in the window's right pane or "
                    "with --kv."
                )

    def kv_nbytes_per_token(self, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
        """Return the bytes of a token in cold pages, with scales, biases and padding.

        A shape for every layer of the model, in order. An activation has 2 bytes on GPUs, 4 on the CPU.
        """
        return sum(self.layer_nbytes(tuple(shapes), activation_nbytes))

    def layer_nbytes(self, shapes: tuple[LayerShape, ...], activation_nbytes: int) -> tuple[float, ...]:
        """Return what each layer has of `kv_nbytes_per_token`."""
        return _layer_nbytes(self, shapes, activation_nbytes)

    def effective_bits(self, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
        """Return the bits that a cached number costs on average in cold pages; 0 where nothing is cached."""
        numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in shapes)
        return 8 * self.kv_nbytes_per_token(shapes, activation_nbytes) / numbers if numbers else 0.0


@functools.lru_cache(maxsize=16)  # a window asks several times while a mouse drags
def _layer_nbytes(spec: KVSpec, shapes: tuple[LayerShape, ...], activation_nbytes: int) -> tuple[float, ...]:
    each = []
    for layer, shape in enumerate(shapes):
        nbytes = 0.0
        for head in range(shape.num_kv_heads):
            bits = spec.bits(layer, head)
            nbytes += key_nbytes(shape.key_dim, bits.keys, spec.group_size, activation_nbytes)
            nbytes += value_nbytes(shape.value_dim, bits.values, spec.group_size, activation_nbytes)
        each.append(nbytes)
    return tuple(each)


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


def key_nbytes(head_dim: int, bits: int, group_size: int, activation_nbytes: int) -> float:
    """Return the bytes of one key of a KV head in a page, which is quantized per channel."""
    return _nbytes(head_dim, bits, group_size, activation_nbytes)


def value_nbytes(head_dim: int, bits: int, group_size: int, activation_nbytes: int) -> float:
    """Return the bytes of one value of a KV head in a page, which is quantized per token."""
    dim = head_dim if bits == 16 else padded_dim(head_dim, group_size)
    return _nbytes(dim, bits, value_group(head_dim, group_size), activation_nbytes)


def _nbytes(numbers: int, bits: int, group: int, activation_nbytes: int) -> float:
    """Return the bytes of numbers at these bits; each group has a scale and a bias, both activations."""
    if bits == 16:
        return numbers * activation_nbytes
    return numbers * (bits / 8 + 2 * activation_nbytes / group)


def _require_choice(name: str, value: int, allowed: Sequence[int]) -> None:
    if type(value) is not int or value not in allowed:
        raise OctavoError(f"'{name}={value}' cannot be; choose {either(allowed)}.")


def _require_count(piece: str, value: int, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= MOST:
        raise OctavoError(f"'{piece}' cannot be; it is a whole number from {least} to {MOST}.")


def either(allowed: Iterable[object]) -> str:
    """Return a choice in words: `32, 64 or 128`."""
    *most, last = (str(value) for value in allowed)
    return f"{', '.join(most)} or {last}"


PRESETS = {
    "precise": KVSpec((PrecisionRule(0, None, None, BitsPair(8, 8)),)),
    "balanced": KVSpec((PrecisionRule(0, None, None, BitsPair(4, 4)),)),
    "compact": KVSpec((PrecisionRule(0, None, None, BitsPair(4, 3)),), hot_pages=1, warm_pages=2),
}
"""Names that stand for a precision of all layers."""
OPTIONS = {
    "page": "page_tokens",
    "group": "group_size",
    "hot": "hot_pages",
    "warm": "warm_pages",
    "attend": "attention_pages",
    "grow": "attention_grows",
}
"""The fields of a `KVSpec` by their names in text, after the `;`."""
HOW = (
    f"{either(KV_BITS)} bits as 8 or k8v4, for some layers as 0-7:8, 8-:4 or 12.h3:8, "
    f"or a preset ({either(PRESETS)})"
)
"""How a precision is written, for messages."""
