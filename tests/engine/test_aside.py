"""Asides: what is asked about a conversation without its noticing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from engine import figures
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.events import CacheChanged, Finished, PrefillProgress, StopReason, Token
from engine.guard import Guard, GuardStep
from engine.kv.page_map import PageMap
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams
from tests.engine.folders import write_folder
from tests.engine.small_engine import (
    END_TOKEN,
    FOUR,
    WaitingToken,
    answer,
    asked,
    conversation,
    guard_at,
    in_hand,
    keyed,
    rendered,
    small_engine,
    write_templated_model,
)

TALK = keyed(conversation(6))
INSTRUCTION = ChatMessage("user", "Summarize all of this in a sentence.")
LONG = SamplingParams(temperature=0, max_tokens=100)
"""Longer than a page, so that the aside seals one."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def guard() -> Guard:
    return guard_at(GuardStep.NONE)


@pytest.fixture
def engine(path: Path, backend: Backend, guard: Guard, tmp_path: Path) -> Engine:
    return small_engine(path, backend, guard, spill_folder=tmp_path / "spill")


def aside(num_turns: int = 3, conversation_id: int = 1, kv: KVSpec = FOUR) -> tuple[ChatMessage, ...]:
    return asked(
        (*TALK[: 2 * num_turns], INSTRUCTION),
        kv,
        LONG,
        conversation_id=conversation_id,
        is_aside=True,
    )


def pages_of(engine: Engine) -> PageMap:
    page_map = engine.page_map()
    assert page_map is not None
    return page_map


def next_logits(engine: Engine) -> np.ndarray:
    return np.array(in_hand(engine).fork().read([65]))


def test_an_aside_reads_only_what_is_asked_beside_the_conversation(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    _, stats = answer(engine, aside())
    assert stats.reused_tokens >= len(rendered(engine, TALK[:6])) - len("assistant: ")
    assert stats.completion_tokens == LONG.max_tokens


def test_an_aside_leaves_the_conversation_as_it_was_bit_for_bit(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    pages, usage, logits = pages_of(engine), engine.context_usage(), next_logits(engine)
    assert in_hand(engine).usage().hot_pages  # which another sequence that is longer would lower
    answer(engine, aside())
    assert pages_of(engine) == pages
    assert engine.context_usage() == usage
    assert np.array_equal(next_logits(engine), logits)


def test_no_figures_of_an_aside_are_told_and_its_memory_is_given_back(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    answer(engine, aside())  # the pools keep some room to spare once they have grown
    before = figures.latest()
    events, most = [], 0
    for event in engine.generate(aside(), CancelToken()):
        events.append(event)
        most = max(most, figures.latest().kv.idle)
    assert not any(isinstance(event, CacheChanged) for event in events)
    assert most > 0
    assert figures.latest() == before


@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_an_aside_that_is_left_half_way_leaves_nothing_behind(engine: Engine, at: type) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    answer(engine, aside())
    pages, before = pages_of(engine), figures.latest()
    for event in engine.generate(aside(), CancelToken()):
        if isinstance(event, at):
            break
    cancel = CancelToken()
    for event in engine.generate(aside(), cancel):
        if isinstance(event, at):
            cancel.cancel()
    assert isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED
    assert pages_of(engine) == pages
    assert figures.latest() == before


@pytest.mark.parametrize("step", [GuardStep.TRIM, GuardStep.PAUSE])
@pytest.mark.parametrize("at", [PrefillProgress, Token])
def test_an_aside_makes_way_where_memory_is_short(
    engine: Engine, guard: Guard, at: type, step: GuardStep
) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    cancel = WaitingToken(lambda token: pytest.fail("an aside never waits"))
    for event in engine.generate(aside(), cancel):
        if isinstance(event, at):
            guard.height = step
    assert isinstance(event, Finished) and event.stats.stop_reason is StopReason.STOPPED
    guard.height = GuardStep.NONE
    _, stats = answer(engine, aside())
    assert stats.stop_reason is StopReason.LENGTH


def test_the_guard_lowers_the_conversation_in_hand_while_an_aside_runs(engine: Engine, guard: Guard) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    for event in engine.generate(aside(), CancelToken()):
        if isinstance(event, PrefillProgress):
            guard.height = GuardStep.LOWER_TIERS
    usage = in_hand(engine).usage()
    assert usage.hot_pages == usage.warm_pages == 0


def test_an_aside_to_another_conversation_leaves_the_one_in_hand(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    answer(engine, asked(conversation(4)[4:], conversation_id=2))
    assert engine._session is not None
    engine._session._held.spill_idle()
    pages = pages_of(engine)
    _, stats = answer(engine, aside())
    assert stats.reused_tokens >= len(rendered(engine, TALK[:6])) - len("assistant: ")
    assert pages_of(engine).pages == pages.pages
    assert engine._session._held.conversation_id == 2


def test_an_aside_to_what_was_never_read_reads_it_and_keeps_none_of_it(engine: Engine) -> None:
    text, stats = answer(engine, aside())
    assert stats.reused_tokens == 0 and text
    assert engine.held() is None
    assert figures.latest().kv.total == 0


def test_an_aside_at_another_precision_leaves_that_of_the_conversation(engine: Engine) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    pages = pages_of(engine)
    _, stats = answer(engine, aside(kv=KVSpec.parse("2; page=64, group=32, hot=0, warm=0")))
    assert stats.reused_tokens > 0
    assert pages_of(engine) == pages and in_hand(engine).spec == FOUR


def test_an_aside_needs_only_the_room_that_it_adds(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = keyed(conversation(20))
    answer(engine, asked(talk, conversation_id=1))
    request = asked((*talk[:36], INSTRUCTION), conversation_id=1, is_aside=True)
    added = 2 * 2 * 64 * 2 * 2 * 2 * 32 * 4  # two open pages, with as much again kept free
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: added)
    engine.admit(request)
    assert engine.measure(request).unread_tokens < 100
    engine.forget(1)
    assert engine.measure(request).unread_tokens > 2000
    with pytest.raises(Exception, match="To read them takes"):
        engine.admit(request)


def test_an_aside_to_a_version_that_is_forgotten_for_its_room_reads_from_it_all_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    text, stats = answer(engine, aside(5))
    edited = (*TALK[:4], ChatMessage("user", "No, another one instead.", key="e1"))
    answer(engine, asked(edited, conversation_id=1, answer_key="e2"))
    monkeypatch.setattr("engine.reply_room.headroom_nbytes", lambda limits: 0)
    again, short = answer(engine, dataclasses.replace(aside(5), anyway=True))
    usage = engine.context_usage()
    assert usage is not None and usage.versions == 0
    assert (again, short.reused_tokens) == (text, stats.reused_tokens)


def test_a_model_whose_layers_are_not_all_paged_reads_for_an_aside_from_the_start(
    tmp_path: Path, backend: Backend
) -> None:
    folder = write_folder(
        tmp_path / "model",
        bits=None,
        model_type="gemma3_text",
        hidden_size=64,
        head_dim=32,
        sliding_window=16,
        sliding_window_pattern=2,
        query_pre_attn_scalar=32,
        rope_local_base_freq=10000.0,
        max_position_embeddings=4096,
        eos_token_id=END_TOKEN,
    )
    engine = small_engine(folder, backend)
    answer(engine, asked(TALK, conversation_id=1, answer_key="m13"))
    tokens = in_hand(engine).tokens
    _, stats = answer(engine, aside())
    assert stats.reused_tokens == 0
    assert in_hand(engine).tokens == tokens
