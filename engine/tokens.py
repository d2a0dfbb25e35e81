"""Turning text into tokens without holding up other threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from engine.cancel import CancelToken

PIECE_CHARACTERS = 1 << 18
"""Longer texts are counted in pieces, which bounds the memory that counting takes."""


class TokenCounter:
    """Counts tokens on any thread while the model generates on another.

    It has a copy of the tokenizer to itself: one that is used by two threads fails with *Already borrowed*.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        backend = fast_backend(tokenizer)
        self._fast = Tokenizer.from_str(backend.to_str()) if backend else None
        self._slow = None if backend else copy.deepcopy(tokenizer)
        self._lock = threading.Lock()

    def count(self, text: str, cancel: CancelToken | None = None) -> int:
        """Return how many tokens `text` is, without tokens that a chat template adds.

        Exact up to `PIECE_CHARACTERS` characters; beyond, each further piece may count a token more or less.

        Raises:
            Cancelled: `cancel` was called; it is checked between pieces.
        """
        tokens = 0
        for piece in _pieces(text):
            if cancel is not None:
                cancel.check()
            with self._lock:
                tokens += self._count(piece)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, special ones included.

        It does not wait for a count on another thread, which a widget could not do.
        """
        if self._fast is not None:
            return self._fast.decode(list(tokens), skip_special_tokens=False)
        assert self._slow is not None
        return str(self._slow.decode(list(tokens)))

    def _count(self, piece: str) -> int:
        if self._fast is not None:
            return len(encode_fast(self._fast, piece))
        assert self._slow is not None
        return len(self._slow.encode(piece, add_special_tokens=False))


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Return the tokens of `text`, special ones read as such and none added."""
    backend = fast_backend(tokenizer)
    if backend is not None:
        return encode_fast(backend, text)
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids


def encode_with_offsets(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> tuple[list[int], list[tuple[int, int]] | None]:
    """Return the tokens of `text` as `encode` does, and where each begins and ends in it.

    None for the places where Python code has a part in encoding.
    """
    backend = fast_backend(tokenizer)
    if backend is None:
        return encode(tokenizer, text), None
    encoding: Any = backend.encode_batch([text], add_special_tokens=False)[0]
    return encoding.ids, encoding.offsets


def fast_backend(tokenizer: PreTrainedTokenizerBase) -> Tokenizer | None:
    """Return the `tokenizers` object behind a tokenizer; None where Python code has a part in encoding."""
    plain = type(tokenizer).encode is PreTrainedTokenizerBase.encode
    if not plain or not isinstance(tokenizer, PreTrainedTokenizerFast):
        return None
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return backend


def encode_fast(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode through the batch call, the only one that lets other threads run meanwhile."""
    encoding: Any = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
    ids: list[int] = encoding.ids
    return ids


def _pieces(text: str) -> Iterator[str]:
    """Split a long text behind line ends."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = text.rfind("\n", start, start + PIECE_CHARACTERS) + 1
        if end <= start:
            end = start + PIECE_CHARACTERS
        yield text[start:end]
        start = end
    yield text[start:]
