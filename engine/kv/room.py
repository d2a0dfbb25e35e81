"""The memory that a cache takes, by formula: what is planned with before anything is read."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from engine.kv.precision import LEAST_BITS, BitsPair, KVSpec, LayerShape, Tier, key_nbytes, value_nbytes

GROWTH_FRACTION = 16
"""A pool of blocks grows by a sixteenth of what it holds, at least by one page."""


def kv_nbytes(spec: KVSpec, num_tokens: int, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
    """Return the most bytes that a cache takes while a text grows to this many tokens.

    Never less for a longer text. Counted are the open page, whole; the pages by tier as `TierPolicy` gives
    them to a text in which none is pinned; the room that pools have to spare; and the bounds of keys that an
    attention budget takes. A shape for every layer of the model, in order.
    """
    pages = num_tokens // spec.page_tokens
    # The first page is hot for longest, so that the page with which it goes warm may leave less than before.
    while_first_is_hot = min(pages, spec.hot_pages + spec.warm_pages - spec.warm_pages // 2)
    tiers = [pages_by_tier(spec, most) for most in {pages, while_first_is_hot}]
    nbytes = 0.0
    for (shape, bits), num_layers in _layers(spec, tuple(shapes)).items():
        numbers = shape.num_kv_heads * (shape.key_dim + shape.value_dim)
        open_nbytes = spec.page_tokens * numbers * activation_nbytes
        sealed = max(_sealed_nbytes(spec, each, shape, bits, activation_nbytes) for each in tiers)
        nbytes += num_layers * (open_nbytes + sealed)
    return nbytes


def pages_by_tier(spec: KVSpec, pages: int) -> dict[Tier, int]:
    """Return how many of the sealed pages of a text are in each tier, as `TierPolicy` chooses."""
    if spec.hot_pages + spec.warm_pages == 0:
        return {Tier.COLD: pages}
    first = min(pages, 1)
    others = pages - first
    hot = min(others, spec.hot_pages)
    warm = min(others - hot, spec.warm_pages)
    by_age = spec.hot_pages + spec.warm_pages - spec.warm_pages // 2
    first_is_hot = spec.hot_pages > 0 and others < by_age
    return {
        Tier.HOT: hot + first * first_is_hot,
        Tier.WARM: warm + first * (not first_is_hot),
        Tier.COLD: others - hot - warm,
    }


def pool_growth(num_blocks: int, page_blocks: int) -> int:
    """Return the blocks by which a pool with this many grows; it has no more than that to spare for long.

    `page_blocks` are the blocks that a page has of its layer's keys or values, one for each KV head.
    """
    return max(1, num_blocks // (GROWTH_FRACTION * page_blocks)) * page_blocks


@functools.lru_cache(maxsize=16)
def _layers(spec: KVSpec, shapes: tuple[LayerShape, ...]) -> Counter[tuple[LayerShape, tuple[BitsPair, ...]]]:
    """Count the layers that are alike, in shape and in the bits of each KV head."""
    return Counter(
        (shape, tuple(spec.bits(layer, head) for head in range(shape.num_kv_heads)))
        for layer, shape in enumerate(shapes)
    )


def _sealed_nbytes(
    spec: KVSpec,
    tiers: dict[Tier, int],
    shape: LayerShape,
    bits: Sequence[BitsPair],
    activation_nbytes: int,
) -> float:
    """Return the bytes of one layer's pools."""
    keys: Counter[int] = Counter()
    values: Counter[int] = Counter()
    for tier, pages in tiers.items():
        for pair in bits:
            keys[max(LEAST_BITS[tier], pair.keys)] += pages
            values[max(LEAST_BITS[tier], pair.values)] += pages
    bounds = 0 if spec.attention_pages is None else 2 * shape.key_dim * activation_nbytes
    nbytes = 0.0
    for each, blocks in keys.items():
        key = key_nbytes(shape.key_dim, each, spec.group_size, activation_nbytes)
        nbytes += _slots(blocks, len(bits)) * (key * spec.page_tokens + bounds)
        nbytes += blocks * bounds  # once more, side by side in the order of the pages, for decode
    for each, blocks in values.items():
        value = value_nbytes(shape.value_dim, each, spec.group_size, activation_nbytes)
        nbytes += _slots(blocks, len(bits)) * value * spec.page_tokens
    return nbytes


def _slots(num_blocks: int, page_blocks: int) -> int:
    return num_blocks + pool_growth(num_blocks, page_blocks) if num_blocks else 0
