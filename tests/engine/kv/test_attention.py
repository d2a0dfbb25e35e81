"""Attention over pages and the choice of pages, next to dense attention in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.attention import (
    Partial,
    attend_dense,
    attend_pages,
    attend_sinks,
    attend_unpacked,
    choose_pages,
    for_all_heads,
    join,
)
from engine.kv.groups import MASKED, PageGroup, group_pages
from engine.kv.heat import sample_attention
from engine.kv.page import Page
from engine.kv.page_table import PageReference
from engine.kv.precision import KV_BITS, KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from tests.engine.kv.oracle import BoolArray, attention, page_bound
from tests.engine.kv.random_pages import random_page, store_of
from tests.engine.kv.small_specs import HEAD_DIMS
from tests.engine.kv.stand_in import FloatArray

PAGE_TOKENS = 64
SPECS = ["4", "16", "k8v4", "3, 0.h0:8", "k6v2, 0.h1:k6v16", "16, 0.h1:5"]


@dataclass(eq=False)
class Scene:
    """Some pages in one layer, open tokens, and the queries of one token; the queries are scaled."""

    store: PageStore
    references: list[PageReference]
    open_keys: FloatArray
    open_values: FloatArray
    queries: FloatArray

    def groups(self, attention_pages: int | None = None) -> list[PageGroup]:
        return group_pages(self.store, 0, self.references, attention_pages)

    def open_part(self) -> Partial:
        return attend_dense(*map(mx.array, (self.queries, self.open_keys, self.open_values)))

    def parts(self, attention_pages: int | None = None) -> list[Partial]:
        queries = mx.array(self.queries)
        heads = len(self.queries)
        pages = [
            for_all_heads(attend_pages(queries, group, attention_pages), group.heads, heads)
            for group in self.groups(attention_pages)
        ]
        return [self.open_part(), *pages]

    def held(self) -> tuple[FloatArray, FloatArray]:
        """Return all keys and values that the sequence has, as they are read back, `[heads, tokens, dim]`."""
        keys, values = [], []
        for reference in self.references:
            page_keys, page_values = map(np.array, self.store.read(reference.page, 0))
            slots = np.flatnonzero(reference.valid)
            keys.append(page_keys.swapaxes(1, 2)[:, slots])
            values.append(page_values[:, slots])
        return (
            np.concatenate([*keys, self.open_keys], axis=1),
            np.concatenate([*values, self.open_values], axis=1),
        )

    def expected(self, sinks: FloatArray | None = None, read: BoolArray | None = None) -> FloatArray:
        keys, values = self.held()
        tokens = None if read is None else self.by_token(read)
        return attention(self.queries[:, :, None], keys, values, 1, sinks=sinks, read=tokens)[:, :, 0]

    def by_token(self, read: BoolArray) -> BoolArray:
        """Return marks `[heads, pages]` as marks of tokens, `[heads, tokens]`."""
        counts = [reference.num_tokens for reference in self.references]
        open_tokens = np.ones((len(read), self.open_keys.shape[1]), dtype=np.bool_)
        return np.concatenate([np.repeat(read, counts, axis=1), open_tokens], axis=1)

    def pages_read(self, attention_pages: int) -> BoolArray:
        """Return which pages each head reads, `[heads, pages]`: those of the highest bounds."""
        read = np.ones((len(self.queries), len(self.references)), dtype=np.bool_)
        for head in range(len(self.queries)):
            bounds = np.array([self.bound(reference.page, head) for reference in self.references])
            bounds[0] = np.inf
            pairs = [self.pair(reference.page, head) for reference in self.references]
            for pair in set(pairs):
                pages = np.array([index for index, other in enumerate(pairs) if other == pair])
                read[head, pages[np.argsort(-bounds[pages])[attention_pages:]]] = False
        return read

    def bound(self, page: Page, head: int) -> float:
        return page_bound(self.store, page, 0, head, self.queries[head])

    def pair(self, page: Page, head: int) -> tuple[int, int]:
        return int(page.keys[0].bits[head]), int(page.values[0].bits[head])


def scene_of(
    spec: KVSpec,
    tiers: Sequence[Tier],
    *,
    seed: int = 0,
    heads: int = 2,
    repeats: int = 2,
    key_dim: int = 64,
    value_dim: int = 64,
    dropped: float = 0.3,
) -> Scene:
    """Return pages of these tiers, of which half have lost tokens and one was never full."""
    generator = np.random.default_rng(seed)
    store = store_of(spec, LayerShape(heads, key_dim, value_dim))
    references = []
    for index, tier in enumerate(tiers):
        count = 40 if index == 1 and dropped else spec.page_tokens
        page = random_page(store, spec, tier, seed=100 * seed + index, tokens=range(count))
        valid = generator.random(count) >= (dropped if index % 2 else 0)
        valid[generator.integers(count)] = True
        references.append(PageReference(page, valid))

    def normal(*shape: int) -> FloatArray:
        return generator.standard_normal(shape, dtype=np.float32)

    num_open = int(generator.integers(1, 9))
    queries = normal(heads, repeats, key_dim) * np.float32(key_dim**-0.5)
    return Scene(
        store, references, normal(heads, num_open, key_dim), normal(heads, num_open, value_dim), queries
    )


tier_lists = st.lists(st.sampled_from(Tier), min_size=1, max_size=9)
seeds = st.integers(0, 1000)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    heads, repeats = draw(st.sampled_from([(2, 1), (2, 3), (3, 2), (2, 4)]))
    return scene_of(
        KVSpec.parse(draw(st.sampled_from(SPECS)) + f"; page={PAGE_TOKENS}, group=32"),
        draw(tier_lists),
        seed=draw(seeds),
        heads=heads,
        repeats=repeats,
        key_dim=draw(st.sampled_from(HEAD_DIMS)),
        value_dim=draw(st.sampled_from(HEAD_DIMS)),
        dropped=draw(st.sampled_from([0, 0.3, 0.95])),
    )


@settings(max_examples=100)
@given(scene=scenes(), sinks=st.booleans())
def test_attention_over_pages_is_that_over_all_their_tokens(scene: Scene, sinks: bool) -> None:
    heads, repeats = scene.queries.shape[:2]
    extra = np.linspace(-2, 4, heads * repeats, dtype=np.float32) if sinks else None
    parts = scene.parts()
    if extra is not None:
        parts.append(attend_sinks(mx.array(extra), parts[0]))
    np.testing.assert_allclose(np.array(join(parts)), scene.expected(extra), atol=1e-4)


@settings(max_examples=50)
@given(scene=scenes())
def test_attention_over_a_copy_of_pages_is_that_over_all_their_tokens(scene: Scene) -> None:
    queries, heads = mx.array(scene.queries), len(scene.queries)
    pages = [for_all_heads(attend_unpacked(queries, group), group.heads, heads) for group in scene.groups()]
    np.testing.assert_allclose(np.array(join([scene.open_part(), *pages])), scene.expected(), atol=1e-4)


@pytest.mark.parametrize("group_size", [32, 64])
@pytest.mark.parametrize("value_bits", KV_BITS)
@pytest.mark.parametrize("key_bits", KV_BITS)
def test_attention_at_all_pairs_of_bits(key_bits: int, value_bits: int, group_size: int) -> None:
    for head_dim in HEAD_DIMS:
        spec = KVSpec.parse(f"k{key_bits}v{value_bits}; page={PAGE_TOKENS}, group={group_size}")
        scene = scene_of(spec, [Tier.COLD] * 3, key_dim=head_dim, value_dim=head_dim)
        np.testing.assert_allclose(np.array(join(scene.parts())), scene.expected(), atol=1e-4)


@pytest.mark.parametrize("page_tokens", [128, 256, 512])
@pytest.mark.parametrize("heads", [1, 4])
def test_attention_over_larger_pages(page_tokens: int, heads: int) -> None:
    spec = KVSpec.parse(f"k5v3; page={page_tokens}, group=128")
    scene = scene_of(
        spec, [Tier.COLD, Tier.WARM, Tier.COLD, Tier.HOT], heads=heads, key_dim=128, value_dim=128
    )
    np.testing.assert_allclose(np.array(join(scene.parts())), scene.expected(), atol=1e-4)


def test_scores_of_any_size_are_no_trouble() -> None:
    scene = scene_of(KVSpec.parse("8; page=64"), [Tier.COLD, Tier.HOT, Tier.WARM])
    scene.queries *= 1e5
    found = np.array(join(scene.parts()))
    np.testing.assert_allclose(found, scene.expected(), atol=1e-3)


def test_a_page_in_two_parts_is_the_whole_page() -> None:
    scene = scene_of(KVSpec.parse("4; page=64"), [Tier.COLD, Tier.WARM, Tier.COLD], dropped=0)
    whole = np.array(join(scene.parts()))
    front = np.arange(PAGE_TOKENS) < 21
    page = scene.references[0].page
    scene.references[0] = PageReference(page, front)
    without_back = np.array(join(scene.parts()))
    np.testing.assert_allclose(without_back, scene.expected(), atol=1e-4)
    scene.references.insert(2, PageReference(page, ~front))
    np.testing.assert_allclose(np.array(join(scene.parts())), whole, atol=1e-5)
    assert np.abs(without_back - whole).max() > 1e-3


def test_heads_of_the_same_precision_are_read_together() -> None:
    spec = KVSpec.parse("4, 0.h1:k8v4; page=64")
    scene = scene_of(spec, [Tier.COLD, Tier.HOT, Tier.COLD], heads=3)
    found = {
        (group.keys.bits, group.values.bits): (group.heads.tolist(), group.pages.tolist())
        for group in scene.groups()
    }
    assert found == {(4, 4): ([0, 2], [0, 2]), (8, 4): ([1], [0, 2]), (16, 16): ([0, 1, 2], [1])}


def test_heads_that_saw_nothing_have_no_part() -> None:
    one = Partial(mx.array([[[2.0]]]), mx.array([[[3.0]]]), mx.array([[[4.0, 5.0]]]))
    spread = for_all_heads(one, np.array([1]), 3)
    assert spread.peak.tolist() == [[[np.float32(MASKED)]], [[2.0]], [[np.float32(MASKED)]]]
    assert spread.total.tolist() == [[[0.0]], [[3.0]], [[0.0]]]
    assert spread.output.tolist() == [[[0.0, 0.0]], [[4.0, 5.0]], [[0.0, 0.0]]]


# The attention budget.


@settings(max_examples=60)
@given(scene=scenes())
def test_no_score_is_above_its_page_s_bound(scene: Scene) -> None:
    queries = mx.array(scene.queries)
    for group in group_pages(scene.store, 0, scene.references, 0):
        least, largest = map(np.array, group.bounds)
        own = scene.queries[group.heads]
        bound = np.maximum(own, 0) @ largest + np.minimum(own, 0) @ least
        scores = np.array(group.keys.matmul(queries, group.key_slots, group.query_heads))
        assert (scores.max(axis=3).swapaxes(1, 2) <= bound + 1e-4).all()
        for row, head in enumerate(group.heads):
            for column, page in enumerate(group.pages):
                expected = scene.bound(scene.references[page].page, head)
                assert bound[row, :, column].max() == pytest.approx(expected, abs=1e-4)


@settings(max_examples=100)
@given(scene=scenes(), attention_pages=st.integers(1, 4))
def test_the_pages_with_the_highest_bounds_are_read_and_no_others(scene: Scene, attention_pages: int) -> None:
    read = scene.pages_read(attention_pages)
    for group in scene.groups(attention_pages):
        marks = read[np.ix_(group.heads, group.pages)]
        if group.bounds is None:
            assert len(group.pages) <= attention_pages
            assert marks.all()
            continue
        chosen = np.array(choose_pages(mx.array(scene.queries), group, attention_pages))
        assert chosen.shape == (len(group.heads), attention_pages)
        for row, indices in zip(marks, chosen, strict=True):
            assert sorted(indices.tolist()) == np.flatnonzero(row).tolist()
    found = np.array(join(scene.parts(attention_pages)))
    np.testing.assert_allclose(found, scene.expected(read=read), atol=1e-4)


@pytest.mark.parametrize("attention_pages", [7, 8, 100])
def test_a_budget_of_all_pages_reads_all(attention_pages: int) -> None:
    scene = scene_of(KVSpec.parse("4, 0.h1:8; page=64"), [Tier.COLD] * 7)
    full = np.array(join(scene.parts()))
    assert np.array_equal(np.array(join(scene.parts(attention_pages))), full)
    assert not np.allclose(np.array(join(scene.parts(2))), full, atol=1e-3)
    assert all(group.bounds is None for group in scene.groups(attention_pages))


def test_the_first_page_is_always_read() -> None:
    scene = scene_of(KVSpec.parse("4; page=64"), [Tier.COLD] * 6, dropped=0)
    keys = np.array(scene.store.read(scene.references[0].page, 0)[0])
    scene.queries = -np.repeat(keys.mean(axis=2)[:, None], 2, axis=1)  # its bound is the lowest of all
    bounds = [[scene.bound(reference.page, head) for reference in scene.references] for head in range(2)]
    assert np.argmin(bounds, axis=1).tolist() == [0, 0]
    (group,) = scene.groups(2)
    chosen = np.array(choose_pages(mx.array(scene.queries), group, 2))
    assert all(0 in row for row in chosen)
    scene.references.reverse()
    (group,) = scene.groups(2)
    chosen = np.array(choose_pages(mx.array(scene.queries), group, 2))
    assert all(5 not in row and 0 in row for row in chosen)


# Where the attention goes.


@settings(max_examples=60)
@given(scene=scenes(), attention_pages=st.one_of(st.none(), st.integers(1, 4)), has_sinks=st.booleans())
def test_sampled_shares_are_those_of_dense_attention(
    scene: Scene, attention_pages: int | None, has_sinks: bool
) -> None:
    groups, pages = scene.groups(attention_pages), len(scene.references)
    sinks = np.linspace(-2, 2, scene.queries[..., 0].size, dtype=np.float32)
    rest = [scene.open_part()]
    if has_sinks:
        rest.append(attend_sinks(mx.array(sinks), rest[0]))
    sample = sample_attention(mx.array(scene.queries), groups, pages, rest, attention_pages)
    scores = scene.queries @ scene.held()[0].swapaxes(1, 2)
    if has_sinks:
        scores = np.concatenate([scores, sinks.reshape(*scores.shape[:2], 1)], axis=-1)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    sink_share = shares[..., -1].mean() if has_sinks else 0
    shares = shares[..., : scene.held()[0].shape[1]]
    starts = np.cumsum([0, *(reference.num_tokens for reference in scene.references)])
    by_page = [shares[..., start:stop].sum(axis=-1).mean() for start, stop in pairwise(starts)]
    np.testing.assert_allclose(np.array(sample.page_mass), by_page, atol=1e-5)
    read = np.ones((len(scene.queries), pages), dtype=np.bool_)
    if attention_pages is not None:
        read = scene.pages_read(attention_pages)
    caught = (shares * scene.by_token(read)[:, None]).sum(axis=-1).mean() + sink_share
    assert sample.caught.item() == pytest.approx(caught, abs=1e-5)
