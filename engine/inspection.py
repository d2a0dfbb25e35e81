"""Reading what a model is, without its weights."""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path
from typing import Any

from engine import folder
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.folder import Config
from engine.gguf.architecture import ROPE_FACTORS, model_config
from engine.gguf.header import GGUFHeader, read_header
from engine.gguf.tensor_types import GROUP_SIZE
from engine.kv.precision import LayerShape
from engine.kv.room import OwnCache
from engine.model_info import CachedLayers, ModelFormat, ModelInfo
from engine.safetensors_header import read_folder

log = logging.getLogger(__name__)

_DEFAULT_CONTEXT_TOKENS = 4096
"""Assumed where nothing names a length; too little for most models, which is the safe side."""
_CONTEXT_NAMES = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
)

_QUANTIZATION_SUFFIX = re.compile(r"[-._](i?q\d\w*|b?f16|f32)$", re.IGNORECASE)
"""What file names of GGUF models add to the model's name; it is shown apart."""

_MOST = 2**31 - 1
"""The largest size that a config may name, which is that of an MLX array's axis."""
_MOST_PARTS = 10_000
"""The most layers or experts: mlx-lm's models make an object of each."""
_COUNTS = (
    "num_hidden_layers",
    "num_key_value_heads",
    "hidden_size",
    "vocab_size",
    "max_position_embeddings",
)
"""What every config counts from one, where it names it."""
_PARTS = re.compile(r"n(um)?_\w*(layer|expert)s")


def inspect_model(path: Path, cancel: CancelToken | None = None) -> ModelInfo:
    """Return the shape and size of a model from its config or metadata.

    Args:
        path: an MLX folder or a GGUF file.
        cancel: checked while a long vocabulary is read.

    Raises:
        Cancelled: `cancel` was called.
        ModelError: missing, damaged or incomplete.
        UnsupportedModelError: an architecture or quantization that is not supported, by name.
    """
    if path.is_dir():
        return _inspect_folder(path)
    if not path.exists():
        raise ModelError(f"There is no model at {path}.")
    if path.suffix.lower() in (".safetensors", ".json"):
        raise ModelError(f"{path.name} is one file of a model; choose the folder that it lies in.")
    return inspect_header(read_header(path, cancel))


