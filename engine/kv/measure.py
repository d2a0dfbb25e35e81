"""Taking the figures of a KV cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.kv.page import Page
from engine.kv.page_table import PageReference
from engine.kv.precision import BitsPair, KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from engine.kv.usage import KVUsage, PageInfo


def page_infos(references: Sequence[PageReference]) -> list[PageInfo]:
    """Return what is known of the pages of a sequence, in order."""
    return [
        PageInfo(
            number=page.number,
            tier=page.tier,
            num_tokens=reference.num_tokens,
            first_position=page.positions[0],
            last_position=page.positions[-1],
            nbytes=page.nbytes,
            heat=page.heat,
            last_access=page.last_access,
            pinned=page.pinned,
            references=page.references,
            bits={number: _pairs(page, number) for number in page.keys},
        )
        for reference in references
        for page in [reference.page]
    ]


def measure_usage(
    references: Sequence[PageReference],
    store: PageStore,
    spec: KVSpec,
    *,
    open_tokens: int,
    nbytes: int,
    caught: float | None,
) -> KVUsage:
    """Return the figures of a sequence whose cache takes `nbytes` in all."""
    pages = {reference.page for reference in references}
    sealed_nbytes = sum(page.nbytes for page in pages)
    numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in store.shapes.values())
    held = len(pages) * store.page_tokens * numbers
    counts = Counter(page.tier for page in pages)
    cold = [page for page in pages if page.tier is Tier.COLD]
    return KVUsage(
        num_tokens=sum(reference.num_tokens for reference in references) + open_tokens,
        open_tokens=open_tokens,
        hot_pages=counts[Tier.HOT],
        warm_pages=counts[Tier.WARM],
        cold_pages=counts[Tier.COLD],
        nbytes=nbytes,
        sealed_nbytes=sealed_nbytes,
        effective_bits=8 * sealed_nbytes / held if held else None,
        requested=_mean(_wanted(store.shapes, spec)),
        effective=_mean(pair for page in cold for number in page.keys for pair in _pairs(page, number)),
        num_below=sum(_is_below(page, store.shapes, spec) for page in pages),
        caught=caught,
    )


def _pairs(page: Page, layer: int) -> tuple[BitsPair, ...]:
    bits = zip(page.keys[layer].bits.tolist(), page.values[layer].bits.tolist(), strict=True)
    return tuple(BitsPair(keys, values) for keys, values in bits)


def _wanted(shapes: dict[int, LayerShape], spec: KVSpec) -> list[BitsPair]:
    return [spec.bits(number, head) for number, shape in shapes.items() for head in range(shape.num_kv_heads)]


def _is_below(page: Page, shapes: dict[int, LayerShape], spec: KVSpec) -> bool:
    return any(
        pair.keys < wanted.keys or pair.values < wanted.values
        for number in shapes
        for head, pair in enumerate(_pairs(page, number))
        for wanted in [spec.bits(number, head)]
    )


def _mean(pairs: Iterable[BitsPair]) -> tuple[float, float] | None:
    every = list(pairs)
    if not every:
        return None
    return sum(pair.keys for pair in every) / len(every), sum(pair.values for pair in every) / len(every)
