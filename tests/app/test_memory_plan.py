from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from app.memory_plan import MemoryPlan, plan_memory
from engine.backend import Backend, Device
from engine.budget import kv_nbytes
from engine.kv.precision import KVSpec
from engine.load_admission import LoadWish
from engine.memory_limits import MemoryLimits
from engine.model_info import ModelFormat, ModelInfo

GIB = 1 << 30
LIMITS = MemoryLimits(reserve_nbytes=GIB)

INFO = ModelInfo(
    path=Path("model"),
    format=ModelFormat.MLX,
    name="Seven",
    architecture="llama",
    quantization="4-bit, group 64",
    num_layers=40,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    context_tokens=32_768,
    vocab_size=32_000,
    num_parameters=7_000_000_000,
    weights_nbytes=4 * GIB,
    packed_nbytes=4 * GIB,
    num_plain_values=0,
)
"""A token takes 163,840 bytes at 16 bits: all 32,768 of them 5 GiB and a little."""


def planned(kv: str, kv_gib: float, context: int | None = None) -> MemoryPlan:
    memory = int((5 + kv_gib) * GIB)
    return plan_memory(
        INFO, Backend(Device.METAL, None), KVSpec.parse(kv), memory, context=context, limits=LIMITS
    )


def test_16_bits_the_presets_and_what_was_asked_for_are_compared_from_the_most_exact_on() -> None:
    assert [one.name for one in planned("6", 4).precisions] == [
        "16",
        "precise",
        "--kv",
        "balanced",
        "compact",
    ]
    assert [one.name for one in planned("4", 4).precisions] == ["16", "precise", "balanced", "compact"]
    assert planned("4", 4).asked.name == "balanced"


def test_contexts_double_up_to_the_models_own_with_the_one_that_was_asked_for_between() -> None:
    contexts = [512, 1024, 2048, 4096, 8192, 16_384, 32_768]
    assert list(planned("4", 4).asked.nbytes_at) == contexts
    assert list(planned("4", 4, 5000).asked.nbytes_at) == sorted([*contexts, 5000])
    assert list(planned("4", 4, 99_999).asked.nbytes_at) == contexts


def test_what_fits_with_room_is_said_with_the_numbers() -> None:
    result = planned("4", 4, 8192)
    assert result.fits
    # A page has 20,971,520 numbers. At 16 bits are the open one, a hot one and one that passes through; five
    # are at 8.5 and 25 at 4.5.
    assert result.asked.nbytes_at[8192] == 20_971_520 * (3 * 16 + 5 * 8.5 + 25 * 4.5) / 8 == 532_152_320
    assert result.verdict == "8,192 tokens at balanced fit: they take 532 MB of 4.3 GB."


def test_what_fits_without_room_for_surprises_is_said_so() -> None:
    result = planned("16", 4, 20_000)
    assert result.fits
    # 60 % of 4 GiB are 61.4 pages of 163,840 bytes a token: one open, 58 sealed and two to spare.
    assert "fit, just" in result.verdict
    assert result.verdict.endswith("Up to 15,104 tokens there is room for surprises.")


def test_what_does_not_fit_is_said_with_the_mildest_precision_and_the_longest_context_that_do() -> None:
    result = planned("16", 4)
    assert not result.fits
    fitting = result.asked.plan.fitting_tokens
    assert result.verdict.endswith(
        f"What fits is 32,768 tokens at precise, or up to {fitting:,} tokens at 16 bits."
    )
    assert "32,768 tokens at 16 bits do not fit: they take 5." in result.verdict
    assert planned("16", 4, fitting).fits
    assert not planned("16", 4, fitting + 1).fits


def test_where_no_precision_helps_only_a_shorter_context_is_offered() -> None:
    result = planned("k4v3; hot=3", 0.5)
    assert not result.fits
    fitting = result.asked.plan.fitting_tokens
    assert result.verdict.endswith(f"What fits is up to {fitting:,} tokens at k4v3; hot=3.")


def test_a_context_beyond_the_models_own_is_no_matter_of_memory() -> None:
    result = planned("4", 100, 40_000)
    assert not result.fits
    assert result.verdict == "Seven was made for 32,768 tokens and cannot read 40,000."


def test_weights_that_do_not_fit_are_said_before_anything_else() -> None:
    result = planned("4", -1)
    assert not result.fits
    assert result.verdict == (
        "Seven does not fit: with 4.3 GB of weights and 1.1 GB kept free it takes 5.4 GB and a KV cache, and "
        "there are 4.3 GB. Choose a smaller model or one with fewer bits."
    )


def test_all_precisions_are_planned_with_the_weights_in_the_same_form() -> None:
    # On the CPU float32 weights leave enough for the whole context at 2 bits, and not at 16.
    info = dataclasses.replace(INFO, num_parameters=10**9, packed_nbytes=GIB // 2)
    spec, cpu = KVSpec.parse("2; hot=0, warm=0"), Backend(Device.CPU, None)
    memory = GIB + 4 * 10**9 + kv_nbytes(info, cpu, spec, info.context_tokens)
    result = plan_memory(info, cpu, spec, memory, context=None, limits=LIMITS)
    assert {one.plan.weights_nbytes for one in result.precisions} == {4 * 10**9}
    exact = result.precisions[0]
    assert exact.plan.fitting_tokens < exact.packed_tokens
    tighter = plan_memory(info, cpu, spec, memory - 1, context=None, limits=LIMITS)
    assert {one.plan.weights_nbytes for one in tighter.precisions} == {GIB // 2}
    assert tighter.fits


@pytest.mark.parametrize("context", [None, 2048, 9000])
@pytest.mark.parametrize("memory_gb", [1, 2, 5.3, 6, 16])
@pytest.mark.parametrize("device", [Device.CPU, Device.METAL])
def test_a_model_is_loaded_as_it_was_planned(device: Device, memory_gb: float, context: int | None) -> None:
    info = dataclasses.replace(
        INFO, num_parameters=10**9, packed_nbytes=GIB // 2, context_tokens=8192, num_layers=20
    )
    backend, spec, memory = Backend(device, None), KVSpec.parse("6; hot=1"), int(memory_gb * 10**9)
    planned = plan_memory(info, backend, spec, memory, context=context, limits=LIMITS)
    loaded = LoadWish(info, backend, spec, context, memory, LIMITS).plan(anyway=True)
    assert loaded == planned.asked.plan
    for one in planned.precisions:
        for tokens in one.nbytes_at:
            wish = LoadWish(info, backend, one.kv, tokens, memory, LIMITS)
            fits = wish.plan(anyway=True).fitting_tokens >= tokens
            assert fits == (tokens <= one.packed_tokens)


@pytest.mark.parametrize("kv", ["16", "4", "k4v3; hot=3"])
def test_the_verdict_agrees_with_the_table(kv: str) -> None:
    for context in (512, 4096, 20_000, 32_768):
        result = planned(kv, 1, context)
        assert result.fits == (result.asked.nbytes_at[context] <= GIB)
