"""Bringing what is held of a conversation in line with what is wanted, beside dense attention in numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import Cancelled
from engine.events import CacheChanged, GenerationEvent, PrefillProgress
from engine.extending import Brought, bring_in_line, kept_tokens_of, settle
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.released import ReleasedText
from engine.spans import Prompt
from engine.spill import SpillFolder
from tests.engine.kv.caches import SHAPE, cache_of, holds_exactly, text_of
from tests.engine.kv.oracle import ROUNDING, Text, attention, true_kv, true_queries
from tests.engine.ledger_prompts import WHOLE, Ledger, Turn, prompt_for
from tests.engine.tiny_models import tiny_model

CHUNK_TOKENS = 16
PLENTY = 8192
SYSTEM = tuple(range(2000, 2020))
SUMMARY = tuple(range(3000, 3030))


def turn(number: int) -> Turn:
    """Return a turn of 75 tokens that no other has."""
    first = 100 * (number + 1)
    return Turn(number, tuple(range(first, first + 30)), tuple(range(first + 40, first + 80)))


TURNS = [turn(number) for number in range(5)]
WITHOUT_TWO = Ledger(frozenset({0, 1}))
SUMMARIZED = Ledger(frozenset({0, 1}), summaries={2: ("s1", SUMMARY)})


class Conversation:
    """A context of the stand-in model, how it is read, and how much of that was."""

    def __init__(self, folder: Path | None = None, *, cache: SequenceCache | None = None) -> None:
        self.context = HeldContext(cache_of("16; page=64") if cache is None else cache)
        self.released = None if folder is None else ReleasedText(SpillFolder(folder))
        self.num_read = 0
        self.cancel_after: int | None = None

    def check(self) -> None:
        if self.cancel_after is not None and self.num_read >= self.cancel_after:
            raise Cancelled

    def read(self, cache: SequenceCache, tokens: Sequence[int]) -> Iterator[GenerationEvent]:
        for start in range(0, len(tokens), CHUNK_TOKENS):
            self.check()
            chunk = tokens[start : start + CHUNK_TOKENS]
            cache.read(chunk)
            self.num_read += len(chunk)
            yield CacheChanged(cache.spec, cache.usage())

    def bring(self, wanted: Prompt, *, answer_tokens: int = 10, positions: int = PLENTY) -> Brought:
        """Bring the context in line, and check that it then is."""
        before = self.num_read
        brought, self.events = run(
            bring_in_line(
                self.context,
                wanted,
                answer_tokens=answer_tokens,
                context_tokens=positions,
                read=self.read,
                released=self.released,
                check=self.check,
            )
        )
        held = self.context.held
        assert held.tokens == wanted.tokens[: len(held.tokens)]
        assert named(held) == named(wanted, len(held.tokens))
        assert brought.spliced_tokens == self.num_read - before
        assert brought.kept_tokens + brought.spliced_tokens == len(held.tokens) < len(wanted.tokens)
        return brought

    def reply(self, wanted: Prompt, answer: Sequence[int] = (), key: str = "") -> None:
        """Read what is left of a prompt, and decode an answer."""
        self.context.read_is(wanted, key)
        for _ in self.read(self.context.cache, wanted.tokens[self.context.cache.num_tokens :]):
            pass
        if answer:
            self.context.cache.read(answer)

    def ask(self, turns: Sequence[Turn], ledger: Ledger = WHOLE, **room: int) -> Brought:
        """Ask the last of the turns, have the others in the context as the ledger says, and answer."""
        wanted = prompt_for(turns, ledger, SYSTEM, is_asked=True)
        brought = self.bring(wanted, **room)
        self.reply(wanted, turns[-1].answer, f"n{turns[-1].number}")
        return brought


def run(steps: Iterator[GenerationEvent]) -> tuple[Brought, list[GenerationEvent]]:
    events = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as stop:
            return stop.value, events


def named(prompt: Prompt, length: int | None = None) -> list[tuple[str, list[int]]]:
    """Return the key and tokens of each span, of the first so many tokens."""
    length = len(prompt.tokens) if length is None else length
    spans = [span for span in prompt.spans if span.start < length]
    return [(span.key, prompt.tokens[span.start : min(span.stop, length)]) for span in spans]


def logits_of(text: Text, token: int) -> np.ndarray:
    """Return the stand-in model's answer to one more token: dense attention, without a cache."""
    layers = []
    for layer in range(SHAPE.num_layers):
        queries = true_queries(SHAPE, layer, [token], [text.next_position])
        old = true_kv(SHAPE, layer, text.tokens, text.positions)
        new = true_kv(SHAPE, layer, [token], [text.next_position])
        keys, values = (np.concatenate(pair, axis=1) for pair in zip(old, new, strict=True))
        layers.append(attention(queries, keys, values, SHAPE.scale).reshape(-1))
    return np.concatenate(layers)


