"""Figures of a KV cache, as plain data that may cross threads; `engine/kv/measure.py` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.kv.precision import BitsPair, Tier


@dataclass(frozen=True)
class PageInfo:
    """What is known of a page.

    Attributes:
        number: the page's own.
        tier: hot, warm or cold.
        tokens: ids of the tokens that the sequence still has in it.
        first_position: of its first token.
        last_position: of its last token.
        nbytes: of all its blocks, scales and biases included.
        heat: moving average of the share of attention that it receives, 0 to 1.
        last_access: the decoded token, counted by the cache, at which it last got one per cent of it.
        pinned: whether it is kept a tier higher.
        references: places in page tables that refer to it; more than one when it is shared.
        bits: of each layer's KV heads, by the layer's number; pages with the same bits share one object.
        is_on_disk: whether its keys and values are on disk only and must come back before they are read.
    """

    number: int
    tier: Tier
    tokens: tuple[int, ...]
    first_position: int
    last_position: int
    nbytes: int
    heat: float
    last_access: int
    pinned: bool
    references: int
    bits: Mapping[int, tuple[BitsPair, ...]]
    is_on_disk: bool = False

    @property
    def num_tokens(self) -> int:
        """Tokens that the sequence still has in it."""
        return len(self.tokens)


@dataclass(frozen=True)
class KVUsage:
    """What a sequence's cache takes and how exact it is.

    Attributes:
        num_tokens: tokens held.
        open_tokens: those of them that no page holds yet, always at 16 bits.
        hot_pages: at 16 bits.
        warm_pages: at 8 bits or more.
        cold_pages: at the bits of the settings.
        hot_nbytes: of the hot pages, scales and biases included.
        warm_nbytes: of the warm pages.
        cold_nbytes: of the cold pages.
        nbytes: everything: pages, free slots, open tokens, bounds and layers that are not paged.
        effective_bits: bits that a number in pages costs on average, scales and biases included; None without
            pages.
        requested: the bits of the cold tier, the mean of keys and that of values.
        effective: the bits of the cold pages as they are; None without cold pages.
        num_below: pages that have lost bits which the present settings would keep; only reading the text
            again brings them back.
        attention_pages: how many pages at each precision decode reads now, maybe grown; None for all.
        caught: the share of attention that the attention budget catches, sampled; None without a sample.
    """

    num_tokens: int
    open_tokens: int
    hot_pages: int
    warm_pages: int
    cold_pages: int
    hot_nbytes: int
    warm_nbytes: int
    cold_nbytes: int
    nbytes: int
    effective_bits: float | None
    requested: tuple[float, float] | None
    effective: tuple[float, float] | None
    num_below: int
    attention_pages: int | None
    caught: float | None

    @property
    def sealed_nbytes(self) -> int:
        """Bytes of the pages alone."""
        return self.hot_nbytes + self.warm_nbytes + self.cold_nbytes
