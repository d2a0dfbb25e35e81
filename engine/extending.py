"""Bringing what is held of a conversation in line with what is wanted, and forgetting it where that broke."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import mlx.core as mx

from engine.alignment import Alignment, Edit, align, reread_note
from engine.edit_plan import NOT_PAGED, Return, plan_edits, returns_in
from engine.errors import Cancelled
from engine.events import GenerationEvent, PrefillProgress
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.page_map import TextSpan
from engine.kv.precision import KVSpec
from engine.released import ReleasedText
from engine.spans import Prompt
from engine.text_spans import between, shifted

Read = Callable[[SequenceCache, Sequence[int]], Iterator[GenerationEvent]]
"""Reads tokens into a cache in chunks and yields what is to be told after each; `Cancelled` leaves it."""


@dataclass(frozen=True)
class Brought:
    """What bringing a conversation in line came to.

    Attributes:
        kept_tokens: tokens of what is wanted that were held, or came back, and were not read.
        spliced_tokens: tokens that were read into gaps.
        note: a sentence that says why and how much is read again behind all this, empty where nothing is.
    """

    kept_tokens: int
    spliced_tokens: int
    note: str


def kept_tokens_of(
    held: HeldContext,
    wanted: Prompt,
    *,
    answer_tokens: int,
    context_tokens: int,
    released: ReleasedText | None = None,
) -> int:
    """Return how many tokens of a prompt would not have to be read; arguments as in `bring_in_line`.

    Nothing is changed.
    """
    plan = plan_edits(held, wanted, answer_tokens=answer_tokens, context_tokens=context_tokens)
    returning = sum(
        part.num_tokens for edit in plan.edits for part in returns_in(edit, held, wanted, released)
    )
    return plan.kept_tokens - plan.num_inserted + returning


def bring_in_line(
    held: HeldContext,
    wanted: Prompt,
    *,
    answer_tokens: int,
    context_tokens: int,
    read: Read,
    released: ReleasedText | None,
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
        released: where text goes that leaves the context, and comes back from; None for nowhere.
        check: looks for a stop; it raises to leave.

    Raises:
        Cancelled: the text is then on its way, and its spans say what is held.
    """
    plan = plan_edits(held, wanted, answer_tokens=answer_tokens, context_tokens=context_tokens)
    spans = held.spans
    returns = [tuple(returns_in(edit, held, wanted, released)) for edit in plan.edits]
    held.truncate(plan.num_held)
    if held.cache.num_tokens < plan.num_held:  # some layer can only forget everything
        plan = Alignment((), 0, reread_note(NOT_PAGED, spans, wanted, 0))
    for edit in reversed(plan.edits):
        _take_out(held, edit, wanted, released, check)
    splicer = _Splicer(held, wanted, plan.kept_tokens - plan.num_inserted, read, released, check)
    yield splicer.progress()
    for edit, parts in zip(plan.edits, returns, strict=False):  # none of them where all was forgotten
        yield from splicer.fill(edit, parts)
    held.read_is(wanted, "")
    if released is not None:
        released.discard([span.key for span in wanted.spans])  # it is here, or will be read again
        released.discard_from(held.cache.next_position)
    return Brought(splicer.kept_tokens, splicer.spliced_tokens, plan.note)


def settle(
    held: HeldContext, wanted: Prompt, *, released: ReleasedText | None, check: Callable[[], None]
) -> int:
    """Take out of what is held what has left the context, without reading; return how many tokens that was.

    What is new in `wanted` waits for `bring_in_line`.

    Raises:
        Cancelled: the text is then on its way, and its spans say what is held.
    """
    num_before = held.cache.num_tokens
    if not held.cache.can_edit:
        return 0
    found = align(held.cache.tokens, held.spans, wanted)
    behind = next((span.key for span in between(held.spans, found.num_held, num_before) if span.key), None)
    if behind is not None and behind not in {span.key for span in wanted.spans}:
        held.truncate(found.num_held)  # what is still wanted behind it would be read again all the same
    for edit in reversed(found.edits):
        take_out = _release if edit.num_inserted else _take_out  # markers wait for what replaces them
        take_out(held, edit, wanted, released, check)
    if _is_beginning(held, wanted):
        held.read_is(wanted, "")  # markers at the borders may count to another message now
    return num_before - held.cache.num_tokens


