"""Keys of pages: what a page says, where, and all that precedes it, as one digest.

A page is found again by its key in another process and another conversation, so it depends on nothing but
what the page's numbers depend on. What a page was read behind is in the key of the page before it. Text that
was edited is told apart by a salt that nobody else can have.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.kv.cache import SequenceCache

KEY_NBYTES = 32
"""Bytes of a key."""
SALT_NBYTES = 16
_LENGTHS = struct.Struct("<BBqI")
"""Bytes of the parent's key and of the salt, the position, and how many tokens there are."""


def chain_key(parent: bytes, salt: bytes, position: int, tokens: Sequence[int]) -> bytes:
    """Return the chain key of a page.

    Args:
        parent: the chain key of the page that it was read behind, empty for the first.
        salt: of its sequence, empty while that is unbroken.
        position: of its first token.
        tokens: the ids of all its tokens.
    """
    digest = hashlib.blake2b(digest_size=KEY_NBYTES)
    digest.update(_LENGTHS.pack(len(parent), len(salt), position, len(tokens)))
    digest.update(parent + salt + np.array(tokens, dtype="<i8").tobytes())
    return digest.digest()


def prefix_chain(tokens: Sequence[int], page_tokens: int) -> tuple[bytes, ...]:
    """Return the chain keys of the full pages of a text that is read from position 0 on and never edited."""
    chain: list[bytes] = []
    for start in range(0, len(tokens) - page_tokens + 1, page_tokens):
        parent = chain[-1] if chain else b""
        chain.append(chain_key(parent, b"", start, tokens[start : start + page_tokens]))
    return tuple(chain)


def new_salt() -> bytes:
    """Return a salt for a sequence that was edited: what is read from now on is like nothing else."""
    return os.urandom(SALT_NBYTES)


def root_key(model: str, cache: SequenceCache) -> bytes:
    """Return what the keys of all pages of a model and of a page and group size have in common.

    Args:
        model: digest of the model's content.
        cache: any cache of the model, which may be empty: its format counts, its bits do not.
    """
    return hashlib.blake2b(cache.described_format(model), digest_size=KEY_NBYTES).digest()


def page_key(root: bytes, chain: bytes) -> bytes:
    """Return the key under which a page is stored, from `root_key` and its chain key."""
    return hashlib.blake2b(root + chain, digest_size=KEY_NBYTES).digest()