def check_logits(context: HeldContext, text: Text) -> None:
    """Check that a context holds a text and answers to it as dense attention does."""
    assert holds_exactly(context.cache, text)
    found = np.array(context.fork().cache.read([7]))[0, 0]
    np.testing.assert_allclose(found, logits_of(text, 7), atol=ROUNDING)


def read_through() -> Conversation:
    """Return a conversation with four turns, the last just answered."""
    conversation = Conversation()
    conversation.ask(TURNS[:4])
    return conversation


# Taking out and reading in.


def test_dropping_and_splicing_gives_what_dense_attention_gives_at_these_positions() -> None:
    conversation = read_through()
    whole = prompt_for(TURNS[:4], WHOLE, SYSTEM)
    before = Text()
    before.append(whole.tokens)
    assert text_of(conversation.context.cache) == before
    wanted = prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)

    brought = conversation.bring(wanted)

    gone = whole.spans[1].start, whole.spans[5].start + whole.spans[5].marker_tokens
    spliced = [*wanted.tokens[wanted.spans[1].start : wanted.spans[1].stop], 4]
    before.drop(*gone)
    before.splice(gone[0], spliced)
    check_logits(conversation.context, before)
    assert brought == Brought(len(before.tokens) - len(spliced), len(spliced), "")
    assert conversation.num_read == len(whole.tokens) - len(TURNS[3].answer) + len(spliced)


def test_progress_counts_what_is_held_and_what_was_spliced() -> None:
    conversation = read_through()
    wanted = prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)

    brought = conversation.bring(wanted)

    told = [event for event in conversation.events if isinstance(event, PrefillProgress)]
    kept, spliced = brought.kept_tokens, brought.spliced_tokens
    assert [one.done - kept for one in told] == [0, 16, 32, spliced, spliced]
    assert {(one.total, one.reused) for one in told} == {(len(wanted.tokens), kept)}
    assert sum(isinstance(event, CacheChanged) for event in conversation.events) == 3


def test_turns_that_go_without_a_word_cost_no_reading() -> None:
    conversation = read_through()
    before = conversation.num_read

    brought = conversation.bring(prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True))

    assert conversation.num_read == before
    assert brought.spliced_tokens == 0 and brought.note == ""


def test_what_is_told_beforehand_is_what_stays_and_nothing_is_changed_by_telling() -> None:
    conversation = read_through()
    before = conversation.context.held
    wanted = prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)

    told = kept_tokens_of(conversation.context, wanted, answer_tokens=10, context_tokens=PLENTY)

    assert conversation.context.held == before
    assert told == conversation.bring(wanted).kept_tokens


# What does not go without reading again.


def test_a_summary_that_is_longer_than_its_gap_makes_all_that_follows_be_read_again() -> None:
    conversation = read_through()
    long = Ledger(frozenset({0}), summaries={1: ("s1", tuple(range(3000, 3100)))})
    wanted = prompt_for(TURNS, long, SYSTEM, is_asked=True)

    brought = conversation.bring(wanted)

    assert brought.kept_tokens == len(SYSTEM) + 1 and brought.spliced_tokens == 0
    behind = prompt_for(TURNS[1:4], WHOLE).tokens[1:]  # one of the marker is of the summary
    assert brought.note == (
        "There were too few positions for what is new between older text: "
        f"{len(behind):,} tokens were read again."
    )


