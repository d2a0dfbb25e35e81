from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat import ReplySettings
from app.documents.document import Document
from app.ledger.progress import ContextChanged, SummaryProgress
from app.long_talk.talk import ReplyTimes, Talk
from app.profiles import Overflow
from app.store.conversations import ConversationStore
from engine.backend import Backend
from engine.engine import Engine
from engine.events import PrefillProgress, Token
from tests.engine.small_engine import FOUR, SHORT, in_hand, small_engine, write_small_model

SETTINGS = ReplySettings(SHORT, FOUR, "", max_context=700, overflow=Overflow.SUMMARIZE)
QUESTION = "What is it that the letters said of the sea and of the harbour below the hill?"

LONG = QUESTION * 2


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, backend: Backend) -> Engine:
    return small_engine(write_small_model(tmp_path_factory.mktemp("model")), backend)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


def talk(store: ConversationStore, engine: Engine, settings: ReplySettings = SETTINGS) -> Talk:
    """Return an empty conversation of which the engine holds nothing."""
    new = Talk(store, engine, settings)
    engine.forget(new.conversation_id)
    return new


def test_the_writing_of_summaries_does_not_count_to_the_time_until_the_first_token() -> None:
    times = ReplyTimes(started_s=10.0)
    writing, changed = SummaryProgress(2, 0, 100), ContextChanged(1)
    reading, token = PrefillProgress(1, 2, 0), Token("a", 1)
    events = [writing, writing, changed, reading, writing, changed, token, token, changed]
    for event, now_s in zip(events, [11.0, 14.0, 15.0, 16.0, 17.0, 19.0, 20.0, 25.0, 26.0], strict=True):
        times.take(event, now_s)
    assert times.summary_s == 4.0 + 2.0
    assert times.ready_s == 10.0 - 6.0


def test_a_reply_without_a_token_was_never_ready() -> None:
    times = ReplyTimes(started_s=10.0)
    times.take(PrefillProgress(1, 2, 0), 12.0)
    assert (times.summary_s, times.ready_s) == (0.0, 0.0)


def test_turns_are_asked_measured_and_trimmed(store: ConversationStore, engine: Engine) -> None:
    held = talk(store, engine)
    for _ in range(8):
        held.ask(QUESTION)
    run = held.run
    assert [turn.number for turn in run.turns] == list(range(1, 9))
    assert all(turn.prompt_tokens + turn.written_tokens <= 700 for turn in run.turns)
    assert all(0 < turn.read_tokens <= turn.prompt_tokens for turn in run.turns)
    assert run.trims and all(turn.released_turns > 0 for turn in run.trims)
    assert sum(turn.released_turns for turn in run.turns) == held.context.left_out_turns
    assert (
        run.summaries.model + run.summaries.extract == len(store.ledger(held.conversation_id).summaries) > 0
    )
    last = run.turns[-1]
    assert last.nbytes == in_hand(engine).nbytes
    assert last.process_nbytes > last.nbytes


def test_added_turns_are_in_the_context_without_being_asked(store: ConversationStore, engine: Engine) -> None:
    held = talk(store, engine)
    question_id = held.add(QUESTION, "Of the harbour they said nothing.")
    assert [message.content for message in held.request_at(question_id).messages] == [QUESTION]
    held.put("And of the hill?")
    assert [message.content for message in held.context.messages] == [
        QUESTION,
        "Of the harbour they said nothing.",
        "And of the hill?",
    ]
    assert held.turns == [] and engine.held() is None


def test_a_document_goes_with_its_question(store: ConversationStore, engine: Engine) -> None:
    held = talk(store, engine)
    asked = held.ask("What is it?", Document("Harbour", "harbour.txt", "text", "It lies below the hill."))
    question = store.message(asked.question_id)
    assert [each.title for each in question.attachments] == ["Harbour"]
    assert "It lies below the hill." in held.context.messages[0].content


def test_what_is_asked_beside_it_leaves_the_conversation_as_it_was(
    store: ConversationStore, engine: Engine
) -> None:
    held = talk(store, engine)
    held.ask(QUESTION)
    before = held.context.messages
    answers = {held.ask_beside("Where is the harbour?") for _ in range(2)}
    assert len(answers) == 1
    assert held.context.messages == before
    assert len(held.turns) == 1
    assert store.conversation(held.conversation_id).leaf_id == held.context.path[-1].id


def test_a_conversation_whose_positions_run_out_is_read_again_behind_an_answer(
    store: ConversationStore, engine: Engine
) -> None:
    held = talk(store, engine, dataclasses.replace(SETTINGS, overflow=Overflow.DROP))
    while not held.run.num_rebuilds:
        held.ask(f"{len(held.turns)}. {LONG}")
        assert len(held.turns) < 40
    cache = in_hand(engine)
    assert cache.next_position == cache.num_tokens
    assert all(turn.read_tokens < 0.7 * turn.prompt_tokens for turn in held.turns[1:])  # nobody waited for it
