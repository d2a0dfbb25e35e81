"""Bringing a cache to what it holds of a prompt already, and forgetting it where something broke."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import mlx.core as mx

from engine.errors import Cancelled
from engine.held import HeldSequences
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.turns import common_prefix, skipped_stretch


def keep_prefix(
    cache: SequenceCache,
    prompt: Sequence[int],
    *,
    turns_left_out: bool,
    answer_tokens: int,
    context_tokens: int,
) -> None:
    """Bring a cache to what it holds of the beginning of a prompt, of which the last token is left to read.

    Where old turns are left out of the prompt, they are taken out of the cache and what follows them stays as
    it was read, at its positions. Once the model has too few positions behind these for the rest and the
    answer, it is read again.

    Args:
        cache: the conversation's.
        prompt: what is to be read.
        turns_left_out: whether more turns are left out of the prompt than of what the cache holds. Else text
            that is missing was edited away, and nothing that has seen it may stay.
        answer_tokens: the longest answer.
        context_tokens: positions of the model.
    """
    if turns_left_out and cache.can_edit:
        stretch = skipped_stretch(cache.tokens, prompt)
        if stretch is not None:
            cache.drop(*stretch)
    _truncate(cache, min(common_prefix(cache.tokens, prompt), len(prompt) - 1))
    unused = cache.next_position - cache.num_tokens
    if unused and unused + len(prompt) + answer_tokens > context_tokens:
        _truncate(cache, cache.num_before_gap)


@contextlib.contextmanager
def forgetting_broken(held: HeldSequences, conversation_id: int | None) -> Iterator[None]:
    """Forget a conversation's cache after an error in the middle of a change: its layers may disagree."""
    try:
        yield
    except Cancelled:
        raise
    except Exception:
        if conversation_id is not None:
            with contextlib.suppress(Exception):  # what broke once may break again
                held.forget(conversation_id)
        mx.clear_cache()
        raise


def same_pages(one: KVSpec, other: KVSpec) -> bool:
    """Whether a cache of one precision can go on at the other: only where their pages have the same size."""
    return (one.page_tokens, one.group_size) == (other.page_tokens, other.group_size)


def _truncate(cache: SequenceCache, length: int) -> None:
    if not cache.truncate(length):
        cache.clear()
