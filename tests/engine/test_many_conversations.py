"""Random lives of conversations that begin alike, next to a model that reads everything."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.backend import Backend
from engine.cancel import CancelToken
from engine.errors import Cancelled
from engine.held import HeldSequences
from engine.kv.cache import SequenceCache
from engine.kv.page import Page
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import GenerationRequest
from engine.spans import DocumentRange
from tests.engine.prefixes.memory_store import MemoryStore
from tests.engine.prefixes.talks import DOCUMENT, StopAfter
from tests.engine.small_engine import answer, asked, small_engine, without_oldest, write_templated_model

EXACT = KVSpec.parse("16; page=64, group=32, hot=1, warm=1")
LOWER = KVSpec.parse("8; page=64, group=32, hot=1, warm=1")
DOCUMENTS = (DOCUMENT[:800], f"{DOCUMENT[:500]}Then came the fog. {DOCUMENT[:200]}", "A lamp burned. " * 50)
MOST_VERSIONS = 5
NUM_STEPS = 12
ROUNDING = 1e-4

Messages = tuple[ChatMessage, ...]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_templated_model(tmp_path_factory.mktemp("model"))


class Life:
    """Some conversations, each with the versions that were asked of it, and what may be done to them.

    With an even seed some lose bits, also for those that find their pages on disk.
    """

    def __init__(self, seed: int, path: Path, backend: Backend, spill_folder: Path) -> None:
        self.random = random.Random(seed)
        self.lowers = seed % 2 == 0
        self.engine = small_engine(path, backend, spill_folder=spill_folder, prefixes=MemoryStore())
        self.talks: dict[int, list[Messages]] = {}
        self.num_keys = self.num_compared = self.reused_tokens = 0

    @property
    def held(self) -> HeldSequences:
        assert self.engine._session is not None
        return self.engine._session._held

    def question(self, document: str = "") -> ChatMessage:
        self.num_keys += 1
        words = " ".join(self.random.choices(["who", "what", "ships", "fog", "why"], k=8))
        place = DocumentRange("", 0, len(document), f"a{len(document)}", SpanKind.DOCUMENT)
        text = f"{document}\n{words}" if document else words
        return ChatMessage("user", text, (place,) if document else (), f"m{self.num_keys}")

    def chosen(self) -> tuple[int, Messages]:
        number = self.random.choice(list(self.talks))
        return number, self.random.choice(self.talks[number])

    def cancel(self) -> CancelToken:
        return StopAfter(self.random.randint(0, 8)) if self.random.random() < 0.3 else CancelToken()

    def request(self, number: int, messages: Messages, *, is_aside: bool = False) -> GenerationRequest:
        kv = LOWER if self.lowers and self.random.random() < 0.3 else EXACT
        key = f"n{self.num_keys}"
        return asked(messages, kv, conversation_id=number, answer_key=key, is_aside=is_aside)

    def ask(self, number: int, messages: Messages) -> None:
        request = self.request(number, messages)
        text, stats = answer(self.engine, request)
        said = ChatMessage("assistant", text, key=request.answer_key)
        self.reused_tokens += stats.reused_tokens
        self.talks[number] = [*self.talks.get(number, []), (*messages, said)][-MOST_VERSIONS:]

    # What may be done.

    def begin(self) -> None:
        self.ask(max(self.talks, default=0) + 1, (self.question(self.random.choice(DOCUMENTS)),))

    def go_on(self) -> None:
        number, messages = self.chosen()
        self.ask(number, (*messages[:6], self.question()))

    def edit(self) -> None:
        number, messages = self.chosen()
        at = self.random.randrange(0, len(messages), 2)
        self.ask(number, (*messages[:at], self.question(self.random.choice(["", *DOCUMENTS]))))

    def trim(self) -> None:
        number, messages = self.chosen()
        self.ask(number, without_oldest((*messages, self.question()), 1))

    def read_ahead(self) -> None:
        number, messages = self.chosen()
        coming = replace(self.question(self.random.choice(DOCUMENTS)), key="")
        with contextlib.suppress(Cancelled):
            list(self.engine.read_ahead(self.request(number, (*messages[:6], coming)), self.cancel()))

    def ask_aside(self) -> None:
        number, messages = self.chosen()
        answer(self.engine, self.request(number, (*messages, self.question()), is_aside=True))

    def read_a_segment(self) -> None:
        answer(self.engine, self.request(-1, (self.question(self.random.choice(DOCUMENTS)),)))
        with contextlib.suppress(Cancelled):
            self.engine.keep_prefix(-1, 1, self.cancel())
        self.engine.forget(-1)

    def lower(self) -> None:
        if self.lowers:
            self.engine.apply_kv(LOWER, CancelToken())

    def spill(self) -> None:
        with contextlib.suppress(Cancelled):
            self.held.spill_idle(self.cancel().check)

    def save(self) -> None:
        with contextlib.suppress(Cancelled):
            self.engine.save(self.cancel())

    def prefetch(self) -> None:
        with contextlib.suppress(Cancelled):
            self.engine.prefetch(self.chosen()[0], self.cancel())

    def forget(self) -> None:
        self.engine.forget(self.chosen()[0])

    def step(self) -> None:
        often: list[Callable[[], None]] = [self.begin, self.go_on, self.edit, self.read_ahead]
        seldom = [
            self.trim,
            self.ask_aside,
            self.read_a_segment,
            self.lower,
            self.spill,
            self.save,
            self.prefetch,
        ]
        self.random.choice([*often, *often, *seldom, self.forget])()

    # What holds at all times.

    def pages(self) -> set[Page]:
        return SequenceCache.pages_of(context.cache for _, context in self.held.contexts())

    def check(self) -> None:
        caches = [cache for held in self.held._held.values() for cache in held.versions.caches()]
        for store in {cache._store for cache in caches}:
            tables = [table for table in store.tables if table._is_holding]
            counted = Counter(one.page for table in tables for one in table.references)
            counted.update(page for cache in caches if cache._outside for page in cache._outside.taken)
            assert {page: counted[page] for page in store.pages} == {
                page: page.references for page in store.pages
            }
        assert 0 <= self.held.idle_nbytes <= self.held.memory_nbytes
        context = self.held.in_hand
        if context is not None and context.cache.num_tokens and context.cache.is_unbroken:
            self.compare(context.cache)

    def compare(self, cache: SequenceCache) -> None:
        """Hold what a sequence says next against what is said where all of its text is read at once."""
        if any(pair.keys < 16 for page in cache.pages() for heads in page.bits.values() for pair in heads):
            return
        alone = SequenceCache(cache._module, EXACT)
        alone.read(cache.tokens)
        fork = cache.fork(is_aside=True)
        found, true = (np.array(one.read([65]).astype(mx.float32)) for one in (fork, alone))
        np.testing.assert_allclose(found, true, atol=ROUNDING)
        fork.close()
        self.num_compared += 1


@pytest.mark.parametrize("seed", [9, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_what_conversations_share_is_what_each_would_have_read_and_all_of_it_comes_back(
    path: Path, backend: Backend, tmp_path: Path, seed: int
) -> None:
    life = Life(seed, path, backend, tmp_path)
    for number, document in enumerate([*DOCUMENTS[:2], DOCUMENTS[0]], 1):
        life.ask(number, (life.question(document),))
        life.check()
    assert max(page.references for page in life.pages()) > 1
    for _ in range(NUM_STEPS):
        life.step()
        life.check()
    assert life.reused_tokens > 1000
    assert life.lowers or life.num_compared > NUM_STEPS // 4
    for number in list(life.held._held):
        life.engine.forget(number)
    assert life.held.memory_nbytes == 0
