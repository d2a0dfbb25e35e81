"""Sequences in a folder of files: what is written, what comes back, and what is left lying there."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import spill
from engine.kv.blob import DamagedBlobError
from engine.spill import SpilledSequence, SpillFolder
from tests.app.models.full_disk import file_size_limit
from tests.engine.kv.caches import cache_of, holds_exactly, text

SPILLING_PROCESS = """
import sys
from pathlib import Path
from engine.blas import load_blas
load_blas()
from engine.spill import SpillFolder
from tests.engine.kv.caches import cache_of
folder = SpillFolder(Path(sys.argv[1]))
folder.spill(cache_of("8; page=64", 100))
print("spilled", flush=True)
sys.stdin.read()
"""


def files(root: Path) -> list[Path]:
    return sorted(root.rglob("*.pages"))


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_a_sequence_is_one_file_until_it_is_restored(tmp_path: Path) -> None:
    folder, cache = SpillFolder(tmp_path / "spill"), cache_of("16; page=64", 150)
    assert not (tmp_path / "spill").exists()
    spilled = folder.spill(cache)
    assert files(tmp_path) == [spilled.path]
    folder.restore(spilled, cache)
    assert files(tmp_path) == []
    assert holds_exactly(cache, text(150))


def test_closing_leaves_no_file(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    for _ in range(2):
        folder.spill(cache_of("8; page=64", 100))
    folder.close()
    assert files(tmp_path) == []
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("harm", [damaged, cut])
def test_a_damaged_file_is_refused_and_removed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder, cache = SpillFolder(tmp_path), cache_of("8; page=64", 150)
    spilled = folder.spill(cache)
    harm(spilled.path)
    with pytest.raises(DamagedBlobError):
        folder.restore(spilled, cache)
    assert files(tmp_path) == []


def test_the_sound_file_of_another_sequence_is_refused(tmp_path: Path) -> None:
    folder, cache, other = SpillFolder(tmp_path), cache_of("8; page=64"), cache_of("8; page=64")
    cache.read(range(100, 250))
    other.read(range(250, 400))
    spilled, foreign = folder.spill(cache), folder.spill(other)
    foreign.path.replace(spilled.path)
    with pytest.raises(DamagedBlobError):
        folder.restore(spilled, cache)


def test_a_file_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    folder, cache = SpillFolder(tmp_path), cache_of("8; page=64", 150)
    spilled = folder.spill(cache)
    spilled.path.unlink()
    with pytest.raises(FileNotFoundError):
        folder.restore(spilled, cache)


@pytest.mark.parametrize("share", [0, 0.01, 0.7, 0.999])
def test_a_disk_that_becomes_full_leaves_the_sequence_whole_and_no_file(tmp_path: Path, share: float) -> None:
    folder, cache = SpillFolder(tmp_path), cache_of("16; page=64", 129)
    spilled = folder.spill(cache)
    nbytes = spilled.path.stat().st_size
    folder.restore(spilled, cache)
    with pytest.raises(OSError), file_size_limit(int(share * nbytes)):
        folder.spill(cache)
    assert files(tmp_path) == []
    assert holds_exactly(cache, text(129))


def test_room_on_the_disk_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = SpillFolder(tmp_path), cache_of("16; page=64", 150)
    monkeypatch.setattr(spill, "KEEP_FREE_NBYTES", 1 << 60)
    with pytest.raises(OSError) as caught:
        folder.spill(cache)
    assert caught.value.errno == errno.ENOSPC
    assert holds_exactly(cache, text(150))


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("a file is in the way")
    folder = SpillFolder(tmp_path / "spill")
    with pytest.raises(OSError):
        folder.spill(cache_of("8; page=64", 150))


def test_leftovers_are_removed_once_their_process_is_gone(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SPILLING_PROCESS, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "spilled\n"
        mine = SpillFolder(tmp_path)
        own = mine.spill(cache_of("8; page=64", 100))
        assert len(files(tmp_path)) == 2  # it lives: its file is not ours to remove
        child.kill()
        child.wait()
        assert len(files(tmp_path)) == 2
        SpillFolder(tmp_path)
        assert files(tmp_path) == [own.path]


def test_a_folder_without_a_lock_is_a_leftover(tmp_path: Path) -> None:
    (tmp_path / "1234-killed").mkdir()
    (tmp_path / "1234-killed" / "0.pages").write_bytes(b"half a page")
    SpillFolder(tmp_path)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_discarding_twice_is_no_error(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    spilled = folder.spill(cache_of("8; page=64", 100))
    folder.discard(spilled)
    folder.discard(spilled)
    folder.discard(SpilledSequence(tmp_path / "none" / "at" / "all", ()))
