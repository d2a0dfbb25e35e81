"""A document that several conversations are about is read once and held once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import GenerationRequest
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import DOCUMENT, about_document
from tests.engine.small_engine import (
    FOUR,
    answer,
    asked,
    conversation,
    in_hand,
    keyed,
    small_engine,
    write_templated_model,
)

COLD = dataclasses.replace(FOUR, hot_pages=0, warm_pages=0)
LOWER = KVSpec.parse("2; page=64, group=32, hot=0, warm=0")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(path: Path, backend: Backend, tmp_path: Path) -> Engine:
    return small_engine(path, backend, spill_folder=tmp_path)


def about(question: str, key: str, conversation_id: int, kv: KVSpec = FOUR) -> GenerationRequest:
    return dataclasses.replace(about_document(question, key, conversation_id), kv=kv)


def held_nbytes(engine: Engine) -> int:
    assert engine._session is not None
    return engine._session._held.memory_nbytes


def test_a_new_conversation_about_the_same_document_reads_only_its_question(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    _, stats = answer(engine, about("What passed in the night?", "m2", 2))
    assert stats.reused_tokens > len(DOCUMENT) - FOUR.page_tokens
    assert stats.reread_note is None


def test_its_answer_is_the_one_that_it_would_have_been_alone(path: Path, backend: Backend) -> None:
    shared, alone = (small_engine(path, backend) for _ in range(2))
    answer(shared, about("Who counted?", "m1", 1, COLD))
    request = about("What passed in the night?", "m2", 2, COLD)
    assert answer(shared, request)[0] == answer(alone, request)[0]


def test_pages_of_the_document_are_held_once(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1, COLD))
    one = held_nbytes(engine)
    answer(engine, about("What passed in the night?", "m2", 2, COLD))
    assert held_nbytes(engine) < 1.3 * one
    page_map = engine.page_map()
    assert page_map is not None
    assert {page.references for page in page_map.pages[: len(DOCUMENT) // FOUR.page_tokens]} == {2}


def test_a_conversation_goes_on_when_the_one_that_it_began_from_is_deleted(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    answer(engine, about("What passed?", "m2", 2))
    engine.forget(1)
    _, stats = answer(engine, about("What passed?", "m2", 2))
    assert stats.reused_tokens == stats.prompt_tokens - 1
    engine.forget(2)
    assert held_nbytes(engine) == 0


def test_each_has_its_own_precision(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    before = [page.bits for page in in_hand(engine).pages()]
    answer(engine, about("What passed?", "m2", 2))
    engine.apply_kv(LOWER, CancelToken())
    lower = {pair.keys for page in in_hand(engine).pages() for heads in page.bits.values() for pair in heads}
    answer(engine, about("Who counted?", "m1", 1))
    after = [page.bits for page in in_hand(engine).pages()]
    assert lower == {2}
    assert after[: len(before)] == before


def test_pages_with_fewer_bits_than_are_wanted_are_not_shared(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1, LOWER))
    _, stats = answer(engine, about("What passed?", "m2", 2))
    assert stats.reused_tokens == 0


def test_what_one_spills_the_other_keeps_and_both_come_back(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    answer(engine, about("What passed?", "m2", 2))
    assert engine._session is not None
    held = engine._session._held
    assert held.spill_idle() < held.memory_nbytes / 2
    answer(engine, asked(keyed(conversation(3)), conversation_id=3))
    held.spill_idle()
    for key, number in (("m1", 1), ("m2", 2)):
        request = about("Who counted?" if number == 1 else "What passed?", key, number)
        _, stats = answer(engine, request)
        assert stats.reused_tokens == stats.prompt_tokens - 1


def test_idle_bytes_are_those_that_leave_when_idle_conversations_go(engine: Engine) -> None:
    answer(engine, about("Who counted?" * 20, "m1", 1))
    first = in_hand(engine)
    assert engine._session is not None
    held = engine._session._held
    answer(engine, about("What passed?" * 20, "m2", 2))
    own_nbytes = sum(page.nbytes for page in first.pages() if page.references == 1)
    idle, before = held.idle_nbytes, held.memory_nbytes
    freed = held.spill_idle()
    assert freed == before - held.memory_nbytes
    assert 0 < own_nbytes <= idle <= freed < before / 2  # pools give back room as well
    assert held.idle_nbytes == 0


def test_a_measured_prompt_counts_what_another_conversation_has_as_read(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    request = about("What passed in the night?", "m2", 2)
    size = engine.measure(request)
    _, stats = answer(engine, request)
    assert size.unread_tokens == stats.prompt_tokens - stats.reused_tokens


def test_where_more_is_stored_than_another_one_holds_that_is_used(path: Path, backend: Backend) -> None:
    store = MemoryStore()
    writer = small_engine(path, backend, prefixes=store)
    talk = (*about("Who counted?", "m1", 1).messages, ChatMessage("assistant", "He did. " * 30, key="n1"))
    longer = asked((*talk, ChatMessage("user", "And?", key="m3")), conversation_id=1)
    answer(writer, longer)
    writer.save(CancelToken())
    engine = small_engine(path, backend, prefixes=store)
    answer(engine, about("Who else?", "m4", 4))
    _, stats = answer(engine, dataclasses.replace(longer, conversation_id=5))
    assert stats.reused_tokens > len(DOCUMENT) + 200 - FOUR.page_tokens


def test_reading_ahead_begins_from_what_another_conversation_holds(engine: Engine) -> None:
    answer(engine, about("Who counted?", "m1", 1))
    events = list(engine.read_ahead(about("", "", 2), CancelToken()))
    answer(engine, about("What passed in the night?", "m2", 2))
    usage = engine.context_usage()
    assert events and usage is not None
    assert in_hand(engine).pages()[0].references == 2
