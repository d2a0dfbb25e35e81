"""Which model it is, by all that it is made of, whatever its name and wherever it lies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.errors import ModelError

DIGEST_NBYTES = 32
PIECE_NBYTES = 8 * 1024**2
"""What is read between two looks for a stop."""

_FOLDER_FILES = (
    "model*.safetensors",  # mlx-lm reads the same pattern
    "*.json",
    "*.jinja",
    "additional_chat_templates/*.jinja",
    "*.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
)
"""What mlx-lm and the tokenizers read of a folder."""


def model_digest(path: Path, check: Callable[[], None] = lambda: None) -> str:
    """Return the BLAKE2b of the content of a model: its weights, tokenizer and config, as hex digits.

    A copy with another name or in another place has the same one.

    Args:
        path: an MLX folder or a GGUF file; links are followed.
        check: called after every few megabytes; it may raise to stop this.

    Raises:
        ModelError: there is no model, or it cannot be read.
    """
    whole = _blake2b()
    try:
        for name, file in _files(path):
            whole.update(_framed(name, _content_digest(file, check)))
    except OSError as error:
        raise _unreadable(path, error) from error
    return whole.hexdigest()


def fingerprint(path: Path) -> str:
    """Return what tells, without reading it, whether a model's content may have changed, as hex digits.

    It covers the size, the time and the inode of every file that `model_digest` reads.

    Raises:
        ModelError: as `model_digest`.
    """
    whole = _blake2b()
    try:
        for name, file in _files(path):
            status = file.stat()
            marks = (status.st_size, status.st_mtime_ns, status.st_ino)
            whole.update(_framed(name, repr(marks).encode()))
    except OSError as error:
        raise _unreadable(path, error) from error
    return whole.hexdigest()


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a model in the order of their names there; that of a single file does not count."""
    if not path.is_dir():
        yield "", path
        return
    found = {file for pattern in _FOLDER_FILES for file in path.glob(pattern) if file.is_file()}
    if not found:
        raise ModelError(f"{path.name} is no MLX model: there is none of its files in the folder.")
    yield from sorted((file.relative_to(path).as_posix(), file) for file in found)


def _content_digest(file: Path, check: Callable[[], None]) -> bytes:
    digest = _blake2b()
    with file.open("rb", buffering=0) as opened:
        piece = bytearray(PIECE_NBYTES)
        while count := opened.readinto(piece):
            digest.update(memoryview(piece)[:count])
            check()
    return digest.digest()


def _framed(name: str, content: bytes) -> bytes:
    """Return both so that no other name and content give the same bytes."""
    encoded = os.fsencode(name)
    return len(encoded).to_bytes(8, "little") + encoded + len(content).to_bytes(8, "little") + content


def _blake2b() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=DIGEST_NBYTES)


def _unreadable(path: Path, error: OSError) -> ModelError:
    return ModelError(f"{path} cannot be read: {error.strerror or error}.")
