"""Carrying out the guard's ladder: what is given back when memory grows short, and taken again after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from engine.errors import Cancelled
from engine.giving_back import Done, clear_free_buffers, lower_in_hand, lower_pages, spill_idle
from engine.guard import Guard, GuardAction, GuardStep
from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.memory_linux import trim_heap
from engine.prefill_chunks import ChunkSize
from engine.shortening import Shortening

log = logging.getLogger(__name__)

SMALLER = 2
SMALLEST = 4
"""How many times smaller the chunks of a prompt become, first and from `TRIM` on."""


Step = Callable[[], Done | None]
"""Takes a step of the ladder, or takes it back; None where there was nothing to do."""


class Ladder:
    """Follows a guard up and down, on the engine's thread, and takes each step once on the way up.

    Args:
        guard: says how high; None for never.
        take: what a step does; steps that are not named do nothing.
        undo: what its end does.
    """

    def __init__(
        self,
        guard: Guard | None,
        take: Mapping[GuardStep, Step],
        undo: Mapping[GuardStep, Step],
    ) -> None:
        self._guard = guard
        self._take = take
        self._undo = undo
        self._height = GuardStep.NONE

    @property
    def is_due(self) -> bool:
        """Whether the guard is at another height than was followed; costs nothing to ask."""
        return self._guard is not None and self._guard.height is not self._height

    def follow(self) -> Iterator[GuardAction]:
        """Take the steps up to the guard's height, or take back those above it; yield what did something."""
        if self._guard is None:
            return
        height = self._guard.height
        for step in GuardStep:
            if self._height < step <= height and step in self._take:
                yield from _told(step, False, self._guard.reason, self._take[step]())
        for step in reversed(GuardStep):
            if height < step <= self._height and step in self._undo:
                yield from _told(step, True, self._guard.ease, self._undo[step]())
        if height > self._height:
            trim_heap()  # small buffers lie there
        self._height = height


def _told(step: GuardStep, is_end: bool, reason: str, done: Done | None) -> Iterator[GuardAction]:
    if done is not None:
        if done.freed_nbytes:
            trim_heap()  # what was freed may be small buffers, which glibc keeps
        log.info("%s%s: %s (%s)", step.name, " ends" if is_end else "", done.sentence, reason)
        yield GuardAction(step, is_end, reason, done.sentence, done.freed_nbytes)


