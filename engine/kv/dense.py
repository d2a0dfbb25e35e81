"""The keys and values of pages as dense arrays, token by token, as fused attention takes them."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from engine.kv.groups import PageGroup
from engine.kv.page import IntArray
from engine.kv.page_table import PageReference


class DenseCopy:
    """Copies the pages of a sequence in one layer.

    Args:
        groups: all pages, by their precision; at least one.
        references: the pages, in the order of the text.
        page_tokens: tokens of a page.
        in_order: whether tokens are to be in the order of the text, or those of a page side by side and the
            pages in any order.
    """

    def __init__(
        self,
        groups: Sequence[PageGroup],
        references: Sequence[PageReference],
        page_tokens: int,
        in_order: bool,
    ) -> None:
        self._groups = groups
        self._references = references
        self._page_tokens = page_tokens
        self._in_order = in_order

    def keys(self) -> mx.array:
        """Return the keys, `[kv_heads, tokens, head_dim]`."""
        return self._side_by_side([group.keys.get(group.key_slots).swapaxes(2, 3) for group in self._groups])

    def values(self) -> mx.array:
        """Return the values, `[kv_heads, tokens, head_dim]`."""
        return self._side_by_side([group.values.get(group.value_slots) for group in self._groups])

    def _side_by_side(self, blocks: list[mx.array]) -> mx.array:
        """Turn blocks of the groups, `[heads, pages, page_tokens, dim]`, into `[kv_heads, tokens, dim]`."""
        rows = self._rows_by_page()
        if all(len(group.heads) == len(rows) for group in self._groups):
            flat = mx.concatenate([block.flatten(1, 2) for block in blocks], axis=1)
            pages = np.concatenate([group.pages for group in self._groups])
        else:
            flat = mx.concatenate([block.flatten(0, 1) for block in blocks])[mx.array(rows)].flatten(1, 2)
            pages = np.arange(rows.shape[1])
        places = np.argsort(pages) if self._in_order else np.arange(len(pages))
        is_whole = all(one.num_tokens == self._page_tokens for one in self._references)
        if is_whole and (places[:-1] < places[1:]).all():
            return flat
        valid = [self._references[pages[place]].valid for place in places]
        slots = [
            place * self._page_tokens + np.flatnonzero(one) for place, one in zip(places, valid, strict=True)
        ]
        return flat[:, mx.array(np.concatenate(slots))]

    def _rows_by_page(self) -> IntArray:
        """Return where the block of each head and page is among those of all groups: `[kv_heads, pages]`."""
        num_heads = 1 + max(int(group.heads.max()) for group in self._groups)
        rows = np.empty((num_heads, len(self._references)), dtype=np.int64)
        start = 0
        for group in self._groups:
            shape = len(group.heads), len(group.pages)
            rows[np.ix_(group.heads, group.pages)] = start + np.arange(shape[0] * shape[1]).reshape(shape)
            start += shape[0] * shape[1]
        return rows
