"""What is told of a page that may be stored, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SavablePage:
    """A page that is in memory and may be stored.

    Attributes:
        chain: its chain key.
        parent: that of the page it was read behind, empty for the first.
        position: of its first token; in an unbroken sequence also that token's index.
        num_tokens: all of the page, also those that the sequence has no longer.
        bits: bits a number, the mean of all blocks without scales.
        is_settled: whether it is cold, or older than the pages that are kept more exactly for their age.
        nbytes: that its blocks take, scales included; its blob takes at most 5 % more.
        put_bits: as in `Page`.
    """

    chain: bytes
    parent: bytes
    position: int
    num_tokens: int
    bits: float
    is_settled: bool
    nbytes: int
    put_bits: float | None
