"""What of a stored conversation cannot be used is never used: it is read again, and the figures say why."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.backend import Backend
from engine.engine import Engine
from engine.lost_text import DAMAGED, EVICTED, OTHER_MODEL
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import (
    PAGE_TOKENS,
    about_document,
    first,
    follow_up,
    reopened,
    reread,
    saved,
)
from tests.engine.small_engine import answer, in_hand, write_templated_model


def test_text_from_a_damaged_page_on_is_read_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    num_held = in_hand(engine).num_tokens
    key = store.keys_of(1)[5]
    store.flip_bit(key, len(store.pages[key].blob) // 2)
    again = reopened(path, backend, store)
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == 5 * PAGE_TOKENS
    assert reread(stats.reread_note, DAMAGED) == num_held - 5 * PAGE_TOKENS
    assert store.dropped == [key]
    answer(engine, follow_up(text))
    count = stats.prompt_tokens
    assert in_hand(again).tokens[:count] == in_hand(engine).tokens[:count]  # the conversation is whole


@pytest.mark.parametrize("keep", [0, 10, -40], ids=["nothing", "a beginning", "all but the end"])
def test_a_truncated_blob_is_not_used(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine, keep: int
) -> None:
    text = saved(engine, first())
    key = store.keys_of(1)[3]
    store.replace_blob(key, bytes(store.pages[key].blob)[:keep])
    _, stats = answer(reopened(path, backend, store), follow_up(text))
    assert stats.reused_tokens == 3 * PAGE_TOKENS
    assert reread(stats.reread_note, DAMAGED)
    assert store.dropped == [key]


def test_pages_in_each_others_place_are_not_used(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    one, other = store.keys_of(1)[2], store.keys_of(1)[7]
    blobs = [bytes(store.pages[key].blob) for key in (one, other)]
    store.replace_blob(one, blobs[1])
    store.replace_blob(other, blobs[0])
    _, stats = answer(reopened(path, backend, store), follow_up(text))
    assert stats.reused_tokens == 2 * PAGE_TOKENS
    assert one in store.dropped


def test_a_page_that_is_named_and_not_given_is_looked_for_no_more_than_once_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = saved(engine, first())
    key = store.keys_of(1)[5]
    store.flip_bit(key, len(store.pages[key].blob) // 2)
    monkeypatch.setattr(store, "drop_page", store.dropped.append)  # as where the disk takes no change
    again = reopened(path, backend, store)
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == 5 * PAGE_TOKENS
    assert reread(stats.reread_note, DAMAGED)
    assert store.dropped == [key, key]


def test_text_from_a_page_on_that_made_room_is_read_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    num_held = in_hand(engine).num_tokens
    store.evict(store.keys_of(1)[9])
    again = reopened(path, backend, store)
    size = again.measure(follow_up(text))
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == size.num_tokens - size.unread_tokens == 9 * PAGE_TOKENS
    assert reread(stats.reread_note, EVICTED) == num_held - 9 * PAGE_TOKENS
    assert not store.dropped
    assert again._session is not None
    assert again._session._held.lost(1) is None  # it is told once
    _, stats = answer(again, follow_up(text))
    assert stats.reread_note is None


def test_where_the_first_page_is_gone_all_is_read_again(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    text = saved(engine, first())
    store.evict(store.keys_of(1)[0])
    _, stats = answer(reopened(path, backend, store), follow_up(text))
    assert stats.reused_tokens == 0
    assert reread(stats.reread_note, EVICTED) > 1000


def test_a_damaged_manifest_is_dropped_and_its_pages_are_found_by_the_text(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, about_document("Who counted?", "m1", 1))
    ((name, sequence),) = store.sequences.items()
    damaged = bytearray(sequence.manifest)
    damaged[len(damaged) // 2] ^= 1
    store.sequences[name] = dataclasses.replace(sequence, manifest=damaged)
    _, stats = answer(reopened(path, backend, store), about_document("Who counted?", "m1", 1))
    assert store.dropped == [1]
    assert stats.reused_tokens >= 20 * PAGE_TOKENS


def test_what_another_model_read_is_not_used(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine, tmp_path: Path
) -> None:
    """It has the same name, shapes and weights, and another constant."""
    text = saved(engine, first())
    other = write_templated_model(tmp_path / path.name)
    config = other / "config.json"
    config.write_text(config.read_text().replace("1e-05", "1e-03"))
    again = reopened(other, backend, store)
    _, stats = answer(again, follow_up(text))
    assert stats.reused_tokens == 0
    assert reread(stats.reread_note, OTHER_MODEL) > 1000
    assert not store.read
