"""Pages and sequences whose content any test can tell from any other by itself."""

from __future__ import annotations

import hashlib
import random

from engine.prefixes.records import NewPage, StoredSequence

MODEL = "a model"
PAGE_NBYTES = 40_000


def blob_of(name: str, nbytes: int = PAGE_NBYTES) -> bytes:
    """Content that begins with its name in words and cannot be compressed or mixed up with another's."""
    return (f"the words of {name}. ".encode() + random.Random(name).randbytes(nbytes))[:nbytes]


def key_of(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=32).digest()


def page_of(
    name: str, conversation_id: int = 1, parent: str = "", bits: float = 4.0, nbytes: int = PAGE_NBYTES
) -> NewPage:
    return NewPage(
        key=key_of(name),
        parent=key_of(parent) if parent else b"",
        model=MODEL,
        position=0,
        num_tokens=16,
        bits=bits,
        blob=blob_of(name, nbytes),
        conversation_id=conversation_id,
    )


def sequence_of(conversation_id: int, *names: str, manifest: bytes = b"a manifest") -> StoredSequence:
    return StoredSequence(
        conversation_id=conversation_id,
        model=MODEL,
        keys=tuple(map(key_of, names)),
        manifest=manifest,
        num_tokens=16 * len(names),
    )
