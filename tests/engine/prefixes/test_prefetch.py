"""A conversation is in memory before the next question: where there is room, a page at a time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.events import Finished, StopReason
from engine.guard import GuardStep
from engine.held import HeldSequences
from engine.kv.lineage import page_key, root_key
from engine.lost_text import EVICTED
from engine.memory_limits import MemoryLimits
from engine.sampling import SamplingParams
from tests.engine.kv.caches import active_nbytes
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import (
    PAGE_TOKENS,
    StopAfter,
    about_document,
    first,
    follow_up,
    reopened,
    reread,
    saved,
)
from tests.engine.small_engine import answer, guard_at, in_hand, small_engine

TIGHT = MemoryLimits(most_nbytes=1)
"""Nothing more can be had."""


def held_by(engine: Engine) -> HeldSequences:
    assert engine._session is not None
    return engine._session._held


def test_a_conversation_is_in_hand_before_it_goes_on(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    changed = again.prefetch(1, CancelToken())
    assert changed is not None and changed == again.held() == engine.held()
    num_read = len(store.read)
    assert num_read == len(store.keys_of(1))
    assert set(store.touched) == set(store.keys_of(1))
    expected, _ = answer(engine, follow_up(text))
    found, stats = answer(again, follow_up(text))
    assert (found, len(store.read)) == (expected, num_read)
    assert stats.reread_note is None
    assert again.prefetch(1, CancelToken()) is None  # nothing changes


def test_the_hottest_pages_come_first(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    long_answer = SamplingParams(temperature=0, max_tokens=40)  # in which it is sampled what is read
    saved(engine, dataclasses.replace(first(), sampling=long_answer))
    (digest,) = {model for _, model in store.sequences}
    cache = in_hand(engine)
    root = root_key(digest, cache)
    keys = [page_key(root, page.chain) for page in cache.savable_pages()]
    heat = dict(zip(keys, [page.heat for page in cache.pages()], strict=True))
    assert len(set(heat.values())) > 2
    reopened(path, backend, store).prefetch(1, CancelToken())
    assert [heat[key] for key in store.read] == sorted(heat.values(), reverse=True)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_what_came_in_before_a_stop_stays_and_the_next_call_goes_on(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine, count: int
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    with pytest.raises(Cancelled):
        again.prefetch(1, StopAfter(count))
    assert len(store.read) == count
    assert again.held() is None
    assert again.prefetch(1, CancelToken()) is not None
    assert len(store.read) == len(set(store.read)) == len(store.keys_of(1))
    expected, stayed = answer(engine, follow_up(text))
    found, stats = answer(again, follow_up(text))
    assert (found, stats.reused_tokens) == (expected, stayed.reused_tokens)


def test_a_reply_goes_on_where_a_prefetch_was_stopped(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    with pytest.raises(Cancelled):
        again.prefetch(1, StopAfter(5))
    expected, stayed = answer(engine, follow_up(text))
    found, stats = answer(again, follow_up(text))
    assert (found, stats.reused_tokens) == (expected, stayed.reused_tokens)
    assert len(store.read) == len(set(store.read))


def test_pages_are_seen_while_they_come(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    again = reopened(path, backend, store)
    with pytest.raises(Cancelled):
        again.prefetch(1, StopAfter(5))
    page_map = again.page_map()
    assert page_map is not None
    assert [page.is_on_disk for page in page_map.pages] == [True] * len(store.keys_of(1))
    assert page_map.spans == engine.page_map().spans  # type: ignore[union-attr]
    again.prefetch(1, CancelToken())
    page_map = again.page_map()
    assert page_map is not None
    assert not any(page.is_on_disk for page in page_map.pages)


def test_what_a_prefetch_did_not_find_is_told_with_the_next_answer(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    store.evict(store.keys_of(1)[4])
    again = reopened(path, backend, store)
    assert again.prefetch(1, CancelToken()) is not None
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == 4 * PAGE_TOKENS
    assert reread(stats.reread_note, EVICTED)


def test_nothing_comes_where_its_bytes_are_not_free(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    answer(again, first(conversation_id=2))
    store.read.clear()
    before = again.held()
    again.limits = TIGHT
    assert again.prefetch(1, CancelToken()) is None
    assert not store.read
    assert again.held() == before
    again.limits = MemoryLimits()
    assert again.prefetch(1, CancelToken()) is not None
    assert held_by(again).in_memory(2) is not None
    _, stats = answer(again, follow_up(text))
    assert stats.reread_note is None


def test_nothing_comes_while_memory_is_short(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    guard = guard_at(GuardStep.CLEAR_CACHE)
    again = small_engine(path, backend, guard, prefixes=store)
    store.read.clear()
    assert again.prefetch(1, CancelToken()) is None
    assert not store.read
    guard.height = GuardStep.NONE
    assert again.prefetch(1, CancelToken()) is not None


def test_what_came_in_leaves_again_when_others_need_room(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    again = reopened(path, backend, store)
    with pytest.raises(Cancelled):
        again.prefetch(1, StopAfter(5))
    answer(again, first(conversation_id=2))
    held = held_by(again)
    in_hand_nbytes = in_hand(again).nbytes
    assert held.idle_nbytes > 0
    assert held.make_room(1 << 40) > 0
    assert held.memory_nbytes == in_hand_nbytes
    expected, stayed = answer(engine, follow_up(text))
    found, stats = answer(again, follow_up(text))
    assert (found, stats.reused_tokens) == (expected, stayed.reused_tokens)


def test_a_conversation_in_memory_is_in_hand_at_once(engine: Engine, store: MemoryStore) -> None:
    answer(engine, first())
    one = engine.held()
    answer(engine, first(conversation_id=2))
    store.read.clear()
    assert engine.prefetch(1, CancelToken()) == one
    assert held_by(engine).conversation_id == 1
    assert not store.read


def test_a_spilled_conversation_comes_back_as_a_stored_one(
    path: Path, backend: Backend, tmp_path: Path
) -> None:
    engine = small_engine(path, backend, spill_folder=tmp_path)
    answer(engine, first())
    before = engine.held()
    answer(engine, first(conversation_id=2))
    held_by(engine).spill_idle()
    assert engine.prefetch(1, CancelToken()) == before


def test_where_a_spilled_file_is_gone_the_stored_conversation_comes_back(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine, tmp_path: Path
) -> None:
    text = saved(engine, first())
    again = small_engine(path, backend, spill_folder=tmp_path, prefixes=store)
    assert again.prefetch(1, CancelToken()) is not None
    answer(again, first(conversation_id=2))
    held_by(again).spill_idle()
    for file in tmp_path.rglob("*.pages"):
        file.unlink()
    expected, stayed = answer(engine, follow_up(text))
    found, stats = answer(again, follow_up(text))
    assert (found, stats.reused_tokens) == (expected, stayed.reused_tokens)


def test_nothing_is_in_hand_ahead_where_nothing_is_kept(engine: Engine) -> None:
    answer(engine, first())
    before = engine.held()
    assert engine.prefetch(7, CancelToken()) is None
    assert engine.held() == before


def test_an_aside_that_is_stopped_while_pages_come_leaves_nothing_in_memory(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, about_document("Who counted?", "m1", 1))
    again = reopened(path, backend, store)
    request = dataclasses.replace(about_document("Sum it up.", "m2", 2), is_aside=True)
    before = active_nbytes()
    events = list(again.generate(request, StopAfter(4)))
    assert isinstance(events[-1], Finished) and events[-1].stats.stop_reason is StopReason.STOPPED
    assert store.read
    assert held_by(again).memory_nbytes == 0
    assert active_nbytes() <= before
