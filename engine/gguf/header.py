"""The header of a GGUF file: metadata and the list of tensors, no weights.

The layout is ggml's (ggml/docs/gguf.md), versions 2 and 3, little-endian.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.cancel import CancelToken
from engine.errors import ModelError, UnsupportedModelError
from engine.gguf.tensor_types import TensorType, tensor_type

MAGIC = b"GGUF"
SUPPORTED_VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32

_SCALARS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_STRING = 8
_ARRAY = 9
_COUNT = _SCALARS[10]
_TYPE = _SCALARS[4]

_STRINGS_PER_CHECK = 10_000

Scalar = bool | int | float | str
MetadataValue = Scalar | list[Scalar]


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies: `shape` has the rows first, as MLX counts; `offset` is from the file's start."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def row_nbytes(self) -> int:
        """Bytes of one row, the last axis."""
        return self.shape[-1] // self.type.block_values * self.type.block_nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor in the file."""
        return self.size // self.type.block_values * self.type.block_nbytes


@dataclass(frozen=True)
class GGUFHeader:
    """What a GGUF file says about itself before its weights."""

    path: Path
    metadata: dict[str, MetadataValue]
    tensors: dict[str, TensorInfo]

    @property
    def weights_nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number; a list of equal numbers (one a layer) counts as one."""
        value = self._value(key, default)
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnsupportedModelError(
                f"{self.path.name} gives {key} as {_excerpt(value)}; Octavo can use one whole number only."
            )
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"{self.path.name} is damaged: {key} is {_excerpt(value)}, not a number.")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise ModelError(f"{self.path.name} is damaged: {key} is {_excerpt(value)}, not text.")
        return value

    def items(self, key: str) -> list[Scalar]:
        """Return a list; empty when the key is missing."""
        value = self.metadata.get(key, [])
        if not isinstance(value, list):
            raise ModelError(f"{self.path.name} is damaged: {key} is {_excerpt(value)}, not a list.")
        return value

    def _value(self, key: str, default: MetadataValue | None) -> MetadataValue:
        value = self.metadata.get(key, default)
        if value is None:
            raise ModelError(f"{self.path.name} is incomplete: its metadata has no {key}.")
        return value


def read_header(path: Path, cancel: CancelToken | None = None) -> GGUFHeader:
    """Read the header of a GGUF file and check that all of its tensors lie inside the file.

    Raises:
        ModelError: not a GGUF file, damaged or truncated.
        UnsupportedModelError: another version or byte order, or a quantization that is not read.
    """
    try:
        with path.open("rb") as file:
            return _Parser(path, file, cancel or CancelToken()).parse()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error


class _Parser:
    """Reads one header; every length is checked against the bytes that are left before it is believed."""

    def __init__(self, path: Path, file: BinaryIO, cancel: CancelToken) -> None:
        self._path = path
        self._file = file
        self._cancel = cancel
        self._nbytes = path.stat().st_size
        self._position = 0

    def parse(self) -> GGUFHeader:
        self._check_start()
        num_tensors = self._count()
        metadata = dict(self._pair() for _ in range(self._count()))
        entries = [self._tensor_entry() for _ in range(num_tensors)]
        start = self._data_start(metadata)
        tensors = {name: self._place(name, shape, type_id, start + offset)
                   for name, shape, type_id, offset in entries}  # fmt: skip
        return GGUFHeader(self._path, metadata, tensors)

    def _check_start(self) -> None:
        name = self._path.name
        if self._nbytes == 0:
            raise ModelError(f"{name} is empty.")
        if self._file.read(len(MAGIC)) != MAGIC:
            raise ModelError(f"{name} is not a GGUF file.")
        self._position = len(MAGIC)
        raw = self._take(_TYPE.size)
        version: int = _TYPE.unpack(raw)[0]
        if int.from_bytes(raw, "big") in SUPPORTED_VERSIONS:
            raise UnsupportedModelError(
                f"{name} is a big-endian GGUF file; only little-endian files can be read."
            )
        if version not in SUPPORTED_VERSIONS:
            raise UnsupportedModelError(
                f"{name} is GGUF version {version}; Octavo reads 2 and 3. Get a newer file of this model."
            )

    def _data_start(self, metadata: dict[str, MetadataValue]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment <= 0:
            raise self._damaged()
        return math.ceil(self._position / alignment) * alignment

    def _place(self, name: str, shape: tuple[int, ...], type_id: int, offset: int) -> TensorInfo:
        kind = tensor_type(type_id, name, self._path)
        if not shape or 0 in shape or shape[-1] % kind.block_values:
            raise self._damaged()
        tensor = TensorInfo(name, shape, kind, offset)
        if offset + tensor.nbytes > self._nbytes:
            raise ModelError(
                f"{self._path.name} is incomplete: it ends before the weights do. Download or copy it again."
            )
        return tensor

    def _tensor_entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        num_dimensions: int = self._scalar(4)
        if num_dimensions > 4:
            raise self._damaged()
        shape = tuple(self._count_value() for _ in range(num_dimensions))
        type_id: int = self._scalar(4)
        return name, shape[::-1], type_id, self._count_value()

    def _pair(self) -> tuple[str, MetadataValue]:
        self._cancel.check()
        key = self._string()
        return key, self._value(self._scalar(4))

    def _value(self, type_id: int) -> MetadataValue:
        if type_id == _ARRAY:
            return self._array(self._scalar(4))
        if type_id == _STRING:
            return self._string()
        value: Scalar = self._scalar(type_id)
        return value

    def _array(self, type_id: int) -> list[Scalar]:
        if type_id == _STRING:
            return self._strings(self._count())
        layout = self._layout(type_id)
        count = self._count(layout.size)
        return list(struct.unpack(f"<{count}{layout.format[1:]}", self._take(count * layout.size)))

    def _strings(self, count: int) -> list[Scalar]:
        strings: list[Scalar] = []
        for index in range(count):
            if index % _STRINGS_PER_CHECK == 0:
                self._cancel.check()
            strings.append(self._string())
        return strings

    def _string(self) -> str:
        return self._take(self._count()).decode("utf-8", errors="replace")

    def _count(self, item_nbytes: int = 1) -> int:
        """Read how many items follow; each takes at least `item_nbytes`."""
        count = self._count_value()
        if count * item_nbytes > self._nbytes - self._position:
            raise self._damaged()
        return count

    def _count_value(self) -> int:
        value: int = _COUNT.unpack(self._take(_COUNT.size))[0]
        return value

    def _scalar(self, type_id: int) -> int:
        layout = self._layout(type_id)
        value: int = layout.unpack(self._take(layout.size))[0]
        return value

    def _layout(self, type_id: int) -> struct.Struct:
        layout = _SCALARS.get(type_id)
        if layout is None:
            raise self._damaged()
        return layout

    def _take(self, nbytes: int) -> bytes:
        data = self._file.read(nbytes)
        if len(data) != nbytes:
            raise self._damaged()
        self._position += nbytes
        return data

    def _damaged(self) -> ModelError:
        return ModelError(f"{self._path.name} is damaged or incomplete. Download or copy it again.")


def _excerpt(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
