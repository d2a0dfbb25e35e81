from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import gguf
import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Kind

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError, UnsupportedModelError
from engine.gguf.header import read_header
from engine.gguf.model import build_model
from engine.parameters import named_parameters
from tests.engine.gguf.files import (
    LLAMA,
    Tensors,
    as_numpy,
    gguf_name,
    interleave,
    with_prefix,
    write_gguf,
)

CONFIG: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": 50,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]])


def _mlx_model(architecture: str, **changes: Any) -> nn.Module:
    """A random model of mlx-lm; norms and biases are random as well, so that none can be mixed up."""
    module = importlib.import_module(f"mlx_lm.models.{architecture}")
    mx.random.seed(1)
    config = CONFIG | {"model_type": architecture} | changes
    model: nn.Module = module.Model(module.ModelArgs.from_dict(config))
    random = [(name, mx.random.normal(value.shape) * 0.3) for name, value in named_parameters(model)]
    model.load_weights(random)
    return model


def _tensors(
    model: nn.Module, architecture: str, kind: Kind = Kind.F32
) -> dict[str, tuple[np.ndarray, Kind]]:
    """The weights as llama.cpp's converter writes them: vectors stay float32, Q and K of llama reordered."""
    tensors = {}
    for name, parameter in named_parameters(model):
        values = as_numpy(parameter)
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            values = interleave(values, 4 if ".q_proj." in name else 2)
        tensors[gguf_name(name)] = (values, kind if values.ndim > 1 else Kind.F32)
    return tensors


def _build(
    path: Path, tensors: Tensors, architecture: str = "llama", *, dequantize: bool = True, **metadata: Any
) -> nn.Module:
    write_gguf(path, with_prefix(architecture, LLAMA) | metadata, tensors, architecture=architecture)
    return build_model(
        read_header(path),
        activations=mx.float32,
        dequantize=dequantize,
        cancel=CancelToken(),
        on_bytes=lambda nbytes: None,
    )


