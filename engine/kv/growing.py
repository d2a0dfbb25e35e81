"""Reading into the KV cache of one sequence: tokens come in, full pages are sealed, old ones lose bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

from engine.context_usage import SpanUsage
from engine.errors import OctavoError
from engine.kv.blob import BlobFormat
from engine.kv.heat import HeatSampler, Watcher
from engine.kv.layer import PagedLayer
from engine.kv.layers import make_layers, trim_to, watched
from engine.kv.measure import measure_usage, page_infos, page_map, span_usage
from engine.kv.page import BoolArray, Page
from engine.kv.page_map import PageCounters, PageMap, TextSpan
from engine.kv.page_table import PageTable
from engine.kv.parting import parted
from engine.kv.precision import KVSpec, Tier
from engine.kv.store import PageStore
from engine.kv.tiers import PageState, TierPolicy
from engine.kv.usage import KVUsage, PageInfo


class GrowingCache:
    """Keys and values of one sequence of tokens, for every layer of a model.

    Attributes:
        layers: one cache per layer, the object that the model's forward pass takes.
        spec: the precision that is asked for; `usage` tells what is held.
        note: one sentence where some layers could not take that precision, else None.
        is_behind: whether a change of precision was stopped before all pages had it.
    """

    def __init__(self, module: nn.Module, spec: KVSpec) -> None:
        self.spec = spec
        self.is_behind = False
        self._is_pressed = False
        self._is_aside = False
        self._module = module
        self._watcher = Watcher()
        made = make_layers(module, self._watcher)
        self.layers, self.note = made.caches, made.note
        self._store = PageStore(made.shapes, spec.page_tokens, spec.group_size)
        self._form = BlobFormat.of(self._store, made.types)
        self._begin(PageTable(self._store))

    def _begin(self, table: PageTable) -> None:
        self._table = table
        for layer in self._paged:
            layer.table = table
        layers = [] if self._is_aside else [layer.number for layer in self._paged]
        spec = self.spec
        self._heat = HeatSampler(self._watcher, layers, spec.attention_pages, spec.attention_grows)

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
    def positions(self) -> list[int]:
        """The positions of `tokens`; dropped tokens have left theirs unused."""
        return self._table.positions

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
        """Bytes of all keys and values, scales and unused room included, and of what forks and it share."""
        return self._store.nbytes - self._table.others_nbytes + self.open_nbytes

    @property
    def open_nbytes(self) -> int:
        """Bytes of what no sequence shares: the open tokens, and layers that are not paged."""
        return sum(int(layer.nbytes) for layer in self.layers if not layer.empty())

    def pages(self) -> list[PageInfo]:
        """Return what is known of each page, in the order of the text."""
        return page_infos(self._table)

    def page_map(self, spans: Sequence[TextSpan], counters: PageCounters) -> PageMap:
        """Return all that is known of the pages; `spans` say what the tokens are."""
        return page_map(self._table, self._heat, self._watcher.attention_pages, spans, counters)

    def span_usage(self, spans: Sequence[TextSpan]) -> tuple[SpanUsage, ...]:
        """Return what each of these spans, by index of the tokens held, takes: tokens, bytes, heat.

        Room that no token uses is nobody's; see `SequenceCache.unused_nbytes`.
        """
        paged = [layer for layer in self.layers if isinstance(layer, PagedLayer)]
        room_nbytes = sum(array.nbytes for layer in paged for array in layer.state)
        own_nbytes = sum(
            array.nbytes * len(self._table.open_tokens) // array.shape[2]
            for layer in paged
            for array in layer.state
        )
        return span_usage(self._table, own_nbytes, self.open_nbytes - room_nbytes, spans)

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

    def watch(self, before_layer: Callable[[mx.array], None] | None) -> None:
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
        """Name the tokens that a forward pass has taken, and seal the pages that became full.

        The pass may still be queued, as in a decode loop that runs ahead of the reader.
        """
        self._table.append(tokens)
        if len(tokens) == 1:
            self._heat.step(self._table.references)
        if self._paged and len(self._table.open_tokens) >= self.spec.page_tokens:
            mx.synchronize()  # a queued pass still reads the pools, which would be copied to be written
            self._seal_full()
            self._move_tiers()

    def _seal_full(self) -> None:
        """Make pages of the open tokens, as many as these fill."""
        while len(self._table.open_tokens) >= self.spec.page_tokens:
            self._seal(self.spec.page_tokens)

    def _seal(self, num_tokens: int) -> None:
        """Make a page of the first open tokens."""
        table, page_tokens = self._table, self.spec.page_tokens
        layers = {layer.number: layer for layer in self._paged}
        page = self._store.seal(
            table.open_tokens[:num_tokens],
            table.open_positions[:num_tokens],
            lambda number: layers[number].open_page(num_tokens, page_tokens),
            Tier.COLD if self._is_pressed else TierPolicy.of(self.spec).first,
            self.spec,
        )
        for layer in self._paged:
            layer.drop_open(num_tokens)
        table.add_page(page)

    def _move_tiers(self) -> None:
        """Bring down the pages that are in a higher tier than the policy wants."""
        wanted = self._wanted_tiers(self.spec)
        moving = [(page, tier) for page, tier in wanted if self.is_behind or tier is not page.tier]
        self._store.lower_all(parted(self._table, moving, self.spec), self.spec)
        self.is_behind = False

    def _wanted_tiers(self, spec: KVSpec) -> list[tuple[Page, Tier]]:
        """Return the pages that may be moved, and the tier that each belongs to."""
        wanted = self._tiers_by_policy(spec)
        return [(page, tier) for page, tier in wanted if not self._is_aside or page.references == 1]

    def _tiers_by_policy(self, spec: KVSpec) -> list[tuple[Page, Tier]]:
        policy = TierPolicy.of(spec)
        table = self._table
        pages = [reference.page for reference in table.references]
        if self._is_pressed:
            return [(page, Tier.COLD) for page in pages]
        pinned = table.pinned_pages()
        protected = [page in pinned for page in pages]
        if protected and policy.has_tiers:
            protected[0] = True
        states = [
            PageState(page.tier, page.heat, is_protected)
            for page, is_protected in zip(pages, protected, strict=True)
        ]
        return list(zip(pages, policy.wanted(states), strict=True))

    # Changing the whole.

    def apply(self, spec: KVSpec, check: Callable[[], None] = lambda: None) -> None:
        """Change the precision: a lower one at once, a higher one for pages that are yet to come.

        `check` is called between layers and may raise: then `spec` stays, some pages have lost bits, and the
        rest follows with the next `apply` or full page.

        Raises:
            OctavoError: pages of another size or group are asked for, which takes a new cache.
        """
        if (spec.page_tokens, spec.group_size) != (self.spec.page_tokens, self.spec.group_size):
            raise OctavoError("Another page or group size takes a new cache.")
        self.is_behind = True
        self._store.lower_all(parted(self._table, self._wanted_tiers(spec), spec), spec, check)
        self.is_behind = False
        self.spec = spec
        self._heat.limit(spec.attention_pages, spec.attention_grows)

    def press(self, check: Callable[[], None] = lambda: None) -> None:
        """Bring all pages to the cold tier now, and new ones as they are sealed, until `ease`.

        `check` is as in `apply`.
        """
        self._is_pressed = True
        self.is_behind = True
        self._store.lower_all(self._wanted_tiers(self.spec), self.spec, check)
        self.is_behind = False

    def ease(self) -> None:
        """Let new pages have their tiers again; what was lowered stays as it is."""
        self._is_pressed = False

    @property
    def next_position(self) -> int:
        """The position of the next token; more than `num_tokens` where tokens were dropped."""
        return self._table.next_position

    def position(self, index: int) -> int:
        """Return the position of the token at an index."""
        return self._table.position(index)

    @property
    def num_before_gap(self) -> int:
        """How many tokens precede the first position that dropped tokens have left unused."""
        positions = self.positions
        return next((at for at, position in enumerate(positions) if at != position), len(positions))

    def tier_nbytes(self) -> dict[Tier, int]:
        """Return the bytes of the pages in each tier."""
        pages = {reference.page for reference in self._table.references}
        return {tier: sum(page.nbytes for page in pages if page.tier is tier) for tier in Tier}

    def clear(self) -> None:
        """Forget all tokens and give their memory back."""
        self._heat.forget()
        self._table.set_references(())
        self._store.defragment()
        self._begin(PageTable(self._store, self._table.owner))
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

    def close(self) -> None:
        """Give all memory back; the cache cannot be used after that."""
        self._table.set_references(())
        self._store.defragment()
        self.layers = []

    def _keep(self, kept: BoolArray) -> None:
        self._heat.forget()
        open_kept = self._table.keep(kept)
        for layer in self._paged:
            layer.keep_open(open_kept, self._table.next_position)
