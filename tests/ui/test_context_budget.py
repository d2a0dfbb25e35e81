from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from app.profiles import BUILT_IN, Overflow
from engine.admission import Choice, InSegments, LongerContext, LowerPrecision, PackedWeights
from engine.kv.precision import KVSpec
from engine.reply_admission import MIN_ANSWER_TOKENS
from ui.context_use import ContextUse, context_note
from ui.surplus import surplus_sentence

LIMIT = 8192


def use(history: int, text: int, attachments: int = 0) -> ContextUse:
    return ContextUse(history, text, attachments, 0, LIMIT)


def sentence(history: int, text: int, attachments: int = 0, choices: Sequence[Choice] = ()) -> str:
    return surplus_sentence(use(history, text, attachments), bool(attachments), choices)


def test_what_fits_needs_no_words() -> None:
    assert sentence(LIMIT - MIN_ANSWER_TOKENS, 0) == ""


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ((100, 10, 9000), "This does not fit: 934 tokens too many. Remove a document."),
        (
            (100, 9000),
            "This does not fit: 924 tokens too many. Shorten the message or attach a long text as a "
            "document.",
        ),
        (
            (5000, 4000),
            "This does not fit: 824 tokens too many. Shorten the message or start a new conversation.",
        ),
        (
            (8190, 0),
            "The conversation is too long for the context: no room is left for an answer. "
            "Start a new conversation.",
        ),
        (
            (9000, 10),
            "The conversation is too long for the context: 834 tokens too many. Start a new conversation.",
        ),
    ],
)
def test_only_what_helps_is_proposed(tokens: tuple[int, ...], words: str) -> None:
    assert sentence(*tokens) == words


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (LongerContext(10_240), "Shorten the message, allow a longer context or start a new conversation."),
        (
            LowerPrecision(KVSpec.parse("4"), 10_000),
            "Shorten the message, choose a lower KV precision or start a new conversation.",
        ),
        (
            PackedWeights(10_000),
            "Shorten the message, load the model again with packed weights or start a new conversation.",
        ),
        (InSegments(2), "Shorten the message, read documents in segments or start a new conversation."),
        (None, "Shorten the message or start a new conversation."),
    ],
)
def test_more_room_is_proposed_as_it_can_be_had(choice: Choice | None, words: str) -> None:
    assert sentence(5000, 4000, choices=() if choice is None else (choice,)).endswith(words)


def test_the_first_message_is_not_told_to_begin_anew() -> None:
    first = dataclasses.replace(use(40, 9_000), has_turns=False)
    assert surplus_sentence(first, False, ()) == (
        "This does not fit: 864 tokens too many. Shorten the message or attach a long text as a document."
    )


def test_a_message_that_waits_for_its_answer_and_is_too_long_may_be_edited() -> None:
    blocked = dataclasses.replace(use(9_000, 10), has_unanswered=True)
    assert surplus_sentence(blocked, False, ()).endswith(
        "Edit the message that waits for its answer or start a new conversation."
    )
    fits = dataclasses.replace(use(5_000, 4_000), has_unanswered=True)
    assert "Edit" not in surplus_sentence(fits, False, ())


@pytest.mark.parametrize(("positions", "whose"), [(LIMIT, "the model"), (32_768, "the context limit")])
def test_what_is_too_short_is_named(positions: int, whose: str) -> None:
    long = dataclasses.replace(use(100, 9_000), model_tokens=positions)
    words = surplus_sentence(long, False, ())
    assert words == (
        f"This does not fit: 924 tokens too many for {whose}. Shorten the message or attach a long text as a "
        "document."
    )


def test_where_memory_is_the_cause_bytes_and_what_there_is_to_allow_are_said() -> None:
    first = dataclasses.replace(use(0, 9_000), has_turns=False)
    words = surplus_sentence(
        first, False, (PackedWeights(9_100),), "Their KV cache takes 2 GB.", "allow more memory"
    )
    assert words == (
        "This does not fit into memory: it has 9,000 tokens, and 8,192 fit. Their KV cache takes 2 GB. Allow "
        "more memory, shorten the message, attach a long text as a document or load the model again with "
        "packed weights."
    )


def test_what_would_be_summarized_is_said_not_to_be_counted_where_the_rest_does_not_fit_either() -> None:
    assert context_note(ContextUse(0, 9_000, 0, 0, LIMIT, LIMIT, LIMIT, 1), BUILT_IN[0]) == (
        "Counted with 1 old turn summarized."
    )


@pytest.mark.parametrize(
    ("released", "fitting", "made_for", "note"),
    [
        (0, 20_000, 32_768, ""),
        (1, 20_000, 32_768, "1 old turn will be summarized first."),
        (3, 20_000, 32_768, "3 old turns will be summarized first."),
        (0, 8_192, 8_192, ""),
        (0, 4_096, 8_192, "Of the limit of 12,288 tokens, 4,096 fit into memory."),
        (0, 8_192, 32_768, "Of the limit of 12,288 tokens, 8,192 fit into memory."),
        (
            2,
            8_192,
            32_768,
            "2 old turns will be summarized first. Of the limit of 12,288 tokens, 8,192 fit into memory.",
        ),
    ],
)
def test_what_is_summarized_and_a_limit_beyond_what_fits_are_said(
    released: int, fitting: int, made_for: int, note: str
) -> None:
    chat = BUILT_IN[0]
    limit = min(fitting, chat.max_context or fitting)
    assert context_note(ContextUse(100, 10, 0, 0, limit, fitting, made_for, released), chat) == note


def test_turns_that_the_profile_leaves_out_are_called_so() -> None:
    dropping = dataclasses.replace(BUILT_IN[0], overflow=Overflow.DROP)
    released = ContextUse(100, 10, 0, 0, LIMIT, LIMIT, LIMIT, 2)
    assert context_note(released, dropping).startswith("2 old turns will be left out.")


def test_what_will_be_read_of_documents_is_counted_as_far_as_there_is_room_and_is_no_surplus() -> None:
    roomy = ContextUse(100, 10, 30, 0, LIMIT, LIMIT, reading_tokens=2_000)
    assert (roomy.used_tokens, roomy.read_tokens, roomy.surplus_tokens) == (140, 2_140, 0)
    tight = ContextUse(8_000, 10, 30, 0, LIMIT, LIMIT, reading_tokens=2_000)
    assert (tight.read_tokens, tight.surplus_tokens) == (LIMIT - MIN_ANSWER_TOKENS, 0)
    too_long = ContextUse(9_000, 10, 30, 0, LIMIT, LIMIT, reading_tokens=2_000)
    assert (too_long.read_tokens, too_long.surplus_tokens) == (9_040, 9_040 + MIN_ANSWER_TOKENS - LIMIT)
