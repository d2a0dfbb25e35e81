"""Attention of one query token, or of a few, over pages and open tokens, read where they lie.

Each group of pages gives its part of the softmax: the largest score, the sum of the exponentials below it
and the weighted sum of the values. The parts are joined as in online softmax (Milakov and Gimelshein, 2018).
Pages are chosen by the bound of Quest (Tang et al., 2024): no key of a page can score more than the sum over
channels of the larger of query times least key and query times largest key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from engine.kv.groups import MASKED, PageGroup
from engine.kv.page import IntArray


@dataclass(frozen=True)
class Partial:
    """The softmax over some of the tokens.

    Attributes:
        peak: the largest score, `[heads, repeats, 1]` in float32.
        total: the sum of exp(score - peak), `[heads, repeats, 1]` in float32.
        output: the sum of exp(score - peak) * value, `[heads, repeats, value_dim]` in float32, since a sum
            over a long text leaves the range of float16.
    """

    peak: mx.array
    total: mx.array
    output: mx.array


def attend_pages(queries: mx.array, group: PageGroup, attention_pages: int | None) -> Partial:
    """Attend over a group of pages, or over those with the highest bounds in each KV head.

    Scores come out of the product in the type of the activations, as in mlx-lm's quantized attention.

    `queries`: `[kv_heads, repeats, head_dim]`, scaled.
    """
    key_slots, value_slots, mask = group.key_slots, group.value_slots, group.mask
    if group.bounds is not None and attention_pages is not None:
        chosen = choose_pages(queries, group, attention_pages)
        key_slots = mx.take_along_axis(key_slots, chosen, axis=1)
        value_slots = mx.take_along_axis(value_slots, chosen, axis=1)
        mask = None if mask is None else mask[chosen]
    return attend_scored(queries.dtype, group, page_scores(queries, group, key_slots, mask), value_slots)


def attend_scored(dtype: mx.Dtype, group: PageGroup, scores: mx.array, value_slots: mx.array) -> Partial:
    """Attend over pages of a group by the scores of their tokens, `[heads, pages, repeats, page_tokens]`.

    Args:
        dtype: of the activations.
        group: the pages.
        scores: as `page_scores` returns them.
        value_slots: of the pages that these are of, `[heads, pages]`.
    """
    peak = scores.max(axis=(1, 3), keepdims=True)
    weights = mx.exp(scores - peak)
    weighted = group.values.matmul(weights.astype(dtype), value_slots)
    output = group.values.decoded(weighted.astype(mx.float32).sum(axis=1))
    return Partial(peak.squeeze(1), weights.sum(axis=(1, 3))[..., None], output)


def attend_unpacked(queries: mx.array, group: PageGroup) -> Partial:
    """Attend over a copy of a group of pages, in float32 and in the layout in which they are stored.

    For more rows of queries than a product with packed blocks is quick for.

    `queries`: `[kv_heads, rows, head_dim]`, scaled, in float32.
    """
    own = queries if len(group.heads) == queries.shape[0] else queries[mx.array(group.heads)]
    scores = own[:, None] @ group.keys.unpacked(group.key_slots).astype(mx.float32)
    if group.mask is not None:
        scores = scores + group.mask
    peak = scores.max(axis=(1, 3), keepdims=True)
    weights = _exponential(scores - peak)
    weighted = weights @ group.values.unpacked(group.value_slots).astype(mx.float32)
    output = group.values.decoded(weighted.sum(axis=1))
    return Partial(peak.squeeze(1), weights.sum(axis=(1, 3))[..., None], output)


def _exponential(scores: mx.array) -> mx.array:
    """Return exp(scores), which MLX's CPU backend takes three times as long for."""
    return mx.power(mx.array(math.e), scores)


def choose_pages(queries: mx.array, group: PageGroup, count: int) -> mx.array:
    """Return the `count` pages of each head that can score highest, and page 0: `[heads, count]`, as indices.

    A sequence's first page gets much attention in most models (the attention sink), so it is always read.
    """
    assert group.bounds is not None
    own = queries if len(group.heads) == queries.shape[0] else queries[mx.array(group.heads)]
    least, largest = group.bounds
    bound = mx.maximum(own, 0) @ largest + mx.minimum(own, 0) @ least
    bound = bound.max(axis=1)
    if group.pages[0] == 0:
        first = mx.arange(bound.shape[1]) == 0
        bound = mx.where(first, mx.array(float("inf"), dtype=bound.dtype), bound)
    return mx.argpartition(bound, -count, axis=-1)[:, -count:]


def page_scores(queries: mx.array, group: PageGroup, slots: mx.array, mask: mx.array | None) -> mx.array:
    """Return the scores of all tokens in pages: `[heads, pages, repeats, page_tokens]` in float32."""
    scores = group.keys.matmul(queries, slots, group.query_heads).astype(mx.float32)
    return scores if mask is None else scores + mask


def attend_dense(
    queries: mx.array, keys: mx.array, values: mx.array, mask: mx.array | None = None
) -> Partial:
    """Attend over few tokens that lie side by side, in float32.

    Shapes: queries `[kv_heads, rows, head_dim]`, scaled, in float32; keys and values
    `[kv_heads, tokens, dim]`; mask, which is added to the scores, `[rows, tokens]`.
    """
    scores = queries @ keys.astype(mx.float32).swapaxes(1, 2)
    if mask is not None:
        scores = scores + mask
    peak = scores.max(axis=-1, keepdims=True)
    weights = mx.exp(scores - peak)
    return Partial(peak, weights.sum(axis=-1, keepdims=True), weights @ values.astype(mx.float32))


def attend_sinks(sinks: mx.array, like: Partial) -> Partial:
    """Return the part of attention sinks: a score for each query head that has no value."""
    peak = sinks.astype(mx.float32).reshape(like.peak.shape)
    return Partial(peak, mx.ones_like(peak), mx.zeros_like(like.output))


def for_all_heads(part: Partial, heads: IntArray, num_heads: int) -> Partial:
    """Return a part of some KV heads as one of all heads, in which the others saw nothing."""
    if len(heads) == num_heads:
        return part
    rows = np.full(num_heads, len(heads))
    rows[heads] = np.arange(len(heads))
    index = mx.array(rows)

    def spread(array: mx.array, missing: float) -> mx.array:
        return mx.pad(array, [(0, 1), (0, 0), (0, 0)], constant_values=missing)[index]

    return Partial(spread(part.peak, MASKED), spread(part.total, 0), spread(part.output, 0))


def join(parts: Sequence[Partial]) -> mx.array:
    """Return the attention over all parts: `[kv_heads, repeats, value_dim]` in float32."""
    peak = parts[0].peak
    for part in parts[1:]:
        peak = mx.maximum(peak, part.peak)
    shares = [mx.exp(part.peak - peak) for part in parts]
    total, output = shares[0] * parts[0].total, shares[0] * parts[0].output
    for share, part in zip(shares[1:], parts[1:], strict=True):
        total, output = total + share * part.total, output + share * part.output
    return output / total
