"""Bringing what is held of a conversation in line with what is wanted, and forgetting it where that broke."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import mlx.core as mx

from engine.alignment import Alignment, align
from engine.errors import Cancelled
from engine.events import GenerationEvent, PrefillProgress
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.page_map import TextSpan
from engine.kv.precision import KVSpec
from engine.spans import Prompt
from engine.turns import common_prefix, skipped_stretch

Read = Callable[[SequenceCache, Sequence[int]], Iterator[GenerationEvent]]
"""Reads tokens into a cache in chunks and yields what is to be told after each; `Cancelled` leaves it."""


@dataclass(frozen=True, eq=False)
class ReleasedPiece:
    """A stretch of text that was taken out: its tokens at their positions, and what they are, from 0 on."""

    spans: tuple[TextSpan, ...]
    cache: SequenceCache


class Released(Protocol):
    """Keeps what was taken out of one conversation, as long as there is room for it."""

    def keep(self, piece: ReleasedPiece, check: Callable[[], None]) -> None:
        """Take over a piece, and close its cache.

        Raises:
            Cancelled: `check` says so; the piece is given up.
        """

    def take(self, keys: Collection[str], check: Callable[[], None]) -> list[ReleasedPiece]:
        """Give back what is there of the spans with these keys, in the order of their positions.

        A piece has spans that were neighbours; the caller closes what it does not attach.

        Raises:
            Cancelled: `check` says so; all of it is still kept.
        """


@dataclass(frozen=True)
class Brought:
    """What bringing a conversation in line came to.

    Attributes:
        kept_tokens: tokens of what is wanted that were held, or came back, and were not read.
        spliced_tokens: tokens that were read into gaps.
        reread_tokens: tokens that were read once, are wanted, and have to be read again behind all this.
        note: a sentence that says why, empty where there are none.
    """

    kept_tokens: int
    spliced_tokens: int
    reread_tokens: int
    note: str


def kept_tokens_of(held: HeldContext, wanted: Prompt, *, answer_tokens: int, context_tokens: int) -> int:
    """Return how many tokens of a prompt would not have to be read; arguments as in `bring_in_line`.

    Nothing is changed. What was released and could come back unread is not counted.
    """
    return _plan(held, wanted, answer_tokens, context_tokens).kept_tokens


def bring_in_line(
    held: HeldContext,
    wanted: Prompt,
    *,
    answer_tokens: int,
    context_tokens: int,
    read: Read,
    released: Released | None,
    check: Callable[[], None],
) -> Generator[GenerationEvent, None, Brought]:
    """Make what is held a beginning of a prompt, of which at least the last token is left to read.

    What left the context is taken out and what is new between kept text is read into the gaps; what follows
    stays as it was read, at its positions. Yields `PrefillProgress` and what `read` yields.

    Args:
        held: one version of a conversation.
        wanted: what is to be read.
        answer_tokens: the longest answer.
        context_tokens: positions of the model. Where too few are left behind the gaps for the rest and the
            answer, the text is read again from the first gap on.
        read: reads into gaps.
        released: where pieces go that leave the context, and come back from; None for nowhere.
        check: looks for a stop; it raises to leave.

    Raises:
        Cancelled: the text is then on its way, and its spans say what is held.
    """
    plan = _plan(held, wanted, answer_tokens, context_tokens)
    yield PrefillProgress(plan.kept_tokens, len(wanted.tokens), plan.kept_tokens)
    held.truncate(plan.kept_tokens)
    return Brought(held.cache.num_tokens, 0, 0, plan.note)


def settle(held: HeldContext, wanted: Prompt, *, released: Released | None, check: Callable[[], None]) -> int:
    """Take out of what is held what has left the context, without reading; return how many tokens that was.

    What is new in `wanted` waits for `bring_in_line`.

    Raises:
        Cancelled: the text is then on its way, and its spans say what is held.
    """
    return 0


def _plan(held: HeldContext, wanted: Prompt, answer_tokens: int, context_tokens: int) -> Alignment:
    found = align(held.cache.tokens, held.spans, wanted)
    return Alignment((), min(found.kept_tokens, len(wanted.tokens) - 1))


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
