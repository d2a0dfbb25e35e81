"""The manifest of a conversation: all that its cache is, but for the blocks of its pages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from engine.errors import OctavoError
from engine.kv.blob import Blob, DamagedBlobError, ForeignBlobError, OpenedBlob, open_blob
from engine.kv.heat import HeatState
from engine.kv.lineage import chain_key
from engine.kv.page import Page
from engine.kv.page_map import SpanKind, TextSpan
from engine.kv.page_table import PageTable
from engine.kv.precision import KVSpec, Tier

Runs = Sequence[Sequence[int]]
"""Whole numbers in order, as `[first, how many]` for each run of consecutive ones."""


@dataclass(frozen=True)
class PageEntry:
    """What the header of a manifest says of a page; see `Page` for all these.

    Attributes:
        path: as in `Page.path`, by index in `ManifestHeader.bits`.
    """

    tokens: Sequence[int]
    positions: Runs
    parent: str
    salt: str
    tier: str
    heat: float
    last_access: int
    nbytes: int
    path: Sequence[int]


@dataclass(frozen=True)
class ManifestHeader:
    """What a manifest says beside the arrays of the open tokens; plain values, as they stand in JSON.

    Attributes:
        model: digest of the model.
        kv: the precision, as it is written.
        bits: of pages, each as in `HeldBits.array`.
        pages: each once, in the order of the text.
        references: the index of a page, and which of its tokens there are, in the order of the text.
        open_tokens: ids of the tokens behind the last page.
        open_positions: of these.
        next_position: of the token that would come next.
        salt: of the pages that are sealed next, in hexadecimal digits.
        pinned: positions that are pinned by hand.
        pinned_text: positions that are pinned for what they say.
        is_behind: whether a change of precision was stopped before all pages had it.
        heat: where the sampler stands.
        spans: what the tokens are: kind, title, start, stop, key and marker tokens of each.
    """

    model: str
    kv: str
    bits: Sequence[Sequence[Sequence[int]]]
    pages: Sequence[PageEntry]
    references: Sequence[tuple[int, Runs]]
    open_tokens: Sequence[int]
    open_positions: Runs
    next_position: int
    salt: str
    pinned: Runs
    pinned_text: Runs
    is_behind: bool
    heat: HeatState
    spans: Sequence[Sequence[Any]]


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
        header: all that it says.
        opened: the blob that it was in.
    """

    tokens: tuple[int, ...]
    spans: tuple[TextSpan, ...]
    kv: KVSpec
    pages: tuple[ManifestPage, ...]
    header: ManifestHeader
    opened: OpenedBlob[ManifestHeader]


def read_manifest(blob: Blob, model: str) -> Manifest:
    """Check a manifest and return what it says; nothing is evaluated.

    Args:
        blob: what `SequenceCache.encode_manifest` gave.
        model: digest of the model that is loaded.

    Raises:
        DamagedBlobError: it is not what was written.
        ForeignBlobError: another model or another version of this program wrote it.
    """
    opened = open_blob(ManifestHeader, blob)
    try:
        header = _typed(opened.header)
        if header.model != model:
            raise ForeignBlobError("it is of another model")
        return _manifest(header, opened)
    except (ValueError, TypeError, KeyError, IndexError, OctavoError) as error:
        raise DamagedBlobError("its header cannot be that of a manifest") from error


def header_of(table: PageTable, spec: KVSpec, model: str, heat: HeatState, is_behind: bool) -> ManifestHeader:
    """Return what a manifest says of a sequence, which is still to be told what its tokens are."""
    places = {page: place for place, page in enumerate(dict.fromkeys(one.page for one in table.references))}
    bits: dict[bytes, int] = {}
    for page in places:
        for step in page.path:
            bits.setdefault(step.tobytes(), len(bits))
    num_heads = {page.path[0].shape[1] for page in places}.pop() if places else 0
    return ManifestHeader(
        model=model,
        kv=str(spec),
        bits=[np.frombuffer(one, dtype=np.int64).reshape(2, num_heads).tolist() for one in bits],
        pages=[_entry(page, [bits[step.tobytes()] for step in page.path]) for page in places],
        references=[
            (places[one.page], runs_of(np.flatnonzero(one.valid).tolist())) for one in table.references
        ],
        open_tokens=table.open_tokens,
        open_positions=runs_of(table.open_positions),
        next_position=table.next_position,
        salt=table.salt.hex(),
        pinned=runs_of(sorted(table.pinned)),
        pinned_text=runs_of(sorted(table.pinned_text)),
        is_behind=is_behind,
        heat=heat,
        spans=(),
    )


def described_spans(spans: Iterable[TextSpan]) -> list[list[Any]]:
    """Return spans as plain values."""
    return [[span.kind.value, *(getattr(span, one.name) for one in fields(span)[1:])] for span in spans]


def runs_of(numbers: Sequence[int]) -> list[list[int]]:
    """Return numbers in ascending order as runs."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def numbers_of(runs: Runs) -> list[int]:
    """Return the numbers that runs stand for."""
    return [number for first, count in runs for number in range(first, first + count)]


def _entry(page: Page, path: list[int]) -> PageEntry:
    return PageEntry(
        tokens=page.tokens,
        positions=runs_of(page.positions),
        parent=page.parent.hex(),
        salt=page.salt.hex(),
        tier=page.tier.value,
        heat=page.heat,
        last_access=page.last_access,
        nbytes=page.nbytes,
        path=path,
    )


def _typed(header: ManifestHeader) -> ManifestHeader:
    """Return a header as it came out of JSON with the classes that it was written with."""
    pages = [PageEntry(**entry) for entry in cast(Sequence[dict[str, Any]], header.pages)]
    heat = HeatState(**cast(dict[str, Any], header.heat))
    return replace(header, pages=pages, heat=heat)


def _manifest(header: ManifestHeader, opened: OpenedBlob[ManifestHeader]) -> Manifest:
    kept = [(place, numbers_of(runs)) for place, runs in header.references]
    sealed = [header.pages[place].tokens[index] for place, indices in kept for index in indices]
    counts = [0] * len(header.pages)
    for place, indices in kept:
        counts[place] += len(indices)
    return Manifest(
        tokens=tuple(itertools.chain(sealed, header.open_tokens)),
        spans=tuple(TextSpan(SpanKind(kind), *rest) for kind, *rest in header.spans),
        kv=KVSpec.parse(header.kv),
        pages=tuple(_page(entry, count) for entry, count in zip(header.pages, counts, strict=True)),
        header=header,
        opened=opened,
    )


def _page(entry: PageEntry, num_tokens: int) -> ManifestPage:
    Tier(entry.tier)
    parent, salt, (first, *_) = bytes.fromhex(entry.parent), bytes.fromhex(entry.salt), entry.positions[0]
    chain = chain_key(parent, salt, first, entry.tokens)
    return ManifestPage(chain, num_tokens, entry.heat, entry.nbytes)
