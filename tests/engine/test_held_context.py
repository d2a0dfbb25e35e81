"""A cache and what its tokens are change together."""

from __future__ import annotations

import pytest

from engine.held_context import HeldContext
from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt
from tests.engine.kv.caches import cache_of
from tests.engine.ledger_prompts import Turn, prompt_for

TURNS = [Turn(n, (10 + n, 20 + n, 30 + n), (40 + n, 50 + n, 60 + n, 70 + n)) for n in range(3)]
ASKED = prompt_for(TURNS, is_asked=True)


def context_of(prompt: Prompt, num_read: int | None = None, answer: tuple[int, ...] = ()) -> HeldContext:
    """Return a context that has read a prompt, or its beginning, and decoded an answer called `n2`."""
    context = HeldContext(cache_of("16; page=64"))
    context.read_is(prompt, "n2")
    context.cache.read([*prompt.tokens[:num_read], *answer])
    return context


def texts(context: HeldContext) -> list[tuple[str, list[int]]]:
    """Return the key and the tokens of each span, without its marker."""
    tokens = context.held.tokens
    return [(span.key, tokens[span.start + span.marker_tokens : span.stop]) for span in context.spans]


WHOLE_TEXTS = [
    (key, list(words))
    for turn in TURNS
    for key, words in ((f"m{turn.number}", turn.question), (f"n{turn.number}", turn.answer))
]


def test_spans_end_where_the_cache_ends() -> None:
    first, answer, question = ASKED.spans[:3]
    cut = TextSpan(answer.kind, answer.title, answer.start, answer.start + 3, answer.key, 2)

    assert context_of(ASKED).spans == ASKED.spans
    assert context_of(ASKED, answer.start + 3).spans == (first, cut)
    assert context_of(ASKED, question.start).spans == (first, answer)


def test_what_follows_the_prompt_is_the_answer_with_its_marker_and_its_key() -> None:
    marker = ASKED.spans[-1]
    context = context_of(ASKED, answer=(91, 92))

    span = context.spans[-1]

    assert span == TextSpan(SpanKind.ASSISTANT, "", marker.start, len(ASKED.tokens) + 2, "n2", 2)
    context.cache.read([93])
    assert context.spans[-1].stop == len(ASKED.tokens) + 3


def test_an_answer_without_a_marker_begins_behind_the_prompt() -> None:
    prompt = Prompt(ASKED.tokens[:-2], ASKED.spans[:-1])
    context = context_of(prompt, answer=(91, 92))

    assert context.spans[-1] == TextSpan(
        SpanKind.ASSISTANT, "", len(prompt.tokens), len(prompt.tokens) + 2, "n2", 0
    )


def test_an_earlier_answer_at_the_end_of_a_prompt_is_not_the_one_that_is_written() -> None:
    context = context_of(prompt_for(TURNS[:1]), answer=(91, 92))

    assert [(span.key, span.title) for span in context.spans] == [("m0", "m0"), ("n0", "n0"), ("n2", "")]


def test_a_dropped_stretch_leaves_the_spans_of_the_rest() -> None:
    context = context_of(ASKED, answer=(91, 92))
    first, answer = ASKED.spans[1], ASKED.spans[3]

    context.drop(first.start, answer.stop)

    assert texts(context) == [WHOLE_TEXTS[0], WHOLE_TEXTS[4], ("n2", [91, 92])]
    context.cache.read([93])
    assert texts(context)[-1] == ("n2", [91, 92, 93])


def test_what_is_yet_to_be_read_keeps_its_names_when_something_before_it_is_dropped() -> None:
    answer = ASKED.spans[1]
    context = context_of(ASKED, answer.stop)

    context.drop(answer.start, answer.stop)
    context.cache.read(ASKED.tokens[answer.stop :])

    assert texts(context)[:-1] == [WHOLE_TEXTS[0], *WHOLE_TEXTS[2:5]]


def test_a_piece_has_the_spans_of_its_tokens_and_brings_them_back() -> None:
    context = context_of(ASKED, answer=(91, 92))
    before = context.held
    question, answer = ASKED.spans[2:4]

    spans, piece = context.detach(question.start, answer.stop)

    assert piece.tokens == ASKED.tokens[question.start : answer.stop]
    assert [(span.key, span.start, span.stop) for span in spans] == [("m1", 0, 5), ("n1", 5, 11)]
    assert texts(context) == [*WHOLE_TEXTS[:2], WHOLE_TEXTS[4], ("n2", [91, 92])]
    context.attach(question.start, piece, spans)
    assert context.held == before


@pytest.mark.parametrize(("place", "left"), [(1, []), (3, [11])])
def test_what_is_put_in_within_a_span_of_its_own_is_one_span_with_it(place: int, left: list[int]) -> None:
    context = context_of(ASKED)
    before, question = context.held, ASKED.spans[2]

    spans, piece = context.detach(question.start + place, question.stop)
    assert texts(context)[2] == ("m1", left)
    context.attach(question.start + place, piece, spans)

    assert context.held == before


def test_a_splice_names_what_was_read() -> None:
    context = context_of(ASKED, answer=(91,))
    question = ASKED.spans[2]
    context.drop(question.start, question.stop)

    head = context.cache.begin_splice(question.start)
    head.read([2, 3, 81, 82])
    context.end_splice(question.start, head, [TextSpan(SpanKind.SUMMARY, "", 0, 4, "s1", 2)])

    expected = [*WHOLE_TEXTS[:2], ("s1", [81, 82]), *WHOLE_TEXTS[3:5], ("n2", [91])]
    assert texts(context) == expected


def test_truncating_forgets_the_names_of_what_is_forgotten() -> None:
    context = context_of(ASKED, answer=(91, 92))
    stop = ASKED.spans[1].stop

    context.truncate(stop)
    assert texts(context) == WHOLE_TEXTS[:2]
    context.cache.read([93])

    assert texts(context) == [*WHOLE_TEXTS[:2], ("n2", [93])]


def test_a_fork_goes_on_by_itself() -> None:
    context = context_of(ASKED, answer=(91, 92))
    fork = context.fork()

    fork.drop(0, ASKED.spans[1].stop)
    fork.cache.read([93])

    assert texts(context)[:5] == WHOLE_TEXTS[:5]
    assert texts(context)[5] == ("n2", [91, 92])
    assert texts(fork) == [*WHOLE_TEXTS[2:5], ("n2", [91, 92, 93])]
