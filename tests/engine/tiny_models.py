"""Tiny random models of mlx-lm's architectures: small enough to build in a test."""

from __future__ import annotations

import importlib
from typing import Any

import mlx.core as mx
import mlx.nn as nn

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
SPECIFIC: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {},
    "gemma2": {
        "query_pre_attn_scalar": 32,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "sliding_window": 16,
    },
    "gemma3_text": {
        "sliding_window": 16,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 32,
        "rope_local_base_freq": 10000.0,
    },
    "gpt_oss": {
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "sliding_window": 16,
        "rope_scaling": {"rope_type": "default"},
        "layer_types": ["full_attention", "sliding_attention"],
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
}


def tiny_model(architecture: str) -> nn.Module:
    """Return a model with random weights, the same at every call."""
    module = importlib.import_module(f"mlx_lm.models.{architecture}")
    config = COMMON | SPECIFIC[architecture] | {"model_type": architecture}
    mx.random.seed(0)
    model: nn.Module = module.Model(module.ModelArgs.from_dict(config))
    mx.eval(model.parameters())
    return model
