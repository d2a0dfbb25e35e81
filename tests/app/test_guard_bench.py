from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.guard_bench import QUESTION, bench_guard, long_questions, problems_of
from app.store.conversations import ConversationStore
from app.store.records import Message, MessageState
from engine.backend import Backend
from engine.bench.guard import DEFAULT_KV, GuardBenchPlan
from engine.bench.prose import TEXT
from engine.kv.precision import KVSpec

SHORT = ["Name a colour. Blue is one.", "And a number?", "And a name?"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


def exchange(
    store: ConversationStore, question: str, answer: str, state: MessageState = MessageState.COMPLETE
) -> list[Message]:
    """Store a question and its answer and return them."""
    conversation_id = store.create_conversation().id
    asked = store.add_user_message(conversation_id, None, question)
    reply = store.begin_reply(conversation_id, asked.id, "a model")
    store.finish_reply(reply.id, answer, state)
    return store.path(reply.id)


def test_the_questions_hold_the_whole_text_in_parts_of_about_one_length() -> None:
    questions = long_questions()
    parts = [question.removesuffix(QUESTION).rstrip("\n") for question in questions]
    assert "\n\n".join(parts) == TEXT.rstrip("\n")
    assert len(questions) == 6
    assert max(map(len, parts)) < 1.5 * min(map(len, parts))


def test_what_is_stored_as_it_was_said_has_no_problem(store: ConversationStore) -> None:
    assert list(problems_of(exchange(store, "Hello?", "Yes."), ["Hello?", "Yes."])) == []


def test_every_kind_of_loss_is_found(store: ConversationStore) -> None:
    stored = exchange(store, "Hello?", "Yes.")
    assert list(problems_of(stored, ["Hello?", "Yes", "more"])) == [
        "3 messages were exchanged and 2 are stored",
        "message 2 is stored with other words",
    ]
    cut = exchange(store, "Hello?", "", MessageState.STOPPED)
    assert list(problems_of(cut, ["Hello?", ""])) == [
        "message 2 ended as stopped",
        "message 2 has no words",
    ]


@pytest.mark.slow
def test_a_short_conversation_is_held_twice_and_whole(starter_gguf: Path, backend: Backend) -> None:
    told: list[tuple[int, bool]] = []
    plan = GuardBenchPlan(starter_gguf, KVSpec.parse(DEFAULT_KV), share=1.0, may_trim=False)
    result = bench_guard(
        plan, lambda event: None, lambda number, guarded: told.append((number, guarded)), SHORT
    )
    for run in (result.free, result.guarded):
        assert run.problems == ()
        assert run.num_turns == len(SHORT)
        assert run.num_tokens > 20
        assert run.most_taken_nbytes >= run.begun_nbytes > 0
    assert told == [(number, has_guard) for has_guard in (False, True) for number in (1, 2, 3)]
    assert result.free.events == ()
    assert result.guarded.most_nbytes is not None
