"""The size of prefill chunks: by the speed just seen, and by what attention keeps of them."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from engine.backend import Backend, Device
from engine.events import PrefillProgress
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.prefill_chunks import MIN_CHUNK_TOKENS, SCORES_NBYTES, ChunkSize, chunk_size
from tests.engine.replies import generate, new_cache, prompt_of
from tests.engine.tiny_models import tiny_model


def test_chunks_grow_when_fast_and_shrink_when_slow() -> None:
    size = ChunkSize(2.0, 0)
    size.adapt(64, 0.01)
    assert size.after(0) == 128
    size.adapt(128, 8)
    assert size.after(0) == 32
    size.adapt(32, 100)
    assert size.after(0) == MIN_CHUNK_TOKENS


@pytest.mark.parametrize(("num_tokens", "elapsed_s", "takes_long"), [(64, 0.01, False), (16, 0.6, True)])
def test_a_chunk_takes_long_when_a_stop_would_wait_for_it(
    num_tokens: int, elapsed_s: float, takes_long: bool
) -> None:
    size = ChunkSize(2.0, 0)
    assert size.takes_long  # nothing is known yet of this computer's speed
    size.adapt(num_tokens, elapsed_s)
    assert size.takes_long == takes_long


@pytest.mark.parametrize("num_held", [0, 2_000, 40_000, 131_072, 1_000_000])
def test_the_scores_of_a_chunk_are_bounded(num_held: int) -> None:
    size = ChunkSize(2.0, score_nbytes=32 * 4)
    for _ in range(4):
        size.adapt(64, 0.01)
    num_tokens = size.after(num_held)
    assert num_tokens * 32 * 4 * (num_held + num_tokens) <= SCORES_NBYTES
    assert num_tokens == 512 or 2 * num_tokens * 32 * 4 * (num_held + 2 * num_tokens) > SCORES_NBYTES


def test_a_chunk_has_at_least_one_token() -> None:
    assert ChunkSize(2.0, score_nbytes=32 * 4).after(10**9) == 1


@pytest.mark.parametrize(
    ("device", "head_dim", "bounds"),
    [
        (Device.METAL, 128, False),
        (Device.CUDA, 64, False),
        (Device.METAL, 256, True),
        (Device.METAL, 192, True),
        (Device.CPU, 128, True),
    ],
)
def test_scores_count_where_attention_is_not_fused(
    starter: Model, device: Device, head_dim: int, bounds: bool
) -> None:
    info = dataclasses.replace(starter.info, head_dim=head_dim, num_heads=32)
    model = Model(starter.module, starter.tokenizer, info, Backend(device, None))
    size = chunk_size(model, new_cache(starter))
    size.adapt(64, 0.01)
    assert (size.after(1_000_000) < size.after(0)) == bounds


def test_smaller_chunks_stay_worth_the_copy_that_each_of_them_costs() -> None:
    size = ChunkSize(target_s=2.0, score_nbytes=0)
    for _ in range(3):
        size.adapt(512, 0.5)
    assert size.after(0) == 512
    size.divisor = 4
    assert size.after(0) == 128
    size.adapt(64, 4.0)
    assert size.after(0) == 32
    size.adapt(32, 4.0)
    size.adapt(32, 4.0)
    assert size.after(0) == 16  # as small as without pressure: time allows no more


def test_scores_of_a_float32_model_take_twice_the_room_on_metal(starter: Model) -> None:
    def wanted(is_float32: bool) -> int:
        info = dataclasses.replace(starter.info, head_dim=256, num_heads=32, is_float32=is_float32)
        model = Model(starter.module, starter.tokenizer, info, Backend(Device.METAL, None))
        return chunk_size(model, new_cache(starter)).after(199_936)

    # 64 tokens x 200,000 x 32 heads x 2 or 4 bytes, next to 536,870,912.
    assert (wanted(False), wanted(True)) == (41, 20)


def test_a_prompt_is_read_in_chunks_whose_scores_are_bounded(
    starter: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    per_score = starter.info.num_heads * starter.backend.activation_nbytes
    monkeypatch.setattr("engine.prefill_chunks.FUSED_HEAD_DIMS", frozenset())
    monkeypatch.setattr("engine.prefill_chunks.SCORES_NBYTES", 50 * 100 * per_score)
    done = [
        event.done for event in generate(starter, prompt_of(starter)) if isinstance(event, PrefillProgress)
    ]
    assert done[-1] > 150
    assert max((end - start) * end for start, end in pairwise(done)) <= 50 * 100


@pytest.mark.parametrize(
    ("architecture", "wanted"),
    [("llama", 128), ("longcat_flash", 128), ("gemma3", 16), ("falcon_h1", 16), ("mamba2", 16)],
)
def test_where_a_pass_cannot_be_undone_chunks_are_quick(
    starter: Model, architecture: str, wanted: int
) -> None:
    cache = SequenceCache(tiny_model(architecture), KVSpec.parse("16"))
    size = chunk_size(starter, cache)
    size.adapt(64, 0.8)  # so that 16 tokens take 0.2 s
    assert size.after(0) == wanted
