from __future__ import annotations

import gc
import weakref

import mlx.core as mx
import pytest

from engine.errors import OctavoError
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVBits
from tests.engine.tiny_models import COMMON, tiny_model

HEAD_DIM = COMMON["head_dim"]


def read(cache: SequenceCache, module: object, tokens: list[int]) -> mx.array:
    """Read tokens into the cache and return the logits after each, [tokens, vocabulary]."""
    logits = module(mx.array([tokens]), cache=cache.layers)[0]  # type: ignore[operator]
    mx.eval(logits, cache.state)
    cache.tokens.extend(tokens)
    return logits


@pytest.mark.parametrize("value", ["16", 8, "4"])
def test_precisions_are_parsed_from_numbers_and_words(value: str | int) -> None:
    assert int(KVBits.parse(value)) == int(value)


@pytest.mark.parametrize("value", ["5", "", "sixteen", 0, -8])
def test_an_impossible_precision_names_the_possible_ones(value: str | int) -> None:
    with pytest.raises(OctavoError, match="16, 8, 4"):
        KVBits.parse(value)


def test_truncating_and_reading_again_equals_never_having_read_the_rest() -> None:
    module = tiny_model("llama")
    cache, fresh = (SequenceCache(module, KVBits.BITS_16, HEAD_DIM) for _ in range(2))
    read(cache, module, [1, 2, 3, 4, 5, 6])
    assert cache.truncate(3)
    assert cache.tokens == [1, 2, 3]
    after = read(cache, module, [9, 8])
    expected = read(fresh, module, [1, 2, 3, 9, 8])[-2:]
    assert mx.allclose(after, expected, atol=1e-5)


@pytest.mark.parametrize("bits", KVBits)
def test_memory_of_a_long_conversation_is_given_back_to_a_short_one(bits: KVBits) -> None:
    module = tiny_model("llama")
    cache, short = (SequenceCache(module, bits, HEAD_DIM) for _ in range(2))
    tokens = [number % 100 for number in range(2000)]
    read(cache, module, tokens)
    long_nbytes, active_nbytes = cache.nbytes, mx.get_active_memory()
    assert cache.truncate(30)
    read(short, module, tokens[:30])
    assert cache.nbytes == short.nbytes
    assert active_nbytes - mx.get_active_memory() > 0.4 * (long_nbytes - 2 * short.nbytes)
    after, expected = (read(held, module, [7, 8, 9]) for held in (cache, short))
    assert mx.allclose(after, expected, atol=0.05 if bits is KVBits.BITS_4 else 0.01)


def test_truncating_a_little_copies_nothing() -> None:
    module = tiny_model("llama")
    cache = SequenceCache(module, KVBits.BITS_16, HEAD_DIM)
    read(cache, module, [number % 100 for number in range(1000)])
    before = [layer.keys for layer in cache.layers]
    assert cache.truncate(900)
    assert all(layer.keys is keys for layer, keys in zip(cache.layers, before, strict=True))


@pytest.mark.parametrize("bits", KVBits)
def test_what_is_forgotten_is_freed_at_once_and_not_when_cycles_are_looked_for(bits: KVBits) -> None:
    module = tiny_model("llama")
    cache = SequenceCache(module, bits, HEAD_DIM)
    read(cache, module, [1, 2, 3])
    layers = [weakref.ref(layer) for layer in cache.layers]
    gc.disable()
    try:
        cache.clear()
        assert [layer() for layer in layers] == [None] * len(layers)
        layers = [weakref.ref(layer) for layer in cache.layers]
        del cache
        assert [layer() for layer in layers] == [None] * len(layers)
    finally:
        gc.enable()


def test_a_recurrent_model_cannot_be_truncated_and_says_so() -> None:
    module = tiny_model("mamba2")
    cache = SequenceCache(module, KVBits.BITS_16, HEAD_DIM)
    read(cache, module, [1, 2, 3])
    assert cache.truncate(3)
    assert not cache.truncate(2)
    assert cache.tokens == [1, 2, 3]


@pytest.mark.parametrize("bits", [KVBits.BITS_8, KVBits.BITS_4])
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_quantized_layers_take_the_bits_asked_for(architecture: str, bits: KVBits) -> None:
    cache = SequenceCache(tiny_model(architecture), bits, HEAD_DIM)
    assert [layer.bits for layer in cache.layers] == [bits, bits]
    assert cache.note is None


@pytest.mark.parametrize(
    ("architecture", "kept"), [("gemma2", 2), ("gemma3_text", 1), ("gpt_oss", 2), ("mamba2", 2)]
)
def test_layers_that_cannot_be_quantized_run_at_16_bits_and_say_so(architecture: str, kept: int) -> None:
    module = tiny_model(architecture)
    cache = SequenceCache(module, KVBits.BITS_4, HEAD_DIM)
    exact = SequenceCache(module, KVBits.BITS_16, HEAD_DIM)
    assert cache.note is not None
    assert cache.note.startswith(f"{kept} of 2 layers")
    logits, expected = read(cache, module, [1, 2, 3]), read(exact, module, [1, 2, 3])
    assert mx.allclose(logits, expected, atol=1e-5 if kept == 2 else 0.5)


def test_the_common_prefix_ends_at_the_first_difference() -> None:
    cache = SequenceCache(tiny_model("llama"), KVBits.BITS_16, HEAD_DIM)
    cache.tokens = [1, 2, 3]
    assert cache.common_prefix([1, 2, 3, 4]) == 3
    assert cache.common_prefix([1, 2]) == 2
    assert cache.common_prefix([1, 9, 3]) == 1
    assert cache.common_prefix([]) == 0


def test_leaving_a_forward_pass_half_way_is_undone() -> None:
    module = tiny_model("llama")
    cache, fresh = (SequenceCache(module, KVBits.BITS_16, HEAD_DIM) for _ in range(2))
    read(cache, module, [1, 2, 3])
    calls = 0

    def fail_at_the_second_layer(keys: mx.array) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise InterruptedError

    cache.before_layer = fail_at_the_second_layer
    with pytest.raises(InterruptedError):
        read(cache, module, [4, 5])
    cache.before_layer = None
    assert [layer.offset for layer in cache.layers] == [5, 3]
    cache.realign()
    assert [layer.offset for layer in cache.layers] == [3, 3]
    expected = read(fresh, module, [1, 2, 3, 7])[-1]
    assert mx.allclose(read(cache, module, [7])[-1], expected, atol=1e-5)
