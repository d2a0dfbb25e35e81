"""The headers of safetensors files: which tensors lie where, no weights."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ModelError

_MAX_HEADER_NBYTES = 100_000_000
"""The limit of the safetensors format itself."""


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies: `dtype` is as safetensors names it (`BF16`), `offset` from the file's start."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int

    @property
    def size(self) -> int:
        """Number of stored values."""
        return math.prod(self.shape)

    @property
    def is_packed(self) -> bool:
        """Whether the values are whole numbers, which stay as they are in memory."""
        return not self.dtype.startswith(("F", "BF"))


def read_folder(folder: Path) -> dict[str, StoredTensor]:
    """Return all tensors of a model folder by name.

    Raises:
        ModelError: files that are missing, damaged or cut off.
    """
    _require_shards(folder)
    tensors: dict[str, StoredTensor] = {}
    # mlx-lm reads the same pattern.
    for path in sorted(folder.glob("model*.safetensors")):
        tensors.update(_read_file(path))
    if not tensors:
        raise ModelError(f"{folder.name} has no weights: there is no model.safetensors in the folder.")
    return tensors


def _require_shards(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{folder.name} has a damaged {index.name}. Download it again.") from error
    missing = sorted(name for name in names if not (folder / str(name)).exists())
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelError(f"{folder.name} is incomplete: {missing[0]}{more} is missing. Download it again.")


def _read_file(path: Path) -> dict[str, StoredTensor]:
    damaged = ModelError(f"{path.parent.name} has a damaged {path.name}. Download it again.")
    try:
        nbytes = path.stat().st_size
        with path.open("rb") as file:
            header_nbytes = int.from_bytes(file.read(8), "little")
            if header_nbytes > min(nbytes, _MAX_HEADER_NBYTES):
                raise damaged
            entries = json.loads(file.read(header_nbytes))
        start = 8 + header_nbytes
        tensors = {
            name: _stored(path, start, entry) for name, entry in entries.items() if name != "__metadata__"
        }
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged from error
    if any(tensor.offset + tensor.nbytes > nbytes for tensor in tensors.values()):
        raise ModelError(f"{path.parent.name} is incomplete: {path.name} is cut off. Download it again.")
    return tensors


def _stored(path: Path, start: int, entry: dict[str, object]) -> StoredTensor:
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list):
        raise TypeError("shape and data_offsets are lists")
    begin, end = (int(offset) for offset in offsets)
    return StoredTensor(
        path, str(entry["dtype"]), tuple(int(size) for size in shape), start + begin, end - begin
    )
