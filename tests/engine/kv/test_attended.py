"""What an answer attends to, held against dense attention in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kv.attended import BIN_TOKENS
from engine.kv.cache import SequenceCache
from tests.engine.kv.caches import cache_of
from tests.engine.kv.oracle import true_kv, true_queries
from tests.engine.kv.stand_in import FloatArray, StandInShape

PLAIN = StandInShape(num_layers=1)
PAGES = "16; page=64, group=64"
DECODED = [1_000, 2_000, 3_000, 17]


def shares(shape: StandInShape, tokens: list[int], positions: list[int]) -> FloatArray:
    """Return the share that each query head of the last token gives to each token, `[heads, tokens]`."""
    keys = true_kv(shape, 0, tokens, positions)[0]
    queries = true_queries(shape, 0, tokens[-1:], positions[-1:])[:, :, 0].reshape(-1, shape.key_dim)
    scores = (
        np.stack([queries[head] @ keys[head // shape.repeats].T for head in range(shape.num_query_heads)])
        * shape.scale
    )
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def decode(cache: SequenceCache, tokens: list[int]) -> None:
    for token in tokens:
        cache.read([token])


@pytest.mark.parametrize("num_tokens", [20, 150], ids=["open tokens alone", "pages too"])
def test_places_get_the_mean_square_of_the_shares_that_heads_give_to_them(num_tokens: int) -> None:
    cache = cache_of(PAGES, num_tokens, PLAIN)
    cache.watch_answer()
    decode(cache, DECODED)
    text, expected = list(range(1, num_tokens + 1)), np.zeros(-(-(num_tokens + 4) // BIN_TOKENS))
    for token in DECODED:
        text.append(token)
        of_tokens = shares(PLAIN, text, list(range(len(text))))
        for place in range(-(-len(text) // BIN_TOKENS)):
            inside = of_tokens[:, place * BIN_TOKENS : (place + 1) * BIN_TOKENS].sum(axis=1)
            expected[place] += (inside**2).mean()
    bins = cache.attended()
    assert [each.start for each in bins] == list(range(0, num_tokens + 4, BIN_TOKENS))
    assert bins[-1].stop == num_tokens + 4
    assert [each.weight for each in bins] == pytest.approx(expected.tolist(), rel=1e-4)
    assert cache.attended() == []


def test_watching_changes_nothing_of_what_is_computed() -> None:
    watched, plain = (cache_of("4; page=64, group=32, hot=1, warm=1", 400) for _ in range(2))
    watched.watch_answer()
    for token in DECODED:
        ours, theirs = (np.array(cache.read([token])) for cache in (watched, plain))
        assert (ours == theirs).all()


def test_a_place_stays_one_when_its_tokens_become_a_page() -> None:
    cache = cache_of(PAGES, 60, PLAIN)
    cache.watch_answer()
    decode(cache, list(range(100, 110)))
    assert [(each.start, each.stop) for each in cache.attended()] == [(0, 32), (32, 64), (64, 70)]


def test_what_has_left_is_no_place_any_more_and_what_follows_is_found_where_it_is_now() -> None:
    cache = cache_of(PAGES, 150, PLAIN)
    cache.watch_answer()
    decode(cache, DECODED)
    cache.drop(0, 64)
    assert [(each.start, each.stop) for each in cache.attended()] == [(0, 32), (32, 64), (64, 90)]


def test_with_an_attention_budget_all_pages_are_looked_at_now_and_then() -> None:
    cache = cache_of("4; page=64, group=32, attend=1", 400, PLAIN)
    cache.watch_answer()
    decode(cache, list(range(100, 140)))
    assert len([each for each in cache.attended() if each.start < 384]) == 12