def test_without_positions_for_the_rest_and_the_answer_it_is_read_again_from_the_first_gap_on() -> None:
    conversation = read_through()
    wanted = prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True)
    needed = len(prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True).tokens) + 10

    enough = kept_tokens_of(conversation.context, wanted, answer_tokens=10, context_tokens=needed)
    brought = conversation.bring(wanted, positions=needed - 1)

    assert enough > 150
    assert brought.kept_tokens == len(SYSTEM) + 1
    assert brought.note.startswith("The model had too few positions left for the rest and the answer: ")
    conversation.reply(wanted)
    expected = Text()
    expected.append(wanted.tokens)
    check_logits(conversation.context, expected)


@pytest.mark.parametrize("gone", [{0}, {0, 2}])
def test_a_gap_that_is_filled_to_the_last_position_is_no_gap(gone: set[int]) -> None:
    conversation = read_through()
    whole = prompt_for(TURNS[:4], WHOLE, SYSTEM)
    num_free = whole.spans[3].start + whole.spans[3].marker_tokens - whole.spans[1].start
    summaries = {1: ("s1", tuple(range(3000, 3000 + num_free - 3)))}
    wanted = prompt_for(TURNS, Ledger(frozenset(gone), summaries=summaries), SYSTEM, is_asked=True)

    brought = conversation.bring(wanted, positions=len(wanted.tokens) + 10)

    assert brought.spliced_tokens == num_free
    cache = conversation.context.cache
    assert cache.num_before_gap == cache.num_tokens
    assert cache.num_tokens == (len(whole.tokens) if gone == {0} else whole.spans[5].start)
    assert bool(brought.note) is (gone != {0})


def test_a_model_with_layers_that_are_not_paged_reads_again_what_follows_and_says_so() -> None:
    def small(ledger: Ledger, turns: Sequence[Turn]) -> Prompt:
        return prompt_for(turns, ledger, (90, 91), is_asked=True)

    turns = [Turn(n, (10 + n, 11, 12), (20 + n, 21, 22)) for n in range(5)]
    cache = SequenceCache(tiny_model("llama4"), KVSpec.parse("16; page=64"))
    conversation = Conversation(cache=cache)
    conversation.reply(small(WHOLE, turns[:4]), turns[3].answer, "n3")
    wanted = small(WITHOUT_TWO, turns)
    settled = settle(conversation.context, wanted, released=None, check=conversation.check)

    brought = conversation.bring(wanted)

    assert settled == 0
    assert brought.kept_tokens <= 5
    assert brought.note.startswith("This model cannot leave out text that it has read: ")


def test_an_answer_that_the_template_rewrites_is_read_again_and_nothing_before_it() -> None:
    conversation = Conversation()
    asked = prompt_for(TURNS[:3], WHOLE, SYSTEM, is_asked=True)
    reasoning = tuple(range(3500, 3600))
    conversation.bring(asked)
    conversation.reply(asked, (*reasoning, *TURNS[2].answer), "n2")

    brought = conversation.bring(prompt_for(TURNS[:4], WHOLE, SYSTEM, is_asked=True))

    assert brought.kept_tokens == len(asked.tokens)
    assert brought.note == "The chat template rewrote an earlier message: 40 tokens were read again."


# What comes back.


def test_turns_come_back_unread_where_they_were(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    before = text_of(conversation.context.cache)
    conversation.bring(prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True))
    num_read = conversation.num_read
    wanted = prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True)

    told = kept_tokens_of(
        conversation.context,
        wanted,
        answer_tokens=10,
        context_tokens=PLENTY,
        released=conversation.released,
    )
    brought = conversation.bring(wanted)

    # the marker of the question behind them, which was of the summary in between
    assert conversation.num_read - num_read == brought.spliced_tokens == 2
    assert brought.kept_tokens == told == len(before.tokens) - 2
    check_logits(conversation.context, before)


def test_one_of_several_turns_comes_back_alone(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    conversation.bring(prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True))
    assert conversation.released is not None
    assert [span.key for span in conversation.released.spans] == ["m0", "n0", "m1", "n1"]
    expected = Text()
    whole = prompt_for(TURNS[:4], WHOLE, SYSTEM)
    expected.append(whole.tokens)
    expected.drop(whole.spans[1].start, whole.spans[3].start)

    brought = conversation.bring(prompt_for(TURNS, Ledger(frozenset({0})), SYSTEM, is_asked=True))

    assert brought.spliced_tokens == 0
    assert [span.key for span in conversation.released.spans] == ["m0", "n0"]
    check_logits(conversation.context, expected)


