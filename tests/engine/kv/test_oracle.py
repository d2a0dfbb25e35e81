"""Random lives of sequences, next to plain lists of tokens and attention in numpy."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine.errors import OctavoError
from engine.kv.cache import SequenceCache
from engine.kv.page import Page
from engine.kv.pool import Part
from engine.kv.precision import KV_BITS, KVSpec, PrecisionRule, Tier
from engine.kv.store import PageStore
from tests.engine.kv.oracle import (
    ROUNDING,
    Text,
    attention,
    check_page,
    held,
    tokens_read,
    true_kv,
    true_queries,
)
from tests.engine.kv.small_specs import percents, rules, shapes, specs, tiers
from tests.engine.kv.stand_in import NUM_TOKENS, FloatArray, StandInShape, stand_in, weights

MOST_SEQUENCES = 3
MOST_PIECES = 3
LEAST_BITS = {Tier.HOT: 16, Tier.WARM: 8, Tier.COLD: 2}


@dataclass(eq=False)
class Sequence:
    """A cache and what it must hold."""

    cache: SequenceCache = field(repr=False)
    text: Text = field(repr=False)


class Interrupted(Exception):
    """Raised to leave a forward pass."""


class CacheMachine(RuleBasedStateMachine):
    """Some sequences that were forked from one another, beside texts that are plain lists."""

    @initialize(shape=shapes(), spec=specs(), percent=percents)
    def begin(self, shape: StandInShape, spec: KVSpec, percent: int) -> None:
        self.shape, self.page_tokens = shape, spec.page_tokens
        self.most_tokens = 256 + 2 * spec.page_tokens
        self.sequences = [Sequence(SequenceCache(stand_in(shape), spec), Text())]
        self.pieces: list[Sequence] = []
        self.next_token = 1
        self.seen: dict[Page, tuple[int, list[int], list[int]]] = {}
        self.read(self.sequences[0], self.new_tokens(1 + percent * self.most_tokens // 100))

    def new_tokens(self, count: int) -> list[int]:
        """Return tokens that no page has yet."""
        first, self.next_token = self.next_token, self.next_token + count
        return [1 + token % (NUM_TOKENS - 1) for token in range(first, first + count)]

    def chosen(self, data: st.DataObject, among: list[Sequence] | None = None) -> Sequence:
        """Return one of the sequences. It is drawn by its index, as Hypothesis keeps what was drawn."""
        among = self.sequences if among is None else among
        return among[data.draw(st.integers(0, len(among) - 1))]

    # Reading.

    def expected(self, sequence: Sequence, tokens: list[int]) -> FloatArray | None:
        """Return the model's answer to new tokens, given the pages; None where rounding decides."""
        shape, text = self.shape, sequence.text
        positions = list(range(text.next_position, text.next_position + len(tokens)))
        budget = sequence.cache.spec.attention_pages if len(tokens) == 1 else None
        layers = []
        for layer in range(shape.num_layers):
            queries = true_queries(shape, layer, tokens, positions)
            old, new = held(sequence.cache, text, shape, layer), true_kv(shape, layer, tokens, positions)
            keys, values = (np.concatenate(pair, axis=1) for pair in zip(old, new, strict=True))
            read = tokens_read(sequence.cache, layer, queries[:, :, 0] * shape.scale, budget)
            if read is None:
                return None
            read = np.pad(read, [(0, 0), (0, len(tokens))], constant_values=True)
            sinks = weights(shape, layer).sinks
            output = attention(queries, keys, values, shape.scale, sinks=sinks, read=read)
            layers.append(output.reshape(shape.num_query_heads, len(tokens), -1))
        return np.concatenate([layer.swapaxes(0, 1).reshape(len(tokens), -1) for layer in layers], axis=1)

    def read(self, sequence: Sequence, tokens: list[int]) -> None:
        self.read_by(sequence, tokens, lambda: sequence.cache.read(tokens))

    def read_by(self, sequence: Sequence, tokens: list[int], run: Callable[[], mx.array]) -> None:
        expected = self.expected(sequence, tokens)
        found = np.array(run())[0]
        sequence.text.append(tokens)
        if expected is not None:
            np.testing.assert_allclose(found, expected, atol=ROUNDING)

    @rule(data=st.data(), percent=percents)
    def read_a_chunk(self, data: st.DataObject, percent: int) -> None:
        sequence = self.chosen(data)
        if len(sequence.text.tokens) < self.most_tokens:
            self.read(sequence, self.new_tokens(1 + percent * self.page_tokens // 70))

    @rule(data=st.data(), count=st.integers(1, 4))
    def decode(self, data: st.DataObject, count: int) -> None:
        sequence = self.chosen(data)
        for token in self.new_tokens(count):
            self.read(sequence, [token])

    @rule(data=st.data(), count=st.integers(0, 2))
    def read_up_to_the_end_of_a_page(self, data: st.DataObject, count: int) -> None:
        sequence = self.chosen(data)
        missing = self.page_tokens - sequence.cache.usage().open_tokens + count * self.page_tokens
        if len(sequence.text.tokens) < self.most_tokens:
            self.read(sequence, self.new_tokens(missing))

    @rule(data=st.data(), count=st.integers(2, 5), forks=st.booleans())
    def decode_one_step_ahead(self, data: st.DataObject, count: int, forks: bool) -> None:
        """As a decode loop does: each pass is queued before the tokens of the one before are committed."""
        sequence = self.chosen(data)
        cache, tokens = sequence.cache, self.new_tokens(count)
        model = stand_in(self.shape)
        ahead = model(mx.array([tokens[:1]]), cache=cache.layers)
        pages_unchanged = True
        for token, following in pairwise(tokens):
            # A pass that was queued before a page was sealed has read its tokens while they were open.
            expected = self.expected(sequence, [token]) if pages_unchanged else None
            now, ahead = ahead, model(mx.array([[following]]), cache=cache.layers)
            mx.async_eval(ahead)
            if expected is not None:
                np.testing.assert_allclose(np.array(now)[0], expected, atol=ROUNDING)
            num_pages = len(cache.pages())
            cache.commit([token])
            pages_unchanged = len(cache.pages()) == num_pages
            sequence.text.append([token])
        if forks:
            self.add_fork(sequence)
        cache.realign()

    @rule(data=st.data(), count=st.integers(1, 100), left_before=st.integers(0, 1))
    def leave_a_pass_half_way(self, data: st.DataObject, count: int, left_before: int) -> None:
        cache, left = self.chosen(data).cache, iter(range(left_before))

        def leave(keys: mx.array) -> None:
            if next(left, None) is None:
                raise Interrupted

        cache.watch(leave)
        with pytest.raises(Interrupted):
            cache.read(self.new_tokens(count))
        cache.watch(None)
        cache.realign()

    # Changing.

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        self.add_fork(self.chosen(data))

    def add_fork(self, sequence: Sequence) -> None:
        if len(self.sequences) == MOST_SEQUENCES:
            return
        before = self.store.nbytes
        self.sequences.append(Sequence(sequence.cache.fork(), sequence.text.copy()))
        assert self.store.nbytes == before

    @precondition(lambda self: len(self.sequences) > 1)
    @rule(data=st.data(), closes=st.booleans())
    def end(self, data: st.DataObject, closes: bool) -> None:
        """Close a sequence, or just drop it, and the next change of another one gives its memory back."""
        sequence = self.chosen(data)
        self.sequences.remove(sequence)
        if closes:
            sequence.cache.close()
        else:
            del sequence
            self.store.defragment()

    @rule(data=st.data(), percent=percents)
    def truncate(self, data: st.DataObject, percent: int) -> None:
        """Forget up to two pages."""
        sequence = self.chosen(data)
        length = len(sequence.text.tokens)
        length = max(0, length - percent * self.page_tokens // 50)
        assert sequence.cache.truncate(length)
        sequence.text.truncate(length)

    @rule(data=st.data(), start=percents, percent=percents)
    def drop(self, data: st.DataObject, start: int, percent: int) -> None:
        sequence = self.chosen(data)
        self.drop_some(sequence, start, percent)

    def drop_some(self, sequence: Sequence, start: int, percent: int) -> int:
        """Drop up to a page and a half, and return where."""
        first = start * len(sequence.text.tokens) // 100
        last = first + 1 + percent * self.page_tokens // 70
        sequence.cache.drop(first, last)
        sequence.text.drop(first, last)
        return first

    @rule(data=st.data(), start=percents, percent=percents, kept=percents)
    def replace(self, data: st.DataObject, start: int, percent: int, kept: int) -> None:
        sequence = self.chosen(data)
        at = self.drop_some(sequence, start, percent)
        gap = sequence.text.gap(at) if at < len(sequence.text.tokens) else self.page_tokens
        tokens = self.new_tokens(max(1, gap * kept // 100) if gap else 0)
        sequence.cache.splice(at, tokens)
        sequence.text.splice(at, tokens)

    @rule(
        data=st.data(),
        start=percents,
        percent=percents,
        chunks=st.lists(st.integers(1, 60), max_size=3),
        ends=st.booleans(),
    )
    def splice_in_steps(
        self, data: st.DataObject, start: int, percent: int, chunks: list[int], ends: bool
    ) -> None:
        sequence = self.chosen(data)
        at = self.drop_some(sequence, start, percent)
        at = min(at, len(sequence.text.tokens))
        head, text = sequence.cache.begin_splice(at), sequence.text.copy()
        text.truncate(at)
        free, taken = sequence.cache.free_positions(at), []
        for chunk in chunks:
            if len(taken) + chunk <= free:
                taken += self.new_tokens(chunk)
                self.read(Sequence(head, text), taken[-chunk:])
        if not ends:
            head.close()
            return
        sequence.cache.end_splice(at, head)
        sequence.text.splice(at, taken)

    @rule(data=st.data(), start=percents, percent=percents)
    def detach(self, data: st.DataObject, start: int, percent: int) -> None:
        """Take up to three pages out and keep the piece."""
        sequence = self.chosen(data)
        first = start * len(sequence.text.tokens) // 100
        last = first + percent * self.page_tokens // 33
        piece = Sequence(sequence.cache.detach(first, last), sequence.text.detach(first, last))
        self.add_piece(piece)

    def add_piece(self, piece: Sequence) -> None:
        self.pieces.append(piece)
        if len(self.pieces) > MOST_PIECES:
            self.pieces.pop(0).cache.close()

    @precondition(lambda self: self.pieces)
    @rule(data=st.data())
    def attach(self, data: st.DataObject) -> None:
        """Put a piece back where it fits, into the sequence that it comes from or another one."""
        sequence, piece = self.chosen(data), self.chosen(data, self.pieces)
        if not piece.text.tokens:
            at: int | None = data.draw(st.integers(0, len(sequence.text.tokens)))
        else:
            at = sequence.text.place_of(piece.text)
        if at is None:
            at = data.draw(st.integers(0, len(sequence.text.tokens)))
            with pytest.raises(OctavoError):
                sequence.cache.attach(at, piece.cache)
            return
        sequence.cache.attach(at, piece.cache)
        sequence.text.attach(at, piece.text)
        self.pieces.remove(piece)

    @precondition(lambda self: self.pieces)
    @rule(data=st.data(), start=percents, percent=percents)
    def take_some_of_a_piece_that_is_outside(self, data: st.DataObject, start: int, percent: int) -> None:
        piece, blobs = self.chosen(data, self.pieces), []
        if not piece.text.tokens:
            return
        first = start * len(piece.text.tokens) // 100
        last = first + percent * self.page_tokens // 50
        piece.cache.move_out(blobs.append)
        part, numbers = piece.cache.part_outside(first, last)
        part.move_in(blobs[number] for number in numbers)
        piece.cache.move_in(iter(blobs))
        self.add_piece(Sequence(part, piece.text.copy().detach(first, last)))

    @rule(data=st.data())
    def leave_memory_and_come_back(self, data: st.DataObject) -> None:
        cache, blobs = self.chosen(data, [*self.sequences, *self.pieces]).cache, []
        infos = [dataclasses.replace(info, number=0, references=0) for info in cache.pages()]
        cache.move_out(blobs.append)
        assert cache.is_outside
        cache.move_in(iter(blobs))
        assert infos == [dataclasses.replace(info, number=0, references=0) for info in cache.pages()]

    @rule(data=st.data())
    def rebuild(self, data: st.DataObject) -> None:
        sequence = self.chosen(data)
        sequence.cache.rebuild()
        sequence.text.rebuild()

    @rule(data=st.data(), start=percents, percent=percents)
    def pin(self, data: st.DataObject, start: int, percent: int) -> None:
        sequence = self.chosen(data)
        first = start * len(sequence.text.tokens) // 100
        sequence.cache.pin(first, first + percent * self.page_tokens // 50)

    @rule(data=st.data(), changed=rules(), places=tiers())
    def apply(
        self, data: st.DataObject, changed: tuple[PrecisionRule, ...], places: tuple[int, int, int | None]
    ) -> None:
        cache = self.chosen(data).cache
        hot, warm, budget = places
        cache.apply(
            dataclasses.replace(
                cache.spec, rules=changed, hot_pages=hot, warm_pages=warm, attention_pages=budget
            )
        )
        for page in cache.pages():
            for layer, heads in page.bits.items():
                for head, bits in enumerate(heads):
                    most = cache.spec.tier_bits(page.tier, layer, head)
                    assert bits.keys <= most.keys and bits.values <= most.values

    # What holds at all times.

    @invariant()
    def texts_are_held(self) -> None:
        for sequence in [*self.sequences, *self.pieces]:
            cache, text = sequence.cache, sequence.text
            assert cache.tokens == text.tokens
            assert cache.layers[0].table.positions == text.positions
            assert cache.num_tokens == cache.usage().num_tokens == len(text.tokens)
            assert {layer.offset for layer in cache.layers} == {text.next_position}
            assert {layer.size() for layer in cache.layers} == {len(text.tokens)}

    @invariant()
    def open_tokens_are_exact(self) -> None:
        for sequence in [*self.sequences, *self.pieces]:
            for layer in sequence.cache.layers:
                count = len(layer.table.open_tokens)
                if count:
                    table = layer.table
                    true = true_kv(self.shape, layer.number, table.open_tokens, table.open_positions)
                    for part, array in zip(true, layer.state, strict=True):
                        np.testing.assert_allclose(np.array(array)[0, :, :count], part, atol=ROUNDING)

    @invariant()
    def pages_hold_their_tokens_to_bits_that_never_rise(self) -> None:
        for page in self.store.pages:
            blocks = [*page.keys.values(), *page.values.values()]
            bits = [bits for part in blocks for bits in part.bits.tolist()]
            slots = [slot for part in blocks for slot in part.slots.tolist()]
            least = LEAST_BITS[page.tier]
            old_least, old_bits, old_slots = self.seen.get(page, (least, bits, None))
            assert least <= min(old_least, *bits)
            assert all(now <= old for now, old in zip(bits, old_bits, strict=True))
            if (bits, slots) != (old_bits, old_slots):
                check_page(self.shape, self.store, page)
            self.seen[page] = least, bits, slots

    def teardown(self) -> None:
        """Look again at the pages that were left alone while others moved."""
        if hasattr(self, "sequences"):
            for page in self.store.pages:
                check_page(self.shape, self.store, page)

    @invariant()
    def every_reference_is_counted(self) -> None:
        counted = Counter(
            reference.page
            for sequence in [*self.sequences, *self.pieces]
            for reference in sequence.cache.layers[0].table.references
        )
        assert counted == {page: page.references for page in self.store.pages}

    @invariant()
    def no_page_is_read_twice_in_a_row(self) -> None:
        for sequence in [*self.sequences, *self.pieces]:
            pages = [reference.page for reference in sequence.cache.layers[0].table.references]
            assert all(one is not next for one, next in pairwise(pages))

    @invariant()
    def bytes_are_counted_once(self) -> None:
        caches = [own.cache for own in [*self.sequences, *self.pieces]]
        assert SequenceCache.pages_of(caches) == self.store.pages
        opened = sum(cache.nbytes - self.store.nbytes for cache in caches)
        assert SequenceCache.total_nbytes(caches) == self.store.nbytes + opened
        for cache in caches:
            pages = {reference.page for reference in cache.layers[0].table.references}
            nbytes = cache.nbytes - self.store.nbytes + sum(page.nbytes for page in pages)
            assert cache.referred_nbytes == nbytes

    @invariant()
    def every_block_has_a_slot_of_its_own_and_little_is_free(self) -> None:
        for layer in self.store.shapes:
            for part in Part:
                for bits in KV_BITS:
                    self.check_pool(layer, part, bits)

    def check_pool(self, layer: int, part: Part, bits: int) -> None:
        slots: list[int] = []
        for page in self.store.pages:
            blocks = (page.keys if part is Part.KEYS else page.values)[layer]
            slots += blocks.slots[blocks.bits == bits].tolist()
        pool = self.store.pool(layer, part, bits)
        num_slots = len(pool.arrays[0]) if pool.arrays else 0
        assert len(set(slots)) == len(slots)
        assert all(0 <= slot < num_slots for slot in slots)
        assert len(slots) + pool.num_free == num_slots
        assert pool.num_free <= pool.growth

    @property
    def store(self) -> PageStore:
        """The pages of all sequences."""
        return self.sequences[0].cache._store


LIVES = settings(
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_some_lives_of_sequences() -> None:
    run_state_machine_as_test(CacheMachine, settings=settings(LIVES, max_examples=30))


@pytest.mark.slow
def test_many_lives_of_sequences() -> None:
    run_state_machine_as_test(CacheMachine, settings=settings(LIVES, max_examples=500))
