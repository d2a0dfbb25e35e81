from __future__ import annotations

import dataclasses
from pathlib import Path

import mlx.core as mx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.backend import Backend, Device
from engine.budget import (
    bare_nbytes,
    kv_nbytes,
    kv_nbytes_per_token,
    kv_numbers_per_token,
    kv_once_nbytes,
    plan_load,
    tokens_in_theory,
)
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.inspection import inspect_model
from engine.kv.precision import KVSpec, LayerShape
from engine.kv.room import OwnCache
from engine.loader import load_model
from engine.memory_limits import RESERVE_NBYTES, MemoryLimits
from engine.model_info import CachedLayers, ModelFormat, ModelInfo
from tests.engine.folders import write_folder

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
    assert plan.fitting_tokens == 5 * 256
    assert plan.kv_nbytes == 5 * 256 * 163_840
    assert plan_load(info, METAL, KVSpec.parse("16"), room - 1).fitting_tokens == 4 * 256
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


def test_the_formula_gives_the_rows_computed_by_hand() -> None:
    # 2 x 32 layers x 32 heads x 128, two bytes each; times 32,768 tokens.
    wide = model_info(layers=32, kv_heads=32)
    assert kv_numbers_per_token(wide) == 262_144
    assert bare_nbytes(kv_numbers_per_token(wide), 16) == 524_288
    assert bare_nbytes(kv_numbers_per_token(wide) * 32_768, 16) == 16 * GIB
    assert bare_nbytes(kv_numbers_per_token(model_info(layers=40, kv_heads=8)), 16) == 163_840


@pytest.mark.parametrize(("bits", "bare_gib", "gib"), [(8, 8, 8.5), (6, 6, 6.5), (4, 4, 4.5)])
def test_scales_add_half_a_bit_in_groups_of_64(bits: int, bare_gib: int, gib: float) -> None:
    info = model_info(layers=32, kv_heads=32)
    assert bare_nbytes(kv_numbers_per_token(info) * 32_768, bits) == bare_gib * GIB
    assert kv_nbytes_per_token(info, METAL, KVSpec.parse(f"{bits}")) * 32_768 == gib * GIB


def test_what_weights_and_reserve_leave_is_the_budget() -> None:
    info = dataclasses.replace(model_info(layers=40, kv_heads=8, weights=8 * GIB), context_tokens=131_072)
    plan = plan_load(info, METAL, KVSpec.parse("16"), 32 * GIB, limits=MemoryLimits(reserve_nbytes=6 * GIB))
    assert plan.kv_budget_nbytes == 18 * GIB
    assert plan.theoretical_tokens == 117_964  # 115 Ki
    # 60 % are 276.48 pages of 41,943,040 bytes: 260 sealed ones, 15 to spare, and the open one.
    assert plan.safe_tokens == 261 * 256
    assert plan.safe_tokens < plan.fitting_tokens < plan.theoretical_tokens


@pytest.mark.parametrize(
    ("share", "tokens"), [(1, 117_964), (0.6, 70_778), (0.5, 58_982)]
)  # 115 Ki and its parts
def test_the_formula_gives_the_tokens_computed_by_hand(share: float, tokens: int) -> None:
    info = model_info(layers=40, kv_heads=8)
    assert tokens_in_theory(info, METAL, KVSpec.parse("16"), int(18 * GIB * share)) == tokens


def test_the_user_may_allow_less_than_there_is_and_another_share() -> None:
    info = dataclasses.replace(model_info(layers=40, kv_heads=8, weights=8 * GIB), context_tokens=131_072)
    limits = MemoryLimits(most_nbytes=32 * GIB, reserve_nbytes=6 * GIB, safe_share=0.5)
    plan = plan_load(info, METAL, KVSpec.parse("16"), 64 * GIB, limits=limits)
    assert (plan.usable_nbytes, plan.available_nbytes) == (32 * GIB, 64 * GIB)
    # 9 GiB are 230.4 pages: 217 sealed ones, 12 to spare, and the open one.
    assert (plan.theoretical_tokens, plan.safe_tokens) == (117_964, 218 * 256)
    with pytest.raises(
        ModelError, match=r"6\.4 GB to work in, and 8\.6 GB of memory may be taken\. Allow more"
    ):
        plan_load(
            info, METAL, KVSpec.parse("16"), 64 * GIB, limits=dataclasses.replace(limits, most_nbytes=8 * GIB)
        ).require_fit(info)


def test_a_safe_context_is_never_longer_than_what_fits_or_than_the_models_own() -> None:
    info = model_info(layers=40, kv_heads=8)
    room = RESERVE_NBYTES + info.weights_nbytes
    assert plan_load(info, METAL, KVSpec.parse("16"), room + 1000 * GIB).safe_tokens == info.context_tokens
    whole = MemoryLimits(safe_share=1)
    short = plan_load(info, METAL, KVSpec.parse("2; hot=9999"), room + GIB, limits=whole)
    assert short.safe_tokens == short.fitting_tokens


