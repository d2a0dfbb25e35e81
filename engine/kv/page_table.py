"""The page table of one sequence: which pages it reads, in order, and which of their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.kv.lineage import new_salt
from engine.kv.page import BoolArray, Page, still_marked
from engine.kv.store import PageStore


@dataclass(frozen=True, eq=False)
class PageReference:
    """A page as one sequence sees it.

    Attributes:
        page: the page.
        valid: marks the tokens that the sequence still has, `[len(page.tokens)]`.
        num_tokens: how many those are.
    """

    page: Page
    valid: BoolArray
    num_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_tokens", int(self.valid.sum()))

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """Ids of the tokens that the sequence still has; while it has all, the page's own tuple."""
        if self.num_tokens == len(self.page.tokens):
            return self.page.tokens
        return tuple(token for token, kept in zip(self.page.tokens, self.valid.tolist(), strict=True) if kept)


class PageTable:
    """References to pages, oldest first, then the open tokens that no page holds yet.

    Plain bookkeeping without arrays: the layers hold the open tokens' keys and values. Every reference is
    counted in the store, which frees a page with its last one, save while the pages are let go.

    Attributes:
        references: the pages, in the order of the text. Replaced, never changed in place.
        open_tokens: ids of the tokens after the last page.
        open_positions: their positions.
        num_sealed: tokens in pages.
        pinned: the positions of tokens that are pinned by hand, with their pages.
        pinned_text: the positions of tokens that are pinned for what they say.
        next_position: where the next token goes; dropped tokens leave their positions unused.
        version: changes with `references`.
        salt: of the pages that are sealed next; empty while the sequence is unbroken. See `lineage`.
        owner: stands for the conversation; the same in all its tables.
    """

    def __init__(self, store: PageStore, owner: object = None) -> None:
        self.store = store
        self.owner = owner or object()
        self.references: tuple[PageReference, ...] = ()
        self.open_tokens: list[int] = []
        self.open_positions: list[int] = []
        self.pinned: set[int] = set()
        self.pinned_text: set[int] = set()
        self.num_sealed = 0
        self.next_position = 0
        self.version = 0
        self.salt = b""
        self._is_holding = True
        store.tables.add(self)

    def __del__(self) -> None:
        """Hand over the pages of a sequence that is dropped without being closed, which others may share.

        The store releases them when it next changes; here it may be in the middle of something.
        """
        if self._is_holding:
            self.store.abandoned.extend(reference.page for reference in self.references)

    @property
    def tokens(self) -> list[int]:
        """All tokens that the sequence has, in order."""
        return [token for token, _ in self._sealed_slots()] + self.open_tokens

    @property
    def positions(self) -> list[int]:
        """The positions of `tokens`."""
        return [position for _, position in self._sealed_slots()] + self.open_positions

    def _sealed_slots(self) -> list[tuple[int, int]]:
        return [
            slot
            for reference in self.references
            for slot, kept in zip(
                zip(reference.page.tokens, reference.page.positions, strict=True),
                reference.valid.tolist(),
                strict=True,
            )
            if kept
        ]

    def position(self, index: int) -> int:
        """Return the position of the token at an index, without going through all of them."""
        for reference in self.references:
            if index < reference.num_tokens:
                return reference.page.positions[int(np.flatnonzero(reference.valid)[index])]
            index -= reference.num_tokens
        return self.open_positions[index]

    def pinned_pages(self) -> set[Page]:
        """Return the pages that have pinned tokens."""
        positions = self.pinned | self.pinned_text
        if not positions:
            return set()
        pinned = np.sort(np.fromiter(positions, np.int64, len(positions)))
        starts = np.searchsorted(pinned, [one.page.positions[0] for one in self.references])
        stops = np.searchsorted(pinned, [one.page.positions[-1] for one in self.references], side="right")
        near = [self.references[index] for index in np.flatnonzero(starts < stops).tolist()]
        return {one.page for one in near if not positions.isdisjoint(one.page.positions)}

    def pages_of_others(self) -> set[Page]:
        """Return the pages that other conversations read, also those that are on disk."""
        return _pages_of(one for one in self.store.tables if one.owner is not self.owner)

    @property
    def others_nbytes(self) -> int:
        """Bytes of the pages in memory that only other conversations read."""
        others = self.pages_of_others()
        if others:
            here = (one for one in self.store.tables if one.owner is self.owner and one._is_holding)
            others -= _pages_of([self, *here])
        return sum(page.nbytes for page in others if page in self.store.pages)

    def append(self, tokens: Sequence[int]) -> None:
        """Add tokens behind the open ones, at the next positions."""
        self.open_tokens.extend(tokens)
        self.open_positions.extend(range(self.next_position, self.next_position + len(tokens)))
        self.next_position += len(tokens)

    def add_page(self, page: Page) -> None:
        """Refer to a page that holds the first of the open tokens, which are open no longer."""
        count = len(page.tokens)
        page.parent = self.references[-1].page.chain if self.references else b""
        page.salt = self.salt
        self.set_references((*self.references, PageReference(page, np.ones(count, dtype=np.bool_))))
        del self.open_tokens[:count], self.open_positions[:count]

    def set_references(self, references: Sequence[PageReference]) -> None:
        """Replace the references, counting each new one before an old one is released.

        References to the same page that have nothing between them any more become one.
        """
        references = _joined(references)
        if self._is_holding:
            for reference in references:
                self.store.retain(reference.page)
            for reference in self.references:
                self.store.release(reference.page)
        self.references = references
        self.num_sealed = sum(reference.num_tokens for reference in references)
        self.version += 1

    def let_go(self) -> None:
        """Give the pages up and go on to refer to them: their keys and values are outside."""
        self._is_holding = False
        for reference in self.references:
            self.store.release(reference.page)
        self.version += 1

    def hold(self) -> None:
        """Count the references again: the pages are all there."""
        self._is_holding = True
        for reference in self.references:
            self.store.retain(reference.page)
        self.version += 1

    def break_off(self) -> None:
        """Tell what is read from now on apart from all other text, as what it reads behind was edited."""
        self.salt = new_salt()

    def break_off_at_end(self) -> None:
        """Do so after tokens at the end were forgotten, where these may come again and read something else.

        They may where text before them was edited, which left positions unused that are used now, or where
        the last page has lost some of its own. With no token left at all, nothing was edited.
        """
        if not self.references and not self.open_tokens:
            self.salt = b""
        elif self.salt or (self.references and not self.references[-1].valid.all()):
            self.break_off()

    def keep(self, kept: BoolArray) -> BoolArray:
        """Keep the tokens that are marked, `[len(tokens)]`, and return the marks of the open ones.

        Pages without a token are no longer referred to; what is kept stays at its positions.
        """
        if self.pinned or self.pinned_text:
            gone = {position for position, keep in zip(self.positions, kept, strict=True) if not keep}
            self.pinned -= gone
            self.pinned_text -= gone
        references, start = [], 0
        for reference in self.references:
            valid = still_marked(reference.valid, kept[start : start + reference.num_tokens])
            start += reference.num_tokens
            if valid.any():
                unchanged = (valid == reference.valid).all()
                references.append(reference if unchanged else PageReference(reference.page, valid))
        if references != list(self.references):
            self.set_references(references)
        open_kept = kept[start:]
        self.open_tokens = [token for token, keep in zip(self.open_tokens, open_kept, strict=True) if keep]
        self.open_positions = [at for at, keep in zip(self.open_positions, open_kept, strict=True) if keep]
        return open_kept

    def reopen_last(self) -> None:
        """Make the tokens of the last page the open ones, of which there must be none."""
        last = self.references[-1]
        self.open_tokens = [token for token, keep in zip(last.page.tokens, last.valid, strict=True) if keep]
        self.open_positions = [at for at, keep in zip(last.page.positions, last.valid, strict=True) if keep]
        self.set_references(self.references[:-1])

    def prepend(self, other: PageTable) -> None:
        """Put what another table of the store has before all that is here.

        Its open tokens must be none where there are pages here.
        """
        self.set_references((*other.references, *self.references))
        self.open_tokens[:0], self.open_positions[:0] = other.open_tokens, other.open_positions
        self.pinned |= other.pinned
        self.pinned_text |= other.pinned_text
        self.skip_to_end()

    def skip_to_end(self) -> None:
        """Have the next token follow the last one, unless it is to come later anyway."""
        count = self.num_sealed + len(self.open_tokens)
        if count:
            self.next_position = max(self.next_position, self.position(count - 1) + 1)

    def fork(self) -> PageTable:
        """Return a table of its own that shares all pages."""
        other = PageTable(self.store, self.owner)
        other.salt, other._is_holding = self.salt, self._is_holding
        other.set_references(self.references)
        other.open_tokens = list(self.open_tokens)
        other.open_positions = list(self.open_positions)
        other.pinned, other.pinned_text = set(self.pinned), set(self.pinned_text)
        other.next_position = self.next_position
        return other


def _pages_of(tables: Iterable[PageTable]) -> set[Page]:
    return {reference.page for table in tables for reference in table.references}


def _joined(references: Sequence[PageReference]) -> tuple[PageReference, ...]:
    """Return references of which no two neighbours have the same page."""
    joined: list[PageReference] = []
    for reference in references:
        if joined and joined[-1].page is reference.page:
            reference = PageReference(reference.page, joined.pop().valid | reference.valid)
        joined.append(reference)
    return tuple(joined)
