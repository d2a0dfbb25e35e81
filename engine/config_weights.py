"""The weights that a config describes, where there are none to look at."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import _compressed_tensors_quantization

from engine.errors import ModelError, UnsupportedModelError
from engine.folder import DTYPE_NBYTES, Config, plain_dtype, quantization, text_config
from engine.parameters import named_parameters
from engine.wording import first_line

_Layers = list[tuple[str, Any]]

_MICROSCALED = {
    "mxfp4": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
    "mxfp8": {"group_size": 32, "bits": 8, "mode": "mxfp8"},
}
_LEFT_ALONE = ("modules_to_not_convert", "ignore", "ignored_layers")
"""Where the formats of other programs list what they do not quantize."""

_FP8_SCALE_NBYTES = 4

_TIED_LATE = ("gemma3_text", "recurrent_gemma")
"""Models of mlx-lm that share the embedding with the head unless there are weights for one."""


@dataclass(frozen=True)
class ConfigWeights:
    """What the weights of a config come to.

    Attributes:
        num_parameters: parameters of the model.
        packed_nbytes: bytes of whole numbers, which stay as they are in memory.
        num_plain_values: values that are held one by one: scales, biases, norms, unquantized weights.
        stored_nbytes: bytes of all on disk.
    """

    num_parameters: int
    packed_nbytes: int
    num_plain_values: int
    stored_nbytes: int


def config_weights(module: nn.Module, config: Config, name: str) -> ConfigWeights:
    """Return the weights that the model of a config has, and quantize its skeleton as it says.

    Raises:
        ModelError: no such weights can be.
        UnsupportedModelError: mlx-lm does not read weights that are quantized so.
    """
    _tie(module, config)
    num_parameters = sum(value.size for _, value in named_parameters(module))
    settings = quantization(config)
    if settings is not None:
        _quantize(module, settings, name)
    values = [value for _, value in named_parameters(module)]
    plain = [value for value in values if mx.issubdtype(value.dtype, mx.floating)]
    packed_nbytes = sum(value.nbytes for value in values) - sum(value.nbytes for value in plain)
    num_plain_values = sum(value.size for value in plain)
    plain_nbytes = DTYPE_NBYTES[plain_dtype(config)]
    return ConfigWeights(
        num_parameters=num_parameters,
        packed_nbytes=packed_nbytes,
        num_plain_values=num_plain_values,
        stored_nbytes=packed_nbytes
        + num_plain_values * plain_nbytes
        - _fp8_saved_nbytes(module, settings or {}, plain_nbytes),
    )


def _fp8_saved_nbytes(module: nn.Module, settings: Config, plain_nbytes: int) -> int:
    """Return by how much FP8 weights, which mlx-lm unpacks while it loads them, are smaller on disk."""
    if not _is_unpacked_fp8(settings):
        return 0
    block_shape = settings.get("weight_block_size")  # None for one scale each
    is_packed = _predicate(module, settings, group_size=1)
    saved = 0
    for path, layer in cast(_Layers, tree_flatten(module.leaf_modules(), is_leaf=nn.Module.is_module)):
        if is_packed(path, layer):
            *stacked, rows, columns = layer.weight.shape
            height, width = block_shape or (rows, columns)
            blocks = math.prod(stacked) * math.ceil(rows / height) * math.ceil(columns / width)
            saved += layer.weight.size * (plain_nbytes - 1) - blocks * _FP8_SCALE_NBYTES
    return saved


def _is_unpacked_fp8(settings: Config) -> bool:
    """Whether weights are numbers of 8 bits of a form that MLX does not compute with."""
    is_mxfp8 = settings.get("scale_fmt") == "ue8m0" and settings.get("weight_block_size") == [32, 32]
    return settings.get("quant_method") == "fp8" and not is_mxfp8


def _tie(module: nn.Module, config: Config) -> None:
    """Take the head away that mlx-lm takes away later, where it finds no weights for one."""
    parts: tuple[Any, ...] = (module, getattr(module, "language_model", None))
    for part in parts:
        decides_late = type(part).__module__.rpartition(".")[2] in _TIED_LATE
        if decides_late and text_config(config).get("tie_word_embeddings", True):
            part.sanitize({})


def _quantize(module: nn.Module, settings: Config, name: str) -> None:
    scheme = _scheme(settings, name)
    if scheme is None:
        return
    mode = scheme.get("mode", "affine")
    try:
        group_size, bits = scheme["group_size"], scheme["bits"]
        predicate = _predicate(module, settings, group_size)
        nn.quantize(module, group_size, bits, mode=mode, class_predicate=predicate)
    except Exception as error:
        reason = f"it names no {error.args[0]}" if isinstance(error, KeyError) else first_line(error)
        raise ModelError(f"{name} has a config whose quantization cannot be: {reason}.") from error


def _scheme(settings: Config, name: str) -> Config | None:
    """Return bits, group size and mode in the words of MLX; None for weights that mlx-lm unpacks."""
    method = settings.get("quant_method")
    try:
        if method is None:
            return settings
        if method == "compressed-tensors":
            scheme: Config = _compressed_tensors_quantization(settings)
            return scheme
    except ValueError as error:
        raise UnsupportedModelError(
            f"{name} is quantized in a way that mlx-lm does not read: {error}."
        ) from error
    if method in ("awq", "gptq"):
        return {"group_size": settings.get("group_size", 128), "bits": settings.get("bits", 4)}
    if method == "modelopt":
        return {"group_size": settings.get("group_size", 16), "bits": 4, "mode": "nvfp4"}
    if method == "fp8":
        return None if _is_unpacked_fp8(settings) else _MICROSCALED["mxfp8"]
    if isinstance(method, str) and method in _MICROSCALED:
        return _MICROSCALED[method]
    raise UnsupportedModelError(
        f"{name} is quantized by {method}; what its weights take cannot be told from the config alone."
    )


def _predicate(
    module: nn.Module, settings: Config, group_size: int
) -> Callable[[str, nn.Module], bool | Config]:
    """Return what says how each layer is quantized: as mlx-lm does where it makes such a model."""
    own_rule = getattr(module, "quant_predicate", None)
    is_foreign = "quant_method" in settings
    left_alone = [str(pattern) for key in _LEFT_ALONE for pattern in settings.get(key) or ()]

    def predicate(path: str, layer: Any) -> bool | Config:
        if path in settings:
            own: bool | Config = settings[path]
            return own
        if not hasattr(layer, "to_quantized") or layer.weight.shape[-1] % group_size:
            return False
        if is_foreign:
            is_kept = isinstance(layer, nn.Embedding) or path.endswith("lm_head")
            return not is_kept and not any(_covers(pattern, path) for pattern in left_alone)
        return own_rule is None or bool(own_rule(path, layer))

    return predicate


def _covers(pattern: str, path: str) -> bool:
    """Whether a pattern names a layer or something that it lies in."""
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}.*")
