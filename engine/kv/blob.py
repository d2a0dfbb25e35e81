"""The frame of a blob: format, header, arrays, and a checksum over all of it. It knows no files.

A blob is a fixed beginning, a header in JSON, the arrays' bytes in order, and a BLAKE2b digest of all that.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import mlx.core as mx
import numpy as np

from engine.kv.pool import Part
from engine.kv.store import PageStore

FORMAT_VERSION = 1
"""Changes with everything that an older program could not read."""
MAGIC = b"OctavoKV"
_START = struct.Struct("<8sHIQ")
"""Magic, format version, bytes of the header, bytes of the arrays."""
_DIGEST_NBYTES = 32
_TYPES = {str(dtype): dtype for dtype in (mx.float32, mx.float16, mx.bfloat16)}
_WORDS: dict[int, tuple[mx.Dtype, type[np.uint16 | np.uint32]]] = {
    2: (mx.uint16, np.uint16),
    4: (mx.uint32, np.uint32),
}
"""Integers with as many bytes as a number, so that every bit of it survives."""

Blob = bytes | bytearray | memoryview
Header = TypeVar("Header")


class BlobError(Exception):
    """A blob that must not be used."""


class DamagedBlobError(BlobError):
    """A blob that is not what was written."""


class ForeignBlobError(BlobError):
    """A blob of another format version, of another model's shapes, or of other page or group sizes."""


@dataclass(frozen=True)
class LayerFormat:
    """What a paged layer has for a token: heads, dimensions and activation types of keys and of values."""

    number: int
    num_kv_heads: int
    key_dim: int
    value_dim: int
    key_type: str
    value_type: str

    def dim(self, part: Part) -> int:
        """Return how many numbers a key or a value has."""
        return self.key_dim if part is Part.KEYS else self.value_dim

    def dtype(self, part: Part) -> mx.Dtype:
        """Return the activation type of keys or values."""
        return _TYPES[self.key_type if part is Part.KEYS else self.value_type]


@dataclass(frozen=True)
class BlobFormat:
    """What all blobs of a sequence have in common; only a store of the same format takes them."""

    layers: tuple[LayerFormat, ...]
    page_tokens: int
    group_size: int

    @classmethod
    def of(cls, store: PageStore, types: Mapping[int, tuple[mx.Dtype, mx.Dtype]]) -> BlobFormat:
        """Return the format of a store whose layers have these activation types of keys and values."""
        layers = tuple(
            LayerFormat(number, shape.num_kv_heads, shape.key_dim, shape.value_dim, *map(str, types[number]))
            for number, shape in store.shapes.items()
        )
        return cls(layers, store.page_tokens, store.group_size)


def seal_blob(form: BlobFormat, header: Any, nbytes: int, arrays: Iterable[mx.array]) -> bytearray:
    """Return a blob whose arrays take `nbytes`, writing one array at a time.

    Args:
        form: what a reader must have as well.
        header: a dataclass of plain values; its class says what kind of blob it is.
        nbytes: of all arrays.
        arrays: in the order in which they are to be read.
    """
    fields = _described(form, type(header)) | {"header": dataclasses.asdict(header)}
    text = json.dumps(fields, separators=(",", ":")).encode()
    at = _START.size + len(text)
    blob = bytearray(at + nbytes + _DIGEST_NBYTES)
    _START.pack_into(blob, 0, MAGIC, FORMAT_VERSION, len(text), nbytes)
    blob[_START.size : at] = text
    with memoryview(blob) as view:
        for array in arrays:
            integer, word = _WORDS[array.dtype.size]
            target = np.frombuffer(view, dtype=word, count=array.size, offset=at)
            target[:] = np.array(mx.contiguous(array).view(integer)).ravel()
            at += array.nbytes
        assert at == len(blob) - _DIGEST_NBYTES
        view[at:] = hashlib.blake2b(view[:at], digest_size=_DIGEST_NBYTES).digest()
    return blob


def open_blob(form: BlobFormat, kind: type[Header], blob: Blob) -> tuple[Header, BlobReader]:
    """Check a blob whose header was of the class `kind`; return that header and a reader of the arrays.

    Raises:
        BlobError: it must not be used.
    """
    view = memoryview(blob)
    if len(view) < _START.size + _DIGEST_NBYTES:
        raise DamagedBlobError("it ends too early")
    magic, version, header_nbytes, nbytes = _START.unpack_from(view)
    if magic != MAGIC:
        raise DamagedBlobError("it does not begin like a page")
    if version != FORMAT_VERSION:
        raise ForeignBlobError(f"it has format {version}, this program reads {FORMAT_VERSION}")
    start, end = _START.size + header_nbytes, len(view) - _DIGEST_NBYTES
    if start + nbytes != end:
        raise DamagedBlobError("it has another length than it says")
    if hashlib.blake2b(view[:end], digest_size=_DIGEST_NBYTES).digest() != view[end:]:
        raise DamagedBlobError("its checksum is wrong")
    try:
        fields = json.loads(bytes(view[_START.size : start]))
        written = fields.pop("header")
        if fields != json.loads(json.dumps(_described(form, kind))):
            raise ForeignBlobError("it is of another kind, other layers, or another page or group size")
        return kind(**written), BlobReader(view[start:end])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedBlobError("its header cannot be read") from error


def _described(form: BlobFormat, kind: type) -> dict[str, Any]:
    return {"kind": kind.__name__, "format": dataclasses.asdict(form)}


class BlobReader:
    """Takes arrays out of a blob, one after another."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def require_nbytes(self, nbytes: int) -> None:
        """Raise a `DamagedBlobError` unless the arrays take so many bytes in all."""
        if len(self._content) != nbytes:
            raise DamagedBlobError("its arrays have other sizes than its header says")

    def array(self, shape: tuple[int, ...], dtype: mx.Dtype) -> mx.array:
        """Return the next array."""
        _, word = _WORDS[dtype.size]
        count = math.prod(shape)
        words = np.frombuffer(self._content, dtype=word, count=count, offset=self._at)
        self._at += count * dtype.size
        return mx.array(words.reshape(shape)).view(dtype)
