"""The weights that a config describes, where there are none to look at."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import _compressed_tensors_quantization

from engine.errors import ModelError, UnsupportedModelError
from engine.folder import Config, quantization, text_config
from engine.parameters import named_parameters
from engine.wording import first_line

_MICROSCALED = {
    "mxfp4": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
    "mxfp8": {"group_size": 32, "bits": 8, "mode": "mxfp8"},
}
_LEFT_ALONE = ("modules_to_not_convert", "ignore", "ignored_layers")
"""Where the formats of other programs list what they do not quantize."""

_TIED_LATE = ("gemma3_text", "recurrent_gemma")
"""Models of mlx-lm that share the embedding with the head unless there are weights for one."""


@dataclass(frozen=True)
class ConfigWeights:
    """What the weights of a config come to.

    Attributes:
        num_parameters: parameters of the model.
        packed_nbytes: bytes of whole numbers, which stay as they are in memory.
        num_plain_values: values that are held one by one: scales, biases, norms, unquantized weights.
    """

    num_parameters: int
    packed_nbytes: int
    num_plain_values: int


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
    return ConfigWeights(
        num_parameters=num_parameters,
        packed_nbytes=sum(value.nbytes for value in values) - sum(value.nbytes for value in plain),
        num_plain_values=sum(value.size for value in plain),
    )


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
        raise ModelError(f"{name} has a config.json whose quantization cannot be: {reason}.") from error


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
        return _MICROSCALED["mxfp8"] if settings.get("scale_fmt") == "ue8m0" else None
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
