"""Building an mlx-lm model from a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import llama, qwen2, qwen3

from engine.cancel import CancelToken
from engine.errors import ModelError, UnsupportedModelError
from engine.gguf.architecture import ROPE_FACTORS, architecture_of, model_config
from engine.gguf.header import GGUFHeader
from engine.gguf.tensor_types import GROUP_SIZE
from engine.gguf.weights import TensorReader
from engine.parameters import named_parameters

_MODULES: dict[str, Any] = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3}


class FactorRoPE(nn.Module):
    """Rotary positions whose frequencies are divided by given factors, as in Llama 3.1.

    Args:
        dims: values of a head.
        base: base of the frequencies.
        traditional: whether pairs lie side by side.
        factors: divisors, `[dims / 2]`.
    """

    def __init__(self, dims: int, base: float, traditional: bool, factors: mx.array) -> None:
        nn.Module.__init__(self)
        self._dims = dims
        self._traditional = traditional
        self._freqs = base ** (mx.arange(0, dims, 2, dtype=mx.float32) / dims) * factors.astype(mx.float32)
        mx.eval(self._freqs)

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        """Rotate `x`, `[..., length, dims]`, from position `offset` on."""
        return mx.fast.rope(
            x,
            self._dims,
            traditional=self._traditional,
            base=None,
            scale=1.0,
            offset=offset,
            freqs=self._freqs,
        )


def build_model(
    header: GGUFHeader,
    *,
    activations: mx.Dtype | None,
    dequantize: bool,
    cancel: CancelToken,
    on_bytes: Callable[[int], None],
) -> nn.Module:
    """Return the model of a GGUF file with all weights in memory.

    Args:
        header: the file's header.
        activations: type of activations; None for the architecture's own 16-bit type.
        dequantize: whether quantized weights become plain ones of that type.
        cancel: checked between pieces of a few megabytes.
        on_bytes: told the bytes of each piece that was read.
    """
    architecture = architecture_of(header)
    config = model_config(header)
    dtype = activations or getattr(mx, architecture.dtype)
    module_of = _MODULES[architecture.model_type]
    model: nn.Module = module_of.Model(module_of.ModelArgs.from_dict(config))
    weights: dict[str, mx.array] = {}
    bits: dict[str, int | None] = {}
    with header.path.open("rb") as file:
        reader = TensorReader(header, file, dequantize, dtype, cancel, on_bytes)
        for tensor in sorted(header.tensors.values(), key=lambda tensor: tensor.offset):
            if tensor.name == ROPE_FACTORS:
                _set_rope(model, config, reader.read(tensor, ROPE_FACTORS)[ROPE_FACTORS])
                continue
            name = architecture.parameter_name(tensor.name)
            if name is None:
                raise UnsupportedModelError(
                    f"{header.path.name} has a tensor {tensor.name}, which Octavo does not know in a "
                    f"{architecture.model_type} model."
                )
            weights.update(reader.read(tensor, name))
            if reader.keeps_quantized(tensor):
                bits[name.removesuffix(".weight")] = tensor.type.mlx_bits
    _quantize_layers(model, bits)
    _load(model, weights, header)
    return model.eval()


def _set_rope(model: nn.Module, config: dict[str, Any], factors: mx.array) -> None:
    rope = FactorRoPE(config["head_dim"], config["rope_theta"], config["rope_traditional"], factors)
    for layer in model.layers:
        layer.self_attn.rope = rope


def _quantize_layers(model: nn.Module, bits: dict[str, int | None]) -> None:
    """Give the layers that stay quantized their quantized form; their weights come later."""
    nn.quantize(
        model,
        group_size=GROUP_SIZE,
        class_predicate=lambda path, _: (
            {"group_size": GROUP_SIZE, "bits": bits[path]} if path in bits else False
        ),
    )


def _load(model: nn.Module, weights: dict[str, mx.array], header: GGUFHeader) -> None:
    expected = {name: value.shape for name, value in named_parameters(model)}
    for name in expected.keys() - weights.keys():
        raise ModelError(f"{header.path.name} is incomplete: it lacks the weights of {name}.")
    for name, value in weights.items():
        if name not in expected:
            raise UnsupportedModelError(
                f"{header.path.name} has weights for {name}, which mlx-lm's model has no place for."
            )
        if value.shape != expected[name]:
            raise ModelError(
                f"{header.path.name} is damaged: {name} has the shape {value.shape}, not {expected[name]}."
            )
    model.load_weights(list(weights.items()))