def with_own(*own: OwnCache, paged_layers: int = 1) -> ModelInfo:
    shapes = (LayerShape(2, 64, 64),) * paged_layers + (LayerShape(0, 0, 0),) * len(own)
    return dataclasses.replace(
        model_info(layers=len(shapes), kv_heads=2), layers=CachedLayers(shapes, own), context_tokens=65_536
    )


def test_windows_and_states_are_taken_once_and_latents_by_each_token() -> None:
    exact = KVSpec.parse("16")
    info = with_own(
        OwnCache(numbers_per_token=256, window_tokens=1000),
        OwnCache(state_numbers=5000, state_nbytes=300),
        OwnCache(numbers_per_token=576),
    )
    assert kv_numbers_per_token(info) == 2 * 2 * 64 + 576
    assert kv_nbytes_per_token(info, METAL, exact) == 2 * (2 * 2 * 64 + 576)
    # Latents stay at 16 bits whatever the precision.
    assert kv_nbytes_per_token(info, METAL, KVSpec.parse("4")) == 2 * 2 * 64 * 4.5 / 8 + 2 * 576
    once = 2 * 256 * (1000 + 512) + 2 * 5000 + 300
    assert kv_once_nbytes(info, METAL, 65_536) == once
    grown = kv_nbytes(info, METAL, exact, 60_000) - kv_nbytes(info, METAL, exact, 40_000)
    assert grown == pytest.approx(20_000 * 2 * (2 * 2 * 64 + 576), rel=0.03)
    plan = plan_load(info, METAL, exact, RESERVE_NBYTES + info.weights_nbytes + once + 5000 * 1664)
    assert plan.theoretical_tokens == 5000


def test_pages_that_stay_exact_make_a_safe_context_shorter() -> None:
    info = model_info(layers=40, kv_heads=8)
    # A GiB and 60 % of it are 15.36 pages at 16 bits: one is open, the others are hot and need none to spare.
    room = RESERVE_NBYTES + info.weights_nbytes + GIB
    assert plan_load(info, METAL, KVSpec.parse("2; hot=9999"), room).safe_tokens == 15 * 256


def test_a_model_whose_tokens_take_nothing_fits_whole_or_not_at_all() -> None:
    info = with_own(OwnCache(state_numbers=10_000), paged_layers=0)
    room = RESERVE_NBYTES + info.weights_nbytes
    enough = plan_load(info, METAL, KVSpec.parse("4"), room + 20_000)
    assert enough.kv_nbytes_per_token == 0
    assert (enough.theoretical_tokens, enough.fitting_tokens, enough.safe_tokens) == (65_536, 65_536, 0)
    assert plan_load(info, METAL, KVSpec.parse("4"), room + 19_999).fitting_tokens == 0


INFOS = st.builds(
    lambda layers, heads, own: dataclasses.replace(
        with_own(*own, paged_layers=layers),
        layers=CachedLayers(
            (LayerShape(heads, 64, 64),) * layers + (LayerShape(0, 0, 0),) * len(own), tuple(own)
        ),
    ),
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(
        st.builds(
            OwnCache,
            st.integers(0, 300),
            st.one_of(st.none(), st.integers(1, 4000)),
            st.integers(0, 10_000),
            st.integers(0, 10_000),
        ),
        max_size=3,
    ),
)
SPECS = st.builds(
    lambda bits, hot, warm: KVSpec.parse(f"{bits}; hot={hot}, warm={warm}"),
    st.sampled_from([16, 8, 6, 5, 4, 3, 2]),
    st.integers(0, 9),
    st.integers(0, 9),
)


@settings(max_examples=50)
@given(INFOS, SPECS, st.integers(0, 4 * GIB), st.integers(0, GIB), st.integers(0, GIB))
def test_less_memory_never_makes_room_for_more(
    info: ModelInfo, kv: KVSpec, room_nbytes: int, less: int, reserve: int
) -> None:
    available = info.weights_nbytes + room_nbytes
    plans = [
        plan_load(
            info, METAL, kv, available - missing, limits=MemoryLimits(most_nbytes=most, reserve_nbytes=kept)
        )
        for missing, most, kept in (
            (0, None, 0),
            (less, None, 0),
            (less, available - 2 * less, 0),
            (less, available - 2 * less, reserve),
        )
    ]
    for kind in ("fitting_tokens", "theoretical_tokens", "safe_tokens", "kv_budget_nbytes"):
        counts = [getattr(plan, kind) for plan in plans]
        assert counts == sorted(counts, reverse=True)
    for plan in plans:
        assert 0 <= plan.safe_tokens <= plan.fitting_tokens <= plan.context_tokens
        assert plan.fitting_tokens <= plan.theoretical_tokens or plan.fitting_tokens == plan.context_tokens
        assert plan.kv_nbytes <= plan.kv_budget_nbytes or not plan.fitting_tokens