def inspect_header(header: GGUFHeader) -> ModelInfo:
    """Return the shape and size of the model in a GGUF file."""
    config = model_config(header)
    nbytes = Counter[str]()
    for tensor in header.tensors.values():
        nbytes[tensor.type.name] += tensor.nbytes
    packed = [tensor for tensor in header.tensors.values() if tensor.type.is_quantized]
    plain = [tensor for tensor in header.tensors.values() if not tensor.type.is_quantized]
    return _info(
        config,
        config,
        CachedLayers(),  # the architectures that are read have full attention in all layers
        path=header.path,
        format=ModelFormat.GGUF,
        name=_QUANTIZATION_SUFFIX.sub("", header.path.stem),
        quantization=nbytes.most_common(1)[0][0],
        num_parameters=sum(tensor.size for name, tensor in header.tensors.items() if name != ROPE_FACTORS),
        weights_nbytes=header.weights_nbytes,
        packed_nbytes=sum(tensor.size * (tensor.type.mlx_bits or 0) // 8 for tensor in packed),
        num_plain_values=sum(tensor.size for tensor in plain)
        + sum(2 * tensor.size // GROUP_SIZE for tensor in packed),
    )


def inspect_config(path: Path) -> ModelInfo:
    """Return the shape and size that a model has by its config alone; no weights or tokenizer are needed.

    Args:
        path: a config.json, or a folder with one.

    Raises:
        ModelError: missing or damaged, or mlx-lm cannot make a model of it.
        UnsupportedModelError: an architecture or quantization that is not supported, by name.
    """
    file = path / folder.CONFIG if path.is_dir() else path
    if not file.is_file():
        raise ModelError(f"There is no {folder.CONFIG} at {path}.")
    name = file.absolute().parent.name if file.name == folder.CONFIG else file.stem
    config = folder.read_config_file(file, name)
    _require_possible(config, name)

    # These import mlx, without which a GGUF file is inspected.
    from engine.config_weights import config_weights
    from engine.skeleton import build_skeleton, settings_of

    module = build_skeleton(config)
    layers = _layers_of(module, name)
    quantization, dtype = folder.quantization(config), folder.plain_dtype(config)
    weights = config_weights(module, config, name)
    return _info(
        _language(config),
        settings_of(module) | _language(config),
        layers,
        path=path,
        format=ModelFormat.CONFIG,
        name=name,
        quantization=dtype if quantization is None else folder.settings_words(quantization),
        num_parameters=weights.num_parameters,
        weights_nbytes=weights.stored_nbytes,
        packed_nbytes=weights.packed_nbytes,
        num_plain_values=weights.num_plain_values,
        is_float32=quantization is None and dtype == "float32",
    )


def _inspect_folder(path: Path) -> ModelInfo:
    config = folder.read_config(path)
    _require_possible(config, path.name)
    folder.require_tokenizer(path)
    tensors = read_folder(path)
    settings, layers = _tried(config, path.name)
    quantization = folder.quantization_words(config, tensors)
    return _info(
        _language(config),
        settings | _language(config),
        layers,
        path=path,
        format=ModelFormat.MLX,
        name=path.name,
        quantization=quantization,
        num_parameters=folder.num_parameters(config, tensors),
        weights_nbytes=sum(tensor.nbytes for tensor in tensors.values()),
        packed_nbytes=sum(tensor.nbytes for tensor in tensors.values() if tensor.is_packed),
        num_plain_values=sum(tensor.size for tensor in tensors.values() if not tensor.is_packed),
        is_float32=quantization == "float32",
    )


def _require_possible(config: Config, name: str) -> None:
    """Raise a `ModelError` when mlx-lm does not have the model type, or a size is more than there can be."""
    folder.require_model_type(name, config)
    said = _language(config)
    for key, value in said.items():
        if isinstance(value, int) and value > (_MOST_PARTS if _PARTS.fullmatch(key) else _MOST):
            raise ModelError(f"{name} has a damaged config: its {key} of {value:,} cannot be.")
        if key in _COUNTS and isinstance(value, int | float | str) and (type(value) is not int or value < 1):
            raise ModelError(f"{name} has a damaged config: its {key} of {value} cannot be.")
    heads, kv_heads = said.get("num_attention_heads"), said.get("num_key_value_heads")
    if isinstance(heads, int) and isinstance(kv_heads, int) and heads % kv_heads:
        raise ModelError(
            f"{name} has a damaged config: {heads:,} heads cannot share {kv_heads:,} key and value heads."
        )


def _language(config: Config) -> Config:
    """Return what a config says of the language model; it leaves null to the model's own defaults."""
    said = {key: value for key, value in folder.text_config(config).items() if value is not None}
    return said | {"model_type": config["model_type"]}


def _tried(config: Config, name: str) -> tuple[Config, CachedLayers | None]:
    """Return all settings of the language model and what its layers cache; nothing where mlx-lm fails."""
    from engine.skeleton import build_skeleton, settings_of

    try:
        module = build_skeleton(config)
    except ModelError as error:
        log.info("%s: %s", name, error)
        return {}, None
    return settings_of(module), _layers_of(module, name)


def _layers_of(module: Any, name: str) -> CachedLayers | None:
    """Return what the layers of a model without weights cache, None where that cannot be found out."""
    from engine.skeleton import cached_layers

    try:
        return cached_layers(module)
    except ModelError as error:
        log.info("%s: %s", name, error)
        return None


def _info(
    said: Config, config: Config, layers: CachedLayers | None, *, path: Path, name: str, **facts: Any
) -> ModelInfo:
    """Return what a config says of a model, with mlx-lm's defaults for what it leaves out.

    One whose layers have no attention counts as one head. Layers that are not known are taken for full
    attention without pages, which is the most that they can cache.
    """
    without_heads = 1 if layers and not any(shape.num_kv_heads for shape in layers.paged) else None
    heads = _integer(
        config, name, "num_attention_heads", "n_head", "n_heads", "num_heads", default=without_heads
    )
    kv_heads = _integer(config, name, "num_key_value_heads", "n_head_kv", "num_kv_heads", default=heads)
    head_dim = _integer(config, name, "head_dim", default=0)
    if not head_dim:
        head_dim = _integer(config, name, "hidden_size", "n_embd", "d_model", "dim") // heads
    num_layers = _integer(config, name, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if layers is None:
        full = OwnCache(numbers_per_token=2 * kv_heads * head_dim)
        layers = CachedLayers((LayerShape(0, 0, 0),) * num_layers, (full,) * num_layers, is_known=False)
    context_tokens, is_assumed = _context(said, config, name)
    return ModelInfo(
        path=path,
        name=name,
        architecture=str(config["model_type"]),
        num_layers=num_layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        context_tokens=context_tokens,
        is_context_assumed=is_assumed,
        vocab_size=_integer(config, name, "vocab_size", "padded_vocab_size"),
        layers=layers,
        **facts,
    )


def _context(said: Config, config: Config, name: str) -> tuple[int, bool]:
    """Return the positions that a model is made for, and whether that is assumed.

    What a config leaves out is what its family has, since transformers writes no defaults. mlx-lm's own
    defaults are only there for its models to be made, and tell nothing for sure.
    """
    stretched = _stretched_tokens(config, name)
    known = _integer(said, name, *_CONTEXT_NAMES, default=0) or stretched or _family_tokens(said)
    positions = known or _integer(config, name, *_CONTEXT_NAMES, default=_DEFAULT_CONTEXT_TOKENS)
    return max(positions, stretched), not known


def _stretched_tokens(config: Config, name: str) -> int:
    """Return the positions that YaRN stretches a context to, 0 without it.

    Configs for YaRN often keep the length before stretching in `max_position_embeddings`.
    """
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if not isinstance(scaling, dict) or "yarn" not in (scaling.get("rope_type"), scaling.get("type")):
        return 0
    original, factor = scaling.get("original_max_position_embeddings"), scaling.get("factor", 1)
    if not isinstance(original, int | float) or not isinstance(factor, int | float):
        return 0
    stretched = original * factor
    if not stretched <= _MOST:  # NaN neither
        raise ModelError(f"{name} has a damaged config: a context of {stretched:,} tokens cannot be.")
    return int(stretched)


def _family_tokens(said: Config) -> int:
    """Return the positions that transformers gives models of a type where their config says nothing, or 0."""
    from transformers import CONFIG_MAPPING

    try:
        family = CONFIG_MAPPING[said["model_type"]]().get_text_config()
    except Exception as error:  # a type that it does not have, or one that cannot be without settings
        log.info("transformers has no defaults of %s: %s", said["model_type"], error)
        return 0
    positions = getattr(family, "max_position_embeddings", None)
    return positions if isinstance(positions, int) else 0


def _integer(config: Config, name: str, *keys: str, default: int | None = None) -> int:
    for key in keys:
        value = config.get(key)
        if type(value) is int and value > 0:  # `true` is no number
            return value
    if default is None:
        raise ModelError(f"{name} has a config that does not say {keys[0]}.")
    return default
