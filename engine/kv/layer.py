"""One layer's keys and values, as the cache object that an mlx-lm model sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import create_attention_mask

from engine.kv.attention import (
    Partial,
    attend_dense,
    attend_pages,
    attend_sinks,
    attend_unpacked,
    for_all_heads,
    join,
)
from engine.kv.dense import DenseCopy
from engine.kv.groups import MASKED, PageGroup, group_pages
from engine.kv.heat import Watcher, sample_attention
from engine.kv.page import BoolArray
from engine.kv.page_table import PageTable
from engine.kv.precision import LayerShape
from engine.kv.room import OPEN_STEP_TOKENS

SHORT_PASS_TOKENS = 64
"""Passes of up to so many tokens take longer to copy the pages in order than to attend over them."""


@dataclass(frozen=True, eq=False)
class PagedView:
    """What a model gets instead of keys or values: only the dispatching attention can read it.

    Attributes:
        shape: what the dense array would have, `[1, kv_heads, tokens, head_dim]`.
    """

    shape: tuple[int, int, int, int]
    dtype: mx.Dtype


class PagedLayer:
    """The pages of a sequence in one layer, and the open tokens that no page holds yet.

    Attributes:
        number: the layer's number in the model.
        offset: the position of the next token, which the model gives to its rotary embedding.
        gives_views: whether `update_and_fetch` may return views, because the model's attention is dispatched
            here; otherwise it returns dense arrays, read from the pages at every step.
        num_dispatched: how many times attention was dispatched here, to find that out.
    """

    def __init__(self, number: int, watcher: Watcher) -> None:
        self.number = number
        self.offset = 0
        self.gives_views = True
        self.num_dispatched = 0
        self.table: PageTable | None = None
        self._watcher = watcher
        self._keys: mx.array | None = None
        self._values: mx.array | None = None
        self._num_open = 0
        self._groups: list[PageGroup] = []
        self._stamp: tuple[int, int, int | None] | None = None

    # What mlx-lm's models ask of a cache.

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Any, Any]:
        """Take new keys and values, each `[1, kv_heads, tokens, dim]`; return all held ones, or views."""
        if self._watcher.before_layer is not None:
            self._watcher.before_layer(keys)
        self._append(keys, values)
        self.offset += keys.shape[2]
        if not self.gives_views:
            return self.dense()
        shape = keys.shape[0], keys.shape[1], self.size(), keys.shape[3]
        return PagedView(shape, keys.dtype), PagedView((*shape[:3], values.shape[3]), values.dtype)

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """Return all keys and values, for layers that share those of this one."""
        return self.dense()

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None) -> Any:
        """Return mlx-lm's mask for `N` new tokens behind those that are held."""
        return create_attention_mask(N, self.size(), return_array, window_size)

    @property
    def shape(self) -> LayerShape | None:
        """Heads and dimensions of the tokens taken so far, None before the first."""
        if self._keys is None or self._values is None:
            return None
        return LayerShape(self._keys.shape[1], self._keys.shape[3], self._values.shape[3])

    def size(self) -> int:
        """Tokens held."""
        return self._num_sealed + self._num_open

    def empty(self) -> bool:
        """Whether no token is held."""
        return self.size() == 0

    @property
    def state(self) -> list[mx.array]:
        """The open tokens' arrays, to be evaluated after a prefill chunk."""
        return [array for array in (self._keys, self._values) if array is not None]

    @property
    def nbytes(self) -> int:
        """Bytes of the open tokens and of the bounds in use; pages are counted in their store."""
        bounds = [array.nbytes for group in self._groups for array in group.taken_bounds]
        return sum(array.nbytes for array in self.state) + sum(bounds)

    # Attention.

    def attend(self, queries: mx.array, scale: float, mask: Any, sinks: mx.array | None) -> mx.array:
        """Return the attention of `queries`, `[1, query_heads, tokens, head_dim]`, over all tokens held.

        One token reads the pages where they lie. More tokens read a copy of this layer, which is dropped
        again: it costs less than a score matrix over packed keys, in time and in memory. A few tokens in
        float32 read one in the layout of the pages; MLX's fused attention wants it in the order of the text.
        """
        self.num_dispatched += 1
        if queries.shape[2] == 1 and mask is None:
            return self._attend_one(queries, scale, sinks)
        is_short = queries.shape[2] <= SHORT_PASS_TOKENS and queries.dtype == mx.float32
        if is_short and isinstance(mask, str) and sinks is None:
            return self._attend_few(queries, scale)
        keys, values = self.dense(in_order=isinstance(mask, mx.array))
        return mx.fast.scaled_dot_product_attention(
            queries, keys, values, scale=scale, mask=mask, sinks=sinks
        )

    def _attend_one(self, queries: mx.array, scale: float, sinks: mx.array | None) -> mx.array:
        keys, values = self._open_arrays()
        num_heads = keys.shape[0]
        exact = (queries.astype(mx.float32) * scale).reshape(num_heads, -1, queries.shape[3])
        own = exact.astype(queries.dtype)
        budget = self._watcher.attention_pages
        parts = [attend_dense(exact, keys, values)]
        if sinks is not None:
            parts.append(attend_sinks(sinks, parts[0]))
        if self._watcher.sampled_layer == self.number:
            self._take_sample(own, list(parts))
        answer = self._watcher.answer
        if answer is not None and self.number in answer.layers and self.table is not None:
            parts += answer.attend(self.table, self._page_groups(), exact, keys, parts[1:], queries.dtype)
            return join(parts).astype(queries.dtype).reshape(1, queries.shape[1], 1, values.shape[2])
        for group in self._page_groups():
            parts.append(for_all_heads(attend_pages(own, group, budget), group.heads, num_heads))
        return join(parts).astype(queries.dtype).reshape(1, queries.shape[1], 1, values.shape[2])

    def _attend_few(self, queries: mx.array, scale: float) -> mx.array:
        """Attend as `_attend_one` does for the last open tokens, each of which sees those before it."""
        keys, values = self._open_arrays()
        num_heads, num_rows, num_tokens = keys.shape[0], queries.shape[1] // keys.shape[0], queries.shape[2]
        own = (queries * scale).reshape(num_heads, num_rows * num_tokens, -1)
        places = mx.arange(self._num_open)
        is_later = places > places[self._num_open - num_tokens :, None]
        mask = mx.tile(mx.where(is_later, MASKED, 0.0), (num_rows, 1))
        parts = [attend_dense(own, keys, values, mask)]
        for group in self._page_groups():
            parts.append(for_all_heads(attend_unpacked(own, group), group.heads, num_heads))
        return join(parts).reshape(1, queries.shape[1], num_tokens, values.shape[2])

    def _take_sample(self, queries: mx.array, rest: list[Partial]) -> None:
        groups = self._page_groups()
        if groups:
            assert self.table is not None
            num_pages = len(self.table.references)
            budget = self._watcher.attention_pages
            self._watcher.sample = sample_attention(queries, groups, num_pages, rest, budget)

    def dense(self, in_order: bool = True) -> tuple[mx.array, mx.array]:
        """Return the keys and values of all tokens, each `[1, kv_heads, tokens, dim]`.

        In the order of the text, or with the open tokens last and those in pages in any order: all of these
        precede what is read now, and their positions are in the keys.
        """
        open_keys, open_values = self._open_arrays()
        groups = self._page_groups()
        if not groups:
            return open_keys[None], open_values[None]
        assert self.table is not None
        copy = DenseCopy(groups, self.table.references, self.table.store.page_tokens, in_order)
        keys = mx.concatenate([copy.keys(), open_keys], axis=1)
        values = mx.concatenate([copy.values(), open_values], axis=1)
        return keys[None], values[None]

    # The page table.

    @property
    def _num_sealed(self) -> int:
        return 0 if self.table is None else self.table.num_sealed

    def _page_groups(self) -> list[PageGroup]:
        """The groups of the pages as they are now; made anew only after a page came, went or moved."""
        if self.table is None:
            return []
        stamp = self.table.version, self.table.store.version, self._watcher.attention_pages
        if stamp != self._stamp:
            self._groups = group_pages(
                self.table.store, self.number, self.table.references, self._watcher.attention_pages
            )
            self._stamp = stamp
        return self._groups

    # The open tokens.

    def _append(self, keys: mx.array, values: mx.array) -> None:
        end = self._num_open + keys.shape[2]
        if self._keys is None or self._values is None or end > self._keys.shape[2]:
            room = -(-end // OPEN_STEP_TOKENS) * OPEN_STEP_TOKENS - end
            self._keys = _extended(self._keys, self._num_open, keys, room)
            self._values = _extended(self._values, self._num_open, values, room)
        else:
            self._keys[:, :, self._num_open : end] = keys
            self._values[:, :, self._num_open : end] = values
        self._num_open = end

    def _open_arrays(self) -> tuple[mx.array, mx.array]:
        """Return the open tokens' keys and values, each `[kv_heads, tokens, dim]`."""
        assert self._keys is not None and self._values is not None
        return self._keys[0, :, : self._num_open], self._values[0, :, : self._num_open]

    def first_open(self, num_tokens: int) -> tuple[mx.array, mx.array]:
        """Return the keys and values of the first open tokens, each `[kv_heads, tokens, dim]`."""
        keys, values = self._open_arrays()
        return keys[:, :num_tokens], values[:, :num_tokens]

    def open_page(self, num_tokens: int, page_tokens: int) -> tuple[mx.array, mx.array]:
        """Return the first open tokens as a page's blocks, padded with the last of them.

        Padding with a token that is there keeps it from widening the range that is quantized.

        Returns: keys `[kv_heads, key_dim, page_tokens]` and values `[kv_heads, page_tokens, value_dim]`.
        """
        keys, values = self._open_arrays()
        order = mx.minimum(mx.arange(page_tokens), num_tokens - 1)
        return mx.contiguous(keys[:, order].swapaxes(1, 2)), values[:, order]

    def drop_open(self, num_tokens: int) -> None:
        """Forget the first open tokens, which are in a page now."""
        keys, values = self._open_arrays()
        self.set_open(keys[:, num_tokens:], values[:, num_tokens:], self.offset)
        mx.eval(self.state)

    def clear(self) -> None:
        """Forget the open tokens and what was known of the pages, and start at position 0."""
        self._keys = self._values = None
        self._num_open = self.offset = 0
        self._groups, self._stamp = [], None

    def set_open(self, keys: mx.array, values: mx.array, position: int) -> None:
        """Replace the open tokens by these, each `[kv_heads, tokens, dim]`, before position `position`."""
        self.clear()
        if keys.shape[1]:
            self._append(keys[None], values[None])
        self.offset = position

    def prepend_open(self, other: PagedLayer) -> None:
        """Put the open tokens that another sequence has in this layer before those that are here."""
        if other._num_open:
            parts = [layer._open_arrays() for layer in (other, self) if layer._num_open]
            keys, values = (mx.concatenate(list(part), axis=1) for part in zip(*parts, strict=True))
            self.set_open(keys, values, self.offset)
            mx.eval(self.state)

    def keep_open(self, kept: BoolArray, position: int) -> None:
        """Keep those of the first open tokens that are marked, and drop all behind them."""
        if self._keys is None:
            self.clear()
            self.offset = position
            return
        keys, values = self._open_arrays()
        index = mx.array(np.flatnonzero(kept))
        self.set_open(keys[:, index], values[:, index], position)
        mx.eval(self.state)

    def fork(self, watcher: Watcher) -> PagedLayer:
        """Return a layer of its own, which still lacks a page table, with the same open tokens."""
        other = PagedLayer(self.number, watcher)
        other.offset = self.offset
        other.gives_views = self.gives_views
        if self._num_open:
            other.set_open(*self._open_arrays(), self.offset)
        return other


def _extended(array: mx.array | None, length: int, new: mx.array, room: int) -> mx.array:
    """Return the first `length` tokens, the new ones, and room for more, along the third axis."""
    pieces = [] if array is None or not length else [array[:, :, :length]]
    pieces.append(new)
    if room:
        pieces.append(mx.zeros((*new.shape[:2], room, new.shape[3]), dtype=new.dtype))
    return mx.concatenate(pieces, axis=2)
