"""What is known of a model before its weights are read."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from pathlib import Path

from engine.kv.precision import LayerShape
from engine.kv.room import OwnCache


class ModelFormat(enum.Enum):
    """How a model lies on disk."""

    MLX = "MLX folder"
    GGUF = "GGUF file"
    CONFIG = "config without weights"


@dataclass(frozen=True)
class CachedLayers:
    """What the layers of a model cache.

    Attributes:
        paged: what each layer caches in pages, in order; one without heads caches nothing there. Empty where
            all layers are alike, with a key and a value of `head_dim` numbers for each KV head.
        own: what mlx-lm's own caches of the others take.
        is_known: whether that was found out; otherwise it is the most that they can take.
    """

    paged: tuple[LayerShape, ...] = ()
    own: tuple[OwnCache, ...] = ()
    is_known: bool = True


@dataclass(frozen=True)
class ModelInfo:
    """The shape and size of a model, read from its config or metadata only.

    Attributes:
        path: the folder or file.
        format: what lies there.
        name: a title for people, such as `SmolLM2-135M-Instruct`.
        architecture: mlx-lm's model type, such as `llama` or `qwen3`.
        quantization: how the weights are stored, such as `4-bit, group 64`, `Q4_1` or `bfloat16`.
        num_layers: all layers, with or without a KV cache.
        num_heads: query heads.
        num_kv_heads: key and value heads.
        head_dim: values per head.
        context_tokens: the positions that the model was made for.
        vocab_size: entries of the vocabulary.
        num_parameters: parameters of the model.
        weights_nbytes: bytes of the weights on disk.
        packed_nbytes: bytes in memory of the packed numbers of quantized weights, scales left out.
        num_plain_values: values that are held one by one: scales, biases, norms, unquantized weights.
        layers: what its layers cache.
        is_float32: whether the weights lie in float32 on disk, and stay so with all that is computed.
        is_context_assumed: whether neither its config nor its family tells `context_tokens`.
    """

    path: Path
    format: ModelFormat
    name: str
    architecture: str
    quantization: str
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_tokens: int
    vocab_size: int
    num_parameters: int
    weights_nbytes: int
    packed_nbytes: int
    num_plain_values: int
    layers: CachedLayers = CachedLayers()
    is_float32: bool = False
    is_context_assumed: bool = False

    def with_context(self, max_context: int | None) -> ModelInfo:
        """Return the same with the context that is asked for, where it is longer than one that is assumed."""
        if not self.is_context_assumed or max_context is None or max_context <= self.context_tokens:
            return self
        return dataclasses.replace(self, context_tokens=max_context)
