"""Tiny models of random weights whose tokens are words: one that never ends, one that has nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.precision import KVSpec
from engine.prefixes.records import PrefixStore
from tests.engine.folders import write_folder

KV = KVSpec.parse("8; page=64")
SHAPE: dict[str, Any] = {"max_position_embeddings": 4096, "num_hidden_layers": 1}


def loaded(folder: Path, backend: Backend, prefixes: PrefixStore | None = None) -> Engine:
    """Return an engine that has loaded a model."""
    engine = Engine(backend, prefixes=prefixes)
    engine.load(folder, KV, cancel=CancelToken(), on_progress=lambda progress: None)
    return engine


def write_talking_model(folder: Path) -> Path:
    """Write a model that never ends by itself, as its end token is as likely as none."""
    not_the_end = mx.arange(257)[:, None] != 256
    return _write(folder, "model.embed_tokens.weight", lambda weight: weight * not_the_end)


def write_silent_model(folder: Path) -> Path:
    """Write a model that ends whatever it is to write: all tokens are equally likely, the first is taken."""
    return _write(folder, "model.norm.weight", mx.zeros_like, eos_token_id=0)


def _write(folder: Path, name: str, changed: Callable[[mx.array], mx.array], **config: Any) -> Path:
    write_folder(folder, bits=None, **SHAPE, **config)
    words = Tokenizer(WordLevel({"<unk>": 0, "<end>": 256} | {f"w{id}": id for id in range(1, 256)}, "<unk>"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>").save_pretrained(folder)
    file = folder / "model.safetensors"
    weights = mx.load(str(file))
    assert isinstance(weights, dict)
    weights[name] = changed(weights[name])
    mx.save_safetensors(str(file), weights, {"format": "mlx"})
    return folder
