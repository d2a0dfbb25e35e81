"""What parts of a text take, against adding it up token by token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.kv.cache import SequenceCache
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import cache_of
from tests.engine.tiny_models import tiny_model


def spans(*ends: int) -> list[TextSpan]:
    starts = (0, *ends)
    return [
        TextSpan(SpanKind.USER, f"Turn {number}", start, stop, f"m{number}")
        for number, (start, stop) in enumerate(zip(starts, ends, strict=False))
    ]


def per_token(cache: SequenceCache) -> tuple[list[float], list[float]]:
    """Return the bytes and the heat of each token, from what is known of the pages of 64 tokens."""
    pages = cache.pages()
    counts: dict[int, int] = {}
    for page in pages:
        counts[page.number] = counts.get(page.number, 0) + page.num_tokens
    nbytes, heat = [], []
    for page in pages:
        share = 0 if page.number == pages[0].number else page.heat / counts[page.number]
        nbytes += [page.nbytes / 64] * page.num_tokens
        heat += [share] * page.num_tokens
    num_open = cache.usage().open_tokens
    rooms = [array for layer in cache.layers for array in layer.state]
    open_nbytes = sum(array.nbytes * num_open / array.shape[2] for array in rooms)
    bounds = (cache.open_nbytes - sum(array.nbytes for array in rooms)) / cache.num_tokens
    nbytes += [open_nbytes / max(1, num_open)] * num_open
    return [each + bounds for each in nbytes], heat + [0] * num_open


def edited() -> SequenceCache:
    """Return a cache with tokens at three precisions, a page in two places, and open tokens."""
    cache = cache_of("4; page=64, hot=1, warm=1", 380)
    for token in range(400, 440):
        cache.read([token])  # so that there is heat
    cache.drop(90, 140)
    cache.splice(90, range(500, 530))
    return cache


def check(cache: SequenceCache, asked: Sequence[TextSpan]) -> None:
    nbytes, heat = per_token(cache)
    assert len(nbytes) == cache.num_tokens
    for span, usage in zip(asked, cache.span_usage(asked), strict=True):
        assert (usage.kind, usage.key, usage.title) == (span.kind, span.key, span.title)
        assert usage.num_tokens == len(nbytes[span.start : span.stop])
        assert usage.nbytes == pytest.approx(sum(nbytes[span.start : span.stop]), abs=1)
        assert usage.heat == pytest.approx(sum(heat[span.start : span.stop]), abs=1e-9)


def test_a_span_takes_its_tokens_share_of_bytes_and_heat() -> None:
    cache = edited()
    assert len({page.nbytes for page in cache.pages()}) == 3
    assert sum(page.heat for page in cache.pages()[1:]) > 0
    check(cache, spans(10, 40, 70, 90, 121, 130, 250, 390, cache.num_tokens))


def test_all_spans_and_the_unused_room_together_are_what_the_sequence_takes() -> None:
    cache = edited()
    usage = cache.span_usage(spans(13, 77, 140, 300, 399, cache.num_tokens))
    assert sum(span.nbytes for span in usage) + cache.unused_nbytes == cache.referred_nbytes
    assert sum(span.num_tokens for span in usage) == cache.num_tokens
    assert cache.unused_nbytes > 0


def test_few_tokens_that_are_left_in_a_page_take_no_more_than_before() -> None:
    cache = cache_of("4; page=64", 320)
    (before,) = cache.span_usage(spans(8))
    room = cache.unused_nbytes
    cache.drop(8, 60)
    (after,) = cache.span_usage(spans(8))
    assert after.nbytes == pytest.approx(before.nbytes, rel=0.1)
    assert cache.unused_nbytes - room == pytest.approx(52 * before.nbytes / 8, rel=0.1)


def test_attention_to_the_first_page_is_no_heat_of_what_lies_in_it() -> None:
    cache = edited()
    first = cache.pages()[0]
    assert first.heat > 0
    inside, behind = cache.span_usage(spans(first.num_tokens, cache.num_tokens))
    assert inside.heat == 0
    assert behind.heat == pytest.approx(sum(page.heat for page in cache.pages()[1:]), rel=1e-6)


def test_spans_that_are_not_held_yet_take_nothing() -> None:
    cache = cache_of("4; page=64", 100)
    held, partly, ahead = cache.span_usage(spans(90, 120, 150))
    assert (held.num_tokens, partly.num_tokens, ahead.num_tokens) == (90, 10, 0)
    assert ahead.nbytes == 0
    assert cache_of("4; page=64").span_usage(spans(10))[0].nbytes == 0
    assert cache.span_usage([]) == ()


def test_layers_that_are_not_paged_are_shared_out_among_all_tokens() -> None:
    cache = SequenceCache(tiny_model("mamba2"), KVSpec.parse("16"))
    cache.read(np.arange(40).tolist())
    first, second = cache.span_usage(spans(10, 40))
    assert first.nbytes + second.nbytes == cache.nbytes > 0
    assert second.nbytes == pytest.approx(3 * first.nbytes, abs=4)
