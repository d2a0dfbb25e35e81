"""The stand-in for mlx-lm's slow attention, next to that attention."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import QuantizedKVCache

from engine.bench.kv.kinds import GROUP_SIZE, MLX_LM_16, MlxLmKind
from engine.bench.kv.mlx_lm import DequantizedKVCache, dequantized_layers, mlx_lm_layers, require_quantizable
from engine.bench.kv.quality import MlxLmReader, make_reader, measure_quality
from engine.bench.prose import TEXT, require_tokens
from engine.errors import OctavoError
from engine.model import Model
from tests.engine.tiny_models import tiny_model

CHUNKS = (1, 64, 35, 1)


@pytest.mark.parametrize("bits", [8, 4, 3])
def test_a_layers_attention_over_dequantized_arrays_is_mlx_lms_own_to_rounding(
    starter: Model, bits: int
) -> None:
    tokens = require_tokens(starter.tokenizer, TEXT, sum(CHUNKS))
    real = mlx_lm_layers(starter.module, MlxLmKind(bits))[0]
    stand_in = dequantized_layers(starter.module, MlxLmKind(bits))[0]
    assert (type(real), real.bits) == (QuantizedKVCache, bits)
    attention = starter.module.model.layers[5].self_attn
    start = 0
    for length in CHUNKS:
        hidden = starter.module.model.embed_tokens(mx.array([tokens[start : start + length]]))
        expected, got = (
            attention(hidden, create_attention_mask(hidden, cache), cache) for cache in (real, stand_in)
        )
        assert mx.abs(expected - got).max().item() < 1e-5 * mx.abs(expected).max().item()
        start += length
    assert stand_in.nbytes == real.nbytes


@pytest.mark.slow
def test_the_loss_measured_so_is_that_of_mlx_lms_own_attention(starter: Model) -> None:
    """Not to rounding: where a number falls to the other side of a step, later layers go their own way."""
    kind = MlxLmKind(4)
    readers = {
        kind: make_reader(starter.module, kind),
        MLX_LM_16: MlxLmReader(starter.module, mlx_lm_layers(starter.module, kind)),
    }
    tokens = require_tokens(starter.tokenizer, TEXT, 129)
    found = measure_quality(make_reader(starter.module, MLX_LM_16), readers, tokens, lambda done: None)
    assert found[kind].kl == pytest.approx(found[MLX_LM_16].kl, rel=0.2)
    assert found[kind].perplexity == pytest.approx(found[MLX_LM_16].perplexity, rel=0.1)


def test_an_open_page_is_lent_at_16_bits_and_full_pages_are_not() -> None:
    mx.random.seed(0)
    keys, values = mx.random.normal((2, 1, 2, 200, 64))
    cache = DequantizedKVCache(bits=3, page_tokens=64)
    rounded = [
        mx.dequantize(*mx.quantize(array, GROUP_SIZE, 3), group_size=GROUP_SIZE, bits=3)
        for array in (keys, values)
    ]
    start = 0
    for length in (50, 60, 1, 89):
        stop = start + length
        got = cache.update_and_fetch(keys[:, :, start:stop], values[:, :, start:stop])
        # A page is quantized after the chunk that filled it.
        full = start // 64 * 64
        for array, exact, coarse in zip(got, (keys, values), rounded, strict=True):
            assert mx.array_equal(array[:, :, :full], coarse[:, :, :full])
            assert mx.array_equal(array[:, :, full:], exact[:, :, full:stop])
        start = stop
    assert cache.offset == 200


@pytest.mark.parametrize("overrides", [{"head_dim": 80}])
def test_a_model_that_mlx_lm_cannot_quantize_is_refused_by_name(overrides: dict[str, Any]) -> None:
    with pytest.raises(
        OctavoError, match=r"^mlx-lm cannot quantize the KV cache of Tiny, so there is nothing"
    ):
        require_quantizable(tiny_model("llama", **overrides), "Tiny")