def _assert_same_logits(model: nn.Module, reference: nn.Module, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(
        np.array(model(TOKENS)), np.array(reference(TOKENS)), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_the_model_that_was_written(
    architecture: str, tied: bool, tmp_path: Path
) -> None:
    reference = _mlx_model(architecture, tie_word_embeddings=tied)

    model = _build(tmp_path / "a.gguf", _tensors(reference, architecture), architecture)

    _assert_same_logits(model, reference)


def test_logits_with_biases_are_those_of_the_model_that_was_written(tmp_path: Path) -> None:
    reference = _mlx_model("llama", attention_bias=True, mlp_bias=True)

    model = _build(tmp_path / "a.gguf", _tensors(reference, "llama"))

    _assert_same_logits(model, reference)


def test_heads_may_be_larger_than_the_hidden_size_divides_into(tmp_path: Path) -> None:
    reference = _mlx_model("qwen3", head_dim=32)

    model = _build(
        tmp_path / "a.gguf",
        _tensors(reference, "qwen3"),
        "qwen3",
        **with_prefix("qwen3", {"attention.key_length": 32, "attention.value_length": 32}),
    )

    _assert_same_logits(model, reference)


@pytest.mark.parametrize(
    ("scaling", "metadata"),
    [
        (
            {"rope_type": "linear", "factor": 4.0},
            {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
        ),
        ({"rope_type": "linear", "factor": 2.0}, {"rope.scale_linear": 2.0}),
        (
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 128,
            },
        ),
    ],
)
def test_scaled_positions_are_those_of_mlx_lm(
    scaling: dict[str, Any], metadata: dict[str, Any], tmp_path: Path
) -> None:
    reference = _mlx_model("llama", rope_scaling=scaling)

    model = _build(tmp_path / "a.gguf", _tensors(reference, "llama"), **with_prefix("llama", metadata))

    _assert_same_logits(model, reference)


def test_frequency_factors_give_the_positions_of_llama_3(tmp_path: Path) -> None:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    reference = _mlx_model("llama", rope_scaling=scaling)
    tensors = _tensors(reference, "llama") | {"rope_freqs.weight": (_llama3_factors(scaling), Kind.F32)}

    model = _build(tmp_path / "a.gguf", tensors)

    _assert_same_logits(model, reference)
    assert not np.allclose(np.array(model(TOKENS)), np.array(_mlx_model("llama")(TOKENS)), atol=1e-3)


def _llama3_factors(scaling: dict[str, Any]) -> np.ndarray:
    """The divisors of the frequencies by the rule that was released with Llama 3.1."""
    factors = []
    for index in range(0, 16, 2):
        wavelength = 2 * np.pi * 10000.0 ** (index / 16)
        longest = scaling["original_max_position_embeddings"] / scaling["low_freq_factor"]
        shortest = scaling["original_max_position_embeddings"] / scaling["high_freq_factor"]
        if wavelength < shortest:
            factors.append(1.0)
        elif wavelength > longest:
            factors.append(scaling["factor"])
        else:
            smooth = (scaling["original_max_position_embeddings"] / wavelength - 1.0) / (4.0 - 1.0)
            factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(factors, np.float32)


@pytest.mark.parametrize("kind", [Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0])
@pytest.mark.parametrize("dequantize", [True, False])
def test_quantized_weights_give_the_logits_of_their_values(
    kind: Kind, dequantize: bool, tmp_path: Path
) -> None:
    reference = _mlx_model("llama")
    tensors = _tensors(reference, "llama", kind)
    model = _build(tmp_path / "a.gguf", tensors, dequantize=dequantize)
    plain = _build(tmp_path / "b.gguf", _rounded(tensors))

    _assert_same_logits(model, plain, 1e-3)
    is_quantized = isinstance(model.layers[0].self_attn.q_proj, nn.QuantizedLinear)
    assert is_quantized == (not dequantize and kind.name.startswith("Q"))


def _rounded(tensors: Tensors) -> dict[str, tuple[np.ndarray, Kind]]:
    """The values that the quantized tensors stand for, as plain numbers."""
    return {
        name: (gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind), Kind.F32)
        for name, (values, kind) in tensors.items()
    }


@pytest.mark.parametrize(("kind", "tolerance"), [(Kind.Q4_K, 1e-5), (Kind.Q5_K, 1e-5), (Kind.Q6_K, 2e-2)])
def test_k_quantized_layers_compute_with_their_values(kind: Kind, tolerance: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nbytes = gguf.GGML_QUANT_SIZES[kind][1]
    rows = rng.integers(0, 256, (96, nbytes), np.uint8)
    for start in (0, 2) if kind is not Kind.Q6_K else (208,):
        rows[:, start : start + 2] = (rng.random(96) * 1e-3).astype("<f2")[:, None].view(np.uint8)
    reference = _mlx_model("llama", hidden_size=256, head_dim=64)
    tensors = _tensors(reference, "llama") | {"blk.0.ffn_up.weight": (rows, kind)}

    model = _build(
        tmp_path / "a.gguf", tensors, dequantize=False, **with_prefix("llama", {"embedding_length": 256})
    )

    layer = model.layers[0].mlp.up_proj
    assert isinstance(layer, nn.QuantizedLinear)
    x = rng.normal(size=(1, 256)).astype(np.float32)
    expected = x @ gguf.quants.dequantize(rows, kind).T
    difference = np.abs(np.array(layer(mx.array(x))) - expected).max()
    assert difference <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(
    ("architecture", "dtype"), [("llama", mx.float16), ("qwen2", mx.bfloat16), ("qwen3", mx.bfloat16)]
)
@pytest.mark.parametrize("kind", [Kind.F32, Kind.BF16, Kind.Q4_0])
def test_activations_are_16_bit_where_no_other_type_is_asked_for(
    architecture: str, dtype: mx.Dtype, kind: Kind, tmp_path: Path
) -> None:
    reference = _mlx_model(architecture)
    tensors = _tensors(reference, architecture, kind)
    write_gguf(tmp_path / "a.gguf", with_prefix(architecture, LLAMA), tensors, architecture=architecture)

    model = build_model(
        read_header(tmp_path / "a.gguf"),
        activations=None,
        dequantize=False,
        cancel=CancelToken(),
        on_bytes=lambda nbytes: None,
    )

    assert model(TOKENS).dtype == dtype
    floating = {value.dtype for _, value in named_parameters(model) if value.dtype != mx.uint32}
    assert floating == {dtype}


@pytest.mark.parametrize("dequantize", [True, False])
def test_nothing_on_the_cpu_is_16_bit(dequantize: bool, tmp_path: Path) -> None:
    tensors = _tensors(_mlx_model("qwen2"), "qwen2", Kind.Q8_0)

    model = _build(tmp_path / "a.gguf", tensors, "qwen2", dequantize=dequantize)

    assert model(TOKENS).dtype == mx.float32
    assert {value.dtype for _, value in named_parameters(model)} <= {mx.float32, mx.uint32}


def test_an_unknown_architecture_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"architecture mamba, .*llama, qwen2 and qwen3"):
        _build(tmp_path / "a.gguf", {}, "mamba")


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"expert_count": 8}, "mixture of experts"),
        ({"rope.scaling.type": "longrope"}, "by longrope"),
        ({"rope.dimension_count": 8}, "rope.dimension_count 8 with heads of 16"),
        ({"attention.head_count_kv": [2, 1]}, "head_count_kv"),
    ],
)
def test_variants_that_are_not_read_are_refused(metadata: dict[str, Any], words: str, tmp_path: Path) -> None:
    tensors = _tensors(_mlx_model("llama"), "llama")

    with pytest.raises(UnsupportedModelError, match=words):
        _build(tmp_path / "a.gguf", tensors, **with_prefix("llama", metadata))


def test_an_unknown_tensor_is_refused_by_name(tmp_path: Path) -> None:
    tensors = _tensors(_mlx_model("llama"), "llama") | {"blk.0.odd.weight": (np.zeros((2, 2)), Kind.F32)}

    with pytest.raises(UnsupportedModelError, match=r"blk\.0\.odd\.weight"):
        _build(tmp_path / "a.gguf", tensors)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    tensors = _tensors(_mlx_model("llama"), "llama")
    del tensors["blk.1.ffn_up.weight"]

    with pytest.raises(ModelError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        _build(tmp_path / "a.gguf", tensors)


def test_a_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    tensors = _tensors(_mlx_model("llama"), "llama")
    tensors["blk.1.ffn_up.weight"] = (np.zeros((95, 64), np.float32), Kind.F32)

    with pytest.raises(ModelError, match=r"up_proj\.weight has the shape"):
        _build(tmp_path / "a.gguf", tensors)


def test_reading_stops_between_two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.gguf.weights.PIECE_NBYTES", 1024)
    cancel = CancelToken()
    pieces: list[int] = []

    def stop_at_third(nbytes: int) -> None:
        pieces.append(nbytes)
        if len(pieces) == 3:
            cancel.cancel()

    write_gguf(tmp_path / "a.gguf", with_prefix("llama", LLAMA), _tensors(_mlx_model("llama"), "llama"))
    with pytest.raises(Cancelled):
        build_model(
            read_header(tmp_path / "a.gguf"),
            activations=mx.float32,
            dequantize=True,
            cancel=cancel,
            on_bytes=stop_at_third,
        )

    assert len(pieces) == 3
    assert max(pieces) <= 1024