@settings(max_examples=100)
@given(INFOS, SPECS, st.integers(0, 4 * GIB), st.floats(0.01, 1))
def test_a_safe_context_leaves_the_rest_of_the_budget_free_with_all_that_the_cache_keeps(
    info: ModelInfo, kv: KVSpec, budget_nbytes: int, share: float
) -> None:
    limits = MemoryLimits(reserve_nbytes=0, safe_share=share)
    plan = plan_load(info, METAL, kv, info.weights_nbytes + budget_nbytes, limits=limits)
    most = share * budget_nbytes
    assert plan.safe_tokens == 0 or kv_nbytes(info, METAL, kv, plan.safe_tokens) <= most
    in_theory = tokens_in_theory(info, METAL, kv, int(most))
    assert plan.safe_tokens <= in_theory
    if plan.safe_tokens < min(plan.context_tokens, in_theory):
        assert kv_nbytes(info, METAL, kv, plan.safe_tokens + 1) > most


def packed_info(context: int = 32_768) -> ModelInfo:
    """A model of 4 bits: 0.5 GB packed, 4 GB in float32."""
    info = model_info(layers=8, kv_heads=2, parameters=10**9, weights=10**9 // 2)
    return dataclasses.replace(info, context_tokens=context)


@settings(max_examples=60)
@example(KVSpec.parse("16"), 4_900_000_000, 400_000_000, 32_768)
@given(SPECS, st.integers(0, 8 * GIB), st.integers(0, 4 * GIB), st.integers(1, 40_000))
def test_more_memory_never_makes_less_fit_on_the_cpu(
    kv: KVSpec, little: int, more: int, context: int
) -> None:
    info = packed_info()
    less, enough = (plan_load(info, CPU, kv, nbytes) for nbytes in (little, little + more))
    assert less.fitting_tokens <= enough.fitting_tokens
    asked = min(context, info.context_tokens)
    less, enough = (plan_load(info, CPU, kv, nbytes, context=context) for nbytes in (little, little + more))
    assert less.fitting_tokens < asked or enough.fitting_tokens >= asked
    packed = plan_load(info, CPU, kv, little, dequantize=False)
    assert (less.fitting_tokens >= asked) == (packed.fitting_tokens >= asked)


def test_weights_become_float32_where_the_context_fits_beside_them() -> None:
    info, kv = packed_info(), KVSpec.parse("16")
    room = RESERVE_NBYTES + 4 * 10**9
    whole = room + kv_nbytes(info, CPU, kv, info.context_tokens)
    assert plan_load(info, CPU, kv, whole).dequantize
    tight = plan_load(info, CPU, kv, whole - 1)
    assert (tight.dequantize, tight.fitting_tokens) == (False, info.context_tokens)
    assert tight.unpacked_tokens == info.context_tokens - 1  # with the last one the pools grow
    short = room + kv_nbytes(info, CPU, kv, 5000)
    assert plan_load(info, CPU, kv, short, context=5000).dequantize
    assert plan_load(info, CPU, kv, short, context=5000).unpacked_tokens is None
    assert not plan_load(info, CPU, kv, short - 1, context=5000).dequantize
    # A context beyond the model's own is no reason to keep them packed.
    assert plan_load(info, CPU, kv, whole, context=40_000).dequantize
    assert plan_load(info, METAL, kv, short).unpacked_tokens is None


@settings(max_examples=40)
@example(with_own(paged_layers=2), 0, 3, 990_701)
@given(INFOS, st.integers(0, 5), st.integers(0, 5), st.integers(0, 4 * GIB))
def test_fewer_bits_never_leave_room_for_less(info: ModelInfo, hot: int, warm: int, room_nbytes: int) -> None:
    fitting = [
        plan_load(
            info,
            METAL,
            KVSpec.parse(f"{bits}; hot={hot}, warm={warm}"),
            info.weights_nbytes + room_nbytes,
            limits=MemoryLimits(reserve_nbytes=0),
        )
        for bits in (16, 8, 6, 5, 4, 3, 2)
    ]
    in_theory = [plan.theoretical_tokens for plan in fitting]
    assert in_theory == sorted(in_theory)
    exact, at_8, *lower = [plan.fitting_tokens for plan in fitting]
    assert lower == sorted(lower)
    # A page that passes from one pool to another takes the room of one. At 16 bits none does, and where no
    # page is hot none does at 8, which warm pages have as well.
    assert exact <= at_8 + 256
    assert at_8 <= lower[0] + (0 if hot else 256)


def test_a_float32_model_computes_in_float32_everywhere(tmp_path: Path) -> None:
    info = inspect_model(write_folder(tmp_path / "wide", bits=None, dtype=mx.float32))
    plan = plan_load(info, METAL, KVSpec.parse("16"), 4 * GIB)
    assert plan.weights_nbytes == info.weights_nbytes == 4 * info.num_parameters
    # 2 x 2 layers x 2 KV heads x 16 numbers.
    assert plan.kv_nbytes_per_token == 4 * 128
    assert (
        plan_load(
            inspect_model(write_folder(tmp_path / "half", bits=None)), METAL, KVSpec.parse("16"), 4 * GIB
        ).kv_nbytes_per_token
        == 2 * 128
    )
