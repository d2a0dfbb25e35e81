"""Text that left the context: what is kept of it on disk, what comes back, and what is given up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine import spill
from engine.errors import Cancelled
from engine.kv.cache import SequenceCache
from engine.kv.page_map import SpanKind, TextSpan
from engine.released import ReleasedText
from engine.spill import SpillFolder
from tests.engine.kv.caches import PAGE_NBYTES, cache_of, holds_exactly, text, text_of
from tests.engine.kv.oracle import Text

NUM_TOKENS = 40
"""Of each message that is released here."""


def spans(*keys: str) -> list[TextSpan]:
    """Return spans of so many messages, one behind another, from 0 on."""
    return [
        TextSpan(SpanKind.USER, f"About {key}", index * NUM_TOKENS, (index + 1) * NUM_TOKENS, key)
        for index, key in enumerate(keys)
    ]


def released_from(cache: SequenceCache, released: ReleasedText, start: int, *keys: str) -> Text:
    """Take messages out of a cache and keep them; return what they are."""
    stop = start + NUM_TOKENS * len(keys)
    expected = text_of(cache).detach(start, stop)
    released.keep(spans(*keys), cache.detach(start, stop))
    return expected


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pages"))


@pytest.fixture
def cache() -> SequenceCache:
    return cache_of("16; page=64", 400)


@pytest.fixture
def released(tmp_path: Path) -> ReleasedText:
    return ReleasedText(SpillFolder(tmp_path))


def test_what_was_released_comes_back_to_its_place(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path
) -> None:
    released_from(cache, released, 100, "m1", "m2")
    before = cache.nbytes
    assert [span.key for span in released.spans] == ["m1", "m2"]
    stretch = released.find(["m1", "m2"])
    assert stretch is not None
    assert stretch.positions == tuple(range(100, 180))
    assert stretch.tokens == tuple(range(101, 181))
    assert stretch.spans == tuple(spans("m1", "m2"))
    assert cache.nbytes == before
    piece = released.take(["m1", "m2"])
    assert piece is not None
    cache.attach(100, piece)
    assert holds_exactly(cache, text(400))
    assert released.spans == ()
    assert files(tmp_path) == []


def test_one_of_many_comes_back_and_the_others_stay(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path
) -> None:
    run = released_from(cache, released, 100, "m1", "m2", "m3", "m4")
    piece = released.take(["m2"])
    assert piece is not None and holds_exactly(piece, run.copy().detach(40, 80))
    assert [span.key for span in released.spans] == ["m1", "m3", "m4"]
    assert len(files(tmp_path)) == 1
    assert released.find(["m2"]) is None
    stretch = released.find(["m3", "m4", "m5"])
    assert stretch is not None and stretch.positions == tuple(range(180, 260))
    assert stretch.spans == tuple(spans("m3", "m4"))
    behind = released.take(["m3", "m4"])
    assert behind is not None and holds_exactly(behind, run.copy().detach(80, 160))
    released.discard(["m1"])
    assert files(tmp_path) == []


def test_keys_between_which_something_was_taken_are_not_given_as_one(
    cache: SequenceCache, released: ReleasedText
) -> None:
    released_from(cache, released, 100, "m1", "m2", "m3")
    released.take(["m2"])
    stretch = released.find(["m1", "m3"])
    assert stretch is not None and stretch.positions == tuple(range(100, 140))
    assert released.find(["m2", "m3"]) is None


def test_what_is_held_of_a_key_twice_is_kept_once(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path
) -> None:
    released_from(cache, released, 100, "m1")
    released_from(cache, released, 0, "m1")
    stretch = released.find(["m1"])
    assert stretch is not None and stretch.positions[0] == 0
    assert len(files(tmp_path)) == 1


def test_the_oldest_is_given_up_where_it_becomes_too_much(tmp_path: Path) -> None:
    cache = cache_of("16; page=64", 600)

    def release(key: str, num_pages: int) -> None:
        span = TextSpan(SpanKind.USER, key, 0, num_pages * 64, key)
        released.keep([span], cache.detach(64, 64 + num_pages * 64))

    released = ReleasedText(SpillFolder(tmp_path), most_nbytes=5 * PAGE_NBYTES[16] // 2)
    for key in ("m1", "m2", "m3"):
        release(key, num_pages=1)
    assert [span.key for span in released.spans] == ["m2", "m3"]
    assert len(files(tmp_path)) == 2
    assert 2 * PAGE_NBYTES[16] < released.nbytes < 2.1 * PAGE_NBYTES[16]
    assert sum(span.nbytes for span in released.spans) == pytest.approx(released.nbytes, abs=2)
    release("m4", num_pages=3)  # more than may be kept at all
    assert [span.key for span in released.spans] == ["m2", "m3"]


def test_nothing_is_kept_without_a_folder_or_a_key(cache: SequenceCache, released: ReleasedText) -> None:
    nowhere = ReleasedText(None)
    released_from(cache, nowhere, 100, "m1")
    assert nowhere.spans == () and nowhere.take(["m1"]) is None
    released_from(cache, released, 100, "")
    assert released.spans == ()
    assert [page.references for page in cache.pages()] == [1] * len(cache.pages())


def test_a_full_disk_keeps_nothing_and_is_no_error(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "KEEP_FREE_NBYTES", 1 << 60)
    released_from(cache, released, 100, "m1")
    assert released.spans == ()
    assert files(tmp_path) == []
    assert [page.references for page in cache.pages()] == [1] * len(cache.pages())


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [damaged, Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_file_that_is_not_what_was_written_is_given_up(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    released_from(cache, released, 100, "m1", "m2", "m3", "m4")
    expected = text_of(cache)
    harm(files(tmp_path)[0])
    assert released.take(["m2", "m3"]) is None
    assert released.spans == ()
    assert files(tmp_path) == []
    assert holds_exactly(cache, expected)


def stop() -> None:
    raise Cancelled


def test_a_stop_while_it_comes_back_leaves_it_on_disk(cache: SequenceCache, released: ReleasedText) -> None:
    run = released_from(cache, released, 100, "m1", "m2")
    with pytest.raises(Cancelled):
        released.take(["m1"], stop)
    piece = released.take(["m1", "m2"])
    assert piece is not None and holds_exactly(piece, run)


def test_a_stop_while_it_goes_to_disk_gives_it_up(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path
) -> None:
    piece = cache.detach(100, 140)
    with pytest.raises(Cancelled):
        released.keep(spans("m1"), piece, stop)
    assert released.spans == ()
    assert files(tmp_path) == []
    assert [page.references for page in cache.pages()] == [1] * len(cache.pages())


def test_forgetting_removes_all_files(cache: SequenceCache, released: ReleasedText, tmp_path: Path) -> None:
    released_from(cache, released, 100, "m1", "m2")
    released_from(cache, released, 100, "m3")
    assert len(files(tmp_path)) == 2
    released.forget()
    assert files(tmp_path) == []
    assert released.find(["m3"]) is None


def test_the_log_says_nothing_of_the_words(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released_from(cache, released, 100, "m1", "m2", "m3", "m4")
    damaged(files(tmp_path)[0])
    released.take(["m2", "m3"])
    assert "will be read again" in caplog.text
    assert "About" not in caplog.text


def test_what_lies_where_other_text_is_read_is_given_up(
    cache: SequenceCache, released: ReleasedText, tmp_path: Path
) -> None:
    released_from(cache, released, 100, "m1", "m2")
    released_from(cache, released, 200, "m3")  # at the positions from 280 on
    released.discard_from(179)
    assert [span.key for span in released.spans] == ["m1"]
    assert len(files(tmp_path)) == 1
    released.discard_from(100)
    assert released.spans == () and files(tmp_path) == []
