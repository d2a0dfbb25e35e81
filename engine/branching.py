"""How a text that is wanted departs from one that was read: what left it, and what another branch has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.alignment import Edit, align
from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt


@dataclass(frozen=True)
class Departure:
    """What of a text that was read is not in the one that is wanted.

    Attributes:
        released: the tokens of messages, documents and summaries that have left the same branch.
        leaves_branch: whether the text that was read goes on with messages that are not wanted, as another
            branch of the conversation does, and all before these is the same.
        stays_to_the_end: whether all of what is wanted is there once the edits are made.
    """

    released: tuple[range, ...]
    leaves_branch: bool
    stays_to_the_end: bool


def departure(held: Prompt, wanted: Prompt, left: Collection[str] = ()) -> Departure:
    """Compare a text that was read with the one that is wanted.

    Args:
        held: the text that was read.
        wanted: what is to be read.
        left: keys of what has left the context of the branch that is wanted. What is gone while text behind
            it stays has left it as well.
    """
    found = align(held.tokens, held.spans, wanted)
    wanted_keys = {span.key for span in wanted.spans}
    gone = [span for span in held.spans if _is_gone(span, wanted_keys)]
    released = _released(found.edits, gone)
    behind = next((span for span in held.spans if span.key and span.stop > found.num_held), None)
    if behind is not None and behind.start <= found.num_held and behind in gone:
        has_left = all(span.key in left for span in gone if span.start >= behind.start and _is_said(span))
        if has_left:
            released = (*released, range(found.num_held, len(held.tokens)))
    else:
        behind = None
    return Departure(
        released,
        leaves_branch=behind is not None and not released,
        stays_to_the_end=found.kept_tokens >= len(wanted.tokens),
    )


def _is_said(span: TextSpan) -> bool:
    """Whether it has a place in the tree of messages, which a summary has not."""
    return span.kind is not SpanKind.SUMMARY


def _is_gone(span: TextSpan, wanted_keys: set[str]) -> bool:
    return bool(span.key) and span.key not in wanted_keys


def _released(edits: Sequence[Edit], gone: Sequence[TextSpan]) -> tuple[range, ...]:
    """Return what edits take out of text that is gone; where something is put in, no markers beside it."""
    released = []
    for edit in edits:
        inside = [span for span in gone if span.start < edit.stop and edit.start < span.stop]
        if inside and edit.num_inserted:
            released.append(range(max(edit.start, inside[0].start), min(edit.stop, inside[-1].stop)))
        elif inside:
            released.append(range(edit.start, edit.stop))
    return tuple(released)
