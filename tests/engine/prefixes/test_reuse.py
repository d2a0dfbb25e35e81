"""What was read once and stored is not read again: by another process, in another conversation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mlx.core as mx
import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.kv.precision import KVSpec
from engine.lost_text import MODEL_UNKNOWN, NOT_THERE, NOTHING_KEPT, ONLY_DOCUMENTS, OTHER_PAGES
from engine.model import ChatMessage
from engine.prefixes.records import SaveMode
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import (
    DOCUMENT,
    PAGE_TOKENS,
    TALK,
    about_document,
    first,
    follow_up,
    reopened,
    reread,
    saved,
)
from tests.engine.small_engine import answer, asked, in_hand, rendered, small_engine

# A conversation that was closed.


def test_a_reopened_conversation_goes_on_as_if_it_had_never_been_closed(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    request = follow_up(text)
    expected, stayed = answer(engine, request)
    found, came_back = answer(again, request)
    assert found == expected
    assert came_back.reused_tokens == stayed.reused_tokens > 25 * PAGE_TOKENS
    assert came_back.reread_note is stayed.reread_note is None
    assert came_back.kv_usage == stayed.kv_usage
    assert in_hand(again).tokens == in_hand(engine).tokens


def test_a_conversation_shorter_than_a_page_comes_back_whole(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    question = ChatMessage("user", "Hello.", key="hello")
    text = saved(engine, asked((question,), conversation_id=1, answer_key="answer"))
    said = ChatMessage("assistant", text, key="answer")
    request = asked((question, said, ChatMessage("user", "And?", key="next")), conversation_id=1)
    num_held = in_hand(engine).num_tokens
    assert num_held < PAGE_TOKENS
    found, came_back = answer(reopened(path, backend, store), request)
    expected, _ = answer(engine, request)
    assert (found, came_back.reused_tokens) == (expected, num_held)


def test_an_answer_is_found_in_the_tokens_that_the_model_wrote(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    """Most of what a random model writes splits otherwise when it is read as text."""
    text = saved(engine, first())
    num_held = in_hand(engine).num_tokens
    _, stats = answer(reopened(path, backend, store), follow_up(text))
    assert stats.reused_tokens == num_held


def test_all_pages_that_are_used_are_touched_and_their_return_is_counted(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    answer(again, follow_up(text))
    keys = store.keys_of(1)
    assert set(store.touched) >= set(keys)
    page_map = again.page_map()
    assert page_map is not None
    assert page_map.counters.restores == len(keys)
    store.touched.clear()
    answer(again, first())
    assert set(store.touched) >= set(keys[:20])  # from memory, the disk must not think it is not needed


def test_a_conversation_that_is_measured_counts_what_is_stored_as_read(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    request = follow_up(text)
    size = again.measure(request)
    assert not store.read
    _, stats = answer(again, request)
    assert size.num_tokens - size.unread_tokens == stats.reused_tokens


def test_positions_that_are_left_are_known_before_anything_is_loaded(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    again = reopened(path, backend, store)
    assert again.positions_left(1) == engine.positions_left(1)
    assert not store.read


def test_another_branch_keeps_what_both_begin_with(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    edited = (*TALK[:10], ChatMessage("user", "No, tell me of something else.", key="edited"))
    request = asked(edited, conversation_id=1, answer_key="other")
    expected, stayed = answer(engine, request)
    found, came_back = answer(reopened(path, backend, store), request)
    assert (found, came_back.reused_tokens) == (expected, stayed.reused_tokens)
    assert came_back.reused_tokens > 10 * 100


def test_a_conversation_that_was_read_again_comes_back_as_it_was_read_last(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    """What is read behind exact pages is not what was read behind coarse ones, at the same bits."""
    coarse, fine = (KVSpec.parse(f"{bits}; page=64, group=32, hot=2, warm=2") for bits in (2, 8))
    said = ChatMessage("assistant", saved(engine, first(coarse)), key="answer")
    request = asked((*TALK, said), fine, conversation_id=1)
    engine.apply_kv(fine, CancelToken())
    for _ in engine.rebuild(request, CancelToken()):
        pass
    engine.save(CancelToken())
    again = reopened(path, backend, store)
    again.prefetch(1, CancelToken())
    stayed, came_back = (in_hand(each).fork().read([65]) for each in (engine, again))
    assert mx.array_equal(stayed, came_back)


# Another conversation.


def test_a_new_conversation_takes_the_pages_of_the_same_document(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, about_document("Who counted?", "m1", 1))
    again = reopened(path, backend, store)
    request = about_document("When was that?", "m2", 2)
    size = again.measure(request)
    _, stats = answer(again, request)
    one, other = (
        rendered(again, about_document(words, "m", 0).messages)
        for words in ("Who counted?", "When was that?")
    )
    same = next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    assert stats.reused_tokens == same // PAGE_TOKENS * PAGE_TOKENS
    assert size.num_tokens - size.unread_tokens == stats.reused_tokens
    assert stats.reread_note is None


def test_the_answer_on_stored_pages_is_the_one_on_pages_that_were_read(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    exact = KVSpec.parse("16; page=64, group=32")
    saved(engine, dataclasses.replace(about_document("Who counted?", "m1", 1), kv=exact))
    request = dataclasses.replace(about_document("When was that?", "m2", 2), kv=exact)
    expected, _ = answer(small_engine(path, backend), request)
    found, stats = answer(reopened(path, backend, store), request)
    assert found == expected
    assert stats.reused_tokens > 1000


def test_what_is_no_conversation_is_found_by_its_tokens_only(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, about_document("Who counted?", "m1", 1))
    again = reopened(path, backend, store)
    for number in (0, -1):
        _, stats = answer(again, about_document("Where was that?", f"m{number}", number))
        assert stats.reused_tokens > 1000
    assert "find_sequence" not in store.queries
    assert "is_of_other_model" not in store.queries


def test_an_aside_reads_stored_pages_and_holds_nothing_of_them(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, about_document("Who counted?", "m1", 1))
    again = reopened(path, backend, store)
    request = dataclasses.replace(about_document("Sum it up.", "m2", 2), is_aside=True)
    _, stats = answer(again, request)
    assert stats.reused_tokens > 1000
    assert again.held() is None
    assert again._session is not None and again._session._held.memory_nbytes == 0


def test_an_aside_goes_on_from_its_conversation_on_disk(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    request = dataclasses.replace(follow_up(text), is_aside=True)
    expected, stayed = answer(engine, request)
    found, stats = answer(again, request)
    assert (found, stats.reused_tokens) == (expected, stayed.reused_tokens)


# Other settings.


def test_a_lower_precision_requantizes_what_is_stored(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first(KVSpec.parse("8; page=64, group=32, hot=1, warm=1")))
    request = follow_up(text, KVSpec.parse("3; page=64, group=32, hot=1, warm=1"))
    expected, stayed = answer(engine, request)
    found, came_back = answer(reopened(path, backend, store), request)
    assert (found, came_back.reused_tokens) == (expected, stayed.reused_tokens)
    assert came_back.kv_usage == stayed.kv_usage


def test_a_new_conversation_at_a_lower_precision_requantizes_what_is_stored(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    eight, three = (KVSpec.parse(f"{bits}; page=64, group=32") for bits in (8, 3))
    saved(engine, dataclasses.replace(about_document("Who counted?", "m1", 1), kv=eight))
    again = reopened(path, backend, store)
    _, stats = answer(again, dataclasses.replace(about_document("When?", "m2", 2), kv=three))
    assert stats.reused_tokens >= 20 * PAGE_TOKENS
    usage, fresh = stats.kv_usage, in_hand(small_read(path, backend, three)).usage()
    assert usage is not None
    assert usage.effective_bits == pytest.approx(fresh.effective_bits, rel=0.05)


def small_read(path: Path, backend: Backend, kv: KVSpec) -> Engine:
    """Return an engine that has read the document at a precision itself."""
    engine = small_engine(path, backend)
    answer(engine, dataclasses.replace(about_document("When?", "m2", 2), kv=kv))
    return engine


def test_a_higher_precision_uses_what_is_stored_and_shows_its_bits(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    request = follow_up(text, KVSpec.parse("8; page=64, group=32, hot=1, warm=1"))
    _, stayed = answer(engine, request)
    _, came_back = answer(reopened(path, backend, store), request)
    assert came_back.reused_tokens == stayed.reused_tokens
    assert came_back.kv == str(request.kv)
    assert came_back.kv_usage == stayed.kv_usage


def test_pages_of_another_size_are_not_used_and_not_loaded(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    num_held = in_hand(engine).num_tokens
    again = reopened(path, backend, store)
    request = follow_up(text, KVSpec.parse("4; page=128, group=32, hot=1, warm=1"))
    assert again.measure(request).unread_tokens == again.measure(request).num_tokens
    _, stats = answer(again, request)
    assert stats.reused_tokens == 0
    assert reread(stats.reread_note, OTHER_PAGES) == num_held
    assert not store.read


# What looking costs.


def test_a_conversation_of_which_nothing_is_stored_is_looked_for_once(
    engine: Engine, store: MemoryStore
) -> None:
    request = asked((ChatMessage("user", "Hello", key="m1"),), conversation_id=1, answer_key="m2")
    engine.measure(request)
    answer(engine, request)
    assert store.queries == ["find_sequence"]
    store.queries.clear()
    engine.measure(request)
    answer(engine, request)
    assert store.queries == []


def test_nothing_is_looked_for_where_nothing_may_be_kept(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    store.mode = SaveMode.NEVER
    again = reopened(path, backend, store)
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == 0
    assert reread(stats.reread_note, NOTHING_KEPT) == answered(again, text)
    assert not store.queries and not store.read
    assert again.prefetch(1, CancelToken()) is None


def test_nothing_is_looked_for_before_it_is_known_which_model_it_is(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    again = reopened(path, backend, store)
    store.is_digest_known = False
    assert again.prefetch(1, CancelToken()) is None
    assert not store.queries
    store.is_digest_known = True
    assert again.prefetch(1, CancelToken()) is not None


# Why nothing is there.


def answered(engine: Engine, text: str) -> int:
    """Return how many tokens of the follow-up the template writes before the last question."""
    assert engine._session is not None
    prompt = engine._session._model.prompt(follow_up(text).messages)
    (answer_span,) = [span for span in prompt.spans if span.key == "answer"]
    return answer_span.stop


def test_what_may_not_be_kept_is_told_when_it_is_read_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    store.mode = SaveMode.DOCUMENTS
    text = saved(engine, first())
    again = reopened(path, backend, store)
    _, stats = answer(again, follow_up(text))
    assert reread(stats.reread_note, ONLY_DOCUMENTS) == answered(again, text)


def test_documents_come_back_where_only_they_may_be_kept(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    store.mode = SaveMode.DOCUMENTS
    saved(engine, about_document("Who counted?", "m1", 1))
    _, stats = answer(reopened(path, backend, store), about_document("Who counted?", "m1", 1))
    assert len(DOCUMENT) - 2 * PAGE_TOKENS < stats.reused_tokens < len(DOCUMENT)
    assert stats.reread_note is None


def test_a_conversation_that_is_nowhere_is_told_to_be_read_again(engine: Engine, store: MemoryStore) -> None:
    text, _ = answer(engine, first())
    engine.forget(1)
    _, stats = answer(engine, follow_up(text))
    # The pages that were settled while it was read are stored already.
    assert reread(stats.reread_note, NOT_THERE) == answered(engine, text) - stats.reused_tokens


def test_a_model_that_is_not_known_yet_is_told_when_text_is_read_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    store.is_digest_known = False
    _, stats = answer(again, follow_up(text))
    assert reread(stats.reread_note, MODEL_UNKNOWN) == answered(again, text)
