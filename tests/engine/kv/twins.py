"""Sequences next to ones that lived the same life, on a model whose attention is sharp."""

from __future__ import annotations

import dataclasses

import mlx.core as mx
import numpy as np

from engine.kv.cache import SequenceCache
from engine.kv.usage import PageInfo

VOCABULARY = 100


def tokens(start: int, stop: int) -> list[int]:
    return [token * 7 % VOCABULARY for token in range(start, stop)]


def same_logits(one: SequenceCache, other: SequenceCache, chunks: list[list[int]]) -> bool:
    return all(
        np.array_equal(
            np.array(one.read(chunk).astype(mx.float32)), np.array(other.read(chunk).astype(mx.float32))
        )
        for chunk in chunks
    )


def infos(cache: SequenceCache) -> list[PageInfo]:
    """Return what is known of the pages, but for their numbers, which are new."""
    return [dataclasses.replace(info, number=0) for info in cache.pages()]


def read_and_written(cache: SequenceCache) -> None:
    """Read 300 tokens and decode 40, with the samples of attention that come with that."""
    for start in range(0, 300, 60):
        cache.read(tokens(start, start + 60))
    for token in tokens(300, 340):
        cache.read([token])


def edited(cache: SequenceCache) -> None:
    """Drop tokens, put others in their place, pin some: a page is referred to twice, with different marks."""
    read_and_written(cache)
    cache.drop(70, 110)
    cache.splice(70, tokens(5, 25))
    cache.pin(130, 140)
