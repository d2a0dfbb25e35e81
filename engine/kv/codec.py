"""Pages as bytes: all that a page of a `PageStore` is, exactly and at its present bits, and back.

A blob needs nothing beside it but a store of the same format. The open tokens of a sequence, which are less
than a page, are a blob of their own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from engine.kv.blob import (
    Blob,
    BlobFormat,
    BlobReader,
    DamagedBlobError,
    ForeignBlobError,
    LayerFormat,
    OpenedBlob,
    open_blob,
    seal_blob,
)
from engine.kv.lineage import chain_key
from engine.kv.page import IntArray, Page
from engine.kv.pool import Part, packed_shapes
from engine.kv.precision import KV_BITS, Tier
from engine.kv.store import PageStore
from engine.kv.words import WordArray, as_words, from_words

OpenArrays = dict[int, tuple[mx.array, mx.array]]
"""The open tokens' keys and values, each `[kv_heads, tokens, dim]`, by the layer's number."""

HeadBits = Sequence[Sequence[int]]
"""Bits by layer and KV head."""


@dataclass(frozen=True)
class PageHeader:
    """What a page is beside its blocks.

    Attributes:
        tokens: their ids.
        positions: of these.
        parent: the chain key of the page that it was read behind, in hexadecimal digits.
        salt: of its sequence, in hexadecimal digits.
        model: digest of the model, empty where the blob does not outlive the process.
        tier: which precision it was meant to have.
        key_bits: of all blocks of keys.
        value_bits: of all blocks of values.
    """

    tokens: Sequence[int]
    positions: Sequence[int]
    parent: str
    salt: str
    model: str
    tier: str
    key_bits: HeadBits
    value_bits: HeadBits


@dataclass(frozen=True)
class OpenHeader:
    """Which tokens are open, and their positions."""

    tokens: Sequence[int]
    positions: Sequence[int]


@dataclass(frozen=True)
class _Group:
    """The blocks of a layer's keys or values that have the same bits."""

    bits: int
    heads: IntArray
    shapes: list[tuple[int, ...]]
    types: list[mx.Dtype]

    @property
    def nbytes(self) -> int:
        return sum(math.prod(shape) * each.size for shape, each in zip(self.shapes, self.types, strict=True))


Groups = dict[tuple[int, Part], list[_Group]]


@dataclass(frozen=True, eq=False)
class OpenedPage:
    """A page's blob that was checked, of which nothing is in a store yet."""

    header: PageHeader
    chain: bytes
    reader: BlobReader
    groups: Groups


def encode_page(page: Page, form: BlobFormat, store: PageStore, model: str = "") -> bytearray:
    """Return a page with its tokens, positions, tier and lineage, bound to a model."""
    header = PageHeader(
        tokens=page.tokens,
        positions=page.positions,
        parent=page.parent.hex(),
        salt=page.salt.hex(),
        model=model,
        tier=page.tier.value,
        key_bits=[page.keys[layer.number].bits.tolist() for layer in form.layers],
        value_bits=[page.values[layer.number].bits.tolist() for layer in form.layers],
    )
    arrays = (
        array
        for layer in form.layers
        for part in Part
        for words in store.words(page, layer.number, part)
        for array in words
    )
    return seal_blob(form, header, _nbytes(_groups_of(form, header)), arrays)


def open_page(blob: Blob, form: BlobFormat, model: str = "") -> OpenedPage:
    """Check the blob of a page of this model.

    Raises:
        BlobError: it must not be used.
    """
    opened = open_blob(PageHeader, blob)
    opened.require_format(form)
    header = opened.header
    _require_sound(form, header)
    if header.model != model:
        raise ForeignBlobError("it is of another model")
    groups = _groups_of(form, header)
    opened.reader.require_nbytes(_nbytes(groups))
    return OpenedPage(header, _chain(header), opened.reader, groups)


def place_pages(pages: Sequence[tuple[Page, OpenedPage]], store: PageStore, num_more: int = 0) -> None:
    """Put the blocks of pages that were outside into a store of their format, with the bits that they had.

    They have no reference yet. `num_more` pages are about to follow.
    """

    def blocks(layer: int, part: Part) -> Iterator[tuple[int, list[tuple[Page, IntArray]], list[mx.array]]]:
        owners: dict[int, list[tuple[Page, IntArray]]] = {}
        words: dict[int, list[list[WordArray]]] = {}
        types: dict[int, list[mx.Dtype]] = {}
        for page, opened in pages:
            for group in opened.groups[layer, part]:
                arrays = [opened.reader.words(*each) for each in zip(group.shapes, group.types, strict=True)]
                owners.setdefault(group.bits, []).append((page, group.heads))
                words.setdefault(group.bits, []).append(arrays)
                types[group.bits] = group.types
        for bits, rows in words.items():
            joined = [np.concatenate(arrays) for arrays in zip(*rows, strict=True)]
            yield bits, owners[bits], [from_words(*each) for each in zip(joined, types[bits], strict=True)]

    store.adopt([page for page, _ in pages], blocks, num_more)


