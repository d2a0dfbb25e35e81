"""Sequences that were closed and begun again from their manifest and pages, next to twins that stayed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence

import mlx.core as mx
import mlx.nn as nn
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.blob import BlobError, DamagedBlobError, ForeignBlobError
from engine.kv.cache import SequenceCache
from engine.kv.lineage import prefix_chain
from engine.kv.manifest import numbers_of, read_manifest, runs_of
from engine.kv.page_map import PageCounters, SpanKind, TextSpan
from engine.kv.precision import KVSpec
from engine.kv.usage import PageInfo
from tests.engine.kv.caches import active_nbytes, bits, cache_of, holds_exactly, text, tiers
from tests.engine.kv.oracle import Text
from tests.engine.kv.stand_in import StandInShape, stand_in
from tests.engine.kv.twins import edited, infos, read_and_written, same_logits, tokens
from tests.engine.tiny_models import tiny_model

MODEL = "the digest of a model"
SPANS = (
    TextSpan(SpanKind.SYSTEM, "", 0, 20),
    TextSpan(SpanKind.DOCUMENT, "Owls", 20, 150, "a7", 4),
    TextSpan(SpanKind.ASSISTANT, "", 150, 200, "m3"),
)
SPECS = [
    "16; page=64",
    "4; page=64, hot=1, warm=2",
    "k6v3, 1.h0:5; page=64, group=32, hot=0, warm=0",
    "4; page=64, hot=0, warm=1, attend=1, grow=1",
]
pytestmark = pytest.mark.usefixtures("one_blas_thread")

Stored = dict[bytes, bytes]
"""Blobs of pages by their chain keys."""


def stored(cache: SequenceCache) -> Stored:
    return {page.chain: bytes(cache.encode_page(page.chain, MODEL)) for page in cache.savable_pages()}


def awaited(cache: SequenceCache, module: nn.Module | None = None) -> SequenceCache:
    """Return a cache of its manifest, as another process would begin it."""
    manifest = read_manifest(bytes(cache.encode_manifest((), MODEL)), MODEL)
    return SequenceCache.from_manifest(module or cache._module, manifest)


def come_in(cache: SequenceCache, pages: Stored) -> SequenceCache:
    for chain in cache.outside_chains:
        cache.take_in(chain, cache.opened(pages[chain]))
    cache.come_in()
    return cache


def restored(cache: SequenceCache) -> SequenceCache:
    return come_in(awaited(cache), stored(cache))


class StoringCache(SequenceCache):
    """Has each page stored as it is sealed, before it loses bits, as well."""

    def _move_tiers(self) -> None:
        self.as_sealed = {**stored(self), **vars(self).get("as_sealed", {})}
        super()._move_tiers()


FOLLOWING = [[token] for token in tokens(0, 70)] + [tokens(70, 150)]
"""Long enough for pages to be sealed, lowered and sampled."""


def lowered_live(cache: SequenceCache) -> None:
    """Change the precision on the way, twice."""
    read_and_written(cache)
    cache.apply(dataclasses.replace(cache.spec, rules=KVSpec.parse("6, 0.h0:k5v4").rules))
    cache.read(tokens(0, 100))
    cache.apply(dataclasses.replace(cache.spec, rules=KVSpec.parse("3").rules))
    cache.read(tokens(0, 100))


def another_version(cache: SequenceCache) -> SequenceCache:
    """Go on from the middle as another version, while the first, which is returned, is still there."""
    read_and_written(cache)
    first = cache.fork()
    cache.truncate(201)
    cache.read(tokens(50, 150))
    return first


def pressed(cache: SequenceCache) -> None:
    read_and_written(cache)
    cache.press()
    cache.ease()
    cache.read(tokens(0, 100))


@pytest.mark.parametrize(
    ("live", "early"),
    [
        (read_and_written, True),
        (edited, True),
        (edited, False),
        (lowered_live, True),
        (another_version, True),
        (another_version, False),
        (pressed, True),
    ],
)
@pytest.mark.parametrize("spec", SPECS)
def test_a_sequence_that_was_closed_goes_on_as_one_that_stayed(
    spec: str, live: Callable[[SequenceCache], SequenceCache | None], early: bool
) -> None:
    """Whether its pages were stored at the end, or with all their bits when they were sealed."""
    module = tiny_model("llama", sharp=True)
    stayed, gone = SequenceCache(module, KVSpec.parse(spec)), StoringCache(module, KVSpec.parse(spec))
    versions = [live(cache) for cache in (stayed, gone)]
    pages = stored(gone) | (gone.as_sealed if early else {})
    back = awaited(gone)
    for cache in (gone, versions[1]):
        if cache is not None:
            cache.close()
    come_in(back, pages)
    assert alone(back) == alone(stayed)
    assert back.tokens == stayed.tokens
    assert (back.positions, back.next_position) == (stayed.positions, stayed.next_position)
    assert same_logits(stayed, back, FOLLOWING)
    assert alone(back) == alone(stayed)


def alone(cache: SequenceCache) -> list[PageInfo]:
    """Return what is known of the pages, but for the versions that they are shared with."""
    return [dataclasses.replace(info, references=0) for info in infos(cache)]


@pytest.mark.parametrize("num_decoded", [32, 33, 34])
def test_a_sample_of_attention_that_is_on_its_way_is_not_lost(num_decoded: int) -> None:
    module = tiny_model("llama", sharp=True)
    stayed, gone = (SequenceCache(module, KVSpec.parse(SPECS[3])) for _ in range(2))
    for cache in (stayed, gone):
        cache.read(tokens(0, 300))
        for token in tokens(0, num_decoded):
            cache.read([token])
    back = restored(gone)
    assert same_logits(stayed, back, FOLLOWING)
    assert infos(back) == infos(stayed)
    assert back.usage() == stayed.usage()


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16])
def test_models_in_16_bits_go_on_as_if_they_had_stayed(dtype: mx.Dtype) -> None:
    module = tiny_model("llama", sharp=True)
    module.set_dtype(dtype)
    stayed, gone = (
        SequenceCache(module, KVSpec.parse("4, 1:k8v3; page=64, hot=0, warm=1")) for _ in range(2)
    )
    for cache in (stayed, gone):
        read_and_written(cache)
    assert same_logits(stayed, restored(gone), [[token] for token in tokens(0, 80)] + [tokens(80, 150)])


@pytest.mark.parametrize("num_tokens", [0, 1, 63, 64, 65, 128, 191])
def test_any_length_comes_back(num_tokens: int) -> None:
    back = restored(cache_of("16; page=64", num_tokens))
    assert holds_exactly(back, text(num_tokens))
    back.read([500])
    expected = text(num_tokens)
    expected.append([500])
    assert holds_exactly(back, expected)


def test_a_page_that_is_read_in_two_places_is_one_page_again() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 200)
    cache.drop(70, 110)
    cache.splice(70, range(300, 320))
    distinct = len({page.number for page in cache.pages()})
    pages = stored(cache)
    assert len(pages) == distinct == len(cache.pages()) - 1
    back = come_in(awaited(cache), pages)
    assert len({page.number for page in back.pages()}) == distinct
    assert [page.tokens for page in back.pages()] == [page.tokens for page in cache.pages()]


def test_pins_and_what_is_yet_to_be_read_of_them_come_back() -> None:
    cache = cache_of("4; page=64, hot=0, warm=1", 200)
    cache.pin(70, 80)
    cache.pin_text([(130, 140), (190, 230)])
    back = restored(cache)
    assert [page.pinned for page in back.pages()] == [False, True, True]
    assert not back.pin_text([(130, 140), (190, 230)])
    for each in (cache, back):
        each.read(range(300, 400))
    assert (bits(back), tiers(back)) == (bits(cache), tiers(cache))


def test_a_change_of_precision_that_was_stopped_goes_on_after_closing_too() -> None:
    stayed, gone = cache_of("8; page=64, hot=0, warm=0", 300), cache_of("8; page=64, hot=0, warm=0", 300)

    def stop() -> None:
        raise InterruptedError

    for cache in (stayed, gone):
        with pytest.raises(InterruptedError):
            cache.apply(KVSpec.parse("4; page=64, hot=0, warm=0"), stop)
    back = restored(gone)
    for cache in (stayed, back):
        cache.spec = KVSpec.parse("4; page=64, hot=0, warm=0")
        cache.read(range(64))
    assert bits(back) == bits(stayed) == ["4 4 4 4"] * 5


def test_what_is_read_next_has_the_same_keys_as_if_it_had_stayed() -> None:
    for edit in (lambda cache: None, lambda cache: cache.drop(3, 5)):
        cache = cache_of("4; page=64", 200)
        edit(cache)
        back = restored(cache)
        for each in (cache, back):
            each.read(range(100))
        assert [page.chain for page in back.savable_pages()] == [page.chain for page in cache.savable_pages()]


# A manifest.


def test_a_manifest_says_what_a_conversation_is_before_anything_is_loaded() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 200)
    cache.drop(70, 110)
    manifest = read_manifest(bytes(cache.encode_manifest(SPANS, MODEL)), MODEL)
    assert manifest.spans == SPANS
    assert list(manifest.tokens) == [*range(1, 71), *range(111, 201)]
    assert manifest.kv == cache.spec
    assert [page.num_tokens for page in manifest.pages] == [64, 24, 64]
    assert [page.chain for page in manifest.pages] == [page.chain for page in cache.savable_pages()]
    assert [page.nbytes for page in manifest.pages] == [page.nbytes for page in cache.savable_pages()]


@given(st.sets(st.integers(0, 40)))
def test_numbers_in_runs_are_the_same_numbers(numbers: set[int]) -> None:
    runs = runs_of(sorted(numbers))
    assert numbers_of(runs) == sorted(numbers)
    assert all(former[0] + former[1] < later[0] for former, later in itertools.pairwise(runs))


@functools.cache
def good_manifest() -> bytes:
    return bytes(cache_of("4; page=64", 70).encode_manifest((), MODEL))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), mask=st.integers(1, 255))
def test_any_changed_byte_of_a_manifest_is_refused(data: st.DataObject, mask: int) -> None:
    blob = bytearray(good_manifest())
    blob[data.draw(st.integers(0, len(blob) - 1) | st.integers(0, 1000))] ^= mask
    with pytest.raises(BlobError):
        read_manifest(blob, MODEL)


def resealed(blob: bytes | bytearray, written: bytes, instead: bytes) -> bytes:
    """Return a blob with something else of the same length in its header, and with the right checksum."""
    assert blob.count(written) == 1
    assert len(written) == len(instead)
    content = bytes(blob).replace(written, instead)[:-32]
    return content + hashlib.blake2b(content, digest_size=32).digest()


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b'"kv":"4; page=64"', b'"kv":"4; page=65"'),
        (b'"tier":"hot"', b'"tier":"mot"'),
        (b'"references":[[0,[[0,64]]]]', b'"references":[[9,[[0,64]]]]'),
        (b'"references":[[0,[[0,64]]]]', b'"references":[[0,[[0,65]]]]'),
        (b'"bits":[[[16,16', b'"bits":[[[15,16'),
        (b'"path":[0]', b'"path":[7]'),
        (b'"open_tokens":[65,', b'"open_tokens":[   '),
        (b'"salt":""', b'"malt":""'),
        (b'"positions":[[0,64]]', b'"positions":[[0,63]]'),
    ],
)
def test_a_manifest_that_says_what_cannot_be_is_refused_whatever_its_checksum(
    written: bytes, instead: bytes
) -> None:
    cache = cache_of("4; page=64", 70)
    blob = bytes(cache.encode_manifest((), MODEL))
    if blob.count(written) != 1:  # the salt of the sequence and that of its page
        blob = resealed(blob, b'"salt":"","pinned"', b'"salt":"1","pinned'.ljust(18))
        written, instead = b'"salt":"1"', b'"salt":"x"'
    with pytest.raises(DamagedBlobError):
        SequenceCache.from_manifest(cache._module, read_manifest(resealed(blob, written, instead), MODEL))


def test_a_manifest_of_another_model_is_refused() -> None:
    cache = cache_of("4; page=64", 70)
    blob = bytes(cache.encode_manifest((), MODEL))
    with pytest.raises(ForeignBlobError):
        read_manifest(blob, "another digest")
    manifest = read_manifest(blob, MODEL)
    for module in (stand_in(StandInShape(key_dim=80)), tiny_model("llama"), tiny_model("gemma3_text")):
        with pytest.raises(ForeignBlobError):
            SequenceCache.from_manifest(module, manifest)


# Pages, one by one.


def test_what_has_come_stays_while_the_rest_waits_and_the_pages_say_which_those_are() -> None:
    cache = cache_of("16; page=64", 300)
    pages = stored(cache)
    back = awaited(cache)
    assert (back.is_outside, back.num_pages, back.num_tokens) == (True, 4, 300)
    assert back.tokens == cache.tokens
    assert back.outside_nbytes == sum(page.nbytes for page in cache.pages())
    for chain in back.outside_chains[:2]:
        back.take_in(chain, back.opened(pages[chain]))
    assert len(back.outside_chains) == 2
    assert back.outside_nbytes == sum(page.nbytes for page in cache.pages()[2:])
    with pytest.raises(ValueError, match="still to come"):
        back.come_in()
    page_map = back.page_map(SPANS, PageCounters())
    assert (page_map.open_tokens, page_map.spans) == (tuple(range(257, 301)), SPANS)
    assert [page.tokens for page in page_map.pages] == [page.tokens for page in cache.pages()]
    assert page_map.pages[3].is_on_disk
    come_in(back, pages)
    assert not any(page.is_on_disk for page in back.pages())
    assert holds_exactly(back, text(300))


def test_the_hottest_pages_come_first() -> None:
    cache = cache_of("16; page=64", 300)
    for page, heat in zip(cache._distinct_pages(), [0.1, 0.4, 0.0, 0.4], strict=True):
        page.heat = heat
    keys = [page.chain for page in cache.savable_pages()]
    assert list(awaited(cache).outside_chains) == [keys[1], keys[3], keys[0], keys[2]]


def test_a_cache_that_is_given_up_half_way_gives_its_memory_back() -> None:
    cache = cache_of("16; page=64", 2000)
    pages = stored(cache)
    baseline = active_nbytes()
    back = awaited(cache)
    back_nbytes = active_nbytes() - baseline
    for chain in back.outside_chains[:10]:
        back.take_in(chain, back.opened(pages[chain]))
    back._place(back._outside)
    assert active_nbytes() - baseline > 5 * back_nbytes
    back.close()
    del back
    assert active_nbytes() == baseline


@pytest.mark.parametrize("batch_nbytes", [1, 10**9])
def test_all_takes_no_more_memory_than_before_however_it_comes(
    batch_nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.kv.moving.BATCH_NBYTES", batch_nbytes)
    cache = cache_of("4; page=64, hot=1, warm=2", 2000)
    back = restored(cache)
    assert back.nbytes <= 1.1 * cache.nbytes
    assert bits(back) == bits(cache)


@pytest.mark.parametrize("place", range(4))
def test_a_page_that_cannot_come_ends_the_text_before_its_first_token(place: int) -> None:
    cache = cache_of("16; page=64", 280)
    pages = stored(cache)
    back = awaited(cache)
    for chain in back.outside_chains[::2]:
        back.take_in(chain, back.opened(pages[chain]))
    back.cut_outside(list(pages)[place])
    assert back.num_tokens == 64 * place
    come_in(back, pages)
    expected = text(64 * place)
    assert holds_exactly(back, expected)
    assert back.is_unbroken
    back.read([7] * 100)
    expected.append([7] * 100)
    assert holds_exactly(back, expected)
    assert back.savable_pages()[-1].chain == prefix_chain(expected.tokens, 64)[-1]


def test_a_page_that_is_read_in_two_places_ends_the_text_before_the_first() -> None:
    cache = cache_of("16; page=64", 200)
    cache.drop(70, 110)
    cache.splice(70, range(300, 320))
    pages = stored(cache)
    back = awaited(cache)
    back.cut_outside(cache.savable_pages()[1].chain)
    come_in(back, pages)
    expected = Text()
    expected.append(range(1, 71))
    expected.append(range(300, 320))
    expected.truncate(back.num_tokens)
    assert holds_exactly(back, expected)


def test_pages_under_the_wrong_key_of_another_model_or_damaged_are_refused_and_may_come_later() -> None:
    cache = cache_of("16; page=64", 200)
    pages = stored(cache)
    back = awaited(cache)
    first, second, third = back.outside_chains
    alike, other = cache_of("16; page=64", 200), cache_of("16; page=64")
    other.read([9, *range(2, 201)])
    wrong: list[tuple[bytes | bytearray, type[BlobError]]] = [
        (pages[second], DamagedBlobError),
        (stored(other)[prefix_chain([9, *range(2, 65)], 64)[0]], DamagedBlobError),
        (pages[first][:-1], DamagedBlobError),
        (pages[first][:500] + bytes([pages[first][500] ^ 1]) + pages[first][501:], DamagedBlobError),
        (b"", DamagedBlobError),
        (alike.encode_page(first, "another digest"), ForeignBlobError),
        (cache_of("16; page=64, group=32", 200).encode_page(first, MODEL), ForeignBlobError),
        (resealed(pages[first], b'"positions":[0,1,', b'"positions":[0,2,'), DamagedBlobError),
        (resealed(pages[first], b'"salt":"",', b'"salt":"x"'), DamagedBlobError),
    ]
    for blob, error in wrong:
        with pytest.raises(error):
            back.take_in(first, back.opened(blob))
    with pytest.raises(DamagedBlobError):  # the same words at the same place, but behind others
        back.take_in(second, back.opened(stored(other)[other.savable_pages()[1].chain]))
    assert back.outside_chains == (first, second, third)
    assert holds_exactly(come_in(back, pages), text(200))


def test_a_page_that_was_stored_with_fewer_bits_is_used_and_shown_as_it_is() -> None:
    cache = cache_of("8; page=64, hot=0, warm=0", 200)
    manifest = read_manifest(bytes(cache.encode_manifest((), MODEL)), MODEL)
    cache.apply(KVSpec.parse("4; page=64, hot=0, warm=0"))
    back = come_in(SequenceCache.from_manifest(cache._module, manifest), stored(cache))
    assert back.usage().requested == (8, 8)
    assert back.usage().effective == (4, 4)
    assert back.usage().num_below == 3


# Pages that are found by their text.


def from_chain(cache: SequenceCache, spec: str, tokens: Sequence[int]) -> SequenceCache:
    return SequenceCache.from_chain(
        cache._module, KVSpec.parse(spec), tokens, MODEL, [1] * (len(tokens) // cache.spec.page_tokens)
    )


@pytest.mark.parametrize("num_tokens", [64, 100, 300])
def test_a_beginning_that_was_read_in_another_conversation_is_read_no_more(num_tokens: int) -> None:
    pages = stored(cache_of("16; page=64", 300))
    other = cache_of("16; page=64")
    back = from_chain(other, "16; page=64", range(1, num_tokens + 1))
    assert back.outside_chains == prefix_chain(range(1, num_tokens + 1), 64)
    come_in(back, pages)
    assert back.num_tokens == num_tokens // 64 * 64
    assert back.is_unbroken
    expected = text(back.num_tokens)
    back.read([7] * 80)
    expected.append([7] * 80)
    assert holds_exactly(back, expected)


@pytest.mark.parametrize(
    "stored_at", ["16; page=64", "8; page=64, hot=2, warm=9", "4; page=64, hot=1, warm=2"]
)
@pytest.mark.parametrize(
    "wanted",
    [
        "4; page=64, hot=1, warm=2",
        "k6v3; page=64, hot=0, warm=0",
        "8, 1.h1:5; page=64, hot=0, warm=1, attend=2",
    ],
)
def test_pages_with_more_bits_come_down_as_those_of_a_text_that_is_read(stored_at: str, wanted: str) -> None:
    """Keys and values of the stand-in follow from tokens and positions alone, so the bits can be compared."""
    live, other = cache_of(wanted), cache_of(stored_at)
    for start in range(1, 641, 64):
        live.read(range(start, start + 64))
        other.read(range(start, start + 64))
    back = come_in(from_chain(live, wanted, range(1, 641)), stored(other))
    if stored_at.startswith("16"):
        assert (bits(back), tiers(back)) == (bits(live), tiers(live))
        assert stored(back) == stored(live)
    for info, page in zip(back.pages(), live.pages(), strict=True):
        for layer, pairs in info.bits.items():
            for pair, most in zip(pairs, page.bits[layer], strict=True):
                assert pair.keys <= most.keys
                assert pair.values <= most.values


def test_a_page_of_a_chain_that_cannot_come_leaves_the_ones_before_it() -> None:
    pages = stored(cache_of("16; page=64", 300))
    back = from_chain(cache_of("16; page=64"), "16; page=64", range(1, 301))
    for chain in back.outside_chains:
        back.take_in(chain, back.opened(pages[chain]))
        break
    back.cut_outside(back.outside_chains[1])
    assert holds_exactly(come_in(back, pages), text(128))


def test_models_with_layers_that_are_not_in_pages_take_none() -> None:
    for architecture in ("gemma3_text", "mamba2", "deepseek_v3"):
        module = tiny_model(architecture)
        with pytest.raises(ForeignBlobError):
            SequenceCache.from_chain(module, KVSpec.parse("4; page=64"), range(64), MODEL, [1])


# What may be stored.


def test_pages_say_where_they_are_and_what_precedes_them() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 350)
    pages = cache.savable_pages()
    chain = prefix_chain(range(1, 351), 64)
    assert [page.chain for page in pages] == list(chain)
    assert [page.parent for page in pages] == [b"", *chain[:-1]]
    assert [page.position for page in pages] == [0, 64, 128, 192, 256]
    assert {page.num_tokens for page in pages} == {64}
    assert tiers(cache) == "wccwh"
    assert [page.is_settled for page in pages] == [True, True, True, False, False]
    assert [page.bits for page in pages] == [8, 4, 4, 8, 16]


def test_encoding_changes_nothing() -> None:
    cache = cache_of("4; page=64, hot=1, warm=1", 350)
    before, version = infos(cache), cache._store.version
    one, two = stored(cache), stored(cache)
    assert one == two
    cache.encode_manifest(SPANS, MODEL)
    assert (infos(cache), cache._store.version) == (before, version)


def test_a_blob_says_nothing_that_changes_while_the_conversation_goes_on() -> None:
    """So that a page which was stored need not be stored again."""
    cache = cache_of("4; page=64, hot=0, warm=0", 128)
    first = stored(cache)
    for token in range(40):
        cache.read([token])
    assert {chain: blob for chain, blob in stored(cache).items() if chain in first} == first


def test_the_header_of_a_page_is_small_and_plain() -> None:
    (blob,) = stored(cache_of("4; page=64, hot=0, warm=0", 64)).values()
    nbytes = int.from_bytes(blob[10:14], "little")
    header = json.loads(blob[22 : 22 + nbytes])["header"]
    assert (header["tokens"], header["model"], header["parent"]) == (list(range(1, 65)), MODEL, "")
    assert nbytes < 1500
