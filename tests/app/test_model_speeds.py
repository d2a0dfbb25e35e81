"""The speeds of models: learned from what the engine reads, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.model_speeds import ModelSpeeds
from app.reading_speed import speed_key
from app.store.conversations import ConversationStore
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.model import ChatMessage
from tests.engine.small_engine import FOUR, answer, asked, in_hand, small_engine, write_small_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("speeds") / "small")


@pytest.fixture
def engine(folder: Path, backend: Backend) -> Engine:
    return small_engine(folder, backend)


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore.open(tmp_path / "conversations.db")


def test_it_is_learned_from_replies_and_kept_for_the_model(engine: Engine, store: ConversationStore) -> None:
    speeds = ModelSpeeds(engine, store)
    assert not speeds.learn().is_measured

    _, stats = answer(engine, asked((ChatMessage("user", "word " * 200),), conversation_id=1))
    learned = speeds.learn()

    seconds = learned.reading_s(stats.prompt_tokens)
    assert seconds == pytest.approx(stats.prompt_tokens / stats.prefill_tps, rel=0.5)
    assert ModelSpeeds(engine, store).learn() == learned
    assert engine.loaded is not None
    assert store.speed(speed_key(engine.loaded)) == learned.as_text


def test_it_is_measured_where_nothing_was_read(engine: Engine) -> None:
    speeds = ModelSpeeds(engine)

    assert speeds.measure(FOUR, CancelToken()).is_measured


def test_measuring_leaves_the_conversation_in_hand(engine: Engine) -> None:
    answer(engine, asked((ChatMessage("user", "word " * 30),), conversation_id=1))
    engine.take_times()
    before = list(in_hand(engine).tokens)

    ModelSpeeds(engine).measure(FOUR, CancelToken())

    assert in_hand(engine).tokens == before


def test_what_is_known_is_not_measured_again(engine: Engine) -> None:
    speeds = ModelSpeeds(engine)
    known = speeds.measure(FOUR, CancelToken())

    assert speeds.measure(FOUR, CancelToken()) == known


def test_measuring_gives_way_to_anything(engine: Engine) -> None:
    cancel = CancelToken()
    cancel.cancel()

    with pytest.raises(Cancelled):
        ModelSpeeds(engine).measure(FOUR, cancel)
