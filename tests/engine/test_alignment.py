"""Which tokens of a conversation stay when turns are taken out, summarized and brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.alignment import Alignment, Edit, align
from engine.kv.page_map import SpanKind, TextSpan
from engine.model import ChatMessage, Model
from engine.spans import DocumentRange, Prompt
from tests.engine.ledger_prompts import BEGIN, BREAK, END, USER, Ledger, Turn, Words, prompt_for, words_of
from tests.engine.test_chat_template import CHATML, DEAF, GEMMA, LLAMA3, MISTRAL
from tests.engine.test_spans import OWN_SYSTEM, SHOUTING, WITHOUT_REASONING, prompt_of

# The oracle: held text as a list of tokens that each know when they were read.


@dataclass(frozen=True)
class ReadToken:
    """A token that was read once; two of them are the same only where that was the same reading."""

    token: int
    reading: int


def read(tokens: Sequence[int], reading: int = 0) -> list[ReadToken]:
    return [ReadToken(token, reading * 100_000 + index) for index, token in enumerate(tokens)]


def applied(held: Sequence[ReadToken], wanted: Prompt, found: Alignment) -> list[ReadToken]:
    """Return what is held after the edits."""
    result, start = [], 0
    new = read(wanted.tokens, reading=1)
    for edit in found.edits:
        result += [*held[start : edit.start], *new[edit.insert_start : edit.insert_stop]]
        start = edit.stop
    return [*result, *held[start:]][: found.kept_tokens]


WORDS = st.lists(st.integers(5, 7), min_size=1, max_size=8).map(tuple)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Turn], Ledger, Ledger]:
    """Draw turns, and two ledgers of them."""
    count = draw(st.integers(1, 6))
    turns = [Turn(n, draw(WORDS), draw(WORDS), draw(st.none() | WORDS)) for n in range(count)]
    summaries = [(f"s{n}", draw(WORDS)) for n in range(3)]

    def ledger() -> Ledger:
        gone = draw(st.frozensets(st.integers(0, count - 2))) if count > 1 else frozenset()
        places = draw(st.frozensets(st.integers(0, count - 1), max_size=len(summaries)))
        return Ledger(
            gone,
            draw(st.frozensets(st.integers(0, count - 1))),
            dict(zip(sorted(places), draw(st.permutations(summaries)), strict=False)),
        )

    return turns, ledger(), ledger()


@given(conversations(), WORDS | st.just(()), st.data())
@settings(max_examples=200)
def test_edits_make_held_text_the_wanted_text_and_leave_shared_words_alone(
    drawn: tuple[list[Turn], Ledger, Ledger], system: Words, data: st.DataObject
) -> None:
    turns, before, after = drawn
    num_read = data.draw(st.integers(1, len(turns)))
    held = prompt_for(turns[:num_read], before, system)
    wanted = prompt_for(turns, after, system)
    order = [span.key for span in wanted.spans if span.key in words_of(held)]
    assume(order == [span.key for span in held.spans if span.key in words_of(wanted)])

    found = align(held.tokens, held.spans, wanted)

    text = read(held.tokens)
    result = applied(text, wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    survived = set(result)
    last = held.spans[-1].key if held.spans else None
    for key in words_of(held).keys() & words_of(wanted).keys() - {last}:
        start, stop = words_of(held)[key]
        assert survived.issuperset(text[start:stop]), key


def test_nothing_is_done_to_text_that_goes_on() -> None:
    turns = [Turn(n, (5, 6, 5), (7, 7)) for n in range(3)]
    held, wanted = prompt_for(turns[:2]), prompt_for(turns)

    assert align(held.tokens, held.spans, wanted) == Alignment((), len(held.tokens))
    assert align(held.tokens, held.spans, held) == Alignment((), len(held.tokens))
    assert align([], (), wanted) == Alignment((), 0)


def test_a_span_that_left_goes_whole_and_what_is_new_goes_there_whole() -> None:
    turns = [Turn(n, (5, 6, 5), (7, 7)) for n in range(3)]
    held = prompt_for(turns, system=(6, 6))
    wanted = prompt_for(turns, Ledger(frozenset({0}), frozenset(), {1: ("s1", (5, 5))}), system=(6, 6))
    first, answer = held.spans[1], held.spans[2]
    marker = held.spans[3].start + held.spans[3].marker_tokens

    found = align(held.tokens, held.spans, wanted)

    # the question behind them had the marker that the summary before it has now
    assert found.edits == (Edit(first.start, marker, wanted.spans[1].start, wanted.spans[1].stop + 1),)
    assert answer.stop < marker and wanted.tokens[wanted.spans[1].stop] == BREAK
    assert found.kept_tokens == len(wanted.tokens)


def test_the_first_tokens_of_all_stay_where_they_are() -> None:
    turns = [Turn(n, (5 + n, 6), (7, 7)) for n in range(2)]
    held = prompt_for(turns)
    wanted = prompt_for(turns, Ledger(frozenset({0})))

    found = align(held.tokens, held.spans, wanted)

    assert held.tokens[:2] == [BEGIN, USER]
    assert found.edits[0].start == 2
    assert applied(read(held.tokens), wanted, found)[:2] == read(held.tokens)[:2]


# What ends the keeping.

LONG = tuple(range(10, 30))


def kept_after(changed: Turn, *, keyless: bool = False, system: Words = (6, 6)) -> tuple[Alignment, int]:
    """Return how a conversation is aligned of which the second of four turns is another, and where that is.

    Its first turn has left the context.
    """
    turns = [Turn(n, (5, n + 50, *LONG), (7, n + 60, *LONG)) for n in range(4)]
    held = prompt_for(turns, system=(6, 6))
    turns[1] = changed
    wanted = prompt_for(turns, Ledger(frozenset({0})), system)
    if keyless:
        without = [{f"m{1}": "", f"n{1}": ""}.get(span.key, span.key) for span in wanted.spans]
        spans = [replace(span, key=key) for span, key in zip(wanted.spans, without, strict=True)]
        wanted = Prompt(wanted.tokens, tuple(spans))
    found = align(held.tokens, held.spans, wanted)
    result = applied(read(held.tokens), wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    return found, next(span.start for span in wanted.spans if span.title == "m1")


@pytest.mark.parametrize(
    "words", [(*range(90, 95), *LONG[3:]), (5, 51, *LONG[:10]), (5, 51, *LONG[:9], 99, *LONG[10:])]
)
def test_other_words_under_the_same_key_end_the_keeping_there(words: Words) -> None:
    found, start = kept_after(Turn(1, (5, 51, *LONG), words))

    assert start + 20 < found.kept_tokens < start + 60
    assert "The chat template rewrote an earlier message: " in found.note


def test_another_system_prompt_ends_the_keeping_at_once() -> None:
    found, start = kept_after(Turn(1, (5, 51, *LONG), (7, 61, *LONG)), system=(6, 7))

    assert found.edits == () and found.kept_tokens == 2 < start
    assert found.note.startswith("The system prompt is another one: ")


def test_other_text_without_keys_ends_the_keeping_before_it() -> None:
    found, start = kept_after(Turn(1, (5, 98, *LONG), (7, 99, *LONG)), keyless=True)

    assert found.kept_tokens <= start + 3
    assert found.edits == ()


def test_keys_in_another_order_are_not_taken_for_the_same_text() -> None:
    turns = [Turn(n, (5, n + 50, *LONG), (7, n + 60, *LONG)) for n in range(3)]
    held, wanted = prompt_for(turns), prompt_for([turns[1], turns[0], turns[2]])

    found = align(held.tokens, held.spans, wanted)

    result = applied(read(held.tokens), wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    assert found.kept_tokens < len(wanted.tokens)
    assert found.note.startswith("Earlier text has changed: ")


def test_short_words_that_differ_are_not_taken_for_a_border() -> None:
    turns = [Turn(0, (5, 6, 7), (8, 9, 5)), Turn(1, LONG, LONG)]
    held, wanted = prompt_for(turns), prompt_for([Turn(0, (9, 9, 7), (8, 9, 5)), turns[1]])

    assert align(held.tokens, held.spans, wanted).kept_tokens == 2


def test_tokens_that_merge_otherwise_with_what_stands_around_them_are_read_again_alone() -> None:
    def text(first: int, last: int, ledger: Ledger) -> Prompt:
        turns = [Turn(0, LONG, LONG), Turn(1, (first, *LONG, last), LONG), Turn(2, LONG, LONG)]
        return prompt_for(turns, ledger, (6, 6))

    held, wanted = text(90, 91, Ledger()), text(92, 93, Ledger(frozenset({0})))

    found = align(held.tokens, held.spans, wanted)

    assert found.kept_tokens == len(wanted.tokens)
    assert found.num_inserted == 4  # with the marker before the first of them
    assert [one.token for one in applied(read(held.tokens), wanted, found)] == wanted.tokens


def test_words_that_are_all_in_the_token_of_their_marker_are_the_same_words() -> None:
    turns = [Turn(0, (5, 6), (7,)), Turn(1, (), (8,)), Turn(2, (9,), (10,))]  # as `[INST] Hi` may be read
    held, wanted = prompt_for(turns), prompt_for(turns, Ledger(frozenset({0})))
    found = align(held.tokens, held.spans, wanted)
    assert (found.kept_tokens, found.num_inserted, found.note) == (len(wanted.tokens), 0, "")


def test_what_was_read_of_a_text_only_in_part_is_not_called_rewritten() -> None:
    turns = [Turn(0, LONG, LONG, document=tuple(range(100, 200)))]
    wanted = prompt_for(turns, system=(6, 6))
    held = prompt_for([Turn(0, LONG, LONG, document=tuple(range(100, 150)))], system=(6, 6))
    document = held.spans[1]

    found = align(held.tokens[: document.stop], held.spans[:2], wanted)

    assert found == Alignment((), document.stop)


# The templates of models.

LLAMA2 = (
    "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}"
    "{% set system = '<<SYS>>\n' + messages[0].content + '\n<</SYS>>\n\n' %}"
    "{% else %}{% set rest = messages %}{% set system = '' %}{% endif %}"
    "{% for m in rest %}{% if m.role == 'user' %}"
    "<s>[INST] {% if loop.first %}{{ system }}{% endif %}{{ m.content }} [/INST]"
    "{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
TEMPLATES = [CHATML, LLAMA2, LLAMA3, GEMMA, MISTRAL, OWN_SYSTEM, WITHOUT_REASONING, DEAF, None]
SYSTEM = ChatMessage("system", "Be brief.")


def conversation(count: int) -> list[ChatMessage]:
    """Return so many turns; the answers reason before they speak."""
    messages = []
    for number in range(count):
        letter = chr(ord("a") + number)
        messages.append(ChatMessage("user", f"Question {letter * 9}?", key=f"m{2 * number}"))
        answer = f"<think>\nHm, {letter}.\n</think>\n\nAnswer {letter * 12}."
        messages.append(ChatMessage("assistant", answer, key=f"m{2 * number + 1}"))
    return messages


def summarized(message: ChatMessage, summary: str) -> ChatMessage:
    """Return a question with a summary at its head."""
    part = DocumentRange("Summary", 0, len(summary), "s1", SpanKind.SUMMARY)
    return replace(message, content=f"{summary}\n\n{message.content}", documents=(part,))


def in_template(template: str | None, messages: list[ChatMessage]) -> Prompt:
    return prompt_of(messages, template)[0]


def check_kept(held: Prompt, wanted: Prompt) -> Alignment:
    """Check that the edits give the wanted text, and that no more is read than what is new, and a marker."""
    found = align(held.tokens, held.spans, wanted)
    text = read(held.tokens)
    result = applied(text, wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    common = words_of(held).keys() & words_of(wanted).keys()
    for key in common:
        start, stop = words_of(held)[key]
        assert set(result).issuperset(text[start:stop]), key
    new = sum(span.stop - span.start for span in wanted.spans if span.key and span.key not in common)
    assert len(wanted.tokens) - len(set(result) & set(text)) <= new + MARKER_TOKENS
    return found


MARKER_TOKENS = 60
"""No template has more bytes between two messages."""


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("system", [[], [SYSTEM]])
@pytest.mark.parametrize("num_gone", [1, 3])
def test_the_oldest_turns_leave_every_template_unread(
    template: str | None, system: list[ChatMessage], num_gone: int
) -> None:
    messages = conversation(5)
    held = in_template(template, [*system, *messages])
    wanted = in_template(template, [*system, *messages[2 * num_gone :]])

    found = check_kept(held, wanted)

    assert found.note == ""
    assert len(found.edits) == 1


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("system", [[], [SYSTEM]])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_summary_takes_the_place_of_turns_and_is_all_that_is_read(
    template: str | None, system: list[ChatMessage], place: int
) -> None:
    messages, summary = conversation(5), "They spoke of letters, all of them the same."
    held = in_template(template, [*system, *messages])
    shorter = [*messages[: 2 * place], summarized(messages[2 * place + 2], summary)]
    wanted = in_template(template, [*system, *shorter, *messages[2 * place + 3 :]])

    check_kept(held, wanted)
    check_kept(wanted, held)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("system", [[], [SYSTEM]])
@pytest.mark.parametrize("gone", [{0}, {1, 2}, {3}, {4}, {3, 4}, {0, 1, 2, 3}])
def test_questions_that_were_never_answered_leave_every_template_unread(
    template: str | None, system: list[ChatMessage], gone: set[int]
) -> None:
    """Where a template merges questions in a row, the marker of what stays is another one."""
    messages = [each for each in conversation(6) if each.key not in ("m1", "m5", "m7", "m11")]
    held = in_template(template, [*system, *messages])
    stays = [message for at, message in enumerate(messages) if at not in gone]
    wanted = in_template(template, [*system, *stays])

    check_kept(held, wanted)
    check_kept(wanted, held)


def test_a_document_leaves_the_question_that_it_came_with() -> None:
    messages = conversation(3)
    document = "All about letters. " * 9
    with_it = replace(
        messages[0],
        content=f"{document}\n\n{messages[0].content}",
        documents=(DocumentRange("Letters", 0, len(document), "a1"),),
    )
    held = in_template(CHATML, [SYSTEM, with_it, *messages[1:]])
    wanted = in_template(CHATML, [SYSTEM, *messages])

    assert [span.kind for span in held.spans[:3]] == [SpanKind.SYSTEM, SpanKind.DOCUMENT, SpanKind.USER]
    check_kept(held, wanted)
    check_kept(wanted, held)


def test_turns_that_a_template_rewrote_have_no_spans_and_are_not_guessed_at() -> None:
    messages = conversation(4)
    held, wanted = (in_template(SHOUTING, part) for part in (messages, messages[2:]))

    found = align(held.tokens, held.spans, wanted)

    result = applied(read(held.tokens), wanted, found)
    assert [one.token for one in result] == wanted.tokens[: found.kept_tokens]
    assert found.edits == ()


def test_the_starter_reads_no_more_than_the_summary(starter: Model) -> None:
    """With a tokenizer that merges words with what stands around them."""
    messages, summary = conversation(5), "They spoke of letters, all of them the same."
    held = starter.prompt(messages)
    wanted = starter.prompt([summarized(messages[4], summary), *messages[5:]])

    found = check_kept(held, wanted)

    assert found.num_inserted < starter.token_counter().count(summary) + 10
    check_kept(wanted, held)


# The answer that was generated.


def answered(prompt: Prompt, answer: str) -> Prompt:
    """Return a prompt with an answer, as it was decoded behind the marker that ends the prompt."""
    marker, tokens = prompt.spans[-1], [*prompt.tokens, *answer.encode()]
    span = TextSpan(
        SpanKind.ASSISTANT, "", marker.start, len(tokens), "m1", len(prompt.tokens) - marker.start
    )
    return Prompt(tokens, (*prompt.spans[:-1], span))


def next_turn(template: str, answer: str) -> tuple[Prompt, list[ChatMessage]]:
    """Return what is asked after an answer that was stored."""
    asked = conversation(2)
    messages = [asked[0], ChatMessage("assistant", answer, key="m1"), asked[2]]
    return in_template(template, messages), messages


@pytest.mark.parametrize("end", ["<|im_end|>", "", "<|im_end|>\n"])
def test_an_answer_stays_whether_or_not_its_end_was_decoded(end: str) -> None:
    wanted, messages = next_turn(CHATML, "It is a thing, as far as I know.")
    prompt = in_template(CHATML, messages[:1])
    held = answered(prompt, f"It is a thing, as far as I know.{end}")

    found = align(held.tokens, held.spans, wanted)

    assert found == Alignment((), len(held.tokens))


def test_the_last_token_of_an_answer_that_was_stopped_is_read_without_a_word() -> None:
    wanted, messages = next_turn(CHATML, "It is a thing, as far as I know")
    held = answered(in_template(CHATML, messages[:1]), "It is a thing, as far as I kno")

    assert align(held.tokens, held.spans, wanted) == Alignment((), len(held.tokens))


def test_an_answer_whose_reasoning_is_left_out_later_is_read_again_and_no_more() -> None:
    answer = "<think>\nIs it a thing?\n</think>\n\nIt is a thing, as far as I know."
    wanted, messages = next_turn(WITHOUT_REASONING, answer)
    prompt = in_template(WITHOUT_REASONING, messages[:1])
    held = answered(prompt, f"{answer}<|im_end|>")

    found = align(held.tokens, held.spans, wanted)

    assert found == Alignment(
        (),
        len(prompt.tokens),
        "The chat template rewrote an earlier message: 32 tokens were read again.",
    )


def test_a_last_answer_that_begins_otherwise_is_read_again_as_nothing_is_held_behind_it() -> None:
    turns = [Turn(0, LONG, (99, *LONG)), Turn(1, LONG, LONG)]
    asked, held = prompt_for(turns[:1], is_asked=True), prompt_for(turns[:1])
    wanted = prompt_for([Turn(0, LONG, LONG), turns[1]])

    found = align([*held.tokens, END], held.spans, wanted)

    rewritten = "The chat template rewrote an earlier message: 20 tokens were read again."
    assert found == Alignment((), len(asked.tokens), rewritten)


def test_turns_leave_before_an_answer_that_was_just_generated() -> None:
    messages = conversation(3)
    prompt = in_template(CHATML, messages[:5])
    answer = messages[5].content
    marker, tokens = prompt.spans[-1], [*prompt.tokens, *answer.encode(), *b"<|im_end|>"]
    span = TextSpan(SpanKind.ASSISTANT, "", marker.start, len(tokens), "m5", marker.marker_tokens)
    held = Prompt(tokens, (*prompt.spans[:-1], span))
    wanted = in_template(CHATML, [*messages[2:], ChatMessage("user", "And?", key="m6")])

    found = align(held.tokens, held.spans, wanted)

    assert [edit.num_inserted for edit in found.edits] == [0]
    assert found.num_held == len(held.tokens)
