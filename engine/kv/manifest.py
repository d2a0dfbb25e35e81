"""The manifest of a conversation: all that its cache is, but for the blocks of its pages."""

from __future__ import annotations

from dataclasses import dataclass

from engine.kv.blob import Blob
from engine.kv.page_map import TextSpan
from engine.kv.precision import KVSpec


@dataclass(frozen=True)
class ManifestPage:
    """A page that a manifest names.

    Attributes:
        chain: its chain key; see `page_key` for the one under which it is stored.
        num_tokens: that the conversation has in it.
        heat: moving average of the share of attention that it received, 0 to 1.
        nbytes: that its blocks took in memory.
    """

    chain: bytes
    num_tokens: int
    heat: float
    nbytes: int


@dataclass(frozen=True, eq=False)
class Manifest:
    """What can be said of a conversation before its pages are there.

    Attributes:
        tokens: ids of all its tokens, in order.
        spans: what they are.
        kv: the precision that it was read at.
        pages: each once, in the order of the text.
    """

    tokens: tuple[int, ...]
    spans: tuple[TextSpan, ...]
    kv: KVSpec
    pages: tuple[ManifestPage, ...]


def read_manifest(blob: Blob, model: str) -> Manifest:
    """Check a manifest and return what it says; nothing is evaluated.

    Args:
        blob: what `SequenceCache.encode_manifest` gave.
        model: digest of the model that is loaded.

    Raises:
        DamagedBlobError: it is not what was written.
        ForeignBlobError: another model or another version of this program wrote it.
    """
    raise NotImplementedError
