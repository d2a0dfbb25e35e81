"""Pages as bytes: all that a page of a `PageStore` is, exactly and at its present bits, and back.

A blob needs nothing beside it but a store of the same format. The open tokens of a sequence, which are less
than a page, are a blob of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from engine.kv.blob import (
    Blob,
    BlobFormat,
    DamagedBlobError,
    LayerFormat,
    open_blob,
    seal_blob,
)
from engine.kv.page import IntArray, Page
from engine.kv.pool import Part, packed_shapes
from engine.kv.precision import KV_BITS, Tier
from engine.kv.store import PageStore

OpenArrays = dict[int, tuple[mx.array, mx.array]]
"""The open tokens' keys and values, each `[kv_heads, tokens, dim]`, by the layer's number."""


@dataclass(frozen=True)
class PageHeader:
    """What a page is beside its blocks; `key_bits` and `value_bits` are by layer and KV head."""

    tokens: Sequence[int]
    positions: Sequence[int]
    tier: str
    heat: float
    last_access: int
    key_bits: Sequence[Sequence[int]]
    value_bits: Sequence[Sequence[int]]


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


def encode_page(page: Page, form: BlobFormat, store: PageStore) -> bytearray:
    """Return a page with its tokens, positions, tier and heat."""
    header = PageHeader(
        tokens=page.tokens,
        positions=page.positions,
        tier=page.tier.value,
        heat=page.heat,
        last_access=page.last_access,
        key_bits=[page.keys[layer.number].bits.tolist() for layer in form.layers],
        value_bits=[page.values[layer.number].bits.tolist() for layer in form.layers],
    )
    nbytes = sum(group.nbytes for groups in _groups(form, header).values() for group in groups)
    arrays = (
        array
        for layer in form.layers
        for part in Part
        for _, _, packed in store.packed_blocks(page, layer.number, part)
        for array in packed
    )
    return seal_blob(form, header, nbytes, arrays)


def decode_page(blob: Blob, form: BlobFormat, store: PageStore) -> Page:
    """Put a page into a store of this format; every block has the bits that it had. It has no reference yet.

    Raises:
        BlobError: the blob must not be used; the store is as it was.
    """
    header, reader = open_blob(form, PageHeader, blob)
    _require_sound(form, header)
    groups = _groups(form, header)
    reader.require_nbytes(sum(group.nbytes for of_part in groups.values() for group in of_part))

    def blocks(layer: int, part: Part) -> Iterator[tuple[int, IntArray, list[mx.array]]]:
        for group in groups[layer, part]:
            arrays = [reader.array(*each) for each in zip(group.shapes, group.types, strict=True)]
            yield group.bits, group.heads, arrays

    page = Page(-1, tuple(header.tokens), tuple(header.positions), Tier(header.tier))
    page.heat, page.last_access = header.heat, header.last_access
    return store.adopt(page, blocks)


def encode_open(header: OpenHeader, arrays: OpenArrays, form: BlobFormat) -> bytearray:
    """Return tokens that no page holds yet, with their keys and values."""
    ordered = [array for layer in form.layers for array in arrays[layer.number]]
    return seal_blob(form, header, sum(array.nbytes for array in ordered), ordered)


def decode_open(blob: Blob, form: BlobFormat) -> tuple[OpenHeader, OpenArrays]:
    """Return open tokens and their keys and values.

    Raises:
        BlobError: the blob must not be used.
    """
    header, reader = open_blob(form, OpenHeader, blob)
    count = len(header.tokens)
    shapes = {
        (layer.number, part): ((layer.num_kv_heads, count, layer.dim(part)), layer.dtype(part))
        for layer in form.layers
        for part in Part
    }
    reader.require_nbytes(sum(math.prod(shape) * dtype.size for shape, dtype in shapes.values()))
    arrays = {}
    for layer in form.layers:
        keys, values = (reader.array(*shapes[layer.number, part]) for part in Part)
        arrays[layer.number] = keys, values
    return header, arrays


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


def _groups(form: BlobFormat, header: PageHeader) -> dict[tuple[int, Part], list[_Group]]:
    """Return the blocks of each layer's keys and values, in the order in which a store yields them."""
    groups = {}
    for layer, *bits_of in zip(form.layers, header.key_bits, header.value_bits, strict=True):
        for part, bits in zip(Part, bits_of, strict=True):
            groups[layer.number, part] = list(_groups_of(form, layer, part, np.array(bits)))
    return groups


def _groups_of(form: BlobFormat, layer: LayerFormat, part: Part, held: IntArray) -> Iterator[_Group]:
    for bits in np.unique(held).tolist():
        heads = np.flatnonzero(held == bits)
        blocks = packed_shapes(part, bits, layer.dim(part), form.page_tokens, form.group_size)
        own = layer.dtype(part)
        types = [own] if bits == 16 else [mx.uint32, own, own]
        yield _Group(bits, heads, [(len(heads), *block) for block in blocks], types)
