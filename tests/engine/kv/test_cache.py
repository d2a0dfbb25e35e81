"""What can be done to a sequence: its life beside a list of tokens."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import OctavoError
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import (
    SHAPE,
    cache_of,
    holds_exactly,
    text,
    text_of,
)
from tests.engine.kv.oracle import Text, held, tokens_read, true_kv, true_queries
from tests.engine.tiny_models import tiny_model

# Where the attention goes.


def test_heat_is_the_share_of_the_attention_that_was_sampled() -> None:
    cache = cache_of("4; page=64, hot=0, warm=1, attend=2", 5 * 64 + 5)
    for token in range(400, 416):
        cache.read([token])
    expected = text_of(cache)
    keys = held(cache, expected, SHAPE, 1)[0]
    own = expected.copy()
    own.append([416])
    keys = np.concatenate([keys, true_kv(SHAPE, 1, [416], [expected.next_position])[0]], axis=1)
    queries = true_queries(SHAPE, 1, [416], [expected.next_position])[:, :, 0] * SHAPE.scale
    read = tokens_read(cache, 1, queries, 2)
    assert read is not None
    scores = queries @ keys.swapaxes(1, 2)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    by_page = shares[..., : 5 * 64].reshape(2, 2, 5, 64).sum(axis=-1).mean(axis=(0, 1))
    caught = (shares * np.pad(read, [(0, 0), (0, 1)], constant_values=True)[:, None]).sum(axis=-1).mean()
    for token in (416, 417):
        cache.read([token])
    assert [page.heat for page in cache.pages()] == pytest.approx((0.1 * by_page).tolist(), rel=1e-3)
    assert [page.last_access for page in cache.pages()] == [18 if share >= 0.01 else 0 for share in by_page]
    assert cache.usage().caught == pytest.approx(caught, rel=1e-3)
    assert 0.2 < caught < 0.99


# Life.


def test_truncating_into_an_exact_page_opens_it_again() -> None:
    cache, expected = cache_of("4; page=64, hot=1, warm=0", 3 * 64 + 20), text(3 * 64 + 20)
    assert cache.truncate(2 * 64 + 40)
    expected.truncate(2 * 64 + 40)
    assert cache.usage().open_tokens == 40
    assert len(cache.pages()) == 2
    cache.read(range(500, 524))
    assert cache.usage().open_tokens == 0
    assert [page.num_tokens for page in cache.pages()] == [64, 64, 64]
    expected.append(range(500, 524))
    assert text_of(cache) == expected
    true = true_kv(SHAPE, 1, expected.tokens[128:], expected.positions[128:])
    np.testing.assert_allclose(held(cache, expected, SHAPE, 1)[0][:, 128:], true[0], atol=1e-4)


def test_opening_a_page_again_leaves_it_to_the_branch_that_has_it_too() -> None:
    cache = cache_of("16; page=64", 3 * 64)
    fork = cache.fork()
    cache.truncate(2 * 64 + 1)
    cache.read([900, 901])
    expected = text(129)
    expected.append([900, 901])
    assert holds_exactly(cache, expected)
    assert holds_exactly(fork, text(192))


def test_truncating_into_a_quantized_page_keeps_it_and_marks_what_is_left() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 3 * 64)
    assert cache.truncate(2 * 64 + 40)
    assert [page.num_tokens for page in cache.pages()] == [64, 64, 40]
    assert cache.usage().open_tokens == 0
    cache.read(range(500, 564))
    assert [page.num_tokens for page in cache.pages()] == [64, 64, 40, 64]
    assert cache.layers[0].table.positions == list(range(2 * 64 + 40 + 64))


def test_truncating_to_what_is_held_changes_nothing() -> None:
    cache = cache_of("16; page=64", 100)
    assert cache.truncate(100)
    assert cache.truncate(500)
    assert holds_exactly(cache, text(100))


def test_what_follows_a_dropped_span_is_not_read_again() -> None:
    cache, expected = cache_of("16; page=64", 300), text(300)
    fork = cache.fork()
    cache.drop(50, 260)
    expected.drop(50, 260)
    assert holds_exactly(cache, expected)
    assert [page.num_tokens for page in cache.pages()] == [50]
    assert holds_exactly(fork, text(300))


@pytest.mark.parametrize("at", [0, 30, 150])
def test_a_spliced_text_is_read_after_what_precedes_it(at: int) -> None:
    """In a model with layers upon layers: the second layer's keys know what the first one attended to."""
    model = tiny_model("llama", sharp=True)
    tokens = np.random.default_rng(0).integers(0, 100, 260).tolist()
    new = [5, 6, 7, 8, 9]
    cache, fresh = (SequenceCache(model, KVSpec.parse("16; page=64")) for _ in range(2))
    cache.read(tokens)
    cache.drop(at, at + 20)
    following = [part[:, :, at:] for part in dense(cache)]
    cache.splice(at, new)
    assert cache.tokens == tokens[:at] + new + tokens[at + 20 :]
    fresh.read(tokens[:at] + new)
    for found, expected, kept in zip(dense(cache), dense(fresh), following, strict=True):
        np.testing.assert_allclose(found[:, :, : at + 5], expected, atol=1e-4)
        np.testing.assert_allclose(found[:, :, at + 5 :], kept, atol=1e-4)
    assert len({layer.offset for layer in cache.layers}) == 1
    assert cache.layers[0].offset == 260


