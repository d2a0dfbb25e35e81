"""Conversations that outgrow their context: what the model reads then, and that it is stored."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from app.chat import ChatService, ReplyEnded, ReplyEvent, ReplySettings, ReplyStarted
from app.documents.document import Document
from app.ledger.actions import drop, pin
from app.ledger.context import ConversationContext, SpanState
from app.ledger.keeper import SHORT_OF_MEMORY
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import Summary, SummarySource, SummaryState
from app.ledger.summary_request import most_summary_tokens
from app.profiles import DocumentMode, Overflow
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState, Role
from engine.admission import (
    AdmissionError,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    SummarizeTurns,
)
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.events import ContextShortened, GenerationStats, PrefillProgress, Token
from engine.guard import Guard, GuardStep
from tests.engine.small_engine import FOUR, SHORT, guard_at, small_engine, write_small_model

SUMMARIZE = ReplySettings(SHORT, FOUR, "Be brief.", max_context=700, overflow=Overflow.SUMMARIZE)
DROP = dataclasses.replace(SUMMARIZE, overflow=Overflow.DROP)
ASK = dataclasses.replace(SUMMARIZE, overflow=Overflow.ASK, trim_at=0.8)
ROOMY = dataclasses.replace(SUMMARIZE, max_context=None)
NUM_TURNS = 18
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def guard() -> Guard:
    return guard_at(GuardStep.NONE)


@pytest.fixture(scope="module")
def loaded(path: Path, backend: Backend, guard: Guard) -> Engine:
    return small_engine(path, backend, guard)


@pytest.fixture
def engine(loaded: Engine, guard: Guard) -> Engine:
    """An engine that holds nothing of the conversations of other tests, whose ids are the same."""
    guard.height = GuardStep.NONE
    loaded.forget(1)
    return loaded


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


@pytest.fixture
def store(file: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(file)
    yield store
    store.close()


class Talk:
    """A conversation that is held turn by turn."""

    def __init__(self, store: ConversationStore, engine: Engine) -> None:
        self.store = store
        self.service = ChatService(store, engine)
        self.id = store.create_conversation().id
        self.leaf: Message | None = None
        self.events: list[ReplyEvent] = []

    def say(self, text: str, *documents: Document) -> int:
        attached = [self.store.add_attachment(self.id, each).id for each in documents]
        self.leaf = self.store.add_user_message(self.id, self.leaf.id if self.leaf else None, text, attached)
        return self.leaf.id

    def ask(
        self,
        text: str,
        settings: ReplySettings = SUMMARIZE,
        on_event: Callable[[ReplyEvent], None] = lambda event: None,
        cancel: CancelToken | None = None,
    ) -> GenerationStats:
        self.events = []
        events = self.service.reply(self.id, self.say(text), settings, cancel or CancelToken())
        for event in events:
            self.events.append(event)
            on_event(event)
        assert isinstance(event, ReplyEnded) and event.message.stats is not None
        self.leaf = event.message
        return event.message.stats

    @property
    def leaf_id(self) -> int:
        assert self.leaf is not None
        return self.leaf.id

    @property
    def path(self) -> list[Message]:
        return self.store.path(self.leaf_id)

    @property
    def context(self) -> ConversationContext:
        return ConversationContext.of(self.path, self.store.ledger(self.id))

    @property
    def summaries(self) -> tuple[Summary, ...]:
        return self.store.ledger(self.id).summaries

    @property
    def states(self) -> list[SpanState]:
        return [turn.state for turn in self.context.turns]

    def prepare(self, settings: ReplySettings = SUMMARIZE, cancel: CancelToken | None = None) -> list[object]:
        return list(self.service.prepare(self.id, self.leaf_id, settings, cancel or CancelToken()))


@pytest.fixture
def talk(store: ConversationStore, engine: Engine) -> Talk:
    return Talk(store, engine)


def until_due(talk: Talk, settings: ReplySettings = SUMMARIZE, num_turns: int = 5) -> None:
    """Hold a conversation until a trim comes with the next question of 80 tokens, and not before."""
    for letter in LETTERS[:num_turns]:
        talk.ask(letter * 80, settings)
    assert talk.states == [SpanState.IN_CONTEXT] * num_turns


# Trims before a reply.


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_a_conversation_goes_on_beyond_its_context_and_reads_only_what_is_new(
    talk: Talk, settings: ReplySettings
) -> None:
    left_out, read = [], []
    for letter in LETTERS[:NUM_TURNS]:
        stats = talk.ask(letter * 80, settings)
        assert stats.prompt_tokens + stats.completion_tokens <= 700
        left_out.append(stats.left_out_turns)
        read.append(stats.prompt_tokens - stats.reused_tokens)
    assert left_out == sorted(left_out) and left_out[0] == 0 < left_out[-1]
    # Turns go several at a time, and nothing that stays is read again: a question, and a summary.
    assert all(later - earlier >= 2 for earlier, later in pairwise(sorted(set(left_out))))
    assert max(read[1:]) < (300 if settings is SUMMARIZE else 140)
    asked = [message.text for message in talk.path if message.role is Role.USER]
    assert asked == [letter * 80 for letter in LETTERS[:NUM_TURNS]]
    gone = SpanState.SUMMARIZED if settings is SUMMARIZE else SpanState.DROPPED
    assert talk.states == [gone] * left_out[-1] + [SpanState.IN_CONTEXT] * (NUM_TURNS - left_out[-1])
    assert bool(talk.summaries) == (settings is SUMMARIZE)


def test_a_context_of_512_tokens_holds_thirty_turns_with_summaries_that_do_not_grow(talk: Talk) -> None:
    small = dataclasses.replace(SUMMARIZE, max_context=512)
    for turn in range(30):
        stats = talk.ask(f"{turn:02} And what is it that follows then?", small)
        assert stats.prompt_tokens + stats.completion_tokens <= 512
    assert stats.left_out_turns > 20
    for each in talk.summaries:
        assert each.num_tokens <= most_summary_tokens(each.source_tokens) <= 60
        assert each.state is SummaryState.USED
    (read,) = {turn.summary for turn in talk.context.turns if turn.summary is not None}
    assert read == talk.summaries[-1]


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_a_stored_conversation_that_is_far_longer_than_the_context_goes_on(
    talk: Talk, settings: ReplySettings
) -> None:
    for turn in range(60):
        asked = talk.say(f"{turn:02} " + "abcd efghij klm. " * 5)
        begun = talk.store.begin_reply(talk.id, asked, "Another model")
        talk.leaf = talk.store.finish_reply(begun.id, f"Answer {turn}. " * 4, MessageState.COMPLETE)
        if turn in (10, 30):
            talk.store.change_context(talk.id, pin(talk.context, f"m{asked}", True))
    small = dataclasses.replace(settings, max_context=640)
    assert talk.ask("And now?", small).left_out_turns >= 56
    assert sum(each.num_tokens for each in talk.summaries) <= 0.15 * 640
    assert bool(talk.summaries) == (settings is SUMMARIZE)
    for _ in range(3):
        stats = talk.ask("And now?", small)
        assert stats.prompt_tokens + stats.completion_tokens <= 640


def test_a_trim_is_told_and_stored_before_the_first_word(talk: Talk) -> None:
    until_due(talk)
    seen: list[int] = []
    talk.ask("f" * 80, on_event=lambda event: seen.append(len(talk.summaries)))
    kinds = [type(event) for event in talk.events]
    changed, progress = kinds.index(ContextChanged), kinds.index(SummaryProgress)
    assert kinds[0] is ReplyStarted and progress < changed < kinds.index(Token)
    assert seen[changed - 1] == 0 and seen[changed] == 1
    (written,) = talk.summaries
    assert written.state is SummaryState.USED
    assert set(written.covers) == {
        key for turn in talk.context.turns if turn.state is SpanState.SUMMARIZED for key in turn.keys
    }
    assert all(not isinstance(event, Token) for event in talk.events[:changed])


def test_pinned_turns_stay_and_the_others_go(talk: Talk) -> None:
    until_due(talk)
    first = talk.path[0]
    talk.store.change_context(talk.id, pin(talk.context, f"m{first.id}", True))
    talk.ask("f" * 80)
    assert talk.states[0] is SpanState.IN_CONTEXT
    assert talk.states[1] is SpanState.SUMMARIZED


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_replies_that_are_stopped_before_a_word_never_fill_the_context_for_good(
    talk: Talk, settings: ReplySettings
) -> None:
    for letter in LETTERS[:12]:
        cancel = CancelToken()

        def stop(event: ReplyEvent, cancel: CancelToken = cancel) -> None:
            if isinstance(event, PrefillProgress):
                cancel.cancel()

        talk.ask(letter * 90, settings, on_event=stop, cancel=cancel)
        assert talk.leaf is not None and (talk.leaf.state, talk.leaf.text) == (MessageState.STOPPED, "")
    stats = talk.ask("And now?", settings)
    assert talk.leaf.state is MessageState.COMPLETE and stats.left_out_turns > 0
    assert len(talk.states) == 13 and talk.states[-1] is SpanState.IN_CONTEXT


def test_the_time_to_the_first_token_includes_the_summary_that_is_written_before_and_no_other(
    talk: Talk,
) -> None:
    until_due(talk)
    assert talk.ask("And now?", ROOMY).summary_s == 0
    began_s = time.monotonic()
    written_s: list[float] = []

    def note(event: ReplyEvent) -> None:
        if isinstance(event, SummaryProgress):
            written_s.append(time.monotonic() - began_s)

    stats = talk.ask("f" * 80, on_event=note)
    whole_s = time.monotonic() - began_s
    assert written_s[-1] - written_s[0] <= stats.summary_s < stats.ttft_s < whole_s
    assert talk.leaf is not None and talk.leaf.stats == stats


def test_nothing_is_prepared_for_what_is_summarized_for_one_message_only(talk: Talk) -> None:
    until_due(talk)
    assert talk.prepare(dataclasses.replace(SUMMARIZE, is_once=True)) == []
    assert talk.prepare() != []


def test_a_branch_is_read_whole_and_going_back_finds_the_summary_again(talk: Talk) -> None:
    until_due(talk)
    talk.ask("f" * 80)
    summarized, leaf, first = talk.states, talk.leaf, talk.path[1]
    talk.leaf = first
    assert talk.ask("And now?").left_out_turns == 0
    assert talk.states == [SpanState.IN_CONTEXT] * 2
    talk.leaf = leaf
    assert talk.states == summarized


def test_a_trim_that_is_stopped_stores_an_extract_and_ends_the_reply_as_stopped(talk: Talk) -> None:
    until_due(talk)
    cancel = CancelToken()

    def stop(event: ReplyEvent) -> None:
        if isinstance(event, SummaryProgress):
            cancel.cancel()

    talk.ask("f" * 80, on_event=stop, cancel=cancel)
    assert talk.leaf is not None and talk.leaf.state is MessageState.STOPPED
    assert talk.leaf.text == ""
    (extract,) = talk.summaries
    assert (extract.source, extract.state) == (SummarySource.EXTRACT, SummaryState.USED)
    assert extract.note and extract.text


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_a_reply_that_ends_at_any_event_leaves_the_turns_whole_or_replaced(
    talk: Talk, engine: Engine, file: Path, tmp_path: Path, settings: ReplySettings
) -> None:
    until_due(talk, settings)
    question = talk.say("f" * 80)
    kinds: list[type] = []
    for number in itertools.count():
        if kinds[-2:] == [SummaryProgress] * 2:
            kinds.append(SummaryProgress)  # one is like the other
            if number % 8:
                continue
        copy = tmp_path / f"{number}.db"
        with sqlite3.connect(file) as db, contextlib.closing(sqlite3.connect(copy)) as other:
            db.backup(other)
        with contextlib.closing(ConversationStore.open(copy)) as other_store:
            service = ChatService(other_store, engine)
            events = service.reply(talk.id, question, settings, CancelToken())
            kinds = [type(event) for event in itertools.islice(events, number + 1)]
            events.close()  # type: ignore[attr-defined]
        with contextlib.closing(ConversationStore.open(copy)) as again:
            leaf_id = again.conversation(talk.id).leaf_id
            assert leaf_id is not None
            path = again.path(leaf_id)
            states = [turn.state for turn in ConversationContext.of(path, again.ledger(talk.id)).turns]
        assert [each.text for each in path if each.role is Role.USER] == [c * 80 for c in "abcdef"]
        assert path[-1].state in (MessageState.STOPPED, MessageState.COMPLETE)
        if ContextChanged in kinds:
            assert states[0] is not SpanState.IN_CONTEXT and states[-1] is SpanState.IN_CONTEXT
        else:
            assert states == [SpanState.IN_CONTEXT] * 6
        if ReplyEnded in kinds:
            return


def test_a_trim_that_cannot_be_stored_holds_for_the_reply_and_is_tried_again(talk: Talk, file: Path) -> None:
    until_due(talk)
    with sqlite3.connect(file) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON summaries BEGIN SELECT RAISE(ABORT, 'full'); END")
    stats = talk.ask("f" * 80)
    assert stats.left_out_turns > 0 and stats.prompt_tokens + stats.completion_tokens <= 700
    assert not any(isinstance(event, ContextChanged) for event in talk.events)
    assert SpanState.SUMMARIZED not in talk.states
    with sqlite3.connect(file) as db:
        db.execute("DROP TRIGGER full")
    talk.ask("g" * 80)
    assert talk.states[0] is SpanState.SUMMARIZED


# Refusals.


def test_the_user_is_asked_with_the_numbers_before_anything_is_started(
    talk: Talk, store: ConversationStore
) -> None:
    until_due(talk, ASK, 4)
    question = talk.say("f" * 80)
    with pytest.raises(AdmissionError) as caught:
        list(talk.service.reply(talk.id, question, ASK, CancelToken()))
    longer, *turns = caught.value.choices
    assert isinstance(longer, LongerContext) and longer.max_context > 700
    assert [type(each) for each in turns] == [SummarizeTurns, DropTurns]
    assert caught.value.can_override
    assert "With 16 for the answer that is more than the 560 at which" in str(caught.value)
    assert "Allow a longer context, summarize old turns or leave old turns out." in str(caught.value)
    assert store.conversation(talk.id).leaf_id == question and not store.ledger(talk.id).summaries


@pytest.mark.parametrize("overflow", [Overflow.SUMMARIZE, Overflow.DROP])
def test_what_is_chosen_then_is_done_with_as_many_turns_as_it_said(talk: Talk, overflow: Overflow) -> None:
    until_due(talk, ASK, 4)
    question = talk.say("f" * 80)
    with pytest.raises(AdmissionError) as caught:
        list(talk.service.reply(talk.id, question, ASK, CancelToken()))
    kind = SummarizeTurns if overflow is Overflow.SUMMARIZE else DropTurns
    (choice,) = [each for each in caught.value.choices if isinstance(each, kind)]
    chosen = dataclasses.replace(ASK, overflow=overflow)
    *_, ended = talk.service.reply(talk.id, question, chosen, CancelToken())
    assert isinstance(ended, ReplyEnded) and ended.message.stats is not None
    assert ended.message.stats.left_out_turns == choice.num_turns > 0


def test_anyway_reads_all_and_where_nothing_may_leave_nobody_is_asked(talk: Talk) -> None:
    assert talk.ask("a" * 520, ASK).left_out_turns == 0
    talk.leaf = None
    until_due(talk, ASK, 4)
    assert talk.ask("f" * 80, dataclasses.replace(ASK, anyway=True)).left_out_turns == 0


def test_off_reads_all_until_it_does_not_fit_and_then_says_what_would(talk: Talk) -> None:
    off = dataclasses.replace(ASK, overflow=Overflow.OFF)
    until_due(talk, off)
    with pytest.raises(AdmissionError, match="tokens too many") as caught:
        talk.ask("f" * 160, off)
    assert {type(choice) for choice in caught.value.choices} == {LongerContext, SummarizeTurns, DropTurns}


def test_a_message_that_is_longer_than_the_context_is_refused_with_the_numbers(talk: Talk) -> None:
    small = dataclasses.replace(SUMMARIZE, max_context=512, document_mode=DocumentMode.WHOLE)
    talk.ask("Hello?", small)
    paper = Document("Paper", "/tmp/paper", "text", "Owls hunt at night. " * 60, None)
    question = talk.say("What hunts?", paper)
    with pytest.raises(AdmissionError, match=r"set to 512.*document") as caught:
        list(talk.service.reply(talk.id, question, small, CancelToken()))
    assert {type(choice) for choice in caught.value.choices} <= {LongerContext, InSegments, LookUp}
    assert not talk.summaries and talk.store.conversation(talk.id).leaf_id == question


# The guard.


@pytest.mark.parametrize(
    "settings", [ROOMY, dataclasses.replace(ROOMY, overflow=Overflow.DROP)], ids=["summarize", "drop"]
)
def test_turns_that_leave_while_memory_is_short_are_stored_and_no_word_is_lost(
    talk: Talk, guard: Guard, settings: ReplySettings
) -> None:
    for letter in "abcdef":
        talk.ask(letter * 80, settings)
    before = [message.text for message in talk.path]

    def press(event: ReplyEvent) -> None:
        if isinstance(event, Token):
            guard.height = GuardStep.TRIM

    stats = talk.ask("g" * 80, settings, press)
    guard.height = GuardStep.NONE
    assert any(isinstance(event, ContextShortened) for event in talk.events)
    assert any(isinstance(event, ContextChanged) for event in talk.events)
    assert [message.text for message in talk.path][: len(before)] == before
    gone = [state for state in talk.states if state is not SpanState.IN_CONTEXT]
    assert len(gone) == stats.left_out_turns > 0
    if settings.overflow is Overflow.SUMMARIZE:
        (extract,) = talk.summaries
        assert (extract.source, extract.note) == (SummarySource.EXTRACT, SHORT_OF_MEMORY)
    later = talk.ask("h" * 80, settings)
    assert later.left_out_turns == stats.left_out_turns
    assert later.prompt_tokens - later.reused_tokens < 350


# In idle time.


def test_what_is_prepared_is_used_by_the_trim_without_writing_again(talk: Talk) -> None:
    letters = iter(LETTERS)
    while not talk.summaries:
        talk.ask(next(letters) * 80)
        assert SpanState.SUMMARIZED not in talk.states
        events = talk.prepare()
    assert any(isinstance(event, SummaryProgress) for event in events)
    assert events[-1] == ContextChanged(talk.id)
    (prepared,) = talk.summaries
    assert prepared.state is SummaryState.PREPARED
    assert talk.prepare() == []
    while talk.summaries[0].state is SummaryState.PREPARED:
        talk.ask(next(letters) * 80)
        assert not any(isinstance(event, SummaryProgress) for event in talk.events)
    assert talk.summaries == (dataclasses.replace(prepared, state=SummaryState.USED),)
    assert talk.states[0] is SpanState.SUMMARIZED


def test_preparing_that_is_cut_short_stores_nothing_and_can_be_done_later(talk: Talk) -> None:
    until_due(talk)
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        for _ in talk.service.prepare(talk.id, talk.leaf_id, SUMMARIZE, cancel):
            cancel.cancel()
    assert talk.summaries == ()
    talk.prepare()
    assert [each.state for each in talk.summaries] == [SummaryState.PREPARED]


def test_nothing_is_prepared_far_from_a_trim_or_where_turns_are_dropped(talk: Talk) -> None:
    talk.ask("a" * 80)
    assert talk.prepare() == []
    talk.leaf = None
    until_due(talk, DROP)
    assert talk.prepare(DROP) == []


def test_nothing_is_prepared_where_a_summary_waits_that_no_question_can_be_made_up_for(talk: Talk) -> None:
    for letter in "abcde":
        talk.say("", Document(letter, f"/tmp/{letter}", "text", letter * 40, None))
        *_, ended = talk.service.reply(talk.id, talk.leaf_id, SUMMARIZE, CancelToken())
        assert isinstance(ended, ReplyEnded)
        talk.leaf = ended.message
    assert talk.states == [SpanState.IN_CONTEXT] * 5
    last = talk.context.turns[-1].keys[0]
    list(talk.service.summarize(talk.id, talk.leaf_id, (last,), SUMMARIZE, CancelToken()))
    assert talk.prepare(dataclasses.replace(SUMMARIZE, trim_at=0.5)) == []
    assert [each.state for each in talk.summaries] == [SummaryState.USED]


def test_what_was_prepared_for_a_turn_that_was_edited_is_prepared_anew_and_retired_when_on_the_path(
    talk: Talk,
) -> None:
    until_due(talk)
    talk.prepare()
    (former,) = talk.summaries
    leaf, talk.leaf = talk.leaf, None
    for letter in "uvwxy":
        talk.ask(letter * 80)
    talk.prepare()
    other = talk.summaries[-1]
    assert [each.state for each in talk.summaries] == [SummaryState.PREPARED] * 2
    assert not set(other.covers) & set(former.covers)
    # Pinning one of its turns makes the first one useless; another takes its place.
    talk.leaf = leaf
    talk.store.change_context(talk.id, pin(talk.context, former.covers[0], True))
    talk.prepare()
    states = {each.id: each.state for each in talk.summaries}
    assert states[former.id] is SummaryState.RETIRED and states[other.id] is SummaryState.PREPARED


# By hand.


def test_a_turn_is_summarized_by_hand_without_the_summaries_before_it(talk: Talk) -> None:
    for letter in "abc":
        talk.ask(letter * 80, ROOMY)
    keys = [turn.keys for turn in talk.context.turns]
    for index in (0, 1):
        events = list(talk.service.summarize(talk.id, talk.leaf_id, (keys[index][1],), ROOMY, CancelToken()))
        assert events[-1] == ContextChanged(talk.id)
    first, second = talk.summaries
    assert (first.covers, second.covers) == (keys[0], keys[1])
    assert 80 < second.source_tokens < 110  # the first summary alone, with what is around it, has as many
    assert "a" * 20 not in second.text
    assert talk.states == [SpanState.SUMMARIZED, SpanState.SUMMARIZED, SpanState.IN_CONTEXT]
    for key in keys[0]:
        with pytest.raises(OctavoError, match="The model does not read this"):
            list(talk.service.summarize(talk.id, talk.leaf_id, (key,), ROOMY, CancelToken()))


def test_a_summary_and_the_turn_beside_it_become_one_by_hand(talk: Talk) -> None:
    for letter in "abc":
        talk.ask(letter * 80, ROOMY)
    keys = [turn.keys for turn in talk.context.turns]
    list(talk.service.summarize(talk.id, talk.leaf_id, (keys[0][0],), ROOMY, CancelToken()))
    first = talk.summaries[0]
    list(talk.service.summarize(talk.id, talk.leaf_id, (first.key, keys[1][0]), ROOMY, CancelToken()))
    both = talk.summaries[1]
    assert both.covers == (*keys[0], *keys[1])
    assert [turn.summary for turn in talk.context.turns] == [both, both, None]


def test_a_turn_that_is_hardly_longer_than_its_summary_is_not_summarized_and_that_is_said(
    talk: Talk,
) -> None:
    talk.ask("a" * 10, ROOMY)
    talk.ask("b" * 80, ROOMY)
    keys = [turn.keys[0] for turn in talk.context.turns]
    with pytest.raises(OctavoError, match="save next to nothing"):
        list(talk.service.summarize(talk.id, talk.leaf_id, (keys[0],), ROOMY, CancelToken()))
    assert talk.summaries == ()
    list(talk.service.summarize(talk.id, talk.leaf_id, tuple(keys), ROOMY, CancelToken()))
    assert len(talk.summaries) == 1


def test_a_document_is_summarized_alone(talk: Talk) -> None:
    owls = Document("Owls", "/tmp/owls", "text", "Owls hunt at night. " * 30, None)
    bats = Document("Bats", "/tmp/bats", "text", "Bats hang by day. " * 30, None)
    talk.say("What hunts?", owls, bats)
    *_, ended = talk.service.reply(talk.id, talk.leaf_id, ROOMY, CancelToken())
    assert isinstance(ended, ReplyEnded)
    talk.leaf = ended.message
    key = f"a{talk.path[0].attachments[1].id}"
    list(talk.service.summarize(talk.id, talk.leaf_id, (key,), ROOMY, CancelToken()))
    (summary,) = talk.summaries
    assert summary.covers == (key,)
    assert abs(summary.source_tokens - len("Document: Bats\n\n(End of the document.)\n\n" + bats.text)) <= 3
    assert "Owls" not in summary.text
    content = talk.context.messages[0].content
    assert owls.text.strip() in content and bats.text.strip() not in content
    assert talk.states == [SpanState.IN_CONTEXT]


def test_a_summary_by_hand_that_is_stopped_changes_nothing_and_a_question_that_waits_has_none(
    talk: Talk,
) -> None:
    talk.ask("a" * 80, ROOMY)
    cancel = CancelToken()
    key = talk.context.turns[0].keys[0]
    with pytest.raises(Cancelled):
        for _ in talk.service.summarize(talk.id, talk.leaf_id, (key,), ROOMY, cancel):
            cancel.cancel()
    assert talk.summaries == ()
    waiting = talk.say("And now?")
    with pytest.raises(OctavoError, match="waits for its answer"):
        list(talk.service.summarize(talk.id, waiting, (f"m{waiting}",), ROOMY, CancelToken()))
    with pytest.raises(OctavoError, match="no longer part"):
        list(talk.service.summarize(talk.id, waiting, ("m999",), ROOMY, CancelToken()))


def test_what_was_left_out_is_given_back_at_once_and_costs_its_tokens_to_restore(
    talk: Talk, engine: Engine
) -> None:
    for letter in "abcd":
        talk.ask(letter * 80, ROOMY)
    inverse = talk.store.change_context(talk.id, drop(talk.context, talk.context.turns[1].keys[0]))
    held = engine.held()
    assert held is not None
    after = talk.service.settle(talk.id, talk.leaf_id, ROOMY)
    assert after is not None
    assert after.usage.nbytes <= held.usage.nbytes
    assert talk.service.reading_cost(talk.id, talk.leaf_id, ROOMY, drop(talk.context, "m1")) == 0
    cost = talk.service.reading_cost(talk.id, talk.leaf_id, ROOMY, inverse)
    assert 80 < cost < 140 or cost == 0  # it may be on disk still
