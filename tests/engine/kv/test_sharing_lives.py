"""Random lives of conversations that began from each other's pages, next to plain lists and numpy."""

from __future__ import annotations

import dataclasses
from weakref import WeakKeyDictionary

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec, PrecisionRule
from tests.engine.kv.small_specs import percents, rules, shapes, specs, tiers
from tests.engine.kv.stand_in import StandInShape
from tests.engine.kv.test_oracle import LIVES, MOST_SEQUENCES, CacheMachine, Sequence


class SharingMachine(CacheMachine):
    """Sequences of which some are forks, and others those of another conversation."""

    @initialize(shape=shapes(), spec=specs(), percent=percents)
    def begin(self, shape: StandInShape, spec: KVSpec, percent: int) -> None:
        self.touched: set[object] = set()
        self.bits: WeakKeyDictionary[SequenceCache, list[object]] = WeakKeyDictionary()
        super().begin(shape, spec, percent)

    def chosen(self, data: st.DataObject, among: list[Sequence] | None = None) -> Sequence:
        sequence = super().chosen(data, among)
        self.touched.add(owner(sequence.cache))
        return sequence

    @precondition(lambda self: len(self.sequences) < MOST_SEQUENCES)
    @rule(data=st.data(), percent=percents, changed=st.none() | rules(), places=tiers())
    def share(
        self,
        data: st.DataObject,
        percent: int,
        changed: tuple[PrecisionRule, ...] | None,
        places: tuple[int, int, int | None],
    ) -> None:
        """Begin another conversation with what is common to a text and the one that another has."""
        holder = super().chosen(data)
        spec = holder.cache.spec
        if changed is not None:
            hot, warm, budget = places
            spec = dataclasses.replace(
                spec, rules=changed, hot_pages=hot, warm_pages=warm, attention_pages=budget
            )
        length = percent * len(holder.text.tokens) // 100
        wanted = holder.text.tokens[:length]
        count = holder.cache.common_tokens([*wanted, 0], spec)
        assert count <= length
        assert holder.text.positions[:count] == list(range(count))
        text = holder.text.copy()
        text.truncate(count)
        guest = holder.cache.share(count, spec)
        assert owner(guest) is not owner(holder.cache)
        self.sequences.append(Sequence(guest, text))

    @invariant()
    def no_conversation_takes_bits_from_another(self) -> None:
        now = WeakKeyDictionary({own.cache: bits(own.cache) for own in [*self.sequences, *self.pieces]})
        for cache, former in self.bits.items():
            if cache in now and owner(cache) not in self.touched:
                assert now[cache] == former
        self.bits, self.touched = now, set()

    @invariant()
    def bytes_are_counted_once(self) -> None:
        caches = [own.cache for own in [*self.sequences, *self.pieces]]
        assert SequenceCache.pages_of(caches) == self.store.pages
        opened = sum(cache.open_nbytes for cache in caches)
        assert SequenceCache.total_nbytes(caches) == self.store.nbytes + opened
        for cache in caches:
            own = SequenceCache.pages_of(one for one in caches if owner(one) is owner(cache))
            foreign = sum(page.nbytes for page in self.store.pages - own)
            assert cache.nbytes == self.store.nbytes - foreign + cache.open_nbytes


def owner(cache: SequenceCache) -> object:
    return cache.layers[0].table.owner


def bits(cache: SequenceCache) -> list[object]:
    return [page.bits for page in cache.pages()]


def test_some_lives_of_conversations_that_share_pages() -> None:
    run_state_machine_as_test(SharingMachine, settings=settings(LIVES, max_examples=10))


@pytest.mark.slow
def test_many_lives_of_conversations_that_share_pages() -> None:
    run_state_machine_as_test(SharingMachine, settings=settings(LIVES, max_examples=400))
