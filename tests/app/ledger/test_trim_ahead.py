"""Trims in idle time, where the context is all that the model has positions for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat import ReplySettings
from app.ledger.context import SpanState
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import SummaryState
from app.profiles import Overflow
from app.store.conversations import ConversationStore
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.events import PrefillProgress
from engine.kv.precision import KVSpec
from tests.app.test_chat_context import LETTERS, Talk
from tests.engine.folders import write_folder
from tests.engine.small_engine import END_TOKEN, SHORT, answer, in_hand, small_engine

POSITIONS = 1024
EXACT = KVSpec.parse("16; page=64, group=32")
SUMMARIZE = ReplySettings(SHORT, EXACT, "Be brief.", overflow=Overflow.SUMMARIZE)
DROP = dataclasses.replace(SUMMARIZE, overflow=Overflow.DROP)
QUESTION_TOKENS = 80
MARKERS = len("\n\nUser: ") + len("\n\nAssistant:")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return write_folder(
        folder, bits=None, hidden_size=128, max_position_embeddings=POSITIONS, eos_token_id=END_TOKEN
    )


@pytest.fixture(scope="module")
def loaded(path: Path, backend: Backend) -> Engine:
    return small_engine(path, backend)


@pytest.fixture
def engine(loaded: Engine) -> Engine:
    loaded.forget(1)
    return loaded


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def talk(store: ConversationStore, engine: Engine) -> Talk:
    return Talk(store, engine)


def trim_ahead(talk: Talk, settings: ReplySettings, cancel: CancelToken | None = None) -> list[object]:
    return list(talk.service.trim_ahead(talk.id, talk.leaf_id, settings, cancel or CancelToken()))


def close_gaps(talk: Talk, settings: ReplySettings, cancel: CancelToken | None = None) -> list[object]:
    return list(talk.service.close_gaps(talk.id, talk.leaf_id, settings, cancel or CancelToken()))


def until_due(talk: Talk, settings: ReplySettings) -> None:
    """Hold a conversation until a trim comes with the next question, doing what is done in idle time."""
    for letter in LETTERS[:8]:
        talk.ask(letter * QUESTION_TOKENS, settings)
        talk.prepare(settings)
    assert set(talk.states) == {SpanState.IN_CONTEXT}


def ask_next(talk: Talk, settings: ReplySettings) -> int:
    """Ask a question and return how many tokens were read for it."""
    stats = talk.ask("y" * QUESTION_TOKENS, settings)
    return stats.prompt_tokens - stats.reused_tokens


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_without_it_the_reply_reads_all_that_stays(talk: Talk, settings: ReplySettings) -> None:
    until_due(talk, settings)
    assert ask_next(talk, settings) > 400
    assert talk.states[0] is not SpanState.IN_CONTEXT


@pytest.mark.parametrize("settings", [SUMMARIZE, DROP], ids=["summarize", "drop"])
def test_a_reply_reads_only_its_question_and_says_what_a_fresh_engine_says(
    talk: Talk, path: Path, backend: Backend, engine: Engine, settings: ReplySettings
) -> None:
    until_due(talk, settings)
    prepared = talk.summaries
    assert trim_ahead(talk, settings)[-1] == ContextChanged(talk.id)
    states = talk.states
    assert states[0] is not SpanState.IN_CONTEXT
    assert [each.id for each in talk.summaries] == [each.id for each in prepared]
    assert all(each.state is SummaryState.USED for each in talk.summaries)
    read = [event for event in close_gaps(talk, settings) if isinstance(event, PrefillProgress)]
    assert read[-1].done == read[-1].total == in_hand(engine).num_tokens == in_hand(engine).next_position
    before = read[0].total - read[0].done
    assert 200 < before < 0.7 * POSITIONS
    assert ask_next(talk, settings) <= QUESTION_TOKENS + MARKERS
    assert not any(isinstance(event, SummaryProgress | ContextChanged) for event in talk.events)
    assert talk.states == [*states, SpanState.IN_CONTEXT]
    *_, question, reply = talk.path
    talk.leaf = question
    text, stats = answer(small_engine(path, backend), settings.request(talk.context, 7))
    assert (text, stats.reused_tokens) == (reply.text, 0)


def test_what_was_stopped_half_way_is_gone_on_with(talk: Talk, engine: Engine) -> None:
    until_due(talk, DROP)
    trim_ahead(talk, DROP)
    cancel, done = CancelToken(), 0
    with pytest.raises(Cancelled):
        for event in talk.service.close_gaps(talk.id, talk.leaf_id, DROP, cancel):
            if isinstance(event, PrefillProgress) and event.done > event.reused:
                done = event.done
                cancel.cancel()
    assert 0 < done == in_hand(engine).num_tokens
    assert trim_ahead(talk, DROP) == []
    rest = [event for event in close_gaps(talk, DROP) if isinstance(event, PrefillProgress)]
    assert rest[0].done == done < rest[-1].total
    assert ask_next(talk, DROP) <= QUESTION_TOKENS + MARKERS


def test_a_trim_that_is_stopped_while_its_summary_is_written_changes_nothing(talk: Talk) -> None:
    for letter in LETTERS[:8]:
        talk.ask(letter * QUESTION_TOKENS, SUMMARIZE)
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        for _ in talk.service.trim_ahead(talk.id, talk.leaf_id, SUMMARIZE, cancel):
            cancel.cancel()
    assert talk.summaries == ()
    assert set(talk.states) == {SpanState.IN_CONTEXT}
    assert trim_ahead(talk, SUMMARIZE)[-1] == ContextChanged(talk.id)


def test_it_is_not_done_before_a_trim_is_due_or_where_that_is_no_wish_of_the_user(talk: Talk) -> None:
    talk.ask("a" * QUESTION_TOKENS, DROP)
    assert trim_ahead(talk, DROP) == []
    talk.leaf = None
    until_due(talk, DROP)
    for changes in ({"overflow": Overflow.ASK}, {"overflow": Overflow.OFF}, {"is_once": True}):
        assert trim_ahead(talk, dataclasses.replace(DROP, **changes)) == []  # type: ignore[arg-type]
    assert trim_ahead(talk, DROP) == [ContextChanged(talk.id)]
    assert trim_ahead(talk, DROP) == []


def test_it_is_not_done_where_the_model_has_positions_for_the_turn_behind_the_trim(talk: Talk) -> None:
    small = dataclasses.replace(DROP, max_context=512)
    for letter in LETTERS[:4]:
        talk.ask(letter * QUESTION_TOKENS, small)
    assert trim_ahead(talk, small) == []
    assert ask_next(talk, small) <= QUESTION_TOKENS + MARKERS + 2 * SHORT.max_tokens
    assert talk.states[0] is SpanState.DROPPED


def test_it_is_not_done_for_a_branch_that_is_not_held(talk: Talk) -> None:
    until_due(talk, DROP)
    leaf, talk.leaf = talk.leaf, talk.path[-3]
    talk.ask("z" * QUESTION_TOKENS, DROP)
    branch, talk.leaf = talk.leaf, leaf
    assert trim_ahead(talk, DROP) == close_gaps(talk, DROP) == []
    talk.leaf = branch
    assert trim_ahead(talk, DROP) == [ContextChanged(talk.id)]
