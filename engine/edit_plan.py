"""What to do to what is held of a conversation for it to become the beginning of a prompt."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.alignment import Alignment, Edit, align, common_prefix, reread_note
from engine.held_context import HeldContext
from engine.kv.page_map import TextSpan
from engine.released import ReleasedStretch, ReleasedText
from engine.spans import Prompt
from engine.text_spans import between

NOT_PAGED = "This model cannot leave out text that it has read"
NARROW_GAP = "There were too few positions for what is new between older text"
FEW_POSITIONS = "The model had too few positions left for the rest and the answer"


@dataclass(frozen=True)
class Return:
    """Text that was released and comes back unread.

    Attributes:
        start: index of its first token among the tokens that are wanted.
        stop: index behind its last.
        keys: by which it is found.
        skipped: how many tokens of what is found stay away, a marker that is another one now.
        positions: from its first token's to its last one's.
    """

    start: int
    stop: int
    keys: tuple[str, ...]
    skipped: int
    positions: range

    @property
    def num_tokens(self) -> int:
        """How many these are."""
        return self.stop - self.start


def plan_edits(held: HeldContext, wanted: Prompt, *, answer_tokens: int, context_tokens: int) -> Alignment:
    """Return the edits that there are positions for, with at least the last token of the prompt left to read.

    Args:
        held: one version of a conversation.
        wanted: what is to be read.
        answer_tokens: the longest answer.
        context_tokens: positions of the model.
    """
    found = align(held.cache.tokens, held.spans, wanted)
    if not held.cache.can_edit:
        kept = common_prefix(held.cache.tokens, wanted.tokens)
        note = found.note if kept >= found.kept_tokens else reread_note(NOT_PAGED, held.spans, wanted, kept)
        return Alignment((), min(kept, len(wanted.tokens) - 1), note)
    plan = _cut(found, len(wanted.tokens) - 1)
    plan = _widened(plan, held)
    for edit in plan.edits:
        if edit.num_inserted > len(_gap(held, edit)):
            plan = _cut_for(NARROW_GAP, plan, edit.insert_start, held, wanted)
            break
    unused = held.cache.gap(plan.num_held).start - plan.kept_tokens
    if unused and unused + len(wanted.tokens) + answer_tokens > context_tokens:
        plan = _cut_for(FEW_POSITIONS, plan, _num_before_gap(held, plan), held, wanted)
    return plan


def returns_in(
    edit: Edit, held: HeldContext, wanted: Prompt, released: ReleasedText | None
) -> Iterator[Return]:
    """Yield what of an edit's insertion was released and can come back to its positions, in order.

    What is to be read between them has room there.
    """
    if released is None:
        return
    spans = list(between(wanted.spans, edit.insert_start, edit.insert_stop))
    gap, at = _gap(held, edit), edit.insert_start
    for index, span in enumerate(spans):
        keys = tuple(one.key for one in spans[index:])
        stretch = released.find(keys) if span.key and span.start >= at else None
        found = None if stretch is None else _same(stretch, keys, span, wanted.tokens[: edit.insert_stop])
        if found is None:
            continue
        has_room = (
            found.start - at <= found.positions.start - gap.start
            and edit.insert_stop - found.stop <= gap.stop - found.positions.stop
        )
        if has_room:
            yield found
            gap, at = range(found.positions.stop, gap.stop), found.stop


def _same(
    stretch: ReleasedStretch, keys: Sequence[str], span: TextSpan, wanted: Sequence[int]
) -> Return | None:
    """Return what of a stretch stands word for word where a span begins, up to the end of one of its keys.

    Its first marker may be another one there, as that of a question which has a summary before it.
    """
    ends = list({one.key: one.stop for one in stretch.spans}.values())
    for start, skipped in (
        (span.start, 0),
        (span.start + span.marker_tokens, stretch.spans[0].marker_tokens),
    ):
        same = skipped + common_prefix(stretch.tokens[skipped:], wanted[start:])
        count = bisect.bisect_right(ends, same)
        if count and ends[count - 1] > skipped:
            stop = ends[count - 1]
            positions = range(stretch.positions[skipped], stretch.positions[stop - 1] + 1)
            return Return(start, start + stop - skipped, tuple(keys[:count]), skipped, positions)
    return None


def _gap(held: HeldContext, edit: Edit) -> range:
    """Return the positions that are unused once an edit's stretch is taken out."""
    return range(held.cache.gap(edit.start).start, held.cache.gap(edit.stop).stop)


def _widened(plan: Alignment, held: HeldContext) -> Alignment:
    """Return a plan whose edits reach back to unused positions near by, where they have too few of their own.

    Where a document left a message, its positions precede the marker of what follows. That marker may begin
    as the one does that is wanted: the edit then lies behind tokens that need not be read, but stand in its
    way.
    """
    edits: list[Edit] = []
    for edit in plan.edits:
        first, most = (edits[-1].stop if edits else 0), plan.kept_tokens - edit.insert_stop
        edits.append(_reaching_back(edit, held, max(first, edit.start - most)))
    return dataclasses.replace(plan, edits=tuple(edits))


def _reaching_back(edit: Edit, held: HeldContext, first: int) -> Edit:
    """Return an edit with the fewest tokens before it that have room enough with it, from `first` on.

    It is as it was where it has room, and where no room is to be had: reading more would not spare anything.
    """
    stop = held.cache.gap(edit.stop).stop
    missing = edit.num_inserted - len(_gap(held, edit))

    def is_roomy(back: int) -> bool:
        return edit.num_inserted + back <= stop - held.cache.gap(edit.start - back).start

    most = edit.start - first
    if missing <= 0 or not is_roomy(most):
        return edit
    back = bisect.bisect_left(range(most), True, key=is_roomy)
    return Edit(edit.start - back, edit.stop, edit.insert_start - back, edit.insert_stop)


def _cut(plan: Alignment, kept_tokens: int) -> Alignment:
    """Return what is left of a plan when at most so many tokens may be kept."""
    kept_tokens = min(kept_tokens, plan.kept_tokens)
    edits = plan.edits
    while edits and edits[-1].insert_stop >= kept_tokens:
        kept_tokens = min(kept_tokens, edits[-1].insert_start)
        edits = edits[:-1]
    return dataclasses.replace(plan, edits=edits, kept_tokens=kept_tokens)


def _cut_for(why: str, plan: Alignment, kept_tokens: int, held: HeldContext, wanted: Prompt) -> Alignment:
    plan = _cut(plan, kept_tokens)
    return dataclasses.replace(plan, note=reread_note(why, held.spans, wanted, plan.kept_tokens))


def _num_before_gap(held: HeldContext, plan: Alignment) -> int:
    """Return how many tokens would surely precede the first position that is unused after the edits."""
    first = held.cache.num_before_gap
    for edit in plan.edits:
        is_exact = edit.num_inserted == edit.stop - edit.start == len(_gap(held, edit))
        if edit.start < first and not is_exact:
            return edit.insert_start
    return first
