"""A sequence as pages and a manifest that outlive the process, and back from these."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Self, cast

import mlx.nn as nn
import numpy as np

from engine.kv.blob import Blob, DamagedBlobError, ForeignBlobError
from engine.kv.codec import OpenedPage, encode_open, encode_page, open_page, read_open
from engine.kv.lineage import prefix_chain
from engine.kv.manifest import Manifest, PageEntry, described_spans, header_of, numbers_of
from engine.kv.moving import MovableCache, Outside
from engine.kv.page import Blocks, IntArray, Page
from engine.kv.page_map import TextSpan
from engine.kv.page_table import PageReference
from engine.kv.precision import KV_BITS, KVSpec, Tier
from engine.kv.savable import SavablePage
from engine.kv.tiers import PageState, TierPolicy


class StorableCache(MovableCache):
    """A cache that can be stored, and be begun from what was stored.

    One that comes from a store is outside at first: its tokens, positions, pages and pins are known, its keys
    and values come in page by page.
    """

    _model = ""
    """Digest of the model whose pages are to come."""
    _is_of_chain = False
    """Whether these were found by their text alone, so that their tiers are still to be chosen."""

    # Out.

    @property
    def is_unbroken(self) -> bool:
        """Whether all tokens were read in order from position 0 on, and nothing was taken out or put in.

        The keys of its pages then follow from the tokens alone; see `prefix_chain`.
        """
        return not self._table.salt

    def described_format(self, model: str) -> bytes:
        """Return what all blobs of this model, and of this page and group size, have in common, as bytes."""
        return f"{self._form.digest} {model}".encode()

    def savable_pages(self) -> tuple[SavablePage, ...]:
        """Return the pages that are in memory, each once, in the order of the text. Cheap; no arrays."""
        pages = self._distinct_pages()
        num_old = len(pages) - self.spec.hot_pages - self.spec.warm_pages
        return tuple(
            SavablePage(
                chain=page.chain,
                parent=page.parent,
                position=page.positions[0],
                num_tokens=len(page.tokens),
                bits=float(page.held_bits().array.mean()),
                is_settled=page.tier is Tier.COLD or place < num_old,
                nbytes=page.nbytes,
                put_bits=page.put_bits,
            )
            for place, page in enumerate(pages)
            if page in self._store.pages
        )

    def note_put(self, chain: bytes, bits: float | None) -> None:
        """Note for one of `savable_pages` with how many bits the store was given it; None for not at all."""
        for page in self._distinct_pages():
            if page.chain == chain:
                page.put_bits = bits

    def encode_page(self, chain: bytes, model: str) -> bytearray:
        """Return a page as a blob that is bound to its chain key and to the model.

        Args:
            chain: one of `savable_pages`.
            model: digest of the model.
        """
        pages = {page.chain: page for page in self._distinct_pages() if page in self._store.pages}
        return encode_page(pages[chain], self._form, self._store, model)

    def encode_manifest(self, spans: Sequence[TextSpan], model: str) -> bytearray:
        """Return all but the pages' blocks as a blob: tokens, tiers, heat, pins, and the open tokens' arrays.

        Args:
            spans: what the tokens are.
            model: digest of the model.
        """
        header = header_of(self._table, self.spec, model, self._heat.state, self.is_behind)
        header = dataclasses.replace(header, spans=described_spans(spans))
        arrays = self._open_arrays() if header.open_tokens else {}
        return encode_open(header, arrays, self._form)

    # Back.

    @classmethod
    def from_manifest(cls, module: nn.Module, manifest: Manifest) -> Self:
        """Return a cache of what a manifest says, whose pages are outside.

        Raises:
            ForeignBlobError: the module has other layers or types.
            DamagedBlobError: the manifest says what cannot be.
        """
        cache, header = cls(module, manifest.kv), manifest.header
        cache._require_movable()
        manifest.opened.require_format(cache._form)
        bits = [cache._sound_bits(one) for one in header.bits]
        try:
            pages = [cache._page_of(entry, bits) for entry in header.pages]
            references = [_reference(pages[place], numbers_of(runs)) for place, runs in header.references]
            opened = read_open(manifest.opened, len(header.open_tokens), cache._form)
        except (ValueError, IndexError, TypeError) as error:
            raise DamagedBlobError("it says what no sequence can be") from error
        cache._await(pages, references, header.model)
        table = cache._table
        table.open_tokens, table.open_positions = list(header.open_tokens), numbers_of(header.open_positions)
        table.next_position, table.salt = header.next_position, bytes.fromhex(header.salt)
        table.pinned, table.pinned_text = set(numbers_of(header.pinned)), set(numbers_of(header.pinned_text))
        cache.is_behind = header.is_behind
        cache._heat.go_on_from(header.heat)
        cache._reopen_with(opened, np.ones(len(table.open_tokens), dtype=np.bool_))
        return cache

    @classmethod
    def from_chain(
        cls, module: nn.Module, spec: KVSpec, tokens: Sequence[int], model: str, nbytes: Sequence[int]
    ) -> Self:
        """Return a cache of the full pages of an unbroken text; the pages are outside.

        Args:
            module: the model.
            spec: the precision that is wanted; pages are brought down to it as they come.
            tokens: the text from its beginning on; what is behind its last full page is left out.
            model: digest of the model.
            nbytes: of each of these pages' blobs, for what is to be told before they are there.

        Raises:
            ForeignBlobError: the module has layers that are not in pages.
        """
        cache = cls(module, spec)
        cache._require_movable()
        policy, size = TierPolicy.of(spec), spec.page_tokens
        chain = prefix_chain(tokens, size)
        states = [PageState(Tier.HOT, 0.0, policy.has_tiers and not place) for place in range(len(chain))]
        pages = []
        for place, tier in enumerate(policy.wanted(states)):
            bits, start = cache._store.tier_bits(spec, tier), place * size
            page = cache._page(tokens[start : start + size], range(start, start + size), tier, bits)
            page.parent, page.nbytes = chain[place - 1] if place else b"", nbytes[place]
            pages.append(page)
        outside = cache._await(pages, [_reference(page, range(size)) for page in pages], model)
        outside.steps = {page: cache._steps_to(page.tier) for page in pages}
        cache._is_of_chain = True
        return cache

    @property
    def outside_chains(self) -> tuple[bytes, ...]:
        """The chain keys of the pages that are still to come, the hottest first."""
        missing = [] if self._outside is None else self._outside.missing()
        return tuple(page.chain for page in sorted(missing, key=lambda page: -page.heat))

    @property
    def outside_nbytes(self) -> int:
        """Bytes that the pages which are still to come will take in memory, about."""
        return sum(page.nbytes for page in self._outside.missing()) if self._outside else 0

    def opened(self, blob: Blob) -> OpenedPage:
        """Check the blob of a page and return it; may be called on any thread.

        Raises:
            DamagedBlobError: it is not what was written.
            ForeignBlobError: another model, or another version of this program, wrote it.
        """
        return open_page(blob, self._form, self._model)

    def take_in(self, chain: bytes, opened: OpenedPage) -> None:
        """Take in one of the pages of `outside_chains`. It stays here when the rest is left for later.

        Raises:
            DamagedBlobError: it is another page.
        """
        outside = cast(Outside, self._outside)
        page = next(page for page in outside.missing() if page.chain == chain)
        self._take(outside, page, opened)
        header = opened.header
        page.put_bits = float(np.mean(list(itertools.chain(*header.key_bits, *header.value_bits))))

    def cut_outside(self, chain: bytes) -> None:
        """Forget the text from the first token of a page on, which cannot come; `num_tokens` says what stays.

        Open tokens are forgotten too, as they are behind it.
        """
        outside, table = cast(Outside, self._outside), self._table
        place = next(place for place, one in enumerate(table.references) if one.page.chain == chain)
        length = sum(one.num_tokens for one in table.references[:place])
        table.next_position = table.position(length - 1) + 1 if length else 0
        table.keep(np.arange(self.num_tokens) < length)
        table.break_off_at_end()
        for layer in self._paged:
            layer.clear()
        self._heat.forget()
        kept = self._distinct_pages()
        for page in set(outside.taken).difference(kept):
            self._store.release(page)
        self._outside = dataclasses.replace(
            outside,
            pages=tuple(kept),
            taken={page: None for page in kept if page in outside.taken},
            waiting={page: outside.waiting[page] for page in kept if page in outside.waiting},
        )

    def come_in(self) -> None:
        """Be a cache like any other again, once no page is outside any more.

        Each page has the tier and the bits that the manifest says, or fewer where less was stored.
        """
        outside = cast(Outside, self._outside)
        if outside.missing():
            raise ValueError("Some pages are still to come.")
        self._place(outside)
        self._return(outside, {})
        if self._is_of_chain:
            self.is_behind = True
            self._move_tiers()

    def _require_movable(self) -> None:
        if not self.can_move:
            raise ForeignBlobError("the model has layers that are not in pages")

    def _await(self, pages: Sequence[Page], references: Sequence[PageReference], model: str) -> Outside:
        """Have these pages outside; the cache must be new."""
        self._model = model
        self._outside = Outside(tuple(pages), np.zeros(0, dtype=np.bool_))
        self._table.let_go()
        self._table.set_references(references)
        return self._outside

    def _steps_to(self, tier: Tier) -> list[IntArray]:
        """Return the bits that a page has on its way down to a tier, as it goes when a text is read."""
        tiers = [Tier.WARM, tier] if tier is Tier.COLD and self.spec.warm_pages else [tier]
        return [self._store.tier_bits(self.spec, each) for each in tiers]

    def _sound_bits(self, bits: Sequence[Sequence[int]]) -> IntArray:
        num_heads = sum(shape.num_kv_heads for shape in self._store.shapes.values())
        if [len(row) for row in bits] != [num_heads] * 2 or not {each for row in bits for each in row} <= set(
            KV_BITS
        ):
            raise DamagedBlobError("it has bits that no page can have")
        return np.array(bits, dtype=np.int64)

    def _page_of(self, entry: PageEntry, bits: Sequence[IntArray]) -> Page:
        path = [bits[number] for number in entry.path]
        page = self._page(entry.tokens, numbers_of(entry.positions), Tier(entry.tier), path[-1])
        page.parent, page.salt = bytes.fromhex(entry.parent), bytes.fromhex(entry.salt)
        page.heat, page.last_access, page.nbytes, page.path = (
            entry.heat,
            entry.last_access,
            entry.nbytes,
            path,
        )
        return page

    def _page(self, tokens: Sequence[int], positions: Sequence[int], tier: Tier, bits: IntArray) -> Page:
        """Return a page whose blocks are to come, with these bits, as in `HeldBits.array`."""
        if not 0 < len(tokens) == len(positions) <= self.spec.page_tokens:
            raise ValueError
        page = Page(self._store.new_number(), tuple(tokens), tuple(positions), tier)
        start = 0
        for layer, shape in self._store.shapes.items():
            for of_part, row in zip((page.keys, page.values), bits, strict=True):
                held = row[start : start + shape.num_kv_heads].copy()
                of_part[layer] = Blocks(held, np.full_like(held, -1))
            start += shape.num_kv_heads
        return page


def _reference(page: Page, kept: Sequence[int]) -> PageReference:
    valid = np.zeros(len(page.tokens), dtype=np.bool_)
    valid[list(kept)] = True
    return PageReference(page, valid)
