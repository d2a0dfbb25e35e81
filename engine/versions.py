"""The versions of one conversation: what was read of each of its branches, with pages that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache

MOST_VERSIONS = 8
"""So many are held of a conversation, the one that goes on included."""


class Versions:
    """The version of a conversation that goes on, and others, to which the user may come back.

    All have their pages in one store.

    Attributes:
        current: the version that goes on.
    """

    def __init__(self, current: HeldContext) -> None:
        self.current = current
        self._others: list[HeldContext] = []  # the one that went on longest ago is the first

    @property
    def num_others(self) -> int:
        """How many versions are held beside the one that goes on."""
        return len(self._others)

    @property
    def nbytes(self) -> int:
        """Bytes of all versions, what they share counted once."""
        return self.current.cache.nbytes + sum(one.cache.open_nbytes for one in self._others)

    @property
    def others_nbytes(self) -> int:
        """Bytes that would be free without the versions beside the one that goes on."""
        if not self._others:
            return 0
        pages = SequenceCache.pages_of(self.caches()) - SequenceCache.pages_of([self.current.cache])
        return sum(page.nbytes for page in pages) + sum(one.cache.open_nbytes for one in self._others)

    def best(self, kept_tokens: Callable[[HeldContext], int]) -> HeldContext:
        """Return the version of which most tokens can be kept; of several the one that went on last."""
        return max(self._all(), key=kept_tokens) if self._others else self.current

    def choose(self, kept_tokens: Callable[[HeldContext], int]) -> None:
        """Let that version go on."""
        best = self.best(kept_tokens)
        if best is not self.current:
            self._others.remove(best)
            self._others.append(self.current)
            self.current = best
        self._tidy()

    def branch(self) -> None:
        """Let a fork of the present version go on, and keep that one as it is.

        Raises:
            OctavoError: some layers are not paged.
        """
        former, self.current = self.current, self.current.fork()
        self._others.append(former)
        while len(self._others) >= MOST_VERSIONS:
            self._others.pop(0).close()

    def forget_oldest(self) -> int:
        """Forget the version that went on longest ago, but not the present one.

        Returns: how many pages only that one had.
        """
        before = len(SequenceCache.pages_of(self.caches()))
        self._others.pop(0).close()
        return before - len(SequenceCache.pages_of(self.caches()))

    def close(self) -> None:
        """Give all memory back."""
        for version in self._all():
            version.close()

    def caches(self) -> list[SequenceCache]:
        """Return the caches of all versions."""
        return [version.cache for version in self._all()]

    def _all(self) -> Iterator[HeldContext]:
        yield self.current
        yield from reversed(self._others)

    def _tidy(self) -> None:
        """Give up versions that are no more than the beginning of another, or the same."""
        tokens = {version: version.cache.tokens for version in self._all()}
        for version in list(self._others):
            own = tokens.pop(version)
            if any(other[: len(own)] == own for other in tokens.values()):
                self._others.remove(version)
                version.close()
            else:
                tokens[version] = own
