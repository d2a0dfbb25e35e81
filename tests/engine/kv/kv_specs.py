"""Strategies for every valid KV precision."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.kv.precision import GROUP_SIZES, KV_BITS, MOST, PAGE_TOKENS, BitsPair, KVSpec, PrecisionRule

numbers = st.one_of(st.integers(0, 40), st.integers(0, MOST))
bits_pairs = st.builds(BitsPair, st.sampled_from(KV_BITS), st.sampled_from(KV_BITS))


@st.composite
def rules(draw: st.DrawFn) -> PrecisionRule:
    first = draw(numbers)
    last = draw(st.one_of(st.none(), st.just(first), st.integers(first, MOST)))
    return PrecisionRule(first, last, draw(st.one_of(st.none(), numbers)), draw(bits_pairs))


@st.composite
def kv_specs(draw: st.DrawFn) -> KVSpec:
    page_tokens = draw(st.sampled_from(PAGE_TOKENS))
    attention_pages = draw(st.one_of(st.none(), st.integers(1, MOST)))
    return KVSpec(
        tuple(draw(st.lists(rules(), min_size=1, max_size=5))),
        page_tokens,
        draw(st.sampled_from([size for size in GROUP_SIZES if size <= page_tokens])),
        draw(numbers),
        draw(numbers),
        attention_pages,
        attention_pages is not None and draw(st.booleans()),
    )


def everywhere(keys: int, values: int | None = None) -> PrecisionRule:
    """Return the rule of these bits for all layers; of one number for keys and values."""
    return PrecisionRule(0, None, None, BitsPair(keys, keys if values is None else values))
