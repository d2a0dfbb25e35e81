"""A sequence as pages and a manifest that outlive the process, and back from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import mlx.nn as nn

from engine.kv.blob import Blob
from engine.kv.manifest import Manifest
from engine.kv.moving import MovableCache
from engine.kv.page_map import TextSpan
from engine.kv.precision import KVSpec


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
    """

    chain: bytes
    parent: bytes
    position: int
    num_tokens: int
    bits: float
    is_settled: bool
    nbytes: int


class StorableCache(MovableCache):
    """A cache that can be stored, and be begun from what was stored.

    One that comes from a store is outside at first: its tokens, positions, pages and pins are known, its keys
    and values come in page by page.
    """

    # Out.

    @property
    def is_unbroken(self) -> bool:
        """Whether all tokens were read in order from position 0 on, and nothing was taken out or put in.

        The keys of its pages then follow from the tokens alone; see `prefix_chain`.
        """
        raise NotImplementedError

    def described_format(self, model: str) -> bytes:
        """Return what all blobs of this model, and of this page and group size, have in common, as bytes."""
        raise NotImplementedError

    def savable_pages(self) -> tuple[SavablePage, ...]:
        """Return the pages that are in memory, each once, in the order of the text. Cheap; no arrays."""
        raise NotImplementedError

    def encode_page(self, chain: bytes, model: str) -> bytearray:
        """Return a page as a blob that is bound to its chain key and to the model.

        Args:
            chain: one of `savable_pages`.
            model: digest of the model.
        """
        raise NotImplementedError

    def encode_manifest(self, spans: Sequence[TextSpan], model: str) -> bytearray:
        """Return all but the pages' blocks as a blob: tokens, tiers, heat, pins, and the open tokens' arrays.

        Args:
            spans: what the tokens are.
            model: digest of the model.
        """
        raise NotImplementedError

    # Back.

    @classmethod
    def from_manifest(cls, module: nn.Module, manifest: Manifest) -> Self:
        """Return a cache of what a manifest says, whose pages are outside.

        Raises:
            ForeignBlobError: the module has other layers or types, or the precision does not fit it.
        """
        raise NotImplementedError

    @classmethod
    def from_chain(
        cls, module: nn.Module, spec: KVSpec, tokens: Sequence[int], model: str, nbytes: Sequence[int]
    ) -> Self:
        """Return a cache of the full pages of an unbroken text; the pages are outside.

        Args:
            module: the model.
            spec: the precision that is wanted; pages are brought down to it when they are all there.
            tokens: the text from its beginning on; what is behind its last full page is left out.
            model: digest of the model.
            nbytes: of each of these pages' blobs, for what is to be told before they are there.
        """
        raise NotImplementedError

    @property
    def outside_chains(self) -> tuple[bytes, ...]:
        """The chain keys of the pages that are still to come, the hottest first."""
        raise NotImplementedError

    @property
    def outside_nbytes(self) -> int:
        """Bytes that the pages which are still to come will take in memory, about."""
        raise NotImplementedError

    def take_in(self, chain: bytes, blob: Blob) -> None:
        """Take in one of the pages of `outside_chains`. It stays here when the rest is left for later.

        Raises:
            DamagedBlobError: it is not what was written, or is another page.
            ForeignBlobError: another model, or another version of this program, wrote it.
        """
        raise NotImplementedError

    def cut_outside(self, chain: bytes) -> None:
        """Forget the text from the first token of a page on, which cannot come; `num_tokens` says what stays.

        Open tokens are forgotten too, as they are behind it.
        """
        raise NotImplementedError

    def come_in(self) -> None:
        """Be a cache like any other again, once no page is outside any more.

        Each page has the tier and the bits that the manifest says, or fewer where less was stored.
        """
        raise NotImplementedError
