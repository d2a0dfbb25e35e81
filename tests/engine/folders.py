"""Small MLX folders with random weights and a tokenizer of bytes."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engine.parameters import named_parameters
from tests.engine.gguf.files import BYTES

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 257,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "eos_token_id": 256,
}


def random_model(config: dict[str, Any], dtype: mx.Dtype = mx.bfloat16) -> nn.Module:
    """Return mlx-lm's model of a config with random weights, the same at every call."""
    module = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    mx.random.seed(2)
    model: nn.Module = module.Model(module.ModelArgs.from_dict(config))
    model.load_weights([(n, mx.random.normal(v.shape) * 0.2) for n, v in named_parameters(model)])
    model.set_dtype(dtype)
    return model


def write_folder(
    folder: Path,
    *,
    bits: int | None = 4,
    mode: str = "affine",
    dtype: mx.Dtype = mx.bfloat16,
    **changes: Any,
) -> Path:
    """Write a folder, quantized in groups of 32 unless `bits` is None."""
    config = CONFIG | changes
    model = random_model(config, dtype)
    if bits is not None:
        nn.quantize(model, group_size=32, bits=bits, mode=mode)
        config["quantization"] = {"group_size": 32, "bits": bits, "mode": mode}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), dict(named_parameters(model)), {"format": "mlx"})
    byte_tokenizer().save_pretrained(folder)
    return folder


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are the 256 bytes and an end token."""
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(BYTES)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
