"""The frame of a blob: format, header, arrays, and a checksum over all of it. It knows no files.

A blob is a fixed beginning, a header in JSON, the arrays' bytes in order, and a BLAKE2b digest of all that.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import mlx.core as mx
import numpy as np

from engine.kv.pool import Part
from engine.kv.store import PageStore
from engine.kv.words import WordArray, word_type

FORMAT_VERSION = 2
"""Changes with everything that an older program could not read."""
MAGIC = b"OctavoKV"
_START = struct.Struct("<8sHIQ")
"""Magic, format version, bytes of the header, bytes of the arrays."""
_DIGEST_NBYTES = 32
_TYPES = {str(dtype): dtype for dtype in (mx.float32, mx.float16, mx.bfloat16)}

Blob = bytes | bytearray | memoryview
Header = TypeVar("Header")


class BlobError(Exception):
    """A blob that must not be used."""


class DamagedBlobError(BlobError):
    """A blob that is not what was written."""


class ForeignBlobError(BlobError):
    """A blob of another format version, of another model, or of other page or group sizes."""


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
    def of(cls, store: PageStore, types: Mapping[int, tuple[mx.Dtype, ...]]) -> BlobFormat:
        """Return the format of a store whose layers have these activation types of keys and values."""
        layers = tuple(
            LayerFormat(number, shape.num_kv_heads, shape.key_dim, shape.value_dim, *map(str, types[number]))
            for number, shape in store.shapes.items()
        )
        return cls(layers, store.page_tokens, store.group_size)

    @functools.cached_property
    def digest(self) -> str:
        """A digest of it, and of the version of what is written, in hexadecimal digits."""
        described = json.dumps([FORMAT_VERSION, dataclasses.asdict(self)])
        return hashlib.blake2b(described.encode(), digest_size=_DIGEST_NBYTES).hexdigest()


def seal_blob(form: BlobFormat, header: Any, nbytes: int, arrays: Iterable[WordArray]) -> bytearray:
    """Return a blob whose arrays take `nbytes`, writing one array at a time.

    Args:
        form: what a reader must have as well.
        header: a dataclass of plain values and of such dataclasses; its class says what kind of blob it is.
        nbytes: of all arrays.
        arrays: their bits, in the order in which they are to be read.
    """
    fields = {"kind": type(header).__name__, "format": form.digest, "header": header}
    text = json.dumps(fields, separators=(",", ":"), default=vars).encode()
    at = _START.size + len(text)
    blob = bytearray(at + nbytes + _DIGEST_NBYTES)
    _START.pack_into(blob, 0, MAGIC, FORMAT_VERSION, len(text), nbytes)
    blob[_START.size : at] = text
    with memoryview(blob) as view:
        for array in arrays:
            target = np.frombuffer(view, dtype=array.dtype, count=array.size, offset=at)
            target.reshape(array.shape)[...] = array
            at += array.nbytes
        assert at == len(blob) - _DIGEST_NBYTES
        view[at:] = hashlib.blake2b(view[:at], digest_size=_DIGEST_NBYTES).digest()
    return blob


@dataclass(frozen=True, eq=False)
class OpenedBlob(Generic[Header]):
    """A blob whose checksum is right.

    Attributes:
        header: as it was given to `seal_blob`; dataclasses in it are dictionaries, tuples are lists.
        reader: of the arrays.
    """

    header: Header
    reader: BlobReader
    _format: str

    def require_format(self, form: BlobFormat) -> None:
        """Raise a `ForeignBlobError` unless the blob has this format."""
        if self._format != form.digest:
            raise ForeignBlobError("it has other layers, or another page or group size")


def open_blob(kind: type[Header], blob: Blob) -> OpenedBlob[Header]:
    """Check a blob whose header was of the class `kind`, but for its format.

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
        if fields["kind"] != kind.__name__:
            raise ForeignBlobError("it is of another kind")
        return OpenedBlob(kind(**fields["header"]), BlobReader(view[start:end]), str(fields["format"]))
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedBlobError("its header cannot be read") from error


class BlobReader:
    """Takes arrays out of a blob, one after another."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return len(self._content)

    def require_nbytes(self, nbytes: int) -> None:
        """Raise a `DamagedBlobError` unless the arrays take so many bytes in all."""
        if len(self._content) != nbytes:
            raise DamagedBlobError("its arrays have other sizes than its header says")

    def words(self, shape: tuple[int, ...], dtype: mx.Dtype) -> WordArray:
        """Return the bits of the next array where they lie."""
        count = math.prod(shape)
        words: WordArray = np.frombuffer(self._content, word_type(dtype), count, self._at)
        self._at += words.nbytes
        return words.reshape(shape)