def _is_beginning(held: HeldContext, wanted: Prompt) -> bool:
    """Whether what is held is a beginning of a prompt: not only the same words, but of the same messages."""
    tokens = held.cache.tokens
    is_same = tokens == wanted.tokens[: len(tokens)]
    return is_same and _said(held.spans) == _said(between(wanted.spans, 0, len(tokens)))


def _said(spans: Iterable[TextSpan]) -> list[str]:
    """Return the keys of all that has words."""
    return [span.key for span in spans if span.stop - span.start > span.marker_tokens]


def _take_out(
    held: HeldContext, edit: Edit, wanted: Prompt, released: ReleasedText | None, check: Callable[[], None]
) -> None:
    """Take an edit's stretch out, markers included, and keep what is wanted no longer."""
    gone = _release(held, edit, wanted, released, check)
    if edit.start < edit.stop - gone:
        held.drop(edit.start, edit.stop - gone)


def _release(
    held: HeldContext, edit: Edit, wanted: Prompt, released: ReleasedText | None, check: Callable[[], None]
) -> int:
    """Take out what is wanted no longer, but no markers of other text; return how many tokens that was."""
    keys = {span.key for span in wanted.spans}
    inside = between(held.spans, edit.start, edit.stop)
    gone = [span for span in inside if span.key and span.key not in keys]
    if not gone:
        return 0
    start, stop = gone[0].start, gone[-1].stop
    if released is None:
        held.drop(start, stop)
    else:
        released.keep(*held.detach(start, stop), check)
    return stop - start


class _Splicer:
    """Fills gaps, in the order of the text: what precedes a gap is the wanted text already.

    Attributes:
        kept_tokens: tokens of the wanted text that are held and were not read.
        spliced_tokens: tokens that were read into gaps.
    """

    def __init__(
        self,
        held: HeldContext,
        wanted: Prompt,
        kept_tokens: int,
        read: Read,
        released: ReleasedText | None,
        check: Callable[[], None],
    ) -> None:
        self.kept_tokens = kept_tokens
        self.spliced_tokens = 0
        self._held = held
        self._wanted = wanted
        self._read = read
        self._released = released
        self._check = check

    def progress(self, num_read: int = 0) -> PrefillProgress:
        """Tell how far this is, with so many tokens in a head."""
        done = self.kept_tokens + self.spliced_tokens + num_read
        return PrefillProgress(done, len(self._wanted.tokens), self.kept_tokens)

    def fill(self, edit: Edit, returns: Sequence[Return]) -> Iterator[GenerationEvent]:
        """Put what an edit puts in where its stretch was; what comes back is not read."""
        at = edit.insert_start
        for part in returns:
            yield from self._splice(at, part.start)
            at = part.start
            piece = self._taken(part)
            if piece is not None:
                self._held.attach(at, piece, self._spans(part.start, part.stop))
                self.kept_tokens += part.num_tokens
                at = part.stop
                yield self.progress()
        yield from self._splice(at, edit.insert_stop)

    def _taken(self, part: Return) -> SequenceCache | None:
        if self._released is None:
            return None
        return self._released.take(part.keys, self._check, skipped=part.skipped)

    def _splice(self, start: int, stop: int) -> Iterator[GenerationEvent]:
        """Read a stretch of the wanted text before the token that is at its index now."""
        if start == stop:
            return
        head = self._held.cache.begin_splice(start)
        try:
            for event in self._read(head, self._wanted.tokens[start:stop]):
                yield self.progress(head.num_tokens - start)
                yield event
            self._held.end_splice(start, head, self._spans(start, stop))
        except BaseException:
            head.close()
            raise
        self.spliced_tokens += stop - start
        yield self.progress()

    def _spans(self, start: int, stop: int) -> tuple[TextSpan, ...]:
        return tuple(shifted(between(self._wanted.spans, start, stop), -start))


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
