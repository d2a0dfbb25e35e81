"""Blocks in slots: what quantizing costs, and where the memory goes."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.pool import Part, SlotPool
from engine.kv.precision import GROUP_SIZES, KV_BITS, KVSpec, LayerShape
from tests.engine.kv.oracle import key_steps, value_errors, value_steps
from tests.engine.kv.small_specs import HEAD_DIMS
from tests.engine.kv.stand_in import FloatArray

QUANTIZED = [bits for bits in KV_BITS if bits < 16]
PAGE_TOKENS = 128
MiB = 2**20


def pool_of(
    part: Part, bits: int, head_dim: int = 64, group_size: int = 64, page_blocks: int = 2
) -> SlotPool:
    return SlotPool(part, bits, head_dim, group_size, page_blocks)


def random_blocks(part: Part, count: int, head_dim: int = 64, page_tokens: int = PAGE_TOKENS) -> FloatArray:
    """Return blocks whose channels have different sizes, as keys and values of models do."""
    generator = np.random.default_rng(count)
    blocks = generator.standard_normal((count, page_tokens, head_dim), dtype=np.float32)
    blocks *= np.exp(generator.standard_normal(head_dim, dtype=np.float32))
    return np.ascontiguousarray(blocks.swapaxes(1, 2)) if part is Part.KEYS else blocks


def put(pool: SlotPool, blocks: FloatArray) -> mx.array:
    return mx.array(pool.put(mx.array(blocks)))


@pytest.mark.parametrize("part", Part)
def test_16_bits_are_the_activations_themselves(part: Part) -> None:
    pool, blocks = pool_of(part, 16, 72), random_blocks(part, 3, 72)
    assert np.array_equal(np.array(pool.get(put(pool, blocks))), blocks)


@pytest.mark.parametrize("group_size", GROUP_SIZES)
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("bits", QUANTIZED)
def test_no_key_or_value_is_wrong_by_more_than_a_step_of_its_group(
    bits: int, head_dim: int, group_size: int
) -> None:
    for part in Part:
        pool, blocks = pool_of(part, bits, head_dim, group_size), random_blocks(part, 2, head_dim)
        for read, block in zip(np.array(pool.get(put(pool, blocks))), blocks, strict=True):
            if part is Part.KEYS:
                errors, steps = np.abs(read - block).T, key_steps(block.T, bits, group_size)
            else:
                errors, steps = value_errors(read, block), value_steps(block, bits, group_size)
            assert (errors <= steps + 1e-5).all()
            assert errors.mean() > 0.1 * steps.mean()  # it does have these bits


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("bits", KV_BITS)
def test_products_with_blocks_where_they_lie_are_those_with_what_is_read(bits: int, head_dim: int) -> None:
    generator = np.random.default_rng(0)
    keys, values = (pool_of(part, bits, head_dim, 32) for part in Part)
    for pool in (keys, values):
        put(pool, random_blocks(pool.part, 7, head_dim))
    slots = mx.array([[4, 0, 5], [6, 2, 5]])
    heads = mx.array([[2], [0]])
    queries = generator.standard_normal((3, 4, head_dim), dtype=np.float32)
    scores = np.array(keys.matmul(mx.array(queries), slots, heads))
    for row, head in enumerate((2, 0)):
        expected = queries[head] @ np.array(keys.get(slots[row]))
        np.testing.assert_allclose(scores[row], expected, rtol=1e-4, atol=1e-3)
    weights = generator.random((2, 3, 4, PAGE_TOKENS), dtype=np.float32) / PAGE_TOKENS
    output = values.decoded(values.matmul(mx.array(weights), slots).sum(axis=1))
    expected = (weights @ np.array(values.get(slots))).sum(axis=1)
    np.testing.assert_allclose(np.array(output), expected, atol=1e-4)


@pytest.mark.parametrize("page_tokens", [64, 128, 256, 512])
@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("bits", KV_BITS)
def test_a_block_takes_the_bytes_that_the_formula_says(bits: int, head_dim: int, page_tokens: int) -> None:
    for group_size in (size for size in GROUP_SIZES if size <= page_tokens):
        nbytes = 0
        for part in Part:
            pool = pool_of(part, bits, head_dim, group_size, page_blocks=1)
            put(pool, random_blocks(part, 1, head_dim, page_tokens))
            assert pool.block_nbytes == pool.nbytes == sum(array.nbytes for array in pool.arrays)
            nbytes += pool.nbytes
        spec = KVSpec.parse(f"{bits}; page={page_tokens}, group={group_size}")
        formula = spec.kv_nbytes_per_token([LayerShape(1, head_dim, head_dim)], activation_nbytes=4)
        assert nbytes == pytest.approx(formula * page_tokens, rel=1e-9)


@pytest.mark.parametrize("bits", KV_BITS)
@pytest.mark.parametrize("part", Part)
def test_writing_into_free_slots_copies_no_pool(part: Part, bits: int) -> None:
    pool, blocks = pool_of(part, bits), mx.array(random_blocks(part, 2))
    mx.eval(blocks)
    full = mx.repeat(blocks, 512, axis=0)
    mx.eval(full)
    pool.free(pool.put(full)[:20])
    del full
    mx.clear_cache()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    pool.put(blocks)
    assert mx.get_peak_memory() - before < 8 * blocks.nbytes < pool.nbytes / 4


def test_a_pool_grows_by_a_sixteenth_and_keeps_no_more_than_that_free() -> None:
    pool = pool_of(Part.KEYS, 16, page_blocks=2)
    assert pool.nbytes == pool.num_free == pool.block_nbytes == 0
    for num_pages, growth_pages, free_pages in [(1, 1, 0), (1, 1, 0), (62, 4, 0), (1, 4, 3), (1, 4, 2)]:
        put(pool, random_blocks(Part.KEYS, 2 * num_pages))
        assert pool.growth == 2 * growth_pages
        assert pool.num_free == 2 * free_pages
    assert pool.nbytes == 2 * 68 * pool.block_nbytes


@settings(max_examples=60)
@given(data=st.data(), bits=st.sampled_from([16, 4]))
def test_blocks_survive_growing_freeing_and_closing_gaps(data: st.DataObject, bits: int) -> None:
    pool, held, number = pool_of(Part.KEYS, bits, head_dim=2), {}, 0
    for _ in range(data.draw(st.integers(1, 8))):
        count = data.draw(st.integers(1, 90))
        numbers = np.arange(number, number + count, dtype=np.float32)
        number += count
        # One number all over is held exactly at any bits.
        blocks = np.broadcast_to(numbers[:, None, None], (count, 2, 64))
        slots = pool.put(mx.array(blocks))
        assert not held.keys() & set(slots)
        held |= dict(zip(slots, numbers.tolist(), strict=True))
        freed = data.draw(st.sets(st.sampled_from(sorted(held))))
        if data.draw(st.booleans()):
            freed = set(held) - freed
        pool.free(sorted(freed))
        moved = pool.shrink()
        held = {
            slot if moved is None else int(moved[slot]): value
            for slot, value in held.items()
            if slot not in freed
        }
        assert pool.num_free <= pool.growth
        assert len(pool.arrays[0] if pool.arrays else ()) == len(held) + pool.num_free
        if held:
            read = np.array(pool.get(mx.array(list(held))))
            expected = np.array(list(held.values()))[:, None, None]
            np.testing.assert_allclose(read, np.broadcast_to(expected, read.shape))
    pool.free(list(held))
    pool.shrink()
    assert pool.nbytes == pool.num_free == 0


def test_closing_a_gap_gives_the_memory_back() -> None:
    pool = pool_of(Part.VALUES, 16)
    before = mx.get_active_memory()
    slots = put(pool, random_blocks(Part.VALUES, 256)).tolist()
    assert mx.get_active_memory() - before >= 8 * MiB
    pool.free(slots[:240])
    pool.shrink()
    mx.clear_cache()
    assert mx.get_active_memory() - before < 0.7 * MiB
