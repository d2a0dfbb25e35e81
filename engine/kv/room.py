"""The memory that a cache takes, by formula: what is planned with before anything is read."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.kv.precision import LEAST_BITS, KVSpec, LayerShape, Tier, key_nbytes, value_nbytes

GROWTH_FRACTION = 16
"""A pool of blocks grows by a sixteenth of what it holds, at least by one page."""
MAX_CHUNK_TOKENS = 512
"""The most tokens of a prompt that one forward pass reads; a window keeps them all until the next."""
OPEN_STEP_TOKENS = 32
"""Room for open tokens grows by this much."""
OWN_STEP_TOKENS = 256
"""mlx-lm's own caches grow by this much, from wherever the last chunk ended."""


@dataclass(frozen=True)
class OwnCache:
    """What one of mlx-lm's own caches takes, for a layer that is not in pages.

    Numbers are of the activation type.

    Attributes:
        numbers_per_token: numbers that are kept of a token.
        window_tokens: the newest tokens of which they are kept; None for all.
        state_numbers: numbers that are kept however long the text is.
        state_nbytes: bytes that are kept so in types of their own.
    """

    numbers_per_token: int = 0
    window_tokens: int | None = None
    state_numbers: int = 0
    state_nbytes: int = 0

    @property
    def grows(self) -> bool:
        """Whether each token takes more, without end."""
        return self.numbers_per_token > 0 and self.window_tokens is None

    def nbytes(self, num_tokens: int, activation_nbytes: int) -> int:
        """Return the most bytes that it takes while a text grows to this many tokens."""
        tokens = num_tokens + OWN_STEP_TOKENS - 1
        if self.window_tokens is not None:
            tokens = min(tokens, self.window_tokens + MAX_CHUNK_TOKENS)
        numbers = self.state_numbers + tokens * self.numbers_per_token
        return numbers * activation_nbytes + self.state_nbytes


def kv_nbytes(spec: KVSpec, num_tokens: int, shapes: Sequence[LayerShape], activation_nbytes: int) -> float:
    """Return the most bytes that a cache takes while a text grows to this many tokens.

    Never less for a longer text. Counted are the open page, as if it were full; the pages by tier as
    `TierPolicy` gives them to a text in which none is pinned; the room that pools then have to spare; and the
    bounds of keys that an attention budget takes. A shape for every layer of the model, in order.
    """
    before, now = max(0, num_tokens - 1) // spec.page_tokens, num_tokens // spec.page_tokens
    nbytes = 0.0
    for kind, num_layers in _layers(spec, tuple(shapes)).items():
        numbers = kind.shape.num_kv_heads * (kind.shape.key_dim + kind.shape.value_dim)
        open_nbytes = spec.page_tokens * numbers * activation_nbytes
        # The last page is most while it is still open, or where the pools grew for it when it was sealed.
        while_open = open_nbytes + _most_sealed_nbytes(spec, before, kind, activation_nbytes)
        nbytes += num_layers * max(while_open, _most_sealed_nbytes(spec, now, kind, activation_nbytes))
    return nbytes


def unfilled_nbytes(
    spec: KVSpec, num_tokens: int, shapes: Sequence[LayerShape], activation_nbytes: int
) -> int:
    """Return the bytes that `kv_nbytes` counts of the open page beyond what it has grown to by then."""
    open_tokens = -(-(num_tokens % spec.page_tokens) // OPEN_STEP_TOKENS) * OPEN_STEP_TOKENS
    unfilled = spec.page_tokens - open_tokens if open_tokens else 0
    numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in shapes)
    return unfilled * numbers * activation_nbytes


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


@dataclass(frozen=True)
class _LayerKind:
    """Layers that are alike: their shape, and how many KV heads have which bits when cold."""

    shape: LayerShape
    key_bits: tuple[tuple[int, int], ...]
    value_bits: tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=16)
