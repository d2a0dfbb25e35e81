"""Strategies for models with two layers and few heads, and for precisions that make a difference to them."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.kv.precision import GROUP_SIZES, KV_BITS, BitsPair, KVSpec, PrecisionRule
from tests.engine.kv.stand_in import StandInShape

HEAD_DIMS = (64, 72, 80, 96, 112, 128, 256)

percents = st.integers(0, 100)
bits_pairs = st.builds(BitsPair, st.sampled_from(KV_BITS), st.sampled_from(KV_BITS))


@st.composite
def shapes(draw: st.DrawFn) -> StandInShape:
    """Multi-head, grouped and multi-query attention; keys and values may differ in size."""
    key_dim = draw(st.sampled_from(HEAD_DIMS))
    heads, repeats = draw(st.sampled_from([(2, 1), (3, 1), (2, 2), (2, 3), (1, 4)]))
    value_dim = draw(st.sampled_from([key_dim, key_dim, key_dim, 64, 80]))
    return StandInShape(heads, repeats, key_dim, value_dim, has_sinks=draw(st.booleans()))


@st.composite
def rules(draw: st.DrawFn) -> tuple[PrecisionRule, ...]:
    first = PrecisionRule(0, None, None, draw(bits_pairs))
    layers = st.sampled_from([(0, 0), (1, 1), (0, None)])
    others = draw(st.lists(st.tuples(layers, st.sampled_from([None, 0, 1]), bits_pairs), max_size=2))
    return (first, *(PrecisionRule(*where, head, bits) for where, head, bits in others))


@st.composite
def tiers(draw: st.DrawFn) -> tuple[int, int, int | None]:
    """Hot pages, warm pages and pages that are attended to."""
    budget = draw(st.sampled_from([None, None, 1, 2, 3]))
    return draw(st.integers(0, 2)), draw(st.integers(0, 3)), budget


@st.composite
def specs(draw: st.DrawFn) -> KVSpec:
    page_tokens = draw(st.sampled_from([64, 64, 64, 128, 256, 512]))
    group_size = draw(st.sampled_from([size for size in GROUP_SIZES if size <= page_tokens]))
    return KVSpec(draw(rules()), page_tokens, group_size, *draw(tiers()))