def test_turns_come_back_in_parts_that_leave_room_for_the_rest(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    before = text_of(conversation.context.cache)
    conversation.bring(
        prompt_for(TURNS, Ledger(frozenset({0, 1, 2}), summaries={3: ("s1", SUMMARY)}), SYSTEM)
    )
    shorter = Ledger(frozenset({0, 1}), summaries={2: ("s2", SUMMARY[:20])})

    brought = conversation.bring(prompt_for(TURNS, shorter, SYSTEM, is_asked=True))

    markers = 5  # those of the summary and of the two questions behind it, which have another one than before
    assert brought.spliced_tokens == 20 + markers
    assert conversation.released is not None
    assert [span.key for span in conversation.released.spans] == ["m0", "n0", "m1", "n1", "s1"]
    brought = conversation.bring(prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True))
    assert (brought.spliced_tokens, brought.note) == (2, "")
    check_logits(conversation.context, before)


def test_one_answer_that_is_written_otherwise_keeps_no_other_from_coming_back(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    without = Ledger(frozenset({0, 1, 2}))
    conversation.bring(prompt_for(TURNS, without, SYSTEM, is_asked=True))
    other = Turn(1, TURNS[1].question, tuple(range(3500, 3535)))

    brought = conversation.bring(prompt_for([TURNS[0], other, *TURNS[2:]], WHOLE, SYSTEM, is_asked=True))

    assert brought.spliced_tokens == 35 + 2  # with its marker
    assert conversation.released is not None and conversation.released.spans == ()
    assert holds_exactly(conversation.context.cache, text_of(conversation.context.cache))


def test_what_was_not_kept_is_read_into_its_gap() -> None:
    conversation = read_through()
    before = text_of(conversation.context.cache)
    conversation.bring(prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True))

    brought = conversation.bring(prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True))

    assert brought.spliced_tokens == len(before.tokens) - brought.kept_tokens > 140
    check_logits(conversation.context, before)


def test_what_does_not_come_back_whole_is_read_instead(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    before = text_of(conversation.context.cache)
    conversation.bring(prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True))
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            path.write_bytes(bytes(path.stat().st_size))

    brought = conversation.bring(prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True))

    assert brought.spliced_tokens > 140
    check_logits(conversation.context, before)


@pytest.mark.parametrize(
    ("gone", "place", "length", "least_read"),
    [
        ({0, 2}, 1, 100, 170),  # the question behind the summary, and its answer, are read behind it
        ({0, 2}, 1, 60, 60),  # both come back
        ({0}, 2, 60, 130),  # the turn before the summary is read where there is room for both
    ],
)
def test_what_comes_back_leaves_room_for_a_summary_beside_it(
    tmp_path: Path, gone: set[int], place: int, length: int, least_read: int
) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    without = Ledger(frozenset({0, 1, *gone}))
    conversation.bring(prompt_for(TURNS, without, SYSTEM, is_asked=True))
    ledger = Ledger(frozenset(gone), summaries={place: ("s1", tuple(range(3000, 3000 + length)))})

    brought = conversation.bring(prompt_for(TURNS, ledger, SYSTEM, is_asked=True))

    assert brought.note == ""
    assert least_read <= brought.spliced_tokens < least_read + 15


def test_a_question_that_is_asked_again_has_its_last_token_left_to_read() -> None:
    conversation = read_through()
    asked = prompt_for(TURNS[:4], WHOLE, SYSTEM, is_asked=True)

    assert conversation.bring(asked).kept_tokens == len(asked.tokens) - 1


# A stop.


@pytest.mark.parametrize("num_chunks", [0, 1, 2])
def test_a_stop_while_splicing_leaves_names_that_are_right_and_can_be_gone_on_from(num_chunks: int) -> None:
    conversation = read_through()
    wanted = prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)
    conversation.cancel_after = conversation.num_read + num_chunks * CHUNK_TOKENS

    with pytest.raises(Cancelled):
        conversation.bring(wanted)

    held = conversation.context.held
    without = prompt_for(TURNS[:4], WITHOUT_TWO, SYSTEM)
    assert [(key, tokens[-20:]) for key, tokens in named(held)] == [
        (key, tokens[-20:]) for key, tokens in named(without)
    ]
    conversation.cancel_after = None
    assert conversation.bring(wanted).spliced_tokens > 30