def _layers(spec: KVSpec, shapes: tuple[LayerShape, ...]) -> Counter[_LayerKind]:
    """Count the layers of each kind."""
    return Counter(_kind(spec, layer, shape) for layer, shape in enumerate(shapes))


def _kind(spec: KVSpec, layer: int, shape: LayerShape) -> _LayerKind:
    pairs = [spec.bits(layer, head) for head in range(shape.num_kv_heads)]
    keys, values = Counter(pair.keys for pair in pairs), Counter(pair.values for pair in pairs)
    return _LayerKind(shape, tuple(sorted(keys.items())), tuple(sorted(values.items())))


def _most_sealed_nbytes(spec: KVSpec, pages: int, kind: _LayerKind, activation_nbytes: int) -> float:
    """Return the most bytes of one layer's pools while a text grows to this many sealed pages."""
    # The first page is hot for longest, so that the page with which it goes warm may leave less than before.
    while_first_is_hot = min(pages, spec.hot_pages + spec.warm_pages - spec.warm_pages // 2)
    tiers = [pages_by_tier(spec, most) for most in {pages, while_first_is_hot}]
    return max(_sealed_nbytes(spec, each, kind, activation_nbytes) for each in tiers)


def _sealed_nbytes(spec: KVSpec, tiers: dict[Tier, int], kind: _LayerKind, activation_nbytes: int) -> float:
    """Return the bytes of one layer's pools."""
    shape = kind.shape
    bounds = 0 if spec.attention_pages is None else 2 * shape.key_dim * activation_nbytes
    nbytes = 0.0
    for each, (blocks, slots) in _pools(tiers, kind.key_bits, shape.num_kv_heads).items():
        key = key_nbytes(shape.key_dim, each, spec.group_size, activation_nbytes)
        nbytes += slots * (key * spec.page_tokens + bounds)
        nbytes += blocks * bounds  # once more, side by side in the order of the pages, for decode
    for each, (_, slots) in _pools(tiers, kind.value_bits, shape.num_kv_heads).items():
        value = value_nbytes(shape.value_dim, each, spec.group_size, activation_nbytes)
        nbytes += slots * value * spec.page_tokens
    return nbytes


def _pools(
    tiers: dict[Tier, int], cold_bits: Sequence[tuple[int, int]], num_kv_heads: int
) -> dict[int, tuple[int, int]]:
    """Return the blocks and the slots of each pool, by its bits, for a layer's keys or for its values."""
    blocks: Counter[int] = Counter()
    at_once: dict[int, int] = {}
    for tier, pages in tiers.items():
        if pages:
            for each, heads in _tier_bits(tier, cold_bits).items():
                blocks[each] += heads * pages
                at_once[each] = min(heads, at_once.get(each, heads))
    passing = _passing_blocks(tiers, cold_bits)
    return {
        each: (count, _slots(count + passing[each], num_kv_heads, at_once[each]))
        for each, count in blocks.items()
    }


def _passing_blocks(tiers: dict[Tier, int], cold_bits: Sequence[tuple[int, int]]) -> Counter[int]:
    """Count the blocks that a new page adds, by bits, before an older one makes room in the first tier."""
    used = [tier for tier in Tier if tiers.get(tier)]
    passing: Counter[int] = Counter()
    if len(used) < 2:
        return passing
    first, second = (LEAST_BITS[tier] for tier in used[:2])
    for bits, heads in cold_bits:
        if max(first, bits) > max(second, bits):
            passing[max(first, bits)] += heads
    return passing


def _tier_bits(tier: Tier, cold_bits: Sequence[tuple[int, int]]) -> Counter[int]:
    """Count the heads by the bits that they have in a tier."""
    counts: Counter[int] = Counter()
    for bits, heads in cold_bits:
        counts[max(LEAST_BITS[tier], bits)] += heads
    return counts


def _slots(num_blocks: int, page_blocks: int, at_once: int) -> int:
    """Return the slots that a pool has at most after it grew, being filled by `at_once` blocks at a time."""
    return num_blocks + max(0, pool_growth(num_blocks, page_blocks) - at_once)
