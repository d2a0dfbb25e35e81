"""Bringing the weights of a lazily loaded model into memory, in the form that suits the backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten
from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear

from engine.backend import Backend, Device
from engine.cancel import CancelToken
from engine.parameters import named_parameters
from engine.safetensors_header import StoredTensor

_PIECE_VALUES = 8 << 20
_PIECE_NBYTES = 16 << 20

_PLAIN_CLASSES: dict[type[nn.Module], type[nn.Module]] = {
    nn.QuantizedLinear: nn.Linear,
    nn.QuantizedEmbedding: nn.Embedding,
    QuantizedSwitchLinear: SwitchLinear,
}


class Placement:
    """Evaluates a model's parameters one after another.

    On the CPU everything floating becomes float32, and quantized layers become plain ones with `dequantize`;
    elsewhere parameters stay as they are.

    Args:
        backend: the device.
        dequantize: whether quantized layers become plain ones.
        stored: where parameters lie on disk, by name; they are read ahead in small pieces, because MLX reads
            a tensor in one go that cannot be stopped.
        cancel: checked between pieces and parameters.
        on_progress: told bytes done and bytes in all, as they lie on disk.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        dequantize: bool,
        stored: dict[str, StoredTensor],
        cancel: CancelToken,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._widens = backend.device is Device.CPU
        self._dequantize = dequantize
        self._stored = stored
        self._cancel = cancel
        self._on_progress = on_progress
        self._done = 0
        self._total = 0

    def place(self, model: nn.Module) -> None:
        """Evaluate all parameters of `model`, changing it in place."""
        self._total = sum(value.nbytes for _, value in named_parameters(model))
        modules = model.named_modules()
        while modules:
            # Popped, so that a quantized layer is freed once its plain form has replaced it.
            path, module = modules.pop()
            plain_class = self._plain_class(module)
            if plain_class is not None:
                plain = self._plain(path, module, plain_class)
                model.update_modules(tree_unflatten([(path, plain)]))
            else:
                self._place_own(path, module)
        mx.eval(model.parameters())

    def _plain_class(self, module: nn.Module) -> type[nn.Module] | None:
        if not self._dequantize or module.get("global_scale") is not None:
            return None
        return _PLAIN_CLASSES.get(type(module))

    def _place_own(self, path: str, module: nn.Module) -> None:
        """Evaluate the parameters that `module` holds itself, not those of modules below it."""
        for name in list(module):
            value = module[name]
            if not isinstance(value, mx.array):
                continue
            if name.startswith("_"):
                # No parameter but a table, such as rotary frequencies, that keeps its type.
                mx.eval(value)
            else:
                module[name] = self._placed(f"{path}.{name}" if path else name, value)

    def _placed(self, name: str, value: mx.array) -> mx.array:
        self._read_ahead(name)
        placed = self._widened(value)
        mx.eval(placed)
        self._count(value)
        return placed

    def _plain(self, path: str, module: Any, plain_class: type[nn.Module]) -> nn.Module:
        """Return the plain form of a quantized layer, its weight dequantized some rows at a time."""
        for name in ("weight", "scales", "biases"):
            self._read_ahead(f"{path}.{name}")
        biases = None if module.biases is None else self._widened(module.biases)
        arrays = (module.weight, self._widened(module.scales), biases)
        mx.eval(arrays)
        # Past the class's own __init__, which would make random weights.
        plain: Any = plain_class.__new__(plain_class)
        nn.Module.__init__(plain)
        plain.weight = self._dequantized(arrays, module)
        if "bias" in module:
            plain.bias = self._placed(f"{path}.bias", module.bias)
        self._count(module.weight, module.scales, module.biases)
        return cast(nn.Module, plain)

    def _dequantized(self, arrays: tuple[mx.array, mx.array, mx.array | None], module: Any) -> mx.array:
        weight, scales, biases = arrays
        shape = weight.shape
        row_values = math.prod(shape[1:]) * 32 // module.bits
        rows = max(1, _PIECE_VALUES // row_values)
        pieces = []
        for start in range(0, shape[0], rows):
            self._cancel.check()
            part = slice(start, start + rows)
            piece = mx.dequantize(
                weight[part],
                scales[part],
                None if biases is None else biases[part],
                group_size=module.group_size,
                bits=module.bits,
                mode=module.mode,
            ).astype(mx.float32)
            mx.eval(piece)
            pieces.append(piece)
        plain = mx.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        mx.eval(plain)
        return plain

    def _widened(self, value: mx.array) -> mx.array:
        if self._widens and mx.issubdtype(value.dtype, mx.floating):
            return value.astype(mx.float32)
        return value

    def _read_ahead(self, name: str) -> None:
        self._cancel.check()
        tensor = self._stored.get(name)
        if tensor is None:
            return
        with Path.open(tensor.path, "rb", buffering=0) as file:
            file.seek(tensor.offset)
            left = tensor.nbytes
            buffer = memoryview(bytearray(min(left, _PIECE_NBYTES)))
            while left > 0:
                read = file.readinto(buffer[: min(left, len(buffer))])
                if not read:
                    break
                left -= read
                self._cancel.check()

    def _count(self, *values: mx.array | None) -> None:
        self._done += sum(value.nbytes for value in values if value is not None)
        self._on_progress(self._done, self._total)
