"""What is planned for the layers of a model without weights, next to what they take when it really reads."""

from __future__ import annotations

import math
import re
import threading
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm.models
import pytest

from engine.errors import ModelError
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.kv.room import MAX_CHUNK_TOKENS, OwnCache, kv_nbytes
from engine.model_info import CachedLayers
from engine.skeleton import COMPUTES, build_skeleton, cached_layers, settings_of
from tests.engine.kv.architectures import CASES, TWO_KV_HEADS, model_of
from tests.engine.tiny_models import tiny_config

SPEC = KVSpec.parse("4; page=64")
EXACT_ACTIVATION_NBYTES = 4
CHUNKS = [64, 200, 1, MAX_CHUNK_TOKENS, MAX_CHUNK_TOKENS, 1, 255]
"""Longer than all windows, and as long as a chunk may be, before one token and after it."""

LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "intermediate_size": 28672,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
LOOK_WHILE_LOADING = {"prism_hadamard_qwen35"}


def planned_nbytes(layers: CachedLayers, num_tokens: int) -> int:
    paged = kv_nbytes(SPEC, num_tokens, layers.paged, EXACT_ACTIVATION_NBYTES)
    return math.ceil(paged) + sum(cache.nbytes(num_tokens, EXACT_ACTIVATION_NBYTES) for cache in layers.own)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.one_by_one])
def test_what_is_planned_without_weights_is_what_a_reading_model_takes(name: str) -> None:
    case = CASES[name]
    config = tiny_config(case.architecture, **TWO_KV_HEADS | case.overrides)
    layers = cached_layers(build_skeleton(config))
    cache = SequenceCache(model_of(case), SPEC)
    most = 0
    for number, chunk in enumerate(CHUNKS):
        cache.read([number] * chunk)
        most = max(most, cache.nbytes)
        assert cache.nbytes <= planned_nbytes(layers, cache.num_tokens)
    # mlx-lm's caches have room for up to 255 tokens more, and a window may keep a chunk more, as here.
    assert most >= 0.8 * planned_nbytes(layers, cache.num_tokens)
    assert tuple(number for number, shape in enumerate(layers.paged) if shape.num_kv_heads) == case.paged


def test_no_weight_of_a_large_model_is_ever_made() -> None:
    # A layer of it has 6.4 GB in the type that mlx-lm draws weights in; the whole model has 280 GB.
    before = mx.get_peak_memory()
    layers = cached_layers(build_skeleton(LLAMA_70B))
    assert mx.get_peak_memory() - before < 1_000_000
    assert {(shape.num_kv_heads, shape.key_dim, shape.value_dim) for shape in layers.paged} == {(8, 128, 128)}
    assert len(layers.paged) == 80


def test_another_thread_leaves_the_random_numbers_of_this_one_alone() -> None:
    mx.random.seed(4)
    expected = mx.random.uniform().item()
    mx.random.seed(4)
    thread = threading.Thread(target=lambda: build_skeleton(tiny_config("llama")))
    thread.start()
    thread.join()
    assert mx.random.uniform().item() == expected


def test_a_window_keeps_a_chunk_more_than_it_sees_and_a_state_stays_as_it_is() -> None:
    window = OwnCache(numbers_per_token=10, window_tokens=1000)
    assert not window.grows
    assert [window.nbytes(tokens, 2) for tokens in (1, 257, 1_000_000)] == [5_120, 10_240, 30_240]
    state = OwnCache(state_numbers=7, state_nbytes=3)
    assert not state.grows
    assert state.nbytes(1, 2) == state.nbytes(9999, 2) == 17
    latent = OwnCache(numbers_per_token=10)
    assert latent.grows
    assert latent.nbytes(2305, 4) == 2560 * 10 * 4


def test_settings_that_a_config_leaves_out_are_those_of_mlx_lm() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 2}
    settings = settings_of(build_skeleton({"model_type": "gemma3", "text_config": text}))
    assert (settings["num_attention_heads"], settings["num_key_value_heads"]) == (8, 4)


@pytest.mark.parametrize("changes", [{"num_attention_heads": 0}, {"hidden_size": None}, {"rms_norm_eps": {}}])
def test_a_config_that_mlx_lm_cannot_use_is_refused_in_a_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"^mlx-lm cannot make a llama model of this config \(.+\)\.$"):
        cached_layers(build_skeleton(tiny_config("llama", **changes)))


def test_models_that_look_at_numbers_are_not_tried() -> None:
    """Trying them would make all their weights. Only an import-time look at mlx-lm's sources shows them."""
    folder = Path(str(mlx_lm.models.__path__[0]))
    looking = {
        path.stem
        for path in folder.glob("*.py")
        if re.search(r"\.item\(\)|\.tolist\(\)|np\.array\(", path.read_text()) and path.stem != "cache"
    }
    assert looking - LOOK_WHILE_LOADING == COMPUTES
