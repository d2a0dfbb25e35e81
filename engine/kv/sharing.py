"""Pages that several conversations read: what they begin with alike is read once, and held once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Self

from engine.kv.editing import EditableCache
from engine.kv.lineage import prefix_chain
from engine.kv.page import Page
from engine.kv.parting import parted
from engine.kv.precision import KVSpec, Tier


class SharingCache(EditableCache):
    """A cache from whose pages another conversation can begin.

    Unlike forks, which are of one conversation, neither takes bits from a page that the other reads: it gets
    a copy first. Only where memory is short (`press`) do both lose them.
    """

    def common_tokens(self, tokens: Sequence[int], spec: KVSpec) -> int:
        """Return with how many of its first tokens another conversation could begin here, at a precision.

        Those are unbroken and have at least the bits of a cold page. They end with a full page, or among the
        open tokens.
        """
        sizes = (spec.page_tokens, spec.group_size)
        if self.is_outside or not self.can_edit or (self.spec.page_tokens, self.spec.group_size) != sizes:
            return 0
        cold, count = self._store.tier_bits(spec, Tier.COLD), 0
        for reference, chain in zip(
            self._table.references, prefix_chain(tokens, spec.page_tokens), strict=False
        ):
            page = reference.page
            has_bits = (page.held_bits().array >= cold).all()
            if page.chain != chain or not reference.valid.all() or not has_bits:
                return count
            count += reference.num_tokens
        if count < self._table.num_sealed or not self.is_unbroken:
            return count
        both = zip(self._table.open_tokens, tokens[count:], strict=False)
        return count + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))

    def share(self, num_tokens: int, spec: KVSpec) -> Self:
        """Return the cache of another conversation, which begins with the first tokens of this one.

        Args:
            num_tokens: what `common_tokens` gave, or less by whole pages.
            spec: the precision of the other one, whose pages have the same size.
        """
        other = self.fork()
        other._table.owner = object()
        other.truncate(num_tokens)
        other._table.salt = b""
        other._table.pinned, other._table.pinned_text = set(), set()
        other.spec = spec
        other._heat.limit(spec.attention_pages, spec.attention_grows)
        other.ease()
        other.is_behind = True
        other._move_tiers()
        return other

    def cool(self, num_tokens: int) -> None:
        """Bring the full pages of the first tokens down as age would: all but the first to the cold tier."""
        first = Tier.WARM if self.spec.hot_pages + self.spec.warm_pages else Tier.COLD
        moves: list[tuple[Page, Tier]] = []
        count = 0
        for reference in self._table.references:
            count += reference.num_tokens
            if count > num_tokens:
                break
            moves.append((reference.page, Tier.COLD if moves else first))
        self._store.lower_all(parted(self._table, moves, self.spec), self.spec)
