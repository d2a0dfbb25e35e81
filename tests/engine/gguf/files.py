"""Small GGUF files, written by ggml's own Python package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import mlx.core as mx
import numpy as np
from gguf.constants import GGMLQuantizationType as Kind

Tensors = Mapping[str, tuple[np.ndarray, Kind]]

LLAMA = {
    "context_length": 512,
    "embedding_length": 64,
    "block_count": 2,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 10000.0,
}

BYTES = [chr(byte) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174 else "" for byte in range(256)]
"""The characters by which byte-level tokenizers write bytes (OpenAI's GPT-2 encoder)."""
_spare = 256
for _byte, _character in enumerate(BYTES):
    if not _character:
        BYTES[_byte] = chr(_spare)
        _spare += 1

BYTE_LEVEL: dict[str, Any] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": [*BYTES, "<|endoftext|>"],
    "tokenizer.ggml.token_type": [1] * 256 + [3],
    "tokenizer.ggml.merges": [],
    "tokenizer.ggml.eos_token_id": 256,
}
"""A tokenizer whose tokens are the 256 bytes and an end token."""


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Tensors | None = None,
    *,
    architecture: str = "llama",
    endianess: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE,
) -> Path:
    """Write a file; tensors are float arrays, quantized here, or raw bytes of a type that ggml must do."""
    writer = gguf.GGUFWriter(path, architecture, endianess=endianess)
    for key, value in metadata.items():
        _add(writer, key, value)
    for name, (values, kind) in (tensors or {}).items():
        if values.dtype == np.uint8:
            writer.add_tensor(name, values, raw_dtype=kind)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values.astype(np.float32), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value:
        writer.add_array(key, value)


def with_prefix(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Put an architecture's name before each key."""
    return {f"{prefix}.{key}": value for key, value in values.items()}


GGUF_NAMES = {
    "model.layers": "blk",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(parameter: str) -> str:
    """Translate mlx-lm's name of a parameter into ggml's."""
    for name, replacement in GGUF_NAMES.items():
        parameter = parameter.replace(name, replacement)
    return parameter


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """Reorder the rows of Q or K as llama.cpp's converter does: the halves of a head become pairs."""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, 2, half, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def as_numpy(values: mx.array) -> np.ndarray:
    """Return an array as float32 for the writer."""
    return np.array(values.astype(mx.float32))
