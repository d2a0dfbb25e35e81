"""Conversations of numbers as prompts, with what the ledger lets the model read of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt

BEGIN, USER, ANSWER, END, BREAK = range(5)
Words = tuple[int, ...]


@dataclass(frozen=True)
class Turn:
    """A question, which may have a document before it, and its answer."""

    number: int
    question: Words
    answer: Words
    document: Words | None = None


@dataclass(frozen=True)
class Ledger:
    """Which turns the model does not read, which documents, and what stands for turns: words by number."""

    gone: frozenset[int] = frozenset()
    documents_gone: frozenset[int] = frozenset()
    summaries: Mapping[int, tuple[str, Words]] = field(default_factory=dict)
    """Key and words, by the number of the first turn behind what they stand for."""


WHOLE = Ledger()


def prompt_for(
    turns: Sequence[Turn], ledger: Ledger = WHOLE, system: Words = (), *, is_asked: bool = False
) -> Prompt:
    """Return what the model reads, as a template with begin, role and end tokens would write it.

    A prompt that `is_asked` ends with the last question and the marker of its answer.
    """
    tokens: list[int] = []
    spans: list[TextSpan] = []
    marker: list[int] = [BEGIN]

    def say(kind: SpanKind, key: str, words: Words) -> None:
        start = len(tokens)
        tokens.extend([*marker, *words])
        spans.append(TextSpan(kind, key, start, len(tokens), key, len(marker)))
        marker.clear()

    if system:
        say(SpanKind.SYSTEM, "", system)
        marker.append(END)
    waiting: list[tuple[SpanKind, str, Words]] = []
    for turn in turns:
        if turn.number in ledger.summaries:
            waiting.append((SpanKind.SUMMARY, *ledger.summaries[turn.number]))
        if turn.number in ledger.gone:
            continue
        if turn.document is not None and turn.number not in ledger.documents_gone:
            waiting.append((SpanKind.DOCUMENT, f"a{turn.number}", turn.document))
        marker.append(USER)
        for part in waiting:
            say(*part)
            marker.append(BREAK)
        waiting.clear()
        say(SpanKind.USER, f"m{turn.number}", turn.question)
        marker += [END, ANSWER]
        if is_asked and turn is turns[-1]:
            say(SpanKind.ASSISTANT, "", ())
            break
        say(SpanKind.ASSISTANT, f"n{turn.number}", turn.answer)
        marker.append(END)
    return Prompt(tokens, tuple(spans))


def words_of(prompt: Prompt) -> dict[str, tuple[int, int]]:
    """Return the first token of the words of each key, and the one behind their last."""
    return {
        span.key: (span.start + span.marker_tokens, span.stop)
        for span in prompt.spans
        if span.key and span.stop - span.start > span.marker_tokens
    }
