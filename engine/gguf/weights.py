"""Reading the tensors of a GGUF file into MLX arrays, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import mlx.core as mx
import numpy as np

from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.gguf.header import GGUFHeader, TensorInfo
from engine.gguf.tensor_types import GROUP_SIZE, Bytes, Groups, plain_values

PIECE_NBYTES = 4 << 20
"""Read at once: small enough to stop within a few hundredths of a second, large enough for full speed."""


@dataclass(frozen=True)
class TensorReader:
    """Reads tensors of one open GGUF file.

    Attributes:
        header: the file's header.
        file: the open file.
        dequantize: whether quantized tensors become plain ones.
        dtype: type of plain values and of scales and biases.
        cancel: checked between pieces.
        on_bytes: told the bytes of each piece that was read.
    """

    header: GGUFHeader
    file: BinaryIO
    dequantize: bool
    dtype: mx.Dtype
    cancel: CancelToken
    on_bytes: Callable[[int], None]

    def read(self, tensor: TensorInfo, parameter: str) -> dict[str, mx.array]:
        """Return a tensor's evaluated arrays by parameter name: one, or weight, scales and biases."""
        if self.keeps_quantized(tensor):
            names = [
                parameter,
                *(f"{parameter.removesuffix('.weight')}.{part}" for part in ("scales", "biases")),
            ]
            pieces = [self._quantized(tensor, rows) for rows in self._pieces(tensor)]
        else:
            names = [parameter]
            pieces = [(self._plain(tensor, rows),) for rows in self._pieces(tensor)]
        arrays = [
            mx.concatenate(list(parts)) if len(parts) > 1 else parts[0] for parts in zip(*pieces, strict=True)
        ]
        arrays = [array.reshape(*tensor.shape[:-1], -1) for array in arrays]
        mx.eval(arrays)
        return dict(zip(names, arrays, strict=True))

    def keeps_quantized(self, tensor: TensorInfo) -> bool:
        """Whether a tensor stays quantized in memory."""
        return tensor.type.is_quantized and not self.dequantize and len(tensor.shape) == 2

    def _pieces(self, tensor: TensorInfo) -> Iterator[Bytes]:
        """Yield the tensor's bytes, `[rows, row_nbytes]`, a few rows at a time."""
        rows_left = math.prod(tensor.shape[:-1])
        rows_at_once = max(1, PIECE_NBYTES // tensor.row_nbytes)
        self.file.seek(tensor.offset)
        while rows_left:
            self.cancel.check()
            rows = min(rows_at_once, rows_left)
            data = self.file.read(rows * tensor.row_nbytes)
            if len(data) != rows * tensor.row_nbytes:
                raise ModelError(f"{self.header.path.name} could not be read to its end.")
            rows_left -= rows
            yield np.frombuffer(data, np.uint8).reshape(rows, tensor.row_nbytes)
            self.on_bytes(len(data))

    def _plain(self, tensor: TensorInfo, rows: Bytes) -> mx.array:
        if tensor.type.is_quantized:
            return self._array(_groups(tensor, rows).dequantize())
        return self._array(plain_values(rows, tensor.type))

    def _quantized(self, tensor: TensorInfo, rows: Bytes) -> tuple[mx.array, ...]:
        groups = _groups(tensor, rows)
        if groups.values.shape[-1] == GROUP_SIZE:
            parts = (mx.array(groups.packed()), self._array(groups.scales), self._array(groups.biases))
        else:
            plain = mx.array(groups.dequantize())
            weight, scales, biases = mx.quantize(plain, GROUP_SIZE, tensor.type.mlx_bits)
            parts = (weight, scales.astype(self.dtype), biases.astype(self.dtype))
        mx.eval(parts)
        return parts

    def _array(self, values: np.ndarray) -> mx.array:
        array = mx.array(values).astype(self.dtype)
        mx.eval(array)
        return array


def _groups(tensor: TensorInfo, rows: Bytes) -> Groups:
    assert tensor.type.unpack is not None
    return tensor.type.unpack(rows.reshape(len(rows), -1, tensor.type.block_nbytes))
