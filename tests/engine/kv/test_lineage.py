"""Keys of pages: the same text has the same one anywhere, and edited text has one that nothing else has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.cache import SequenceCache
from engine.kv.lineage import chain_key, page_key, prefix_chain, root_key
from engine.kv.precision import KVSpec
from tests.engine.kv.caches import cache_of
from tests.engine.kv.stand_in import StandInShape, stand_in
from tests.engine.tiny_models import tiny_model

SPEC = "4; page=64, hot=1, warm=0"
MOST_TOKENS = 130 + 12 * 70
"""That the edits below can read."""


def digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join(parts), digest_size=32).digest()


def number(value: int, nbytes: int) -> bytes:
    return value.to_bytes(nbytes, "little")


def key_by_hand(parent: bytes, salt: bytes, position: int, tokens: Sequence[int]) -> bytes:
    lengths = number(len(parent), 1) + number(len(salt), 1) + number(position, 8) + number(len(tokens), 4)
    return digest(lengths, parent, salt, *(number(token, 8) for token in tokens))


def chain_by_hand(tokens: Sequence[int]) -> list[bytes]:
    chain = [b""]
    for start in range(0, len(tokens) // 64 * 64, 64):
        chain.append(key_by_hand(chain[-1], b"", start, tokens[start : start + 64]))
    return chain[1:]


def chains(cache: SequenceCache) -> list[bytes]:
    return [page.chain for page in cache.savable_pages()]


def test_a_key_is_made_of_parent_salt_position_and_tokens() -> None:
    parent, salt, tokens = bytes(range(32)), bytes(range(16)), [0, 70_000, 5]
    key = chain_key(parent, salt, 300, tokens)
    assert key == key_by_hand(parent, salt, 300, tokens)
    others = {
        chain_key(b"", salt, 300, tokens),
        chain_key(parent, b"", 300, tokens),
        chain_key(parent + salt, b"", 300, tokens),
        chain_key(parent, salt, 301, tokens),
        chain_key(parent, salt, 300, [*tokens, 0]),
    }
    assert len(others - {key}) == 5


@pytest.mark.parametrize("num_tokens", [0, 63, 64, 200])
def test_pages_that_were_read_in_order_have_the_keys_of_their_tokens(num_tokens: int) -> None:
    tokens = list(range(1, num_tokens + 1))
    read = cache_of(SPEC, num_tokens)
    assert read.is_unbroken
    assert chains(read) == list(prefix_chain(tokens, 64)) == chain_by_hand(tokens)


def test_the_chunks_in_which_a_text_is_read_make_no_difference() -> None:
    cache = cache_of(SPEC)
    for start in range(1, 200, 7):
        cache.read(range(start, min(start + 7, 200)))
    assert chains(cache) == chains(cache_of(SPEC, 199))


def test_other_models_types_shapes_and_sizes_have_other_roots_and_other_bits_have_not() -> None:
    def root(model: str, spec: str, **shape: int) -> bytes:
        return root_key(model, SequenceCache(stand_in(StandInShape(**shape)), KVSpec.parse(spec)))

    module = tiny_model("llama")
    roots = [
        root("a", "4; page=64"),
        root("b", "4; page=64"),
        root("a", "4; page=128"),
        root("a", "4; page=64, group=32"),
        root("a", "4; page=64", key_dim=80),
        root_key("a", SequenceCache(module, KVSpec.parse("4; page=64"))),
    ]
    types = [str(layer.key_type) for layer in SequenceCache(module, KVSpec.parse("4"))._form.layers]
    module.set_dtype(mx.float16)
    roots.append(root_key("a", SequenceCache(module, KVSpec.parse("4; page=64"))))
    assert types == ["mlx.core.float32"] * 2
    assert len({page_key(one, b"chain") for one in roots}) == len(roots)
    assert page_key(roots[0], b"chain") != page_key(roots[0], b"other")
    assert root("a", "8, 1.h0:2; page=64, hot=5, attend=3") == roots[0]


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize("architecture", ["llama", "gemma3_text"])
def test_the_types_that_a_root_says_are_those_that_are_read(architecture: str, dtype: mx.Dtype) -> None:
    module = tiny_model(architecture)
    module.set_dtype(dtype)
    cache = SequenceCache(module, KVSpec.parse("4; page=64"))
    layers = {layer.number: (layer.key_type, layer.value_type) for layer in cache._form.layers}
    cache.read([1, 2, 3])
    assert layers == {layer.number: tuple(str(one.dtype) for one in layer.state) for layer in cache._paged}


# Edited text. What a token was read behind is worked out here from the edits alone.

Token = tuple[int, int, bytes]
"""A token, its position, and a digest of all that it was read behind."""


@dataclass
class Read:
    """A cache and what it should have read."""

    cache: SequenceCache
    tokens: list[Token] = field(default_factory=list)
    next_position: int = 0

    def read(self, tokens: Sequence[int]) -> None:
        self.cache.read(tokens)
        self._append(len(self.tokens), self.next_position, tokens)
        self.next_position += len(tokens)

    def truncate(self, length: int) -> None:
        self.cache.truncate(length)
        if length < len(self.tokens):
            self.next_position = self.tokens[length - 1][1] + 1 if length else 0
            del self.tokens[length:]

    def drop(self, start: int, stop: int) -> None:
        self.cache.drop(start, stop)
        del self.tokens[start:stop]

    def replace(self, start: int, stop: int, tokens: Sequence[int]) -> None:
        stop = min(stop, len(self.tokens) - 1)
        if stop - start < len(tokens):
            return
        position = self.tokens[start][1]
        self.drop(start, stop)
        self.cache.splice(start, tokens)
        first = self.tokens[start - 1][1] + 1 if start else 0
        self._append(start, min(first, position), tokens)

    def take_out_and_back(self, start: int, stop: int) -> None:
        piece = self.cache.detach(start, stop)
        self.cache.attach(start, piece)

    def fork(self) -> Read:
        return Read(self.cache.fork(), list(self.tokens), self.next_position)

    def _append(self, at: int, position: int, tokens: Sequence[int]) -> None:
        before = hashlib.blake2b(b"".join(own for *_, own in self.tokens[:at]), digest_size=32)
        for place, token in enumerate(tokens):
            own = digest(before.digest(), number(token, 4), number(position + place, 4))
            self.tokens.insert(at + place, (token, position + place, own))
            before.update(own)


def whole_pages(read: Read) -> Iterator[tuple[bytes, tuple[Token, ...]]]:
    """Yield the key of each page that lost no token, and what it should be."""
    start = 0
    for reference in read.cache._table.references:
        stop = start + reference.num_tokens
        if reference.valid.all():
            yield reference.page.chain, tuple(read.tokens[start:stop])
        start = stop


edits = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "truncate", "drop", "replace", "move", "fork", "clear"]),
        st.sampled_from([0, 1, 20, 64, 100, 128, 150]),
        st.sampled_from([1, 30, 64, 70]),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=120, deadline=None)
@given(edits=edits, spec=st.sampled_from([SPEC, "16; page=64", "8; page=64, hot=0, warm=0"]))
def test_pages_with_the_same_key_were_read_behind_the_same_text(
    edits: list[tuple[str, int, int]], spec: str
) -> None:
    reads = [Read(cache_of(spec))]
    reads[0].read([5] * 130)
    known: dict[bytes, tuple[Token, ...]] = {}
    for edit, at, count in edits:
        read = reads[-1]
        at = min(at, max(0, len(read.tokens) - 1))
        if edit == "read":
            read.read([5] * count)
        elif edit == "truncate":
            read.truncate(at)
        elif edit == "fork":
            reads.append(read.fork())
        elif edit == "clear":
            read.cache.clear()
            read.tokens, read.next_position = [], 0
        elif read.tokens and edit == "drop":
            read.drop(at, at + count)
        elif read.tokens and edit == "move":
            read.take_out_and_back(at, at + count)
        elif read.tokens:
            read.replace(at, at + count, [5] * min(count, 10))
        for each in reads:
            assert each.cache.tokens == [token for token, _, _ in each.tokens]
            assert each.cache.positions == [position for _, position, _ in each.tokens]
            for key, tokens in whole_pages(each):
                assert known.setdefault(key, tokens) == tokens
            if each.cache.is_unbroken:
                assert each.cache.positions == list(range(len(each.tokens)))
                assert chains(each.cache) == chain_by_hand(each.cache.tokens)
    for key in by_tokens_alone() & known.keys():  # what others would find is as if nothing was ever edited
        assert known[key] == unedited()[known[key][0][1] :][:64]


@cache
def unedited() -> tuple[Token, ...]:
    read = Read(cache_of(SPEC))
    read.read([5] * MOST_TOKENS)
    return tuple(read.tokens)


@cache
def by_tokens_alone() -> frozenset[bytes]:
    return frozenset(chain_by_hand([5] * MOST_TOKENS))


def test_only_the_edits_that_break_a_sequence_break_it() -> None:
    cache = cache_of("16; page=64", 200)
    cache.truncate(150)  # within an exact page, which is opened again
    cache.truncate(128)
    cache.read([1] * 100)
    assert cache.is_unbroken
    low = cache_of("4; page=64, hot=0, warm=0", 200)
    low.truncate(192)
    assert low.is_unbroken
    low.truncate(150)  # within a page that lost bits, which stays with marks
    assert not low.is_unbroken
    low.truncate(0)
    assert low.is_unbroken
    for edit in (
        lambda one: one.drop(10, 11),
        lambda one: one.drop(199, 200),
        lambda one: one.detach(10, 80),
    ):
        cache = cache_of("16; page=64", 200)
        edit(cache)
        assert not cache.is_unbroken
        fork = cache.fork()
        cache.read([1])
        assert not fork.is_unbroken
        cache.rebuild()
        assert cache.is_unbroken


def test_what_is_read_behind_one_edit_is_told_apart_from_what_is_read_behind_another() -> None:
    one = cache_of("16; page=64", 192)
    one.drop(10, 20)
    same, other = one.fork(), one.fork()
    other.drop(20, 30)
    for each in (one, same, other):
        each.read([7] * 64)
    assert chains(one)[-1] == chains(same)[-1] != chains(other)[-1]


def test_the_same_tokens_at_other_positions_have_another_key() -> None:
    cache = cache_of("16; page=64", 100)
    cache.drop(80, 90)
    cache.read([7] * 60)
    with_a_gap = chains(cache)[1]
    tokens = cache.tokens[:128]
    cache.truncate(80)  # the page is exact, and opened again up to the gap
    cache.read(tokens[80:])
    assert cache.tokens == tokens
    assert cache.positions == list(range(128))
    assert chains(cache)[1] != with_a_gap
