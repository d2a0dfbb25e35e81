"""What segments begin with is kept, so that the next question about the same document does not read it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.prefixes.records import SaveMode
from engine.requests import GenerationRequest
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import DOCUMENT, PAGE_TOKENS, StopAfter, about_document
from tests.engine.small_engine import FOUR, answer, asked, small_engine

SEGMENT, OWNER = -1, 7
DOCUMENT_PAGES = len(DOCUMENT) // PAGE_TOKENS


def segment(question: str) -> GenerationRequest:
    return about_document(question, "m1", SEGMENT)


def kept(engine: Engine, question: str = "Who counted?") -> int:
    """Read a segment with a question, keep what it begins with, and forget it; return how much was kept."""
    answer(engine, segment(question))
    num_tokens = engine.keep_prefix(SEGMENT, OWNER, CancelToken())
    engine.forget(SEGMENT)
    return num_tokens


def reread(engine: Engine) -> int:
    """Return how many tokens another question about the segment reads."""
    _, stats = answer(engine, segment("What passed in the night?"))
    engine.forget(SEGMENT)
    return stats.prompt_tokens - stats.reused_tokens


def test_another_question_about_a_segment_reads_only_what_fills_no_page_and_itself(
    engine: Engine, store: MemoryStore
) -> None:
    num_tokens = kept(engine)
    assert num_tokens == len(store.pages) * PAGE_TOKENS >= (DOCUMENT_PAGES - 1) * PAGE_TOKENS
    assert reread(engine) < 2 * PAGE_TOKENS


def test_without_it_a_segment_is_read_again(engine: Engine, store: MemoryStore) -> None:
    answer(engine, segment("Who counted?"))
    engine.forget(SEGMENT)
    assert not store.pages
    assert reread(engine) > len(DOCUMENT)


def test_another_process_finds_it(path: Path, backend: Backend, engine: Engine, store: MemoryStore) -> None:
    kept(engine)
    assert reread(small_engine(path, backend, prefixes=store)) < 2 * PAGE_TOKENS


@pytest.mark.parametrize("mode", [SaveMode.EVERYTHING, SaveMode.DOCUMENTS])
def test_no_word_of_the_question_or_the_note_is_kept(path: Path, backend: Backend, mode: SaveMode) -> None:
    store = MemoryStore(mode)
    engine = small_engine(path, backend, prefixes=store)
    kept(engine, "Who counted? " * 30)
    assert 0 < len(store.pages) <= DOCUMENT_PAGES + 1
    assert not store.sequences


def test_nothing_is_kept_where_nothing_may_be(path: Path, backend: Backend) -> None:
    store = MemoryStore(SaveMode.NEVER)
    engine = small_engine(path, backend, prefixes=store)
    assert kept(engine) == 0
    assert not store.put


def test_nothing_is_kept_without_a_store_or_a_conversation(
    path: Path, backend: Backend, engine: Engine
) -> None:
    assert kept(small_engine(path, backend)) == 0
    assert engine.keep_prefix(SEGMENT, OWNER, CancelToken()) == 0
    assert Engine(backend).keep_prefix(SEGMENT, OWNER, CancelToken()) == 0


def test_pages_have_the_bits_of_cold_ones_but_for_the_first_which_stays_warm(
    path: Path, backend: Backend, store: MemoryStore
) -> None:
    spec = KVSpec.parse("4; page=64, group=32, hot=2, warm=8")
    engine = small_engine(path, backend, prefixes=store)
    question = asked(segment("Who?").messages, spec, conversation_id=SEGMENT)
    answer(engine, question)
    engine.keep_prefix(SEGMENT, OWNER, CancelToken())
    bits = [page.bits for page in sorted(store.pages.values(), key=lambda page: page.position)]
    assert bits[0] == 8
    assert set(bits[1:]) == {4}


def test_all_of_it_is_kept_for_the_conversation_with_which_it_is_deleted(
    engine: Engine, store: MemoryStore
) -> None:
    kept(engine)
    assert {page.conversation_id for page in store.pages.values()} == {OWNER}


def test_what_is_kept_already_is_not_put_again(engine: Engine, store: MemoryStore) -> None:
    kept(engine)
    num_put = len(store.put)
    assert kept(engine, "What passed in the night?") == num_put * PAGE_TOKENS
    assert len(store.put) == num_put


def test_what_the_store_takes_no_more_of_is_not_counted(engine: Engine, store: MemoryStore) -> None:
    store.takes_more = False
    assert kept(engine) == 0


def test_a_stop_is_noticed_between_pages(engine: Engine, store: MemoryStore) -> None:
    answer(engine, segment("Who counted?"))
    with pytest.raises(Cancelled):
        engine.keep_prefix(SEGMENT, OWNER, StopAfter(3))
    assert len(store.pages) == 3


def test_nothing_is_kept_of_documents_of_which_one_was_taken_out(engine: Engine, store: MemoryStore) -> None:
    (both,) = segment("Who counted?").messages
    half = len(DOCUMENT) // 2
    places = [
        dataclasses.replace(both.documents[0], stop=half, key="a1"),
        dataclasses.replace(both.documents[0], start=half, key="a2"),
    ]
    both = dataclasses.replace(both, documents=tuple(places))
    rest = dataclasses.replace(
        both,
        content=both.content[half:],
        documents=(dataclasses.replace(places[1], start=0, stop=len(DOCUMENT) - half),),
    )
    answer(engine, asked((both,), conversation_id=3))
    engine.settle(asked((rest,), conversation_id=3))
    usage = engine.context_usage()
    assert usage is not None and "a1" not in [span.key for span in usage.spans]

    assert engine.keep_prefix(3, OWNER, CancelToken()) == 0


def test_the_whole_document_is_not_found_by_a_segment_of_its_middle(engine: Engine) -> None:
    kept(engine)
    middle = ChatMessage("user", DOCUMENT[200:900])
    _, stats = answer(engine, asked((middle,), FOUR, conversation_id=SEGMENT))
    assert stats.reused_tokens < PAGE_TOKENS
