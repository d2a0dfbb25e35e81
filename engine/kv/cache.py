"""The KV cache of one sequence, behind one interface.

Every layer with full attention is paged (`PagedLayer`): its sealed pages lie in a `PageStore` that forks
share, the newest tokens in an open buffer of 16 bits. Layers of other kinds (sliding-window, recurrent,
latent attention) keep mlx-lm's own cache, and `SequenceCache.note` says so.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

from engine.errors import OctavoError
from engine.kv.heat import HeatSampler, Watcher
from engine.kv.layer import PagedLayer
from engine.kv.layers import make_layers, trim_to, watched
from engine.kv.measure import measure_usage, page_infos
from engine.kv.page import BoolArray
from engine.kv.page_table import PageTable
from engine.kv.precision import KVSpec, Tier
from engine.kv.store import PageStore
from engine.kv.tiers import PageState, TierPolicy
from engine.kv.usage import KVUsage, PageInfo

READ_CHUNK_TOKENS = 256
"""Tokens that a rebuild or a splice reads in one forward pass."""


class SequenceCache:
    """Keys and values of one sequence of tokens, for every layer of a model.

    Attributes:
        layers: one cache per layer, the object that the model's forward pass takes.
        spec: the precision that is asked for; `usage` tells what is held.
        note: one sentence where some layers could not take that precision, else None.
    """

    def __init__(self, module: nn.Module, spec: KVSpec) -> None:
        self.spec = spec
        self._module = module
        self._watcher = Watcher(spec.attention_pages, spec.attention_grows)
        self.layers, shapes, self.note = make_layers(module, self._watcher)
        self._store = PageStore(shapes, spec.page_tokens, spec.group_size)
        self._begin(PageTable(self._store))

    def _begin(self, table: PageTable) -> None:
        self._table = table
        for layer in self._paged:
            layer.table = table
        self._heat = HeatSampler(self._watcher, [layer.number for layer in self._paged])

    @property
    def _paged(self) -> list[PagedLayer]:
        return [layer for layer in self.layers if isinstance(layer, PagedLayer)]

    @property
    def _others(self) -> list[Any]:
        return [layer for layer in self.layers if not isinstance(layer, PagedLayer)]

    # What is held.

    @property
    def tokens(self) -> list[int]:
        """Ids of the tokens whose keys and values are held, in order."""
        return self._table.tokens

    @property
    def num_tokens(self) -> int:
        """How many tokens are held."""
        return self._table.num_sealed + len(self._table.open_tokens)

    @property
    def state(self) -> list[Any]:
        """The arrays of all layers, to be evaluated after a forward pass."""
        return [layer.state for layer in self.layers if not layer.empty()]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, scales and unused room included; of a fork, also what it shares."""
        return self._store.nbytes + sum(int(layer.nbytes) for layer in self.layers if not layer.empty())

    @property
    def can_edit(self) -> bool:
        """Whether tokens can be dropped or spliced and sequences forked: only where every layer is paged."""
        return not self._others

    def common_prefix(self, tokens: Sequence[int]) -> int:
        """Return how many tokens at the start of `tokens` are held already."""
        held = self.tokens
        for position, (one, wanted) in enumerate(zip(held, tokens, strict=False)):
            if one != wanted:
                return position
        return min(len(held), len(tokens))

    def pages(self) -> list[PageInfo]:
        """Return what is known of each page, in the order of the text."""
        return page_infos(self._table.references)

    def usage(self) -> KVUsage:
        """Return the figures of the whole cache."""
        return measure_usage(
            self._table.references,
            self._store,
            self.spec,
            open_tokens=len(self._table.open_tokens),
            nbytes=self.nbytes,
            attention_pages=self._watcher.attention_pages,
            caught=self._heat.caught,
        )

    # Reading.

    def watch(self, before_layer: Any) -> None:
        """Have `before_layer` called before each layer takes keys; it may raise to leave the forward pass.

        After that `realign` brings the layers back together. None ends it.
        """
        self._watcher.before_layer = before_layer

    def read(self, tokens: Sequence[int]) -> mx.array:
        """Read tokens in one forward pass; return their logits, `[1, tokens, vocab]`, not evaluated yet."""
        logits: mx.array = self._module(mx.array([list(tokens)]), cache=self.layers)
        mx.eval(self.state)
        self.commit(tokens)
        return logits

    def commit(self, tokens: Sequence[int]) -> None:
        """Name the tokens that a forward pass has just taken, and seal the pages that became full.

        One pass may follow that is queued and not committed yet, as in a decode loop that runs ahead.
        """
        self._table.append(tokens)
        if len(tokens) == 1:
            self._heat.step(self._table.references)
        if self._paged and len(self._table.open_tokens) >= self.spec.page_tokens:
            while len(self._table.open_tokens) >= self.spec.page_tokens:
                self._seal(self.spec.page_tokens)
            self._move_tiers()

    def _seal(self, num_tokens: int) -> None:
        """Make a page of the first open tokens."""
        table, page_tokens = self._table, self.spec.page_tokens
        layers = {layer.number: layer for layer in self._paged}
        page = self._store.seal(
            table.open_tokens[:num_tokens],
            table.open_positions[:num_tokens],
            lambda number: layers[number].open_page(num_tokens, page_tokens),
            self._tier_of_next_page(),
            self.spec,
        )
        for layer in self._paged:
            layer.drop_open(num_tokens)
        table.add_page(page)

    def _tier_of_next_page(self) -> Tier:
        """A new page skips the tiers that it would leave again at once."""
        if self.spec.hot_pages:
            return Tier.HOT
        return Tier.WARM if self.spec.warm_pages else Tier.COLD

    def _move_tiers(self) -> None:
        """Bring every page down to the tier that the policy wants and to the bits that the spec gives it."""
        pages = [reference.page for reference in self._table.references]
        policy = TierPolicy(self.spec.hot_pages, self.spec.warm_pages)
        states = [
            PageState(page.tier, page.heat, page.pinned or (index == 0 and self._has_tiers))
            for index, page in enumerate(pages)
        ]
        for page, tier in zip(pages, policy.wanted(states), strict=True):
            self._store.lower(page, tier, self.spec)
        self._store.defragment()

    @property
    def _has_tiers(self) -> bool:
        return self.spec.hot_pages + self.spec.warm_pages > 0

    # Changing.

    def clear(self) -> None:
        """Forget all tokens and give their memory back."""
        self._heat.forget()
        self._table.set_references(())
        self._store.defragment()
        self._begin(PageTable(self._store))
        for layer in self._paged:
            layer.clear()
        for index, fresh in enumerate(make_prompt_cache(self._module)):
            if not isinstance(self.layers[index], PagedLayer):
                self.layers[index] = watched(fresh, self._watcher)

    def realign(self) -> None:
        """Bring all layers back to `tokens` after a forward pass that was left half-way.

        Where a layer cannot go back, everything is forgotten.
        """
        if not trim_to(self._others, self.num_tokens):
            self.clear()
            return
        kept = np.ones(len(self._table.open_tokens), dtype=np.bool_)
        for layer in self._paged:
            layer.keep_open(kept, self._table.next_position)

    def truncate(self, length: int) -> bool:
        """Forget all tokens from `length` on; return False, unchanged, where a layer cannot do that."""
        if length >= self.num_tokens:
            return True
        if not trim_to(self._others, length):
            return False
        self._table.next_position = self._table.positions[length - 1] + 1 if length else 0
        self._keep(np.arange(self.num_tokens) < length)
        self._reopen()
        self._store.defragment()
        return True

    def fork(self) -> SequenceCache:
        """Return a cache with the same tokens that shares all pages; only the open tokens are copied.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("branched")
        other = copy.copy(self)
        other._watcher = Watcher(self.spec.attention_pages, self.spec.attention_grows)
        other.layers = [layer.fork(other._watcher) for layer in self._paged]
        other._begin(self._table.fork())
        other.realign()  # a queued pass has put a token into the layers that is not committed
        return other

    def drop(self, start: int, stop: int) -> None:
        """Forget the tokens from `start` to `stop`; later ones keep their positions and are not read again.

        Raises:
            OctavoError: some layers are not paged.
        """
        self._require_paged("taken out of")
        index = np.arange(self.num_tokens)
        self._keep((index < start) | (index >= stop))
        self._store.defragment()

    def splice(self, at: int, tokens: Sequence[int]) -> None:
        """Read tokens in the gap of positions before the token at index `at`.

        They attend to what precedes them. What follows attends to them from now on and is not read again.

        Raises:
            OctavoError: some layers are not paged, or the gap has fewer positions than there are tokens.
        """
        self._require_paged("put into")
        if at == self.num_tokens:
            self._read_all(tokens)
            return
        positions = self._table.positions
        gap = positions[at] - (positions[at - 1] + 1 if at else 0)
        if gap < len(tokens):
            raise OctavoError(
                f"There is room for {gap:,} tokens where the text was taken out, and {len(tokens):,} are to "
                "go there. Make the new text shorter."
            )
        head = self.fork()
        head.truncate(at)
        head._read_all(tokens)
        head._seal_rest()
        self._keep(np.arange(self.num_tokens) >= at)
        self._table.set_references((*head._table.references, *self._table.references))
        head.close()
        self._move_tiers()

    def rebuild(self) -> None:
        """Read the tokens again from position 0 on: all lost bits and unused positions come back."""
        tokens = self.tokens
        self.clear()
        self._read_all(tokens)

    def pin(self, start: int, stop: int) -> None:
        """Keep the pages of these tokens a tier higher from now on."""
        first = 0
        for reference in self._table.references:
            if start < first + reference.num_tokens and stop > first:
                reference.page.pinned = True
            first += reference.num_tokens

    def apply(self, spec: KVSpec) -> None:
        """Change the precision: a lower one at once, a higher one for pages that are yet to come.

        Raises:
            OctavoError: pages of another size or group are asked for, which takes a new cache.
        """
        if (spec.page_tokens, spec.group_size) != (self.spec.page_tokens, self.spec.group_size):
            raise OctavoError("Another page or group size takes a new cache.")
        self.spec = spec
        self._heat.limit(spec.attention_pages, spec.attention_grows)
        self._move_tiers()

    def close(self) -> None:
        """Give all memory back; the cache cannot be used after that."""
        self._table.set_references(())
        self._store.defragment()
        self.layers = []

    def _require_paged(self, what: str) -> None:
        if not self.can_edit:
            raise OctavoError(
                f"Text cannot be {what} this conversation's cache without reading the rest again: {self.note}"
            )

    def _keep(self, kept: BoolArray) -> None:
        self._heat.forget()
        open_kept = self._table.keep(kept)
        for layer in self._paged:
            layer.keep_open(open_kept, self._table.next_position)

    def _seal_rest(self) -> None:
        """Make a page of all open tokens, which may be fewer than a page has."""
        if self._table.open_tokens:
            self._seal(len(self._table.open_tokens))
            self._move_tiers()

    def _reopen(self) -> None:
        """Copy a page that truncating has left partly filled back to the open tokens, while it is exact.

        New tokens then fill that page up instead of beginning another. What was quantized stays where it is.
        """
        references = self._table.references
        if not references or self._table.open_tokens:
            return
        last = references[-1]
        if last.num_tokens == self.spec.page_tokens or not last.page.is_exact:
            return
        slots = mx.array(np.flatnonzero(last.valid))
        for layer in self._paged:
            keys, values = self._store.read(last.page, layer.number)
            layer.set_open(keys.swapaxes(1, 2)[:, slots], values[:, slots], layer.offset)
            mx.eval(layer.state)
        self._table.reopen_last()

    def _read_all(self, tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), READ_CHUNK_TOKENS):
            self.read(tokens[start : start + READ_CHUNK_TOKENS])
