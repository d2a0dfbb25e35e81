"""What is put into the store, when, in which order, and how often."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine import model_slot
from engine.backend import Backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, ModelError
from engine.events import Finished, PrefillProgress, Token
from engine.kv.cache import SequenceCache
from engine.kv.lineage import prefix_chain
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import NewPage, SaveMode
from engine.requests import GenerationRequest
from engine.sampling import SamplingParams
from engine.spans import DocumentRange
from tests.engine.folders import write_folder
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import (
    DOCUMENT,
    PAGE_TOKENS,
    TALK,
    StopAfter,
    about_document,
    first,
    follow_up,
    reopened,
    saved,
)
from tests.engine.small_engine import (
    END_TOKEN,
    FOUR,
    answer,
    asked,
    in_hand,
    rendered,
    small_engine,
    write_templated_model,
)

LONG = SamplingParams(temperature=0, max_tokens=4 * PAGE_TOKENS)


def positions(store: MemoryStore, since: int = 0) -> list[int]:
    """Return the positions of the pages that were put, in that order; -1 for a manifest."""
    return [-1 if isinstance(key, int) else store.pages[key].position for key in store.put[since:]]


def bits_by_position(store: MemoryStore) -> dict[int, float]:
    return {page.position: page.bits for page in store.pages.values()}


def bits_in_memory(engine: Engine) -> dict[int, float]:
    return {page.position: page.bits for page in in_hand(engine).savable_pages()}


def owners(store: MemoryStore) -> list[int]:
    """Return whose pages were put, one for each run of them."""
    found = [store.pages[key].conversation_id for key in store.put if not isinstance(key, int)]
    return [one for at, one in enumerate(found) if at == 0 or found[at - 1] != one]


# While a prompt is read, and while an answer is written.


def test_settled_pages_are_put_between_chunks_and_nothing_while_tokens_are_decoded(
    engine: Engine, store: MemoryStore
) -> None:
    put_by_then: dict[str, int] = {}
    for event in engine.generate(dataclasses.replace(first(), sampling=LONG), CancelToken()):
        if isinstance(event, PrefillProgress | Token | Finished):
            put_by_then[type(event).__name__] = len(store.put)
    num_read = len(rendered(engine, TALK)) // PAGE_TOKENS * PAGE_TOKENS
    settled = range(0, num_read - 2 * PAGE_TOKENS, PAGE_TOKENS)  # without a hot and a warm one
    assert positions(store) == list(settled)
    assert set(put_by_then.values()) == {len(settled)}
    assert not store.sequences
    assert len(in_hand(engine).savable_pages()) > len(settled) + 4  # some were settled while decoding


def test_what_was_read_is_put_before_the_prompt_is_read_to_its_end(
    engine: Engine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.prefill_chunks.ChunkSize.after", lambda self, num_tokens: 200)
    put = {}
    for event in engine.generate(first(), CancelToken()):
        if isinstance(event, PrefillProgress):
            put[event.done] = len(store.put)
    assert put[400] == 400 // PAGE_TOKENS - 2
    assert put[800] == 800 // PAGE_TOKENS - 2


@pytest.mark.parametrize("how", ["rebuild", "close_gaps"])
def test_what_is_read_between_replies_is_put_as_well(engine: Engine, store: MemoryStore, how: str) -> None:
    answer(engine, first())
    request = asked((*TALK[:2], *TALK[4:]), first().kv, conversation_id=1)
    engine.settle(request)  # leaves a gap of positions
    before = set(store.put)
    for _ in getattr(engine, how)(request, CancelToken()):
        pass
    settled = [page for page in in_hand(engine).savable_pages() if page.is_settled]
    assert len(settled) - 4 <= len(set(store.put) - before) <= len(settled)  # the first may be kept


def test_an_aside_and_what_is_forgotten_at_once_put_nothing(engine: Engine, store: MemoryStore) -> None:
    answer(engine, dataclasses.replace(first(), is_aside=True))
    answer(engine, first(conversation_id=-1))
    assert engine.save(CancelToken())
    assert not store.put


def no_encoding(cache: SequenceCache, chain: bytes, model: str) -> bytearray:
    raise AssertionError("a page is encoded for which there is no room")


def test_a_reply_does_not_wait_for_room_and_the_rest_is_put_later(
    engine: Engine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.takes_more = False
    with monkeypatch.context() as patched:
        patched.setattr(SequenceCache, "encode_page", no_encoding)
        answer(engine, first())
        assert not engine.save(CancelToken())
    assert not store.put
    store.takes_more = True
    assert engine.save(CancelToken())
    assert len(store.pages) == len(in_hand(engine).savable_pages())
    assert store.put[-1] == 0


# Between replies.


def test_the_rest_is_put_in_the_order_of_the_text_and_the_manifest_last(
    engine: Engine, store: MemoryStore
) -> None:
    answer(engine, first())
    before = len(store.put)
    assert engine.save(CancelToken())
    pages = in_hand(engine).savable_pages()
    assert positions(store, before) == [page.position for page in pages[before:]] + [-1]
    sequence = store.sequences[1, store.pages[store.put[0]].model]  # type: ignore[index]
    assert [store.pages[key].position for key in sequence.keys] == [page.position for page in pages]
    assert sequence.num_tokens == in_hand(engine).num_tokens
    assert bits_by_position(store) == bits_in_memory(engine)


def test_a_page_names_the_one_that_it_was_read_behind(engine: Engine, store: MemoryStore) -> None:
    saved(engine, first())
    keys = store.keys_of(1)
    assert [store.pages[key].parent for key in keys] == [b"", *keys[:-1]]
    assert {store.pages[key].num_tokens for key in keys} == {PAGE_TOKENS}


def test_what_has_been_saved_is_neither_looked_for_nor_put_again(engine: Engine, store: MemoryStore) -> None:
    saved(engine, first())
    store.put.clear()
    store.queries.clear()
    assert engine.save(CancelToken())
    assert not store.put and not store.queries


def test_another_process_that_reopens_it_puts_no_page(
    path: Path, backend: Backend, store: MemoryStore, engine: Engine
) -> None:
    saved(engine, first())
    store.put.clear()
    again = reopened(path, backend, store)
    again.prefetch(1, CancelToken())
    assert again.save(CancelToken())
    assert store.put == [0]


def test_each_page_is_put_twice_at_most_once_exactly_and_once_settled(
    path: Path, backend: Backend, store: MemoryStore
) -> None:
    """The first one is a tier higher for two more pages, so that it may be put on its way as well."""
    spec = KVSpec.parse("4; page=64, group=32, hot=2, warm=0")
    engine = small_engine(path, backend, prefixes=store)
    messages = TALK[:1]
    for turn in range(12):
        text, _ = answer(engine, asked(messages, spec, conversation_id=1, answer_key=f"a{turn}"))
        engine.save(CancelToken())
        said = ChatMessage("assistant", text, key=f"a{turn}")
        messages = (*messages, said, ChatMessage("user", "And then? " * 5, key=f"q{turn}"))
    times = Counter(store.put)
    assert times.pop(0) == 12
    assert times.pop(store.keys_of(1)[0]) <= 3
    assert set(times.values()) == {1, 2}
    stored = [store.pages[key].bits for key in store.keys_of(1)]
    assert len(stored) > 10
    assert stored == [page.bits for page in in_hand(engine).savable_pages()]


def test_a_stop_is_noticed_within_a_page_and_the_next_call_goes_on_there(
    engine: Engine, store: MemoryStore
) -> None:
    store.takes_more = False
    answer(engine, first())
    store.takes_more = True
    for _ in range(3):
        with pytest.raises(Cancelled):
            engine.save(StopAfter(4))
    num_pages = len(in_hand(engine).savable_pages())
    assert len(store.put) == 12 < num_pages
    engine.save(CancelToken())
    assert positions(store) == [PAGE_TOKENS * number for number in range(num_pages)] + [-1]


def test_idle_conversations_come_first_and_the_one_in_hand_last(engine: Engine, store: MemoryStore) -> None:
    store.takes_more = False
    for number in (1, 3, 2, 1):
        answer(engine, asked(TALK[number:], conversation_id=number, answer_key="a"))
    store.takes_more = True
    engine.save(CancelToken())
    assert owners(store) == [3, 2, 1]


def test_a_turn_more_puts_only_what_is_new(engine: Engine, store: MemoryStore) -> None:
    text = saved(engine, first())
    before, num_before = len(store.put), len(in_hand(engine).savable_pages())
    request = follow_up(text)
    question = dataclasses.replace(request.messages[-1], content="And then? " * 30)
    saved(engine, dataclasses.replace(request, messages=(*request.messages[:-1], question)))
    put = set(positions(store, before)) - {-1}
    assert max(put) > num_before * PAGE_TOKENS
    assert min(put) >= (num_before - 2) * PAGE_TOKENS  # one was hot, one was warm


def test_the_version_that_goes_on_is_the_one_that_is_saved(engine: Engine, store: MemoryStore) -> None:
    saved(engine, first())
    edited = (*TALK[:6], ChatMessage("user", "No, something else: " + "z" * 200, key="edited"))
    saved(engine, asked(edited, conversation_id=1, answer_key="other"))
    (sequence,) = store.sequences.values()
    assert sequence.num_tokens == in_hand(engine).num_tokens
    assert len(sequence.keys) == len(in_hand(engine).savable_pages())


def test_what_is_no_conversation_keeps_pages_that_are_found_by_their_tokens_and_no_manifest(
    engine: Engine, store: MemoryStore
) -> None:
    saved(engine, first(conversation_id=0))
    assert len(store.pages) == len(in_hand(engine).savable_pages())
    assert not store.sequences
    chain = prefix_chain(rendered(engine, TALK), PAGE_TOKENS)
    assert [page.chain for page in in_hand(engine).savable_pages()][: len(chain)] == list(chain)


def test_pinning_a_page_is_saved(engine: Engine, store: MemoryStore) -> None:
    saved(engine, first())
    store.put.clear()
    engine.pin(in_hand(engine).pages()[3].number, True)
    engine.save(CancelToken())
    assert store.put == [0]


def test_a_conversation_that_was_forgotten_is_saved_when_it_is_read_again(
    engine: Engine, store: MemoryStore
) -> None:
    saved(engine, first())
    engine.forget(1)
    store.sequences.clear()
    saved(engine, first())
    assert len(store.sequences) == 1


# Bits.


def test_the_disk_follows_a_lower_precision_once(engine: Engine, store: MemoryStore) -> None:
    saved(engine, first())
    before = bits_in_memory(engine)
    engine.apply_kv(KVSpec.parse("2; page=64, group=32, hot=1, warm=1"), CancelToken())
    lowered = {at for at, bits in bits_in_memory(engine).items() if bits < before[at]}
    store.put.clear()
    engine.save(CancelToken())
    assert len(lowered) > 10
    assert set(positions(store)) == lowered | {-1}
    assert bits_by_position(store) == bits_in_memory(engine)
    store.put.clear()
    engine.save(CancelToken())
    assert not store.put


def test_pages_that_were_read_again_more_exactly_replace_those_with_fewer_bits(
    engine: Engine, store: MemoryStore
) -> None:
    saved(engine, first())
    eight = first(KVSpec.parse("8; page=64, group=32, hot=1, warm=1"))
    answer(engine, eight)
    for _ in engine.rebuild(eight, CancelToken()):
        pass
    engine.save(CancelToken())
    held = bits_in_memory(engine)
    assert {at: bits for at, bits in bits_by_position(store).items() if at in held} == held
    assert min(held.values()) == 8


class KeepsMoreBits(MemoryStore):
    """Keeps a page as exact as another conversation has it."""

    def put_page(self, page: NewPage) -> bool:
        former = self.pages.get(page.key)
        is_put = super().put_page(page)
        if former is not None and former.bits > page.bits:
            self.pages[page.key] = former
        return is_put


def test_a_page_that_the_store_keeps_more_exactly_for_another_is_not_put_again_and_again(
    path: Path, backend: Backend
) -> None:
    store = KeepsMoreBits()
    engine = small_engine(path, backend, prefixes=store)
    saved(
        engine,
        dataclasses.replace(about_document("Who counted?", "m1", 1), kv=KVSpec.parse("8; page=64, group=32")),
    )
    document_bits = bits_by_position(store)
    three = KVSpec.parse("3; page=64, group=32")
    request = dataclasses.replace(about_document("When was that?", "m2", 2), kv=three)
    text = saved(engine, request)
    store.put.clear()
    messages = (*request.messages, ChatMessage("assistant", text), ChatMessage("user", "Why?"))
    saved(engine, dataclasses.replace(request, messages=messages))
    assert all(position >= 20 * PAGE_TOKENS for position in positions(store) if position >= 0)
    assert {at: bits_by_position(store)[at] for at in range(0, 1024, 64)} == {
        at: document_bits[at] for at in range(0, 1024, 64)
    }


# What may be kept.


def place_of(tokens: list[int], text: str) -> int:
    """Return where a text begins in tokens that are bytes."""
    return bytes(tokens).index(text.encode())


def with_document_first(conversation_id: int) -> GenerationRequest:
    document = DocumentRange("Lighthouse", 0, len(DOCUMENT), "a1", SpanKind.DOCUMENT)
    messages = (
        ChatMessage("system", "Answer in one word. " * 10),
        ChatMessage("user", f"{DOCUMENT}\n{'Who counted? ' * 30}", (document,), "m1"),
        ChatMessage("assistant", "The keeper. " * 30, key="m2"),
        ChatMessage("user", f"{DOCUMENT}\nOnce more.", (document,), "m3"),
    )
    return asked(messages, conversation_id=conversation_id, answer_key="m4")


def test_of_documents_only_pages_are_kept_that_have_no_word_of_a_message(
    path: Path, backend: Backend
) -> None:
    store = MemoryStore(SaveMode.DOCUMENTS)
    engine = small_engine(path, backend, prefixes=store)
    request = with_document_first(1)
    saved(engine, request)
    stop = place_of(rendered(engine, request.messages), DOCUMENT) + len(DOCUMENT)
    assert sorted(bits_by_position(store)) == list(range(0, stop - PAGE_TOKENS + 1, PAGE_TOKENS))
    (sequence,) = store.sequences.values()
    assert (sequence.manifest, sequence.num_tokens) == (b"", stop // PAGE_TOKENS * PAGE_TOKENS)
    assert set(sequence.keys) == set(store.pages)


def test_of_documents_nothing_is_kept_behind_an_edit(path: Path, backend: Backend) -> None:
    """Words that were taken out are still in the numbers of what was read behind them."""
    store = MemoryStore(SaveMode.DOCUMENTS)
    engine = small_engine(path, backend, prefixes=store)
    request = with_document_first(1)
    answer(engine, request)
    in_hand(engine).drop(0, 10)
    store.pages.clear()
    store.put.clear()
    assert engine.save(CancelToken())
    assert not store.put


def test_without_documents_and_a_system_prompt_nothing_is_kept_of_a_talk(
    path: Path, backend: Backend
) -> None:
    store = MemoryStore(SaveMode.DOCUMENTS)
    engine = small_engine(path, backend, prefixes=store)
    saved(engine, first())
    assert not store.put


def test_nothing_is_put_where_nothing_may_be_kept(path: Path, backend: Backend) -> None:
    store = MemoryStore(SaveMode.NEVER)
    engine = small_engine(path, backend, prefixes=store)
    saved(engine, first())
    engine.unload()
    assert not store.put and not store.queries


def test_what_may_be_kept_from_now_on_is_saved_at_the_next_time(path: Path, backend: Backend) -> None:
    store = MemoryStore(SaveMode.NEVER)
    engine = small_engine(path, backend, prefixes=store)
    saved(engine, first())
    store.mode = SaveMode.EVERYTHING
    engine.save(CancelToken())
    assert len(store.pages) == len(in_hand(engine).savable_pages())


def test_nothing_is_put_before_it_is_known_which_model_it_is(engine: Engine, store: MemoryStore) -> None:
    store.is_digest_known = False
    answer(engine, first())
    assert not engine.save(CancelToken())
    assert not store.put
    store.is_digest_known = True
    assert engine.save(CancelToken())
    assert len(store.pages) == len(in_hand(engine).savable_pages())


def test_a_model_whose_layers_are_not_all_paged_is_not_saved_and_the_log_says_so_once(
    tmp_path: Path, backend: Backend, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    window: dict[str, Any] = {
        "hidden_size": 64,
        "head_dim": 32,
        "sliding_window": 16,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 32,
        "rope_local_base_freq": 10000.0,
        "max_position_embeddings": 4096,
        "eos_token_id": END_TOKEN,
    }
    folder = write_folder(tmp_path / "model", bits=None, model_type="gemma3_text", **window)
    engine = small_engine(folder, backend, prefixes=store)
    with caplog.at_level(logging.INFO, "engine.prefixes.saver"):
        saved(engine, asked(TALK, conversation_id=1))
        engine.save(CancelToken())
    assert not store.put
    assert [record.message for record in caplog.records if "not saved" in record.message] == [
        "Conversations with this model are not saved: not all of its layers are in pages"
    ]


# The end.


def test_a_model_that_is_unloaded_saves_what_was_read(engine: Engine, store: MemoryStore) -> None:
    answer(engine, first())
    num_pages = len(in_hand(engine).savable_pages())
    engine.unload()
    assert len(store.pages) == num_pages
    assert len(store.sequences) == 1


def test_a_model_that_is_replaced_saves_what_was_read(path: Path, engine: Engine, store: MemoryStore) -> None:
    answer(engine, first())
    engine.load(path, FOUR, cancel=CancelToken(), on_progress=lambda progress: None)
    assert len(store.sequences) == 1


def test_unloading_does_not_wait_longer_than_one_waits_for_an_end(
    engine: Engine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(engine, first())
    monkeypatch.setattr(model_slot, "LAST_SAVE_S", 0.0)
    engine.unload()
    assert not store.sequences
    assert engine.loaded is None


def test_unloading_that_is_cancelled_gives_the_memory_back_at_once(
    engine: Engine, store: MemoryStore
) -> None:
    answer(engine, first())
    cancel = CancelToken()
    cancel.cancel()
    engine.unload(cancel)
    assert not store.sequences
    assert engine.loaded is None


class BrokenStore(MemoryStore):
    def put_sequence(self, sequence: object) -> bool:
        raise RuntimeError("a bug")


def test_an_error_in_saving_does_not_keep_the_memory(
    path: Path, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    engine = small_engine(path, backend, prefixes=BrokenStore())
    answer(engine, first())
    engine.unload()
    assert engine.loaded is None
    assert "a bug" in caplog.text


# What cannot be trusted.


def test_pages_of_damaged_weights_are_deleted(engine: Engine, store: MemoryStore) -> None:
    saved(engine, asked(TALK[1:], conversation_id=2))
    kept = set(store.pages)
    assert engine._session is not None
    norm = engine._session.model.module.layers[0].input_layernorm
    norm.weight = norm.weight * mx.nan
    with pytest.raises(ModelError, match="no usable numbers"):
        answer(engine, first())
    assert set(store.put) > kept
    assert set(store.pages) == kept


def test_a_model_whose_files_have_changed_since_it_was_loaded_has_no_digest(tmp_path: Path) -> None:
    folder = write_templated_model(tmp_path / "model")
    store = MemoryStore()
    loaded, known = ModelIdentity(store, folder), ModelIdentity(store, folder)
    assert known.digest is not None
    config = folder / "config.json"
    config.write_text(config.read_text() + " ")
    assert loaded.digest is None
    assert known.digest is not None  # it was found out in time, and is in memory
    assert ModelIdentity(store, folder).digest is not None
