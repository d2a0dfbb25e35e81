"""What each token writes, so that two ways to split the same words are seen to be the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine.tokens import fast_backend

_JOINING = {"ByteLevel", "Replace", "Metaspace", "ByteFallback", "Fuse", "Strip"}
"""Decoders that write one token behind another, but for white space at the start of all."""
_BYTES = {character: byte for byte, character in bytes_to_unicode().items()}


class TokenBytes:
    """The bytes of each token of a tokenizer; a token may write only part of a character."""

    def __init__(self, tokenizer: Tokenizer, piece_bytes: Callable[[str], bytes]) -> None:
        self._tokenizer = tokenizer
        self._piece_bytes = piece_bytes
        self._known = {
            token: _named(added.content) if added.special else added.content.encode()
            for token, added in tokenizer.get_added_tokens_decoder().items()
        }

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> TokenBytes | None:
        """Return those of a tokenizer, None where what a token writes depends on others around it."""
        backend = fast_backend(tokenizer)
        steps = [] if backend is None or backend.decoder is None else _steps(backend.decoder)
        if backend is None or not steps or any(step["type"] not in _JOINING for step in steps):
            return None
        if any(step["type"] == "ByteLevel" for step in steps):
            return cls(backend, _of_byte_level)
        if any("String" not in step["pattern"] for step in steps if step["type"] == "Replace"):
            return None
        return cls(backend, _Pieces(steps).bytes_of)

    def each(self, tokens: Sequence[int]) -> list[bytes]:
        """Return what each of these tokens writes.

        What is no text, such as a special token, has bytes that no text has: it is the same only as itself.
        """
        known = self._known
        for token in set(tokens).difference(known):
            piece = self._tokenizer.id_to_token(token)
            known[token] = _named(str(token)) if piece is None else self._piece_bytes(piece)
        return [known[token] for token in tokens]


def _named(name: str) -> bytes:
    return b"\xff" + name.encode() + b"\xff"  # a byte that is in no UTF-8


def _steps(decoder: Any) -> list[dict[str, Any]]:
    state = json.loads(decoder.__getstate__())
    steps: list[dict[str, Any]] = state["decoders"] if state["type"] == "Sequence" else [state]
    return steps


def _of_byte_level(piece: str) -> bytes:
    if all(character in _BYTES for character in piece):
        return bytes(_BYTES[character] for character in piece)
    return piece.encode()


class _Pieces:
    """How a tokenizer of SentencePiece's kind writes its tokens."""

    def __init__(self, steps: Sequence[dict[str, Any]]) -> None:
        self._replaced = [
            (step["pattern"]["String"], step["content"]) for step in steps if step["type"] == "Replace"
        ]
        self._replaced += [(step["replacement"], " ") for step in steps if step["type"] == "Metaspace"]
        self._has_bytes = any(step["type"] == "ByteFallback" for step in steps)

    def bytes_of(self, piece: str) -> bytes:
        """Return what a token writes; `<0x0A>` is a byte."""
        if self._has_bytes and len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return bytes([int(piece[3:5], 16)])
        for pattern, content in self._replaced:
            piece = piece.replace(pattern, content)
        return piece.encode()
