"""Which pages are kept exactly and which may go down a tier, when there are places for some only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.kv.precision import KVSpec, Tier

_RANK = {Tier.COLD: 0, Tier.WARM: 1, Tier.HOT: 2}
_RAISED = {Tier.COLD: Tier.WARM, Tier.WARM: Tier.HOT, Tier.HOT: Tier.HOT}


@dataclass(frozen=True)
class PageState:
    """What the policy knows of a sealed page.

    Attributes:
        tier: the page's present tier.
        heat: moving average of the attention mass that the page receives, 0 or more.
        protected: the first page, to which models attend whatever it says, or one that the user pinned.
    """

    tier: Tier
    heat: float
    protected: bool


@dataclass(frozen=True)
class TierPolicy:
    """Chooses tiers by age and then by heat.

    Age first: what was just read is what the next tokens attend to most, and its heat is not known yet. Heat
    after that: an old page that is still read much does more harm in few bits than its younger neighbours.
    So half of the warm places follow age and the other half go to old pages by their heat.

    Attributes:
        hot_pages: newest pages that may be hot.
        warm_pages: pages before those that may be warm.
    """

    hot_pages: int
    warm_pages: int

    @classmethod
    def of(cls, spec: KVSpec) -> TierPolicy:
        """Return the policy that a precision asks for."""
        return cls(spec.hot_pages, spec.warm_pages)

    @property
    def has_tiers(self) -> bool:
        """Whether there are other tiers than cold."""
        return self.hot_pages + self.warm_pages > 0

    @property
    def first(self) -> Tier:
        """The tier that a new page starts in: it skips those that it would leave at once."""
        if self.hot_pages:
            return Tier.HOT
        return Tier.WARM if self.warm_pages else Tier.COLD

    def wanted(self, pages: Sequence[PageState]) -> list[Tier]:
        """Return the tier that each page should have now, for the sealed pages of a sequence, oldest first.

        Never one above the page's present tier: going up needs the model, since lost bits come back only by
        reading the text again. A protected page gets one tier more than its age gives and takes no place from
        others, so that pinning pages does not cool the newest ones. Asking again about pages that have their
        wanted tiers changes nothing.
        """
        allowed = self._by_age(pages)
        for index in self._hottest(pages, allowed):
            allowed[index] = Tier.WARM
        return [
            min(page.tier, tier, key=_RANK.__getitem__) for page, tier in zip(pages, allowed, strict=True)
        ]

    def _by_age(self, pages: Sequence[PageState]) -> list[Tier]:
        """Return the tier that age and protection give; age is the number of newer pages that take places."""
        warm_by_age = self.warm_pages - self.warm_pages // 2
        allowed, newer = [], 0
        for page in reversed(pages):
            tier = Tier.COLD
            if newer < self.hot_pages + warm_by_age:
                tier = Tier.HOT if newer < self.hot_pages else Tier.WARM
            allowed.append(_RAISED[tier] if page.protected else tier)
            newer += not page.protected
        return allowed[::-1]

    def _hottest(self, pages: Sequence[PageState], allowed: Sequence[Tier]) -> list[int]:
        """Return the pages that take the warm places left to heat; of equal ones the newer.

        A page that is cold already would waste its place, so it is passed over.
        """
        hottest = sorted(
            (
                index
                for index, page in enumerate(pages)
                if allowed[index] is Tier.COLD and page.tier is not Tier.COLD
            ),
            key=lambda index: (pages[index].heat, index),
            reverse=True,
        )
        return hottest[: self.warm_pages // 2]
