from __future__ import annotations

from pathlib import Path

import gguf
import mlx.core as mx
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Kind

from engine.gguf.tensor_types import TensorType, plain_values, tensor_type

QUANTIZED = [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K]


def _type(kind: Kind) -> TensorType:
    return tensor_type(int(kind), "t", Path("a.gguf"))


def _random_rows(kind: Kind) -> np.ndarray:
    """Random blocks: every pattern of bits is a value, but for scales that are infinite or no number."""
    block_values, block_nbytes = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.default_rng(int(kind))
    blocks = rng.integers(0, 256, (6, 512 // block_values, block_nbytes), np.uint8)
    halves = {Kind.Q6_K: [208], Kind.Q4_K: [0, 2], Kind.Q5_K: [0, 2], Kind.Q4_1: [0, 2], Kind.Q5_1: [0, 2]}
    for start in halves.get(kind, [0]):
        scales = rng.normal(size=blocks.shape[:2]).astype("<f2")
        blocks[..., start : start + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(6, -1)


@pytest.mark.parametrize("kind", QUANTIZED)
def test_values_are_those_that_ggml_reads(kind: Kind) -> None:
    rows = _random_rows(kind)
    stored = _type(kind)
    assert stored.unpack is not None

    groups = stored.unpack(rows.reshape(6, -1, stored.block_nbytes))

    np.testing.assert_allclose(groups.dequantize(), gguf.quants.dequantize(rows, kind), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("kind", QUANTIZED[:-1])
def test_packed_groups_are_what_mlx_reads(kind: Kind) -> None:
    rows = _random_rows(kind)
    stored = _type(kind)
    assert stored.unpack is not None
    groups = stored.unpack(rows.reshape(6, -1, stored.block_nbytes))

    values = mx.dequantize(
        mx.array(groups.packed()),
        mx.array(groups.scales),
        mx.array(groups.biases),
        group_size=32,
        bits=stored.mlx_bits,
    )

    np.testing.assert_allclose(np.array(values), gguf.quants.dequantize(rows, kind), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.BF16])
def test_plain_values_are_those_that_ggml_reads(kind: Kind) -> None:
    rows = gguf.quants.quantize(np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32), kind)

    values = plain_values(rows.view(np.uint8), _type(kind))

    np.testing.assert_array_equal(values.astype(np.float32), gguf.quants.dequantize(rows, kind))
