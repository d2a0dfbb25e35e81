"""MLX model folders: config.json, safetensors and tokenizer files."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from engine.backend import start_backend
from engine.errors import ModelError, UnsupportedModelError
from engine.safetensors_header import StoredTensor

Config = dict[str, Any]

CONFIG = "config.json"

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "tiktoken.model", "*.tiktoken")

_DTYPE_WORDS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
DTYPE_NBYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
"""The types of weights that are not quantized, and their bytes."""


def read_config(folder: Path) -> Config:
    """Return a folder's config.json.

    Raises:
        ModelError: missing or damaged.
        UnsupportedModelError: it asks for Python code from the folder to be run.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise ModelError(f"{folder.name} is no MLX model: there is no config.json in the folder.")
    return read_config_file(path, folder.name)


def read_config_file(path: Path, name: str) -> Config:
    """Return the config in a file that belongs to the model of this name; raises as `read_config` does."""
    is_bare = path.name != CONFIG  # a file with a name of its own, which is the model's as well
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        damaged = f"{path.name} is damaged" if is_bare else f"{name} has a damaged {CONFIG}"
        raise ModelError(f"{damaged}. Download it again.") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelError(f"{path.name if is_bare else f'{name} has a {CONFIG} that'} names no model_type.")
    if config.get("model_file"):
        raise UnsupportedModelError(
            f"{name} needs Python code of its own ({config['model_file']}) to be run; Octavo does not run it."
        )
    return config


def require_model_type(name: str, config: Config) -> None:
    """Raise an `UnsupportedModelError` when mlx-lm does not have the model type of the model of this name."""
    start_backend()
    from mlx_lm.utils import MODEL_REMAPPING

    model_type: str = config["model_type"]
    module: str = MODEL_REMAPPING.get(model_type, model_type)
    if module.isidentifier() and importlib.util.find_spec(f"mlx_lm.models.{module}") is not None:
        return
    kind = "a model for images and text of the type" if "vision_config" in config else "of the type"
    raise UnsupportedModelError(f"{name} is {kind} {model_type}, which mlx-lm does not run.")


def require_tokenizer(folder: Path) -> None:
    """Raise a `ModelError` when the folder has no tokenizer."""
    if not any(any(folder.glob(pattern)) for pattern in _TOKENIZER_FILES):
        raise ModelError(
            f"{folder.name} is incomplete: it has no tokenizer (tokenizer.json). Download it again."
        )


def text_config(config: Config) -> Config:
    """Return the part of a config that describes the language model."""
    nested = config.get("text_config")
    return config | nested if isinstance(nested, dict) else config


def quantization(config: Config) -> Config | None:
    """Return how the weights are quantized; None when they are not."""
    for part in (config, text_config(config)):
        for key in ("quantization", "quantization_config"):
            if isinstance(part.get(key), dict):
                return dict(part[key])
    return None


def plain_dtype(config: Config) -> str:
    """Return the type that a config names for plain weights; bfloat16 where it names none."""
    for part in (config, text_config(config)):
        for key in ("dtype", "torch_dtype"):
            name = str(part.get(key)).removeprefix("torch.")
            if name in DTYPE_NBYTES:
                return name
    return "bfloat16"


def quantization_words(config: Config, tensors: dict[str, StoredTensor]) -> str:
    """Return how the weights are stored, for people: `4-bit, group 64`, `AWQ 4-bit` or `bfloat16`."""
    settings = quantization(config)
    if settings is None:
        nbytes: dict[str, int] = {}
        for tensor in tensors.values():
            nbytes[tensor.dtype] = nbytes.get(tensor.dtype, 0) + tensor.nbytes
        largest = max(nbytes, key=lambda dtype: nbytes[dtype])
        return _DTYPE_WORDS.get(largest, largest)
    return settings_words(settings)


def settings_words(settings: Config) -> str:
    """Return how quantized weights are stored, for people."""
    method = settings.get("quant_method") or settings.get("mode", "affine")
    words = f"{settings['bits']}-bit" if "bits" in settings else ""
    if "group_size" in settings:
        words += f", group {settings['group_size']}"
    return words if method == "affine" and words else f"{str(method).upper()} {words}".strip()


def num_parameters(config: Config, tensors: dict[str, StoredTensor]) -> int:
    """Count parameters: packed integers as what they unpack to, scales and biases not at all."""
    settings = quantization(config) or {}
    total = 0
    for name, tensor in tensors.items():
        stem, _, part = name.rpartition(".")
        scales = tensors.get(f"{stem}.scales")
        if scales is None:
            total += tensor.size
        elif part in ("weight", "qweight"):
            total += _unpacked_size(settings.get(stem), settings, tensor, scales)
        elif part == "bias":
            total += tensor.size
    return total


def _unpacked_size(layer: object, settings: Config, weight: StoredTensor, scales: StoredTensor) -> int:
    own = layer if isinstance(layer, dict) else {}
    group_size = own.get("group_size") or settings.get("group_size")
    if isinstance(group_size, int) and weight.dtype == "U32":
        return scales.size * group_size
    return weight.size * 32 // int(own.get("bits") or settings.get("bits") or 4)