class ReplyRelief:
    """The ladder in a reply: what its cache, its chunks and its old text can give.

    Args:
        guard: says how high.
        context: the conversation that is answered.
        held: the conversations, of which others can leave memory.
        shortening: takes text out of it; None where all must stay.
    """

    def __init__(
        self, guard: Guard | None, context: HeldContext, held: HeldSequences, shortening: Shortening | None
    ) -> None:
        self._guard = guard
        self._cache = context.cache
        self._shortening = shortening
        self._chunks: ChunkSize
        self._prompt: Sequence[int] = ()
        self._check: Callable[[], None]
        self._cuts: list[range] = []
        self._ladder = Ladder(
            guard,
            take={
                GuardStep.CLEAR_CACHE: clear_free_buffers,
                GuardStep.LOWER_TIERS: self._lower,
                GuardStep.SPILL_IDLE: lambda: spill_idle(held, self._check),
                GuardStep.SMALLER_CHUNKS: self._shrink_chunks,
                GuardStep.TRIM: self._trim,
                GuardStep.PAUSE: lambda: Done(
                    "The answer waits until there is memory again. Close other programs, or let it go on."
                ),
            },
            undo={
                GuardStep.PAUSE: lambda: Done("The answer goes on."),
                GuardStep.TRIM: self._grow_chunks,
                GuardStep.SMALLER_CHUNKS: self._restore_chunks,
                GuardStep.LOWER_TIERS: self._ease,
            },
        )

    @property
    def is_due(self) -> bool:
        """Whether there is something to follow; costs nothing to ask."""
        return self._ladder.is_due

    @property
    def wants_pause(self) -> bool:
        """Whether the reply is to wait now."""
        return self._guard is not None and self._guard.height is GuardStep.PAUSE

    def follow(
        self, chunks: ChunkSize, prompt: Sequence[int], check: Callable[[], None]
    ) -> Iterator[GuardAction]:
        """Follow the guard between two chunks or tokens; yield what did something.

        Args:
            chunks: of the prompt.
            prompt: its tokens. What `take_cuts` gives after this is to be taken out of it.
            check: looks for a stop; it raises to leave.
        """
        self._chunks, self._prompt, self._check = chunks, prompt, check
        yield from self._ladder.follow()

    def after_chunk(self) -> None:
        """Give back what reading a chunk left in the heap, while that counts."""
        if self._guard is not None and self._guard.height is not GuardStep.NONE:
            trim_heap()

    def take_cuts(self) -> list[range]:
        """Return what left the cache since the last call and is to leave the prompt: its tokens, in order."""
        cuts, self._cuts = self._cuts, []
        return cuts

    @property
    def _is_reading(self) -> bool:
        return self._cache.num_tokens < len(self._prompt) - 1

    def _shrink_chunks(self) -> Done | None:
        self._chunks.divisor = SMALLER
        if not self._is_reading:
            return None
        return Done("The prompt is read in smaller pieces, which need less room.")

    def _grow_chunks(self) -> None:
        self._chunks.divisor = SMALLER

    def _restore_chunks(self) -> Done | None:
        self._chunks.divisor = 1
        return Done("The prompt is read in pieces of full size again.") if self._is_reading else None

    def _lower(self) -> Done | None:
        return lower_pages(self._cache, self._check)

    def _ease(self) -> None:
        self._cache.ease()

    def _trim(self) -> Done | None:
        """Take text out of the cache, where that takes no reading again."""
        self._chunks.divisor = SMALLEST
        if self._shortening is None:
            return None
        before = self._cache.nbytes
        self._cuts = self._shortening.carry_out()
        if not self._cuts:
            return None
        return Done(
            f"Older text left what the model reads, {sum(map(len, self._cuts)):,} tokens. The conversation "
            "keeps all of it.",
            max(0, before - self._cache.nbytes),
        )


class AsideRelief(ReplyRelief):
    """The ladder in an aside: what the conversations that are held give, and at last the aside itself.

    Args:
        guard: says how high.
        context: what is read for the aside.
        held: the conversations.
    """

    def __init__(self, guard: Guard | None, context: HeldContext, held: HeldSequences) -> None:
        super().__init__(guard, context, held, None)
        self._held = held

    def _lower(self) -> Done | None:
        return lower_in_hand(self._held, self._check)

    def _trim(self) -> Done | None:
        """Make way: nobody waits for an aside, and it can be asked again.

        Raises:
            Cancelled: always.
        """
        raise Cancelled


class IdleRelief:
    """The ladder between replies: what the conversations that are held can give.

    Args:
        guard: says how high.
        held: the conversations.
    """

    def __init__(self, guard: Guard | None, held: HeldSequences) -> None:
        self._held = held
        self._check: Callable[[], None]
        self._ladder = Ladder(
            guard,
            take={
                GuardStep.CLEAR_CACHE: clear_free_buffers,
                GuardStep.LOWER_TIERS: self._lower,
                GuardStep.SPILL_IDLE: lambda: spill_idle(held, self._check),
            },
            undo={},
        )

    @property
    def is_due(self) -> bool:
        """Whether there is something to follow."""
        return self._ladder.is_due

    def follow(self, check: Callable[[], None]) -> Iterator[GuardAction]:
        """Follow the guard; yield what did something. `check` looks for a stop; it raises to leave."""
        self._check = check
        yield from self._ladder.follow()

    def _lower(self) -> Done | None:
        return lower_in_hand(self._held, self._check)
