"""The same weights for mlx-lm: a llama GGUF file written again as an MLX folder.

It goes through MLX's own GGUF reader and shares no code with `engine.gguf` but the tokenizer, so that the two
ways can be measured and checked against each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.cancel import CancelToken
from engine.errors import UnsupportedModelError
from engine.gguf.header import read_header
from engine.gguf.tokenizer import build_tokenizer

GROUP_SIZE = 32

_NAMES = {
    "blk": "model.layers",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_mlx_folder(gguf: Path, folder: Path) -> None:
    """Write a quantized llama GGUF file (Q4_0, Q4_1 or Q8_0) as config.json, model.safetensors and tokenizer.

    Every array keeps its type: scales in 16 bits and norms in 32, which is also the form that is fastest for
    mlx-lm on a CPU (norms in 16 bits would make all its activations float16).

    Raises:
        UnsupportedModelError: a file of another architecture.
    """
    header = read_header(gguf, CancelToken())
    if header.metadata.get("general.architecture") != "llama":
        raise UnsupportedModelError(f"{gguf.name} is no llama file, and only such can be written for mlx-lm.")
    loaded: Any = mx.load(str(gguf), return_metadata=True)
    arrays, metadata = loaded
    config = _config(arrays, metadata)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    weights = {}
    for name, array in arrays.items():
        translated = ".".join(_NAMES.get(part, part) for part in name.split("."))
        projection = translated.split(".")[-2]
        if projection in heads:
            array = _put_back(array, heads[projection])
        weights[translated] = array
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    build_tokenizer(header, CancelToken())._tokenizer.save_pretrained(folder)


def _config(arrays: dict[str, mx.array], metadata: dict[str, Any]) -> dict[str, Any]:
    def integer(key: str) -> int:
        return int(metadata[f"llama.{key}"].item())

    hidden = integer("embedding_length")
    packed = arrays["blk.0.ffn_gate.weight"].shape[1]
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": integer("block_count"),
        "intermediate_size": integer("feed_forward_length"),
        "num_attention_heads": integer("attention.head_count"),
        "num_key_value_heads": integer("attention.head_count_kv"),
        "rms_norm_eps": float(metadata["llama.attention.layer_norm_rms_epsilon"].item()),
        "rope_theta": float(metadata["llama.rope.freq_base"].item()),
        "vocab_size": arrays["token_embd.weight"].shape[0],
        "max_position_embeddings": integer("context_length"),
        "tie_word_embeddings": "output.weight" not in arrays,
        "eos_token_id": int(metadata["tokenizer.ggml.eos_token_id"].item()),
        "quantization": {"group_size": GROUP_SIZE, "bits": packed * 32 // hidden},
    }


def _put_back(rows: mx.array, heads: int) -> mx.array:
    """Undo the order of rows that llama GGUF files have, pairs of the rotary positions side by side."""
    shape = rows.shape
    return rows.reshape(heads, shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(shape)
