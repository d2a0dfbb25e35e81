"""Tiny random models of mlx-lm's architectures: small enough to build in a test.

The mixed ones (gemma3, gpt_oss, cohere2, llama4, qwen3_next, lfm2, granitemoehybrid) have at least one
full-attention layer and one of the other kind; windows and chunks are 16 tokens. A layer of falcon_h1 and
longcat_flash has two caches, of two kinds and of one. Where a model may, a token
goes to both experts: with one of them, a rounded key would now and then send it to the other.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map, tree_map_with_path
from mlx_lm.utils import _get_classes

WINDOW_TOKENS = 16

COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": 100,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
GEMMA3_TEXT: dict[str, Any] = {
    "sliding_window": WINDOW_TOKENS,
    "sliding_window_pattern": 2,
    "query_pre_attn_scalar": 32,
    "rope_local_base_freq": 10000.0,
}
LLAMA4_TEXT: dict[str, Any] = {
    "num_hidden_layers": 4,
    "attention_bias": False,
    "attention_chunk_size": WINDOW_TOKENS,
    "interleave_moe_layer_step": 2,
    "intermediate_size_mlp": 128,
    "num_experts_per_tok": 1,
    "num_local_experts": 2,
    "rope_scaling": None,
    "use_qk_norm": True,
    "floor_scale": 64,
    "model_type": "llama4_text",
}
MAMBA: dict[str, Any] = {
    "mamba_n_heads": 4,
    "mamba_d_head": 32,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_n_groups": 1,
    "mamba_proj_bias": False,
    "mamba_conv_bias": True,
}
SPECIFIC: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {},
    "phi3": {},
    "olmo": {
        "d_model": 64,
        "n_layers": 2,
        "mlp_hidden_size": 256,
        "n_heads": 2,
        "embedding_size": 100,
    },
    "gemma2": {
        "query_pre_attn_scalar": 32,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "sliding_window": WINDOW_TOKENS,
    },
    "gemma3": {"text_config": COMMON | GEMMA3_TEXT | {"model_type": "gemma3_text"}},
    "gemma3_text": GEMMA3_TEXT,
    "gpt_oss": {
        "num_local_experts": 2,
        "num_experts_per_tok": 2,
        "sliding_window": WINDOW_TOKENS,
        "rope_scaling": {"rope_type": "default"},
        "layer_types": ["full_attention", "sliding_attention"],
    },
    "cohere2": {
        "layer_norm_eps": 1e-5,
        "sliding_window": WINDOW_TOKENS,
        "sliding_window_pattern": 2,
    },
    "llama4": {"text_config": COMMON | LLAMA4_TEXT},
    "deepseek_v3": {
        "moe_intermediate_size": 64,
        "num_key_value_heads": 2,
        "n_shared_experts": 1,
        "n_routed_experts": 2,
        "kv_lora_rank": 32,
        "q_lora_rank": 48,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "first_k_dense_replace": 1,
    },
    "longcat_flash": {
        "attention_method": "MLA",
        "zero_expert_type": "identity",
        "num_layers": 2,
        "ffn_hidden_size": 128,
        "expert_ffn_hidden_size": 64,
        "moe_topk": 2,
        "n_routed_experts": 2,
        "zero_expert_num": 0,
        "routed_scaling_factor": 1.0,
        "kv_lora_rank": 32,
        "q_lora_rank": 48,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "mla_scale_q_lora": True,
        "mla_scale_kv_lora": True,
        "attention_bias": False,
    },
    "qwen3_next": {
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "num_experts": 2,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 2,
        "shared_expert_intermediate_size": 64,
        "mlp_only_layers": [],
        "moe_intermediate_size": 64,
        "partial_rotary_factor": 0.5,
        "full_attention_interval": 2,
    },
    "mamba2": {
        "num_heads": 4,
        "state_size": 16,
        "ssm_state_size": 16,
        "conv_kernel": 4,
        "n_groups": 1,
        "expand": 2,
        "time_step_limit": (0.0, 1.0),
        "time_step_rank": "auto",
        "time_step_min": 0.0,
        "time_step_max": 1.0,
        "use_bias": False,
        "use_conv_bias": True,
        "residual_in_fp32": False,
        "layer_norm_epsilon": 1e-5,
    },
    "lfm2": {
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 64,
        "block_ff_dim": 128,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "layer_types": ["conv", "full_attention"],
    },
    "falcon_h1": MAMBA | {"mamba_d_ssm": 128, "mamba_chunk_size": 16},
    "granitemoehybrid": MAMBA
    | {
        "attention_bias": False,
        "embedding_multiplier": 1.0,
        "attention_multiplier": 32**-0.5,
        "logits_scaling": 1.0,
        "residual_multiplier": 1.0,
        "layer_types": ["mamba", "attention"],
        "num_local_experts": 2,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 64,
    },
}
# Where mlx-lm's classes read the language model's settings from a part of the config.
NESTED = ("gemma3", "llama4")
# With weights as they are drawn attention is so even that a wrong position or a missing page hardly shows in
# the logits: these, this much larger, make it pick some tokens.
SHARPENED = ("q_proj", "k_proj", "qkv_proj", "att_proj", "q_b_proj")
SHARPNESS = 2.0


def tiny_config(architecture: str, **overrides: Any) -> dict[str, Any]:
    """Return the config.json of a tiny model; `overrides` are settings of its language model."""
    config = COMMON | SPECIFIC[architecture] | {"model_type": architecture}
    if architecture not in NESTED:
        return config | overrides
    return config | {"text_config": config["text_config"] | overrides}


def tiny_model(architecture: str, *, sharp: bool = False, **overrides: Any) -> nn.Module:
    """Return a float32 model with random weights, the same at every call.

    Args:
        architecture: a `model_type` of SPECIFIC.
        sharp: whether attention picks some tokens, as a trained model's does.
        overrides: settings of the language model instead of this module's, such as `head_dim`.
    """
    config = tiny_config(architecture, **overrides)
    if architecture == "olmo":
        _import_olmo()
    model_class, arguments = _get_classes(config)
    mx.random.seed(0)
    model: nn.Module = model_class(arguments.from_dict(config))
    model.update(tree_map(_no_zeros, model.parameters()))
    if sharp:
        model.update(tree_map_with_path(_sharper, model.parameters()))
    mx.eval(model.parameters())
    return model


def _no_zeros(parameter: mx.array) -> mx.array:
    """Sinks, routers and biases start at zero, where they would do nothing."""
    return parameter if mx.any(parameter).item() else 0.3 * mx.random.normal(parameter.shape)


def _sharper(path: str, parameter: mx.array) -> mx.array:
    return parameter * SHARPNESS if path.split(".")[-2] in SHARPENED else parameter


def _import_olmo() -> None:
    """Import mlx-lm's module, which ends the process where `hf_olmo` is missing and makes no use of it."""
    missing = "hf_olmo" not in sys.modules and importlib.util.find_spec("hf_olmo") is None
    if missing:
        sys.modules["hf_olmo"] = ModuleType("hf_olmo")
    importlib.import_module("mlx_lm.models.olmo")
    if missing:
        del sys.modules["hf_olmo"]
