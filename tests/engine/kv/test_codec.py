"""Pages as bytes: they come back bit for bit, or they are refused."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.blob import BlobError, BlobFormat, DamagedBlobError, ForeignBlobError
from engine.kv.codec import OpenHeader, decode_open, encode_open, encode_page, open_page, place_pages
from engine.kv.page import Blocks, Page
from engine.kv.pool import Part
from engine.kv.precision import KV_BITS, KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from tests.engine.kv.random_pages import bits_of, random_kv, store_of

SHAPES = (LayerShape(2, 32, 32), LayerShape(1, 80, 72))
MIXED = KVSpec.parse("16, 0.h0:k6v3, 1:k5v2; page=64, group=32")
TYPES = (mx.float32, mx.float16, mx.bfloat16)
DIGEST_NBYTES = 32
VERSION_AT = 8
"""Where the format version stands, two bytes behind the magic."""


def sealed_page(store: PageStore, spec: KVSpec, dtype: mx.Dtype, tier: Tier = Tier.COLD) -> Page:
    """Seal a page of 50 tokens in a type, with all that a page knows."""

    def arrays(layer: int) -> tuple[mx.array, mx.array]:
        keys, values = random_kv(store.shapes[layer], store.page_tokens, layer)
        return mx.array(keys).astype(dtype), mx.array(values).astype(dtype)

    page = store.seal(range(7, 57), range(100, 150), arrays, tier, spec)
    page.parent, page.salt = bytes(range(32)), bytes(range(16))
    store.retain(page)
    return page


def format_of(store: PageStore, dtype: mx.Dtype = mx.float32) -> BlobFormat:
    return BlobFormat.of(store, dict.fromkeys(store.shapes, (dtype, dtype)))


def decode_page(blob: bytes | bytearray, form: BlobFormat, store: PageStore, model: str = "") -> Page:
    """Put the page of a blob into a store, as a new one without a reference."""
    opened = open_page(blob, form, model)
    header = opened.header
    page = Page(store.new_number(), tuple(header.tokens), tuple(header.positions), Tier(header.tier))
    page.parent, page.salt = bytes.fromhex(header.parent), bytes.fromhex(header.salt)
    for layer in form.layers:
        for of_part in (page.keys, page.values):
            of_part[layer.number] = Blocks(*np.full((2, layer.num_kv_heads), -1))
    place_pages([(page, opened)], store)
    assert page.chain == opened.chain
    return page


def words(array: mx.array) -> np.ndarray:
    """Return the bits of all numbers."""
    return np.array(array.view(mx.uint32 if array.dtype.size == 4 else mx.uint16))


def blocks(store: PageStore, page: Page) -> list[np.ndarray]:
    """Return everything that the pools have of a page, as it lies there."""
    return [
        words(array)
        for layer in store.shapes
        for part, held in zip(Part, (page.keys[layer], page.values[layer]), strict=True)
        for bits in np.unique(held.bits).tolist()
        for array in store.pool(layer, part, bits).packed(mx.array(held.slots[held.bits == bits]))
    ]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bits", [*KV_BITS, str(MIXED)])
def test_a_page_comes_back_bit_for_bit(bits: int | str, dtype: mx.Dtype) -> None:
    spec = MIXED if bits == str(MIXED) else KVSpec.parse(f"{bits}; page=64, group=32")
    store, other = store_of(spec, *SHAPES), store_of(spec, *SHAPES)
    page = sealed_page(store, spec, dtype)
    form = format_of(store, dtype)
    back = decode_page(encode_page(page, form, store), form, other)
    assert [bits_of(back, layer) for layer in (0, 1)] == [bits_of(page, layer) for layer in (0, 1)]
    for one, two in zip(blocks(store, page), blocks(other, back), strict=True):
        assert np.array_equal(one, two)
    for layer in (0, 1):
        for one, two in zip(store.read(page, layer), other.read(back, layer), strict=True):
            assert one.dtype == two.dtype == dtype
            assert np.array_equal(words(one), words(two))
    known = ("tokens", "positions", "tier", "parent", "salt", "chain", "nbytes", "references")
    other.retain(back)
    assert [getattr(back, name) for name in known] == [getattr(page, name) for name in known]


def test_numbers_that_equal_nothing_come_back_too() -> None:
    spec = KVSpec.parse("16; page=64")
    store, other = store_of(spec, LayerShape(1, 32, 32)), store_of(spec, LayerShape(1, 32, 32))
    odd = mx.broadcast_to(mx.array([float("nan"), float("-inf"), -0.0, 1e-40] * 16), (1, 32, 64))
    page = store.seal(range(64), range(64), lambda _: (odd, odd.swapaxes(1, 2)), Tier.HOT, spec)
    form = format_of(store)
    back = decode_page(encode_page(page, form, store), form, other)
    for one, two in zip(blocks(store, page), blocks(other, back), strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("bits", KV_BITS)
def test_a_blob_is_hardly_larger_than_its_page(bits: int) -> None:
    """With the shapes of a real model of 135 million parameters."""
    spec = KVSpec.parse(f"{bits}")
    store = store_of(spec, *[LayerShape(3, 64, 64)] * 30)
    page = sealed_page(store, spec, mx.float32)
    assert page.nbytes < len(encode_page(page, format_of(store), store)) <= 1.05 * page.nbytes


@pytest.mark.parametrize("dtype", TYPES)
def test_open_tokens_come_back_bit_for_bit(dtype: mx.Dtype) -> None:
    store = store_of(MIXED, *SHAPES)
    form = format_of(store, dtype)
    arrays = {}
    for layer, shape in enumerate(SHAPES):
        keys, values = (mx.array(array).astype(dtype) for array in random_kv(shape, 64, layer))
        arrays[layer] = keys.swapaxes(1, 2)[:, 3:20], values[:, 3:20]  # views, as a cache has them
    header, back = decode_open(encode_open(OpenHeader([4] * 17, list(range(17))), arrays, form), form)
    assert (header.tokens, header.positions) == ([4] * 17, list(range(17)))
    for layer in arrays:
        for one, two in zip(arrays[layer], back[layer], strict=True):
            assert one.dtype == two.dtype
            assert np.array_equal(words(mx.contiguous(one)), words(two))


# What is refused.


@cache
def good() -> tuple[PageStore, Page, BlobFormat, bytes]:
    store = store_of(MIXED, *SHAPES)
    page = sealed_page(store, MIXED, mx.float32)
    form = format_of(store)
    return store, page, form, bytes(encode_page(page, form, store))


@cache
def good_open() -> bytes:
    arrays = {
        layer: (
            mx.ones((shape.num_kv_heads, 3, shape.key_dim)),
            mx.ones((shape.num_kv_heads, 3, shape.value_dim)),
        )
        for layer, shape in enumerate(SHAPES)
    }
    return bytes(encode_open(OpenHeader([1, 2, 3], [0, 1, 2]), arrays, good()[2]))


def refused(blob: bytes, form: BlobFormat, error: type[BlobError]) -> None:
    """Expect a blob to be refused as a page, with the store as it was."""
    store = store_of(MIXED, *SHAPES)
    with pytest.raises(error):
        decode_page(blob, form, store)
    assert (store.pages, store.nbytes) == (set(), 0)


def resealed(blob: bytes) -> bytes:
    """Return a changed blob with the checksum that it should have."""
    content = blob[:-DIGEST_NBYTES]
    return content + hashlib.blake2b(content, digest_size=DIGEST_NBYTES).digest()


@settings(max_examples=300)
@given(data=st.data(), mask=st.integers(1, 255))
def test_any_changed_byte_is_refused(data: st.DataObject, mask: int) -> None:
    _, _, form, blob = good()
    header_nbytes = blob.index(b"}}") + 2
    places = st.one_of(
        st.integers(0, header_nbytes),
        st.integers(0, len(blob) - 1),
        st.integers(len(blob) - DIGEST_NBYTES, len(blob) - 1),
    )
    changed = bytearray(blob)
    changed[data.draw(places)] ^= mask
    refused(bytes(changed), form, BlobError)


@settings(max_examples=60)
@given(data=st.data(), mask=st.integers(1, 255))
def test_any_changed_byte_of_open_tokens_is_refused(data: st.DataObject, mask: int) -> None:
    changed = bytearray(good_open())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= mask
    with pytest.raises(BlobError):
        decode_open(changed, good()[2])


@settings(max_examples=100)
@given(data=st.data())
def test_a_cut_blob_is_refused(data: st.DataObject) -> None:
    _, _, form, blob = good()
    refused(blob[: data.draw(st.integers(0, len(blob) - 1))], form, DamagedBlobError)


def test_what_is_appended_or_empty_is_refused() -> None:
    _, _, form, blob = good()
    for wrong in (blob + b"\0", blob + blob, b"", b"\0" * 4096):
        refused(wrong, form, DamagedBlobError)


def test_a_blob_of_another_version_is_refused_although_its_checksum_is_right() -> None:
    _, _, form, blob = good()
    changed = bytearray(blob)
    changed[VERSION_AT] += 1
    refused(resealed(bytes(changed)), form, ForeignBlobError)


def test_a_blob_of_another_model_or_layout_is_refused() -> None:
    _, _, form, blob = good()
    first, second = form.layers
    for other in (
        dataclasses.replace(form, page_tokens=128),
        dataclasses.replace(form, group_size=64),
        dataclasses.replace(form, layers=(first,)),
        dataclasses.replace(form, layers=(second, first)),
        dataclasses.replace(form, layers=(dataclasses.replace(first, key_dim=64), second)),
        dataclasses.replace(form, layers=(dataclasses.replace(first, num_kv_heads=1), second)),
        dataclasses.replace(form, layers=(first, dataclasses.replace(second, value_type=str(mx.float16)))),
    ):
        refused(blob, other, ForeignBlobError)


def test_open_tokens_are_no_page_and_a_page_no_open_tokens() -> None:
    _, _, form, blob = good()
    refused(good_open(), form, ForeignBlobError)
    with pytest.raises(ForeignBlobError):
        decode_open(blob, form)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b'"key_bits":[[6,16],[5]]', b'"key_bits":[[7,16],[5]]'),
        (b'"key_bits":[[6,16],[5]]', b'"key_bits":[[5,16],[5]]'),
        (b'"key_bits":[[6,16],[5]]', b'"key_bits":[[6],[16,5]]'),
        (b'"tokens":[7,8,', b'"tokens":[7+8,'),
        (b'"tokens":[7,8,', b'"tokens":[    8,'),
        (b'"tier":"cold"', b'"tier":"lost"'),
        (b'"tier":', b'"hier":'),
    ],
)
def test_a_header_that_no_page_can_have_is_refused(written: bytes, instead: bytes) -> None:
    """Whatever its checksum says."""
    _, _, form, blob = good()
    assert written in blob
    refused(resealed(blob.replace(written, instead.ljust(len(written)))), form, DamagedBlobError)
