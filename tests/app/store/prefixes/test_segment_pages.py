"""What is kept of the segments of documents on a real file, and when it leaves it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.prefixes.records import SaveMode
from tests.app.store.prefixes.conftest import ServiceMaker
from tests.engine.prefixes.talks import DOCUMENT, PAGE_TOKENS, about_document
from tests.engine.small_engine import answer, small_engine, write_templated_model

FLUSH_S = 60.0
SEGMENT, OWNER = -1, 7


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


def engine_with(service: PrefixService, path: Path, backend: Backend) -> Engine:
    while service.model_digest(path) is None:
        os.sched_yield()
    return small_engine(path, backend, prefixes=service)


def read_segment(engine: Engine, question: str) -> int:
    """Read a segment with a question and keep what it begins with; return how many tokens were read."""
    _, stats = answer(engine, about_document(question, "m1", SEGMENT))
    engine.keep_prefix(SEGMENT, OWNER, CancelToken())
    engine.forget(SEGMENT)
    return stats.prompt_tokens - stats.reused_tokens


@pytest.mark.parametrize("mode", [SaveMode.EVERYTHING, SaveMode.DOCUMENTS])
def test_after_a_restart_another_question_reads_only_what_fills_no_page_and_itself(
    path: Path, backend: Backend, make_service: ServiceMaker, mode: SaveMode
) -> None:
    service = make_service(PrefixSettings(mode=mode))
    assert read_segment(engine_with(service, path, backend), "Who counted?") > len(DOCUMENT)
    assert service.flush(FLUSH_S)
    service.close()

    again = engine_with(make_service(PrefixSettings(mode=mode)), path, backend)

    assert read_segment(again, "What passed in the night?") < 2 * PAGE_TOKENS


def test_pages_of_segments_are_listed_with_their_conversation_and_leave_the_disk_with_it(
    path: Path, backend: Backend, make_service: ServiceMaker
) -> None:
    service = make_service()
    engine = engine_with(service, path, backend)
    read_segment(engine, "Who counted?")
    assert service.flush(FLUSH_S)
    assert [(entry.conversation_id, entry.num_pages) for entry in service.entries()] == [
        (OWNER, len(DOCUMENT) // PAGE_TOKENS)
    ]

    service.delete(OWNER)

    assert service.flush(FLUSH_S)
    assert service.entries() == ()
    assert read_segment(engine, "Who counted?") > len(DOCUMENT)


def test_a_document_of_two_conversations_stays_until_both_are_deleted(
    path: Path, backend: Backend, make_service: ServiceMaker
) -> None:
    service = make_service()
    engine = engine_with(service, path, backend)
    read_segment(engine, "Who counted?")
    answer(engine, about_document("What passed?", "m2", 3))
    assert engine.save(CancelToken())
    assert service.flush(FLUSH_S)
    engine.forget(3)

    service.delete(3)

    assert service.flush(FLUSH_S)
    assert read_segment(engine, "And who sailed?") < 2 * PAGE_TOKENS
