"""Which GGUF architectures are read, and how their metadata and tensors map onto mlx-lm's models."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from engine.errors import ModelError, UnsupportedModelError
from engine.gguf.header import GGUFHeader, TensorInfo

ROPE_FACTORS = "rope_freqs.weight"
"""Divisors of the rotary frequencies, `[head_dim / 2]`: how files of Llama 3.1 stretch their context."""

_EMBEDDING = "token_embd.weight"
_OUTPUT = "output.weight"

_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

_QWEN3_TENSORS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}

_LAYER_NAME = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_NAME = re.compile(r"(\w+)\.(weight|bias)")


@dataclass(frozen=True)
class Architecture:
    """One of the supported architectures.

    Attributes:
        model_type: mlx-lm's name; ggml's is the same for all that are supported.
        interleaved_rope: whether rotary pairs lie side by side. Files of llama have the rows of Q and K
            reordered for that; MLX rotates either way, so nothing is put back.
        dtype: 16-bit type of activations off the CPU. Qwen's activations overflow float16.
        layer_tensors: ggml's names of a layer's tensors and mlx-lm's.
    """

    model_type: str
    interleaved_rope: bool
    dtype: str
    layer_tensors: dict[str, str] = field(default_factory=lambda: dict(_LAYER_TENSORS))

    def parameter_name(self, tensor: str) -> str | None:
        """Return mlx-lm's name of a ggml tensor; None for one that this architecture does not have."""
        if match := _LAYER_NAME.fullmatch(tensor):
            layer, stem, kind = match.groups()
            name = self.layer_tensors.get(stem)
            return f"model.layers.{layer}.{name}.{kind}" if name else None
        if match := _NAME.fullmatch(tensor):
            stem, kind = match.groups()
            name = _TENSORS.get(stem)
            return f"{name}.{kind}" if name else None
        return None


_ARCHITECTURES = {
    architecture.model_type: architecture
    for architecture in (
        Architecture("llama", interleaved_rope=True, dtype="float16"),
        Architecture("qwen2", interleaved_rope=False, dtype="bfloat16"),
        Architecture("qwen3", False, "bfloat16", _LAYER_TENSORS | _QWEN3_TENSORS),
    )
}

SUPPORTED_NAMES = tuple(_ARCHITECTURES)


def architecture_of(header: GGUFHeader) -> Architecture:
    """Return the file's architecture; an `UnsupportedModelError` names one that is not supported."""
    name = header.text("general.architecture")
    architecture = _ARCHITECTURES.get(name)
    if architecture is None:
        raise UnsupportedModelError(
            f"{header.path.name} has the architecture {name}, which Octavo does not read from GGUF files. "
            f"It reads {', '.join(SUPPORTED_NAMES[:-1])} and {SUPPORTED_NAMES[-1]}; get the model as an MLX "
            "folder."
        )
    return architecture


def model_config(header: GGUFHeader) -> dict[str, Any]:
    """Return the model's config in the words of mlx-lm and transformers."""
    architecture = architecture_of(header)
    _refuse_variants(header)
    prefix = architecture.model_type
    heads = header.integer(f"{prefix}.attention.head_count")
    hidden = header.integer(f"{prefix}.embedding_length")
    if heads < 1 or (hidden % heads and f"{prefix}.attention.key_length" not in header.metadata):
        raise ModelError(f"{header.path.name} is damaged: {hidden} values do not divide into {heads} heads.")
    context = header.integer(f"{prefix}.context_length")
    config = {
        "model_type": architecture.model_type,
        "hidden_size": hidden,
        "num_hidden_layers": header.integer(f"{prefix}.block_count"),
        "intermediate_size": header.integer(f"{prefix}.feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": header.integer(f"{prefix}.attention.head_count_kv", heads),
        "head_dim": header.integer(f"{prefix}.attention.key_length", hidden // heads),
        "rms_norm_eps": header.number(f"{prefix}.attention.layer_norm_rms_epsilon"),
        "vocab_size": _embedding(header).shape[0],
        "max_position_embeddings": context,
        "rope_theta": header.number(f"{prefix}.rope.freq_base", 10000.0),
        "rope_traditional": architecture.interleaved_rope,
        "rope_scaling": _rope_scaling(header, context),
        "tie_word_embeddings": _OUTPUT not in header.tensors,
        "attention_bias": "blk.0.attn_output.bias" in header.tensors,
        "mlp_bias": "blk.0.ffn_down.bias" in header.tensors,
    }
    _check_head_dim(header, config)
    return config


def _embedding(header: GGUFHeader) -> TensorInfo:
    tensor = header.tensors.get(_EMBEDDING)
    if tensor is None or len(tensor.shape) != 2:
        raise ModelError(f"{header.path.name} is incomplete: it has no {_EMBEDDING}.")
    return tensor


def _rope_scaling(header: GGUFHeader, context: int) -> dict[str, Any] | None:
    prefix = f"{header.text('general.architecture')}.rope"
    kind = header.text(f"{prefix}.scaling.type", "none")
    factor = header.number(f"{prefix}.scaling.factor", header.number(f"{prefix}.scale_linear", 1.0))
    if kind == "none" and f"{prefix}.scale_linear" in header.metadata:
        kind = "linear"
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return None
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        return {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": header.integer(
                f"{prefix}.scaling.original_context_length", context
            ),
        }
    raise UnsupportedModelError(
        f"{header.path.name} stretches its context by {kind}, which Octavo does not read from GGUF files; "
        "get the model as an MLX folder."
    )


def _refuse_variants(header: GGUFHeader) -> None:
    prefix = header.text("general.architecture")
    variants = {
        "expert_count": "a mixture of experts",
        "logit_scale": "scaled logits",
        "attention.scale": "a scale of its own in attention",
        "rope.scaling.attn_factor": "a scale of its own in attention",
    }
    neutral = (0, 1)
    for key, wording in variants.items():
        if header.metadata.get(f"{prefix}.{key}", 0) not in neutral:
            raise UnsupportedModelError(
                f"{header.path.name} is a {prefix} model with {wording}, which Octavo does not read from "
                "GGUF files; get the model as an MLX folder."
            )


def _check_head_dim(header: GGUFHeader, config: dict[str, Any]) -> None:
    """Refuse heads whose parts differ in size: values from keys, or rotated from not rotated."""
    prefix = config["model_type"]
    head_dim = config["head_dim"]
    for key in ("attention.value_length", "rope.dimension_count"):
        if header.integer(f"{prefix}.{key}", head_dim) != head_dim:
            raise UnsupportedModelError(
                f"{header.path.name} has {prefix}.{key} {header.integer(f'{prefix}.{key}')} with heads of "
                f"{head_dim} values, which Octavo does not read from GGUF files; get it as an MLX folder."
            )
    if prefix == "qwen2" and head_dim * config["num_attention_heads"] != config["hidden_size"]:
        raise UnsupportedModelError(f"{header.path.name} is a qwen2 model with heads of an unusual size.")