def test_a_stop_gives_back_what_was_read_into_a_gap() -> None:
    stopped, settled = read_through(), read_through()
    long = Ledger(frozenset({0, 1}), summaries={2: ("s1", tuple(range(3000, 3140)))})
    wanted = prompt_for(TURNS, long, SYSTEM, is_asked=True)
    stopped.cancel_after = stopped.num_read + 128  # two pages of it

    with pytest.raises(Cancelled):
        stopped.bring(wanted)
    settled.bring(prompt_for(TURNS, WITHOUT_TWO, SYSTEM, is_asked=True))

    assert stopped.context.cache.nbytes <= settled.context.cache.nbytes


def test_a_stop_while_text_goes_to_disk_leaves_names_that_are_right(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path)
    conversation.ask(TURNS[:4])
    conversation.cancel_after = 0
    wanted = prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)

    with pytest.raises(Cancelled):
        conversation.bring(wanted)

    known = {span.key: words for span, words in zip(wanted.spans, named(wanted), strict=True)}
    for key, tokens in named(conversation.context.held):
        assert not key or key not in known or tokens[-20:] == known[key][1][-20:]
    conversation.cancel_after = None
    conversation.bring(wanted)


# Between replies.


def test_settling_takes_out_what_left_and_reads_nothing() -> None:
    conversation = read_through()
    num_read, context = conversation.num_read, conversation.context
    wanted = prompt_for(TURNS[:4], SUMMARIZED, SYSTEM)

    gone = settle(context, wanted, released=None, check=conversation.check)

    assert gone == sum(len(tokens) for key, tokens in named(prompt_for(TURNS[:2], WHOLE, SYSTEM)) if key)
    assert [span.key for span in context.spans] == ["", "m2", "n2", "m3", "n3"]
    assert settle(context, wanted, released=None, check=conversation.check) == 0
    assert conversation.num_read == num_read
    assert conversation.bring(prompt_for(TURNS, SUMMARIZED, SYSTEM, is_asked=True)).spliced_tokens > 30


def test_settling_takes_out_the_last_turn_and_leaves_an_answer_that_is_only_rewritten() -> None:
    conversation = read_through()
    context = conversation.context

    settle(context, prompt_for(TURNS[:3], WHOLE, SYSTEM), released=None, check=conversation.check)
    assert [span.key for span in context.spans] == ["", "m0", "n0", "m1", "n1", "m2", "n2"]
    rewritten = [*TURNS[:2], Turn(2, TURNS[2].question, (9, 9, 9))]
    assert settle(context, prompt_for(rewritten, WHOLE, SYSTEM), released=None, check=conversation.check) == 0


# Random lives.


@st.composite
def ledgers(draw: st.DrawFn, count: int) -> Ledger:
    """Draw what is read of so many turns: never without the last."""
    gone = draw(st.frozensets(st.integers(0, count - 2))) if count > 1 else frozenset()
    if not gone or draw(st.booleans()):
        return Ledger(gone)
    place = draw(st.sampled_from(sorted(number + 1 for number in gone)))
    return Ledger(gone, summaries={place: (f"s{place}", SUMMARY[: 3 + 6 * place])})


@given(st.data(), st.booleans())
@settings(max_examples=25)
def test_any_ledger_gives_the_wanted_text_and_no_more_is_read_than_was_told(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, keeps: bool
) -> None:
    conversation = Conversation(tmp_path_factory.mktemp("spill") if keeps else None)
    for count in range(1, len(TURNS) + 1):
        for _ in range(data.draw(st.integers(1, 2))):
            ledger = data.draw(ledgers(count))
            wanted = prompt_for(TURNS[:count], ledger, SYSTEM, is_asked=True)
            told = kept_tokens_of(
                conversation.context,
                wanted,
                answer_tokens=10,
                context_tokens=PLENTY,
                released=conversation.released,
            )
            assert conversation.bring(wanted).kept_tokens == told
            assert holds_exactly(conversation.context.cache, text_of(conversation.context.cache))
        conversation.reply(wanted, TURNS[count - 1].answer, f"n{count - 1}")
