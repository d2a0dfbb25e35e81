from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.backend import Backend, Device
from engine.budget import kv_nbytes, kv_nbytes_per_token, plan_load
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.inspection import inspect_model
from engine.kv.precision import KVSpec
from engine.loader import load_model
from engine.memory_limits import RESERVE_NBYTES
from engine.model_info import ModelFormat, ModelInfo

GIB = 1 << 30
METAL = Backend(Device.METAL, blas=None)
CPU = Backend(Device.CPU, blas=None)


def model_info(
    *, layers: int, kv_heads: int, parameters: int = 7_000_000_000, weights: int = 4 * GIB
) -> ModelInfo:
    return ModelInfo(
        path=Path("model"),
        format=ModelFormat.MLX,
        name="Seven",
        architecture="llama",
        quantization="4-bit, group 64",
        num_layers=layers,
        num_heads=32,
        num_kv_heads=kv_heads,
        head_dim=128,
        context_tokens=32_768,
        vocab_size=32_000,
        num_parameters=parameters,
        weights_nbytes=weights,
        packed_nbytes=weights,
        num_plain_values=0,
    )


def test_bytes_per_token_are_those_computed_by_hand() -> None:
    # 2 x 32 layers x 32 heads x 128 values x 2 bytes, and 2 x 40 x 8 x 128 x 2.
    assert kv_nbytes_per_token(model_info(layers=32, kv_heads=32), METAL, KVSpec.parse("16")) == 524_288
    assert kv_nbytes_per_token(model_info(layers=40, kv_heads=8), METAL, KVSpec.parse("16")) == 163_840


def test_quantized_bytes_count_scales_and_biases() -> None:
    info = model_info(layers=40, kv_heads=8)
    values = 2 * 40 * 8 * 128
    # 16-bit scale and bias for 64 values are half a bit a value; float32 ones are a whole bit.
    assert kv_nbytes_per_token(info, METAL, KVSpec.parse("8")) == values * 8.5 / 8
    assert kv_nbytes_per_token(info, METAL, KVSpec.parse("4")) == values * 4.5 / 8
    assert kv_nbytes_per_token(info, CPU, KVSpec.parse("4")) == values * 5 / 8


def test_heads_that_64_does_not_divide_cost_more() -> None:
    # Keys are grouped along tokens and pay half a bit; values are grouped by 32 and pay a whole one.
    info = dataclasses.replace(model_info(layers=40, kv_heads=8), head_dim=96)
    assert kv_nbytes_per_token(info, METAL, KVSpec.parse("4")) == 40 * 8 * 96 * (4.5 + 5) / 8
    # Values of heads that 32 does not divide are padded to the next multiple.
    padded = dataclasses.replace(info, head_dim=80)
    assert kv_nbytes_per_token(padded, METAL, KVSpec.parse("4")) == 40 * 8 * (80 * 4.5 + 96 * 5) / 8


def test_what_the_weights_leave_is_the_context_that_fits() -> None:
    info = model_info(layers=40, kv_heads=8)
    # At 16 bits each token takes 163,840 bytes. A page is open, four are sealed.
    room = RESERVE_NBYTES + info.weights_nbytes + 5 * 256 * 163_840
    plan = plan_load(info, METAL, KVSpec.parse("16"), room)
    assert plan.fits
    assert plan.fitting_tokens == 5 * 256 - 1
    assert plan.kv_nbytes == 5 * 256 * 163_840
    assert plan_load(info, METAL, KVSpec.parse("16"), room - 1).fitting_tokens == 4 * 256 - 1
    assert not plan.dequantize


@pytest.mark.parametrize("kv", ["16", "4", "2; hot=0, warm=0", "2; hot=50", "2; hot=9999", "k4v3; attend=8"])
@pytest.mark.parametrize("room_nbytes", [GIB // 4, GIB, 5 * GIB])
def test_one_token_more_than_the_plan_says_would_not_fit(kv: str, room_nbytes: int) -> None:
    info, spec = model_info(layers=40, kv_heads=8), KVSpec.parse(kv)
    plan = plan_load(info, METAL, spec, RESERVE_NBYTES + info.weights_nbytes + room_nbytes)
    assert plan.kv_nbytes == kv_nbytes(info, METAL, spec, plan.fitting_tokens) <= room_nbytes
    if plan.fitting_tokens < plan.context_tokens:
        assert kv_nbytes(info, METAL, spec, plan.fitting_tokens + 1) > room_nbytes


def test_pages_that_stay_exact_leave_room_for_fewer_tokens() -> None:
    info = model_info(layers=40, kv_heads=8)
    room = RESERVE_NBYTES + info.weights_nbytes + GIB
    fitting = [
        plan_load(info, METAL, KVSpec.parse(f"2; hot={hot}"), room).fitting_tokens for hot in (0, 5, 9999)
    ]
    exact = plan_load(info, METAL, KVSpec.parse("16"), room).fitting_tokens
    assert fitting == sorted(fitting, reverse=True)
    assert fitting[0] > 5 * fitting[-1]
    assert fitting[-1] == pytest.approx(exact, rel=0.01)


def test_memory_beyond_need_is_limited_by_the_models_own_context() -> None:
    plan = plan_load(model_info(layers=2, kv_heads=1), METAL, KVSpec.parse("16"), 1000 * GIB)
    assert plan.fitting_tokens == plan.context_tokens == 32_768


def test_a_model_that_does_not_fit_is_refused_with_the_numbers() -> None:
    info = model_info(layers=40, kv_heads=8)
    plan = plan_load(info, METAL, KVSpec.parse("16"), 4 * GIB)
    assert not plan.fits
    with pytest.raises(ModelError, match=r"Seven needs 4\.3 GB for its weights.*4\.3 GB of memory are free"):
        plan.require_fit(info)


def test_the_cpu_takes_float32_weights_only_when_they_fit() -> None:
    info = model_info(layers=2, kv_heads=1, parameters=1_000_000_000, weights=GIB)
    roomy = plan_load(info, CPU, KVSpec.parse("16"), 16 * GIB)
    tight = plan_load(info, CPU, KVSpec.parse("16"), 4 * GIB)
    assert roomy.dequantize
    assert roomy.weights_nbytes == 4_000_000_000
    assert tight.fits
    assert not tight.dequantize


@pytest.mark.parametrize("dequantize", [True, False])
def test_the_plan_for_the_starter_is_what_it_takes(
    starter_gguf: Path, backend: Backend, dequantize: bool
) -> None:
    info = inspect_model(starter_gguf)
    enough, little = 8 * GIB, RESERVE_NBYTES + info.num_parameters * 3
    plan = plan_load(info, backend, KVSpec.parse("4"), enough if dequantize else little)
    assert plan.dequantize is (dequantize and backend.dequantizes)
    model = load_model(
        starter_gguf,
        backend,
        dequantize=plan.dequantize,
        cancel=CancelToken(),
        on_progress=lambda progress: None,
    )
    assert model.weights_nbytes == pytest.approx(plan.weights_nbytes, rel=0.01)


def test_a_loaded_model_keeps_the_form_of_its_weights_in_the_plan() -> None:
    info = model_info(layers=2, kv_heads=1, parameters=1_000_000_000, weights=GIB)
    loose = plan_load(info, CPU, KVSpec.parse("16"), 4 * GIB)
    assert not loose.dequantize
    fixed = plan_load(info, CPU, KVSpec.parse("16"), 4 * GIB, dequantize=True)
    assert fixed.weights_nbytes == 4_000_000_000
    assert fixed.fitting_tokens < loose.fitting_tokens
