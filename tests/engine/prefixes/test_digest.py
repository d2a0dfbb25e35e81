"""Which model it is, by the content of its files."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from engine.errors import Cancelled, ModelError
from engine.prefixes import digest
from engine.prefixes.digest import fingerprint, model_digest
from tests.engine.folders import write_folder

EVERY_FILE = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja",
    "merges.txt",
    "tokenizer.model",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_folder(tmp_path_factory.mktemp("models") / "original")
    for name in EVERY_FILE:
        (folder / name).parent.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_text(f"what {name} says")
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def flip_bit(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_a_copy_with_another_name_and_other_times_is_the_same_model(original: Path, folder: Path) -> None:
    os.utime(folder / "model.safetensors", (1, 1))
    assert model_digest(folder) == model_digest(original)
    assert fingerprint(folder) != fingerprint(original)


def test_a_renamed_file_is_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"weights")
    before = model_digest(tmp_path / "one.gguf")
    (tmp_path / "one.gguf").rename(tmp_path / "another.gguf")
    assert model_digest(tmp_path / "another.gguf") == before


@pytest.mark.parametrize("name", EVERY_FILE)
def test_any_bit_makes_it_another_model(original: Path, folder: Path, name: str) -> None:
    for place in (0, (folder / name).stat().st_size // 2, -1):
        flip_bit(folder / name, place)
        assert model_digest(folder) != model_digest(original)
        flip_bit(folder / name, place)
    assert model_digest(folder) == model_digest(original)


def test_any_bit_of_a_file_makes_it_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "PIECE_NBYTES", 7)
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(range(30)))
    digests = {model_digest(file)}
    for place in range(30):
        flip_bit(file, place)
        digests.add(model_digest(file))
    assert len(digests) == 31


def test_a_missing_file_and_content_under_another_name_make_it_another_model(
    original: Path, folder: Path
) -> None:
    (folder / "merges.txt").rename(folder / "vocab.txt")
    renamed = model_digest(folder)
    (folder / "vocab.txt").unlink()
    assert len({model_digest(original), renamed, model_digest(folder)}) == 3


def test_what_no_one_reads_of_a_folder_does_not_count(original: Path, folder: Path) -> None:
    (folder / "README.md").write_text("Read me.")
    (folder / "consolidated.safetensors").write_bytes(b"the same weights for others")
    assert model_digest(folder) == model_digest(original)


def test_links_are_followed_as_in_the_cache_of_the_hub(original: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "0123", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(path for path in original.rglob("*") if path.is_file()):
        shutil.copy(file, blobs / str(number))
        link = snapshot / file.relative_to(original)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(blobs / str(number))
    before = fingerprint(snapshot)
    assert model_digest(snapshot) == model_digest(original)
    weights = (snapshot / "model.safetensors").resolve()
    flip_bit(weights, -1)
    assert model_digest(snapshot) != model_digest(original)
    assert fingerprint(snapshot) != before


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path: Path) -> None:
    """As the format says: BLAKE2b of the empty name and the content's BLAKE2b, each behind its length."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"x" * 1000)
    content = hashlib.blake2b(b"x" * 1000, digest_size=32).digest()
    framed = bytes(8) + (32).to_bytes(8, "little") + content
    assert model_digest(file) == hashlib.blake2b(framed, digest_size=32).hexdigest()


def test_the_fingerprint_changes_with_size_time_and_inode_of_each_file(folder: Path, tmp_path: Path) -> None:
    file = folder / "config.json"
    status = file.stat()
    seen = [fingerprint(folder)]
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    seen.append(fingerprint(folder))
    with file.open("a") as opened:
        opened.write(" ")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    seen.append(fingerprint(folder))
    other = tmp_path / "other"
    shutil.copy(file, other)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(file)
    seen.append(fingerprint(folder))
    assert len(set(seen)) == 4
    assert fingerprint(folder) == seen[-1]


def test_a_stop_is_noticed_between_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "PIECE_NBYTES", 10)
    file = tmp_path / "model.gguf"
    file.write_bytes(bytes(1000))
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        model_digest(file, check)
    assert checks == 3


@pytest.mark.parametrize("name", ["nothing", "nothing.gguf", "."])
def test_what_is_no_model_is_told(tmp_path: Path, name: str) -> None:
    for tell in (model_digest, fingerprint):
        with pytest.raises(ModelError):
            tell(tmp_path / name)
