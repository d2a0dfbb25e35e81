"""What a paged cache must hold and attend to, in numpy, without pages.

`Text` is a sequence as plain lists. Its keys and values follow from the tokens and positions (`stand_in`).
Nothing here has ever been in a cache, except for what `held` reads back from pages.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.kv.cache import SequenceCache
from engine.kv.page import Page
from engine.kv.precision import padded_dim, value_group
from engine.kv.store import PageStore
from tests.engine.kv.stand_in import FloatArray, StandInShape, embeddings, turns, weights

BoolArray = npt.NDArray[np.bool_]
KeysValues = tuple[FloatArray, FloatArray]

ROUNDING = 1e-4
"""Largest difference that float32 may make."""


@dataclass
class Text:
    """Tokens at positions."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    next_position: int = 0

    def append(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.positions += range(self.next_position, self.next_position + len(tokens))
        self.next_position += len(tokens)

    def drop(self, start: int, stop: int) -> None:
        del self.tokens[start:stop], self.positions[start:stop]

    def truncate(self, length: int) -> None:
        if length < len(self.tokens):
            self.next_position = self.positions[length - 1] + 1 if length else 0
            self.drop(length, len(self.tokens))

    def gap(self, at: int) -> int:
        """Positions that are free before the token at index `at`."""
        return self.positions[at] - (self.positions[at - 1] + 1 if at else 0)

    def splice(self, at: int, tokens: Sequence[int]) -> None:
        if at == len(self.tokens):
            self.append(tokens)
            return
        start = self.positions[at - 1] + 1 if at else 0
        self.tokens[at:at] = tokens
        self.positions[at:at] = range(start, start + len(tokens))

    def detach(self, start: int, stop: int) -> Text:
        tokens, positions = self.tokens[start:stop], self.positions[start:stop]
        self.drop(start, stop)
        return Text(tokens, positions, positions[-1] + 1 if positions else 0)

    def place_of(self, piece: Text) -> int | None:
        """Return the index before which a piece's positions are unused, None where they are not."""
        first, last = piece.positions[0], piece.positions[-1]
        at = sum(position < first for position in self.positions)
        is_free = not any(first <= position <= last for position in self.positions)
        return at if is_free else None

    def attach(self, at: int, piece: Text) -> None:
        self.tokens[at:at] = piece.tokens
        self.positions[at:at] = piece.positions
        self.next_position = max(self.next_position, piece.next_position)

    def rebuild(self) -> None:
        tokens = self.tokens
        self.__init__()  # type: ignore[misc]
        self.append(tokens)

    def copy(self) -> Text:
        return copy.deepcopy(self)


def _rotated(array: FloatArray, positions: Sequence[int]) -> FloatArray:
    """Rotate `[heads, tokens, dim]` as a rotary embedding does."""
    cos, sin = (table[np.array(positions, dtype=np.int64)] for table in turns(array.shape[-1]))
    first, second = np.split(array, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _heads(matrix: FloatArray, tokens: Sequence[int], number: int) -> FloatArray:
    flat = embeddings()[np.array(tokens, dtype=np.int64)] @ matrix
    return flat.reshape(len(tokens), number, matrix.shape[1] // number).swapaxes(0, 1)


def true_queries(
    shape: StandInShape, layer: int, tokens: Sequence[int], positions: Sequence[int]
) -> FloatArray:
    """Return the queries of tokens: `[kv_heads, repeats, tokens, key_dim]`."""
    flat = _rotated(_heads(weights(shape, layer).queries, tokens, shape.num_query_heads), positions)
    return flat.reshape(shape.num_kv_heads, shape.repeats, len(tokens), shape.key_dim)


def true_kv(shape: StandInShape, layer: int, tokens: Sequence[int], positions: Sequence[int]) -> KeysValues:
    """Return keys and values of tokens, each `[kv_heads, tokens, dim]`."""
    own = weights(shape, layer)
    keys = _rotated(_heads(own.keys, tokens, shape.num_kv_heads), positions)
    return keys, _heads(own.values, tokens, shape.num_kv_heads)


def attention(
    queries: FloatArray,
    keys: FloatArray,
    values: FloatArray,
    scale: float,
    *,
    sinks: FloatArray | None = None,
    read: BoolArray | None = None,
) -> FloatArray:
    """Return the attention of the last tokens over all before them and themselves.

    Args:
        queries: `[kv_heads, repeats, tokens, key_dim]`.
        keys: `[kv_heads, all tokens, key_dim]`.
        values: `[kv_heads, all tokens, value_dim]`.
        scale: of the scores.
        sinks: a score of each query head that has no value, `[query_heads]`.
        read: which tokens each KV head reads, `[kv_heads, all tokens]`; all without it.

    Returns: `[kv_heads, repeats, tokens, value_dim]`.
    """
    heads, repeats, length = queries.shape[:3]
    scores = queries @ keys.swapaxes(1, 2)[:, None] * np.float32(scale)
    before = np.arange(keys.shape[1])[None] <= np.arange(keys.shape[1] - length, keys.shape[1])[:, None]
    allowed = before if read is None else before & read[:, None, None]
    scores = np.where(allowed, scores, np.float32(-np.inf))
    extra = np.full((heads, repeats, length, 1), -np.inf, dtype=np.float32)
    if sinks is not None:
        extra[:] = sinks.reshape(heads, repeats, 1, 1)
    peak = np.maximum(scores.max(axis=-1, keepdims=True), extra)
    shares = np.exp(scores - peak)
    total = shares.sum(axis=-1, keepdims=True) + np.exp(extra - peak)
    output: FloatArray = (shares / total) @ values[:, None]
    return output


# What pages hold.


def read_page(store: PageStore, page: Page, layer: int) -> KeysValues:
    """Return the keys and values of a page's tokens as they are held, each `[kv_heads, tokens, dim]`."""
    keys, values = store.read(page, layer)
    count = len(page.tokens)
    return np.array(keys.swapaxes(1, 2))[:, :count], np.array(values)[:, :count]


def held(cache: SequenceCache, text: Text, shape: StandInShape, layer: int) -> KeysValues:
    """Return what a sequence's attention reads: its pages as they are held, and its open tokens exactly."""
    table = cache.layers[layer].table
    keys, values = true_kv(shape, layer, text.tokens[table.num_sealed :], text.positions[table.num_sealed :])
    read = [
        [part[:, reference.valid] for part in read_page(table.store, reference.page, layer)]
        for reference in table.references
    ]
    return (
        np.concatenate([*(part[0] for part in read), keys], axis=1),
        np.concatenate([*(part[1] for part in read), values], axis=1),
    )


@functools.cache
def rotation(dim: int) -> FloatArray:
    """Return the matrix that quantized values are rotated by: Hadamard matrices along the diagonal."""
    size = dim & -dim
    block = np.ones((1, 1), dtype=np.float32)
    while len(block) < size:
        block = np.block([[block, block], [block, -block]]) / np.float32(2**0.5)
    return np.kron(np.eye(dim // size, dtype=np.float32), block)


def _steps(array: FloatArray, group: int, bits: int) -> FloatArray:
    """Return the affine step of each number, in groups along the last axis; the last one may be shorter."""
    pad = -array.shape[-1] % group
    padded = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, pad)], mode="edge")
    groups = padded.reshape(*array.shape[:-1], -1, group)
    span = groups.max(axis=-1) - groups.min(axis=-1)
    return np.repeat(span / (2**bits - 1), group, axis=-1)[..., : array.shape[-1]]


def key_steps(keys: FloatArray, bits: int, group_size: int) -> FloatArray:
    """Return the step between two keys that can be told apart: per channel, in groups of a page's tokens.

    `keys`: those of a page, `[tokens, key_dim]`.
    """
    return _steps(keys.T, group_size, bits).T


def value_steps(values: FloatArray, bits: int, group_size: int) -> FloatArray:
    """Return the step between two values, `[tokens, value_dim]`: per token, in groups of the rotated head."""
    dim = values.shape[-1]
    padded = np.pad(values @ rotation(dim), [(0, 0), (0, padded_dim(dim, group_size) - dim)])
    return _steps(padded, value_group(dim, group_size), bits)[:, :dim]


def value_errors(read: FloatArray, true: FloatArray) -> FloatArray:
    """Return by how much values are wrong in the basis that they are quantized in, `[tokens, value_dim]`."""
    return np.abs((read - true) @ rotation(true.shape[-1]))


def check_page(shape: StandInShape, store: PageStore, page: Page) -> None:
    """Check that a page holds its tokens' keys and values to within two steps of its present bits.

    A page that comes down over several precisions adds up their errors. Each of them is at most a step, since
    MLX moves the scale so that zero is exact, and every step is at most half the next coarser one.
    """
    for layer in store.shapes:
        truth = true_kv(shape, layer, page.tokens, page.positions)
        read = read_page(store, page, layer)
        for head in range(shape.num_kv_heads):
            keys, values = (part[head] for part in truth)
            key_bits = int(page.keys[layer].bits[head])
            value_bits = int(page.values[layer].bits[head])
            key_errors = np.abs(read[0][head] - keys)
            if key_bits == 16:
                assert key_errors.max() < ROUNDING
            else:
                assert (key_errors <= 2 * key_steps(keys, key_bits, store.group_size) + ROUNDING).all()
            if value_bits == 16:
                assert np.abs(read[1][head] - values).max() < ROUNDING
            else:
                steps = value_steps(values, value_bits, store.group_size)
                assert (value_errors(read[1][head], values) <= 2 * steps + ROUNDING).all()


# Which pages decode reads.


def tokens_read(
    cache: SequenceCache, layer: int, queries: FloatArray, attention_pages: int | None
) -> BoolArray | None:
    """Return which tokens each KV head reads in decode, `[kv_heads, tokens]`; None where rounding decides.

    Of the pages of each precision the `attention_pages` with the highest bound, and always the first page.
    `queries`: `[kv_heads, repeats, key_dim]`, scaled, of the token that is read next.
    """
    table = cache.layers[layer].table
    references = table.references
    read = np.ones((len(queries), len(references)), dtype=np.bool_)
    for head in range(len(queries)):
        pairs: dict[tuple[int, int], list[int]] = {}
        for index, reference in enumerate(references):
            page = reference.page
            pair = int(page.keys[layer].bits[head]), int(page.values[layer].bits[head])
            pairs.setdefault(pair, []).append(index)
        for pages in pairs.values():
            if attention_pages is None or len(pages) <= attention_pages:
                continue
            bounds = np.array(
                [
                    page_bound(table.store, references[index].page, layer, head, queries[head])
                    for index in pages
                ]
            )
            if pages[0] == 0:
                bounds[0] = np.inf
            order = np.argsort(-bounds)
            if bounds[order[attention_pages - 1]] - bounds[order[attention_pages]] < ROUNDING:
                return None
            read[head, np.array(pages)[order[attention_pages:]]] = False
    counts = [reference.num_tokens for reference in references]
    open_tokens = np.ones((len(queries), len(table.open_tokens)), dtype=np.bool_)
    return np.concatenate([np.repeat(read, counts, axis=1), open_tokens], axis=1)


def page_bound(store: PageStore, page: Page, layer: int, head: int, queries: FloatArray) -> float:
    """Return the highest score that a key between a page's least and largest could get."""
    keys = np.array(store.read(page, layer)[0])[head]
    best = np.maximum(queries * keys.max(axis=1), queries * keys.min(axis=1))
    return float(best.sum(axis=-1).max())
