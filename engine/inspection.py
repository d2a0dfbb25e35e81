"""Reading what a model is, without its weights."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from engine import folder
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.gguf.architecture import ROPE_FACTORS, model_config
from engine.gguf.header import GGUFHeader, read_header
from engine.gguf.tensor_types import GROUP_SIZE
from engine.model_info import ModelFormat, ModelInfo
from engine.safetensors_header import read_folder

_DEFAULT_CONTEXT_TOKENS = 4096
"""Assumed where a config names no length; too little for most models, which is the safe side."""

_QUANTIZATION_SUFFIX = re.compile(r"[-._](i?q\d\w*|b?f16|f32)$", re.IGNORECASE)
"""What file names of GGUF models add to the model's name; it is shown apart."""


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


def _inspect_folder(path: Path) -> ModelInfo:
    config = folder.read_config(path)
    folder.require_model_type(path, config)
    folder.require_tokenizer(path)
    tensors = read_folder(path)
    return _info(
        folder.text_config(config) | {"model_type": config["model_type"]},
        path=path,
        format=ModelFormat.MLX,
        name=path.name,
        quantization=folder.quantization_words(config, tensors),
        num_parameters=folder.num_parameters(config, tensors),
        weights_nbytes=sum(tensor.nbytes for tensor in tensors.values()),
        packed_nbytes=sum(tensor.nbytes for tensor in tensors.values() if tensor.is_packed),
        num_plain_values=sum(tensor.size for tensor in tensors.values() if not tensor.is_packed),
    )


def _info(config: dict[str, Any], *, path: Path, **facts: Any) -> ModelInfo:
    heads = _integer(config, path, "num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = _integer(config, path, "num_key_value_heads", "n_head_kv", "num_kv_heads", default=heads)
    head_dim = _integer(config, path, "head_dim", default=0)
    if not head_dim:
        head_dim = _integer(config, path, "hidden_size", "n_embd", "d_model", "dim") // heads
    return ModelInfo(
        path=path,
        architecture=str(config["model_type"]),
        num_layers=_integer(config, path, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        context_tokens=_context_tokens(config, path),
        vocab_size=_integer(config, path, "vocab_size", "padded_vocab_size"),
        **facts,
    )


def _context_tokens(config: dict[str, Any], path: Path) -> int:
    """Return the positions that a config is made for, stretched by YaRN where it says so.

    Configs for YaRN often keep the length before stretching in `max_position_embeddings`.
    """
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")
    positions = _integer(config, path, *names, default=_DEFAULT_CONTEXT_TOKENS)
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    original = scaling.get("original_max_position_embeddings")
    if "yarn" in (scaling.get("rope_type"), scaling.get("type")) and original:
        return max(positions, int(original * scaling.get("factor", 1)))
    return positions


def _integer(config: dict[str, Any], path: Path, *names: str, default: int | None = None) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and value > 0:
            return value
    if default is None:
        raise ModelError(f"{path.name} has a config that does not say {names[0]}.")
    return default
