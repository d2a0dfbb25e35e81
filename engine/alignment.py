"""Finding what to take out of text that was read, and what to put in, to make it the text that is wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt
from engine.text_spans import between

MOST_BORDER_TOKENS = 4
"""So many tokens at an end of the same words may differ, where they merge with other text around them."""

REWRITTEN = "The chat template rewrote an earlier message"
OTHER_SYSTEM_PROMPT = "The system prompt is another one"
OTHER_TEXT = "Earlier text has changed"


@dataclass(frozen=True)
class Edit:
    """A stretch to take out, and what goes there.

    Attributes:
        start: index of its first token among the tokens that are held, before any edit.
        stop: index behind its last token; `start` where nothing is taken out.
        insert_start: index of the first token that goes there, among the tokens that are wanted.
        insert_stop: index behind the last of these; `insert_start` where nothing goes there.
    """

    start: int
    stop: int
    insert_start: int
    insert_stop: int

    @property
    def num_inserted(self) -> int:
        """How many tokens are put in."""
        return self.insert_stop - self.insert_start


@dataclass(frozen=True)
class Alignment:
    """How held text becomes the beginning of wanted text.

    Attributes:
        edits: what is taken out and put in, in the order of the text. Behind each of them something stays.
        kept_tokens: so many tokens of the wanted text are there after the edits, those that were put in
            included. What is held behind them is forgotten.
        note: a sentence that says why text is read again that was read before, empty where none is.
    """

    edits: tuple[Edit, ...]
    kept_tokens: int
    note: str = ""

    @property
    def num_held(self) -> int:
        """How many tokens of what is held stay or are in edits; what is held behind them is forgotten."""
        if not self.edits:
            return self.kept_tokens
        return self.edits[-1].stop + self.kept_tokens - self.edits[-1].insert_stop

    @property
    def num_inserted(self) -> int:
        """How many tokens are put in."""
        return sum(edit.num_inserted for edit in self.edits)


def align(held_tokens: Sequence[int], held_spans: Sequence[TextSpan], wanted: Prompt) -> Alignment:
    """Find the edits that make held text the beginning of wanted text, with as much as may stay unread.

    Spans of the same key and the same words stay, though what precedes them differs: that is right only
    because the same key means the same place in the tree of messages, so that the difference is what was
    taken out of the context or summarized. Where anything else differs, all that follows is read again.

    It knows tokens only. Whether what is put in has positions there is for the caller to see.
    """
    return _Comparison(Prompt(list(held_tokens), tuple(held_spans)), wanted).alignment()


def kept_of(held: Prompt, wanted: Prompt) -> int:
    """Return how many tokens of a prompt would not have to be read, given what is held of it.

    As far as what is put in has positions, and with at least the last token left to read.
    """
    found = align(held.tokens, held.spans, wanted)
    return max(0, min(found.kept_tokens, len(wanted.tokens) - 1) - found.num_inserted)


def _reread_tokens(held_spans: Sequence[TextSpan], wanted: Prompt, kept_tokens: int) -> int:
    """Return how many tokens were held of what stands in a prompt behind so many tokens of it."""
    held = {span.key: span.stop - span.start for span in held_spans if span.key}
    return sum(
        max(0, min(held.get(span.key, 0), span.stop - span.start) - max(0, kept_tokens - span.start))
        for span in wanted.spans
    )


def reread_note(why: str, held_spans: Sequence[TextSpan], wanted: Prompt, kept_tokens: int) -> str:
    """Return the sentence that says why, and how much, is read again; empty where it is next to nothing."""
    num_tokens = _reread_tokens(held_spans, wanted, kept_tokens) if why else 0
    return f"{why}: {num_tokens:,} tokens were read again." if num_tokens > MOST_BORDER_TOKENS else ""


@dataclass(frozen=True)
class _Anchor:
    """Words of a span that are in both texts: `length` tokens from `start` and from `wanted_start` on."""

    start: int
    wanted_start: int
    length: int
    is_last: bool = False
    """Whether nothing but its end is held behind it, and it is an answer or does not begin alike.

    A question that begins alike may have lost a document before it.
    """

    @property
    def stop(self) -> int:
        return self.start + self.length

    @property
    def wanted_stop(self) -> int:
        return self.wanted_start + self.length


class _Side:
    """One of the two texts, and which of it the other has nowhere."""

    def __init__(self, text: Prompt, other: Prompt) -> None:
        keys = {span.key for span in other.spans}
        self.tokens = text.tokens
        self.spans = text.spans
        self._own = [span for span in text.spans if span.key and span.key not in keys]
        self._keyed = [span for span in text.spans if span.key]

    @property
    def system(self) -> list[list[int]]:
        """The system prompts."""
        return [self.tokens[one.start : one.stop] for one in self.spans if one.kind is SpanKind.SYSTEM]

    def own(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return the stretch from the first to the last token here that the other has nowhere.

        At the beginning of all the marker does not count to it: models look at the first tokens whatever
        follows (Xiao et al., Efficient Streaming Language Models with Attention Sinks), so these stay.
        """
        found = list(between(self._own, start, stop))
        if not found:
            return None
        first = found[0].start
        return (first if first else found[0].marker_tokens), found[-1].stop

    def is_known(self, start: int, stop: int) -> bool:
        """Whether the keys say what all of this is."""
        return sum(span.stop - span.start for span in between(self._keyed, start, stop)) == stop - start