def encode_open(header: Any, arrays: OpenArrays, form: BlobFormat) -> bytearray:
    """Return the keys and values of tokens that no page holds yet; the header says which tokens these are."""
    ordered = [array for layer in form.layers for array in arrays[layer.number]] if arrays else []
    words = (as_words(mx.contiguous(array)) for array in ordered)
    return seal_blob(form, header, sum(array.nbytes for array in ordered), words)


def decode_open(blob: Blob, form: BlobFormat) -> tuple[OpenHeader, OpenArrays]:
    """Return open tokens and their keys and values.

    Raises:
        BlobError: the blob must not be used.
    """
    opened = open_blob(OpenHeader, blob)
    return opened.header, read_open(opened, len(opened.header.tokens), form)


def read_open(opened: OpenedBlob[Any], num_tokens: int, form: BlobFormat) -> OpenArrays:
    """Return the keys and values of so many open tokens, which are all the arrays of a blob.

    Raises:
        BlobError: the blob must not be used.
    """
    opened.require_format(form)
    shapes = {
        (layer.number, part): ((layer.num_kv_heads, num_tokens, layer.dim(part)), layer.dtype(part))
        for layer in form.layers
        for part in Part
    }
    reader = opened.reader
    reader.require_nbytes(sum(math.prod(shape) * dtype.size for shape, dtype in shapes.values()))
    arrays = {}
    for layer in form.layers:
        places = [shapes[layer.number, part] for part in Part]
        keys, values = (from_words(reader.words(*place), place[1]) for place in places)
        arrays[layer.number] = keys, values
    return arrays


def _chain(header: PageHeader) -> bytes:
    """Return the chain key, from all that it is of."""
    try:
        parent, salt = bytes.fromhex(header.parent), bytes.fromhex(header.salt)
        return chain_key(parent, salt, header.positions[0], header.tokens)
    except (ValueError, TypeError) as error:
        raise DamagedBlobError("its header cannot be that of a page") from error


def _require_sound(form: BlobFormat, header: PageHeader) -> None:
    """Refuse a header that no page of this format can have."""
    bits = [*header.key_bits, *header.value_bits]
    heads = [layer.num_kv_heads for layer in form.layers] * 2
    if (
        not 0 < len(header.tokens) == len(header.positions) <= form.page_tokens
        or [len(one) for one in bits] != heads
        or not {each for one in bits for each in one} <= set(KV_BITS)
        or header.tier not in {tier.value for tier in Tier}
    ):
        raise DamagedBlobError("its header cannot be that of a page")


def _nbytes(groups: Groups) -> int:
    return sum(group.nbytes for of_part in groups.values() for group in of_part)


def _groups_of(form: BlobFormat, header: PageHeader) -> Groups:
    """Return the blocks of each layer's keys and values, in the order in which a store yields them."""
    return _groups(form, *(tuple(map(tuple, bits)) for bits in (header.key_bits, header.value_bits)))


@functools.lru_cache(maxsize=32)  # pages of a tier have the same bits
def _groups(
    form: BlobFormat, key_bits: tuple[tuple[int, ...], ...], value_bits: tuple[tuple[int, ...], ...]
) -> Groups:
    groups = {}
    for layer, *bits_of in zip(form.layers, key_bits, value_bits, strict=True):
        for part, bits in zip(Part, bits_of, strict=True):
            groups[layer.number, part] = list(_layer_groups(form, layer, part, np.array(bits)))
    return groups


def _layer_groups(form: BlobFormat, layer: LayerFormat, part: Part, held: IntArray) -> Iterator[_Group]:
    for bits in np.unique(held).tolist():
        heads = np.flatnonzero(held == bits)
        blocks = packed_shapes(part, bits, layer.dim(part), form.page_tokens, form.group_size)
        own = layer.dtype(part)
        types = [own] if bits == 16 else [mx.uint32, own, own]
        yield _Group(bits, heads, [(len(heads), *block) for block in blocks], types)