def dense(cache: SequenceCache) -> list[np.ndarray]:
    """Return the keys and values of the second layer, after a token that any sequence may have."""
    probe = cache.fork()
    probe.read([0])
    return [np.array(part)[:, :, :-1] for part in probe.layers[1].dense()]


def test_a_spliced_text_must_fit_into_the_gap() -> None:
    cache = cache_of("4; page=64", 200)
    cache.drop(20, 30)
    with pytest.raises(OctavoError, match=r"room for 10 tokens.*and 11 are to"):
        cache.splice(20, range(11))
    with pytest.raises(OctavoError, match="room for 0 tokens"):
        cache.splice(50, [1])
    assert cache.num_tokens == 190


def test_splicing_at_the_end_is_reading() -> None:
    cache, expected = cache_of("16; page=64", 200), text(200)
    cache.splice(200, [7, 8])
    expected.append([7, 8])
    assert holds_exactly(cache, expected)


def test_rebuilding_brings_bits_and_positions_back() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 300)
    cache.drop(10, 90)
    cache.apply(KVSpec.parse("16; page=64"))
    assert cache.usage().num_below == len(cache.pages())
    cache.rebuild()
    expected = Text()
    expected.append([*range(1, 11), *range(91, 301)])
    assert cache.usage().num_below == 0
    assert holds_exactly(cache, expected)


def test_leaving_a_forward_pass_half_way_is_undone() -> None:
    cache = cache_of("16; page=64", 100)
    calls = 0

    def fail_at_the_second_layer(keys: mx.array) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise InterruptedError

    cache.watch(fail_at_the_second_layer)
    with pytest.raises(InterruptedError):
        cache.read([4, 5])
    cache.watch(None)
    assert [layer.offset for layer in cache.layers] == [102, 100]
    cache.realign()
    assert [layer.offset for layer in cache.layers] == [100, 100]
    assert holds_exactly(cache, text(100))


def test_a_recurrent_model_cannot_be_truncated_and_says_so() -> None:
    cache = SequenceCache(tiny_model("mamba2"), KVSpec.parse("16"))
    cache.read([1, 2, 3])
    assert cache.truncate(3)
    assert not cache.truncate(2)
    assert cache.tokens == [1, 2, 3]


@pytest.mark.parametrize("architecture", ["mamba2", "gemma3_text"])
def test_text_cannot_be_edited_where_not_all_layers_are_paged(architecture: str) -> None:
    cache = SequenceCache(tiny_model(architecture), KVSpec.parse("4; page=64"))
    cache.read(range(80))
    assert not cache.can_edit
    assert cache.note is not None
    for edit in (cache.fork, lambda: cache.drop(0, 1), lambda: cache.splice(0, [1])):
        with pytest.raises(OctavoError, match="without reading the rest again"):
            edit()
    assert cache.num_tokens == 80


def test_truncating_below_nothing_forgets_everything() -> None:
    cache = cache_of("16; page=64", 70)
    assert cache.truncate(-1)
    assert cache.num_tokens == 0
    assert cache.truncate(-1)


def test_a_splice_can_be_left_half_way_and_changes_nothing_then() -> None:
    cache = cache_of("16; page=64", 200)
    cache.drop(60, 100)
    tokens = cache.tokens

    def leave(keys: mx.array) -> None:
        raise InterruptedError

    cache.watch(leave)
    with pytest.raises(InterruptedError):
        cache.splice(60, [1, 2, 3])
    cache.watch(None)
    assert cache.tokens == tokens
    cache.read([5])
    assert cache.tokens == [*tokens, 5]