class _Comparison:
    """Held text beside wanted text."""

    def __init__(self, held: Prompt, wanted: Prompt) -> None:
        self._held, self._wanted = _Side(held, wanted), _Side(wanted, held)
        self._prompt = wanted
        self._why = ""

    def alignment(self) -> Alignment:
        """Find the edits between anchors, and how much behind them is the same."""
        edits: list[Edit] = []
        last = _Anchor(0, 0, 0)
        for anchor in self._anchors():
            edit = self._edit(last, anchor)
            if edit is None:
                break
            if edit.start < edit.stop or edit.insert_start < edit.insert_stop:
                edits.append(edit)
            last = anchor
        kept = last.wanted_stop + common_prefix(
            self._held.tokens[last.stop :], self._wanted.tokens[last.wanted_stop :]
        )
        return Alignment(tuple(edits), kept, reread_note(self._why, self._held.spans, self._prompt, kept))

    def _anchors(self) -> Iterator[_Anchor]:
        """Yield what is the same in both, in order, up to where something else than the ledger differs."""
        if self._held.system != self._wanted.system:
            self._why = OTHER_SYSTEM_PROMPT
            return
        places = {span.key: place for place, span in enumerate(self._wanted.spans) if span.key}
        for span in self._held.spans:
            place = places.get(span.key)
            if place is None:
                continue
            words = self._same_words(span, self._wanted.spans[place])
            if words is None:
                self._why = REWRITTEN
                return
            yield words

    def _same_words(self, held: TextSpan, wanted: TextSpan) -> _Anchor | None:
        """Return the words that two spans share, None where more differs than merges at their borders."""
        start, wanted_start = held.start + held.marker_tokens, wanted.start + wanted.marker_tokens
        one, other = self._held.tokens[start : held.stop], self._wanted.tokens[wanted_start : wanted.stop]
        cuts = (range(min(len(words), MOST_BORDER_TOKENS) + 1) for words in (one, other))
        for cut, wanted_cut in itertools.product(*cuts):
            length = common_suffix(one[: len(one) - cut], other[: len(other) - wanted_cut])
            first, wanted_first = len(one) - cut - length, len(other) - wanted_cut - length
            differing = max(first + cut, wanted_first + wanted_cut)
            is_same = length > differing or not (one or other)
            if max(first, wanted_first) <= MOST_BORDER_TOKENS and is_same:
                differs = held.kind is SpanKind.ASSISTANT or first != wanted_first
                is_last = differs and held == self._held.spans[-1]
                return _Anchor(start + first, wanted_start + wanted_first, length, is_last)
        return None

    def _edit(self, last: _Anchor, anchor: _Anchor) -> Edit | None:
        """Return what differs between two anchors, None where more than the ledger makes it differ."""
        start, stop = last.stop, anchor.start
        wanted_start, wanted_stop = last.wanted_stop, anchor.wanted_start
        own, wanted_own = self._held.own(start, stop), self._wanted.own(wanted_start, wanted_stop)
        before, wanted_before = own[0] if own else stop, wanted_own[0] if wanted_own else wanted_stop
        same = common_prefix(self._held.tokens[start:before], self._wanted.tokens[wanted_start:wanted_before])
        start, wanted_start = start + same, wanted_start + same
        behind, wanted_behind = own[1] if own else start, wanted_own[1] if wanted_own else wanted_start
        same = common_suffix(self._held.tokens[behind:stop], self._wanted.tokens[wanted_behind:wanted_stop])
        stop, wanted_stop = stop - same, wanted_stop - same
        # Where the keys have another order, a stretch is shorter than nothing, and not known either.
        if not (self._held.is_known(start, stop) and self._wanted.is_known(wanted_start, wanted_stop)):
            self._why = OTHER_TEXT
            return None
        is_rewritten = not own and not wanted_own and (start < stop or wanted_start < wanted_stop)
        if anchor.is_last and is_rewritten:
            self._why = REWRITTEN  # nothing is held behind it that could be spared by an inexact answer
            return None
        return Edit(start, stop, wanted_start, wanted_stop)


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens at the start of both are the same."""
    length = min(len(one), len(other))
    differs = np.flatnonzero(np.array(one[:length]) != np.array(other[:length]))
    return int(differs[0]) if len(differs) else length


def common_suffix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens at the end of both are the same."""
    return common_prefix(one[::-1], other[::-1])
