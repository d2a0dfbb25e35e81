"""Other ways to split words into tokens than a tokenizer would."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tokenizers import Tokenizer

from tests.engine.gguf.files import BYTES


def pieces_of(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the tokens of a byte-level tokenizer that are text, as it writes them."""
    added = tokenizer.get_added_tokens_decoder()
    return {piece: token for piece, token in tokenizer.get_vocab().items() if token not in added}


def split(text: str, pieces: Mapping[str, int], choose: Callable[[int], int]) -> list[int]:
    """Return tokens that write a text, each of them chosen among all that could be next.

    Args:
        text: what they write.
        pieces: the tokens.
        choose: which of so many that could be next, from the shortest on.
    """
    rest = "".join(BYTES[byte] for byte in text.encode())
    tokens = []
    while rest:
        next_ones = [rest[:stop] for stop in range(1, len(rest) + 1) if rest[:stop] in pieces]
        piece = next_ones[choose(len(next_ones))]
        tokens.append(pieces[piece])
        rest = rest[len(piece) :]
    return tokens


def by_bytes(count: int) -> int:
    """Choose the shortest."""
    return 0
