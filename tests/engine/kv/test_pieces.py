"""Stretches of a sequence that are taken out of it, wait here or on disk, and come back unread."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import OctavoError
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.spill import SpillFolder
from tests.engine.kv.caches import active_nbytes, bits, cache_of, holds_exactly, text, text_of
from tests.engine.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def state(cache: SequenceCache) -> object:
    """Return which page each token lies in, or that it is open."""
    pages = [(page.number, page.tokens, page.references) for page in cache.pages()]
    return pages, cache.usage().open_tokens, text_of(cache)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 20), (30, 150), (64, 128), (150, 210), (195, 205), (190, 220)]
)
def test_what_is_taken_out_and_put_back_is_as_if_it_had_stayed(start: int, stop: int) -> None:
    cache = cache_of("16; page=64", 220)
    before, expected = state(cache), text(220)
    piece = cache.detach(start, stop)
    part = expected.detach(start, stop)
    assert holds_exactly(cache, expected)
    assert holds_exactly(piece, part)
    cache.attach(start, piece)
    assert holds_exactly(cache, text(220))
    if stop <= 192 or start >= 192:
        assert state(cache) == before  # no page more, and the open tokens are open again


def test_a_piece_shares_pages_with_what_it_was_taken_out_of_and_copies_none() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 6 * 64)
    before = active_nbytes()
    piece = cache.detach(100, 240)
    assert active_nbytes() <= before
    shared = {page.number for page in piece.pages()} & {page.number for page in cache.pages()}
    assert len(shared) == 2
    assert cache.shares_with(piece)
    assert SequenceCache.total_nbytes([cache, piece]) == cache.nbytes


def test_pages_that_a_piece_alone_has_are_free_with_it() -> None:
    cache = cache_of("4; page=64, hot=0, warm=0", 12 * 64)
    piece = cache.detach(64, 11 * 64)
    page_nbytes = piece.pages()[0].nbytes
    assert len(SequenceCache.pages_of([piece]) - SequenceCache.pages_of([cache])) == 10
    before = cache.nbytes
    piece.close()
    assert before - cache.nbytes >= 8 * page_nbytes  # the rest is room for pages to come


@pytest.mark.parametrize("at", [0, 100, 140])
def test_a_piece_does_not_go_where_positions_are_in_use(at: int) -> None:
    cache = cache_of("16; page=64", 200)
    piece = cache.detach(80, 120)
    cache.splice(80, [5])
    expected = text_of(cache)
    with pytest.raises(OctavoError, match=r"positions .* in use|room for"):
        cache.attach(at, piece)
    assert text_of(cache) == expected
    assert piece.num_tokens == 40


def test_a_piece_fits_beside_what_was_spliced_into_its_gap() -> None:
    cache, expected = cache_of("16; page=64", 200), text(200)
    first, second = cache.detach(60, 100), cache.detach(60, 100)
    second_text = expected.copy().detach(100, 140)
    expected.drop(60, 140)
    cache.splice(60, range(500, 540))
    expected.splice(60, range(500, 540))
    cache.attach(100, second)
    expected.attach(100, second_text)
    assert holds_exactly(cache, expected)
    with pytest.raises(OctavoError, match="room for 0 tokens"):
        cache.attach(60, first)


def test_a_piece_of_another_cache_is_refused() -> None:
    cache, other = cache_of("16; page=64", 100), cache_of("16; page=64", 100)
    with pytest.raises(ValueError, match="another cache"):
        cache.attach(10, other.detach(10, 20))


def test_a_piece_loses_the_bits_that_the_rest_has_lost_meanwhile() -> None:
    cache = cache_of("8; page=64, hot=0, warm=0", 5 * 64)
    piece = cache.detach(128, 256)
    cache.apply(KVSpec.parse("3; page=64, hot=0, warm=0"))
    cache.attach(128, piece)
    assert set(" ".join(bits(cache)).split()) == {"3"}


def test_pins_come_back_with_a_piece_and_stay_where_text_is_spliced() -> None:
    cache = cache_of("4; page=64, hot=0, warm=1", 5 * 64)
    cache.pin(5, 10)
    cache.pin(70, 80)
    piece = cache.detach(60, 128)
    assert [page.pinned for page in cache.pages()] == [True, False, False, False]
    cache.splice(60, [7])
    assert cache.pages()[0].pinned
    cache.drop(60, 61)
    cache.attach(60, piece)
    assert [page.pinned for page in cache.pages()] == [True, True, False, False, False]


def test_positions_that_are_unused_are_told() -> None:
    cache = cache_of("16; page=64", 200)
    cache.drop(20, 50)
    assert cache.free_positions(20) == 30
    assert cache.gap(20) == range(20, 50)
    assert cache.free_positions(21) == 0
    cache.drop(0, 20)
    assert cache.gap(0) == range(50)
    assert cache.gap(150).start == cache.next_position == 200


def test_a_head_reads_on_while_the_rest_stays_and_can_be_given_up() -> None:
    cache = cache_of("16; page=64", 200)
    cache.drop(60, 140)
    expected = text_of(cache)
    head = cache.begin_splice(60)
    head.read(range(500, 520))
    assert holds_exactly(cache, expected)
    head.close()
    assert holds_exactly(cache, expected)
    assert [page.references for page in cache.pages()] == [1] * len(cache.pages())
    head = cache.begin_splice(60)
    for start in (500, 530, 560):
        head.read(range(start, start + 30))
    with pytest.raises(OctavoError, match=r"room for 80 tokens.*and 90 are to"):
        cache.end_splice(60, head)
    assert holds_exactly(cache, expected)
    head.truncate(130)
    cache.end_splice(60, head)
    expected.splice(60, [*range(500, 530), *range(530, 560), *range(560, 570)])
    assert holds_exactly(cache, expected)


def test_text_that_is_spliced_between_open_tokens_makes_no_page_of_its_own() -> None:
    cache = cache_of("16; page=64", 70)
    cache.drop(66, 68)
    cache.splice(66, [7])
    assert len(cache.pages()) == 1
    assert cache.usage().open_tokens == 5


def logits(cache: SequenceCache) -> list[np.ndarray]:
    return [np.array(cache.read([token]).astype(mx.float32)) for token in (3, 5, 8)]


@pytest.mark.parametrize("stretch", [(64, 192), (50, 210)])
def test_a_piece_that_comes_from_disk_is_read_as_if_it_had_stayed(
    tmp_path: Path, stretch: tuple[int, int]
) -> None:
    """Pages of which the rest was there all the time are joined again."""
    model = tiny_model("llama", sharp=True)
    tokens = np.random.default_rng(0).integers(0, 100, 300).tolist()
    stayed, gone = (
        SequenceCache(model, KVSpec.parse("4; page=64, group=32, hot=1, warm=1")) for _ in range(2)
    )
    for cache in (stayed, gone):
        cache.read(tokens)
    folder, piece = SpillFolder(tmp_path), gone.detach(*stretch)
    spilled = folder.spill(piece)
    folder.restore(spilled, piece)
    gone.attach(stretch[0], piece)
    assert gone.tokens == stayed.tokens
    for found, expected in zip(logits(gone), logits(stayed), strict=True):
        assert np.array_equal(found, expected)


def test_some_tokens_of_a_piece_come_back_without_the_rest() -> None:
    cache = cache_of("16; page=64", 220)
    piece, expected = cache.detach(40, 210), text(220).detach(40, 210)
    blobs: list[bytes] = []
    piece.move_out(blobs.append)  # tokens 40-64, 64-128, 128-192, and 18 open ones
    assert len(blobs) == 4
    for start, stop, numbers in ((0, 24, [0]), (30, 160, [1, 2, 3]), (155, 160, [3]), (170, 170, [])):
        part, needed = piece.part_outside(start, stop)
        assert needed == numbers
        part.move_in(blobs[number] for number in needed)
        assert holds_exactly(part, expected.copy().detach(start, stop))
    assert piece.is_outside
    first, needed = piece.part_outside(0, 100)
    first.move_in(blobs[number] for number in needed)
    second, needed = piece.part_outside(100, 150)
    second.move_in(blobs[number] for number in needed)
    assert first.pages()[-1].number == second.pages()[0].number  # one page, though it was read twice
    piece.move_in(iter(blobs))
    assert holds_exactly(piece, expected)
