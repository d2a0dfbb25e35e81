"""Whether a reply can be written: before anything is read, with what would fit where it cannot."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.admission import (
    AdmissionError,
    Choice,
    ContextOverflowError,
    DropTurns,
    InSegments,
    LookUp,
    LowerPrecision,
    PackedWeights,
    SummarizeTurns,
    longer_context,
    other_ways,
    reading_room_tokens,
    too_large,
)
from engine.budget import kv_nbytes
from engine.headroom import CacheRoom, limit_in_the_way, more_memory
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from engine.model import ChatMessage
from engine.planned_room import limit_of_plan, more_room, room_words
from engine.remedies import AS_DOCUMENT, as_sentence, remedies
from engine.requests import LoadedModel
from engine.spans import DocumentRange
from engine.turns import KEPT_SHARE, Render, turn_starts
from engine.wording import format_apart

SUMMARY_SHARE = 0.15
"""A summary takes at most this share of the tokens that it stands for, and of the context."""
MIN_ANSWER_TOKENS = 16
"""A prompt must leave room for at least this much of an answer."""


@dataclass(frozen=True)
class Question:
    """What is to be answered, and the room that there is for it.

    Attributes:
        messages: the conversation.
        num_tokens: tokens of the prompt that it makes.
        kv: the precision that is asked for.
        max_context: the most tokens that the user allows, None for no such limit.
        room: the memory for it.
        loaded: the model, with what the user allows now.
        render: gives the tokens of messages.
        keep_ratio: the share of the context that leaving turns out brings it down to.
        pinned: keys of messages and documents that always stay.
    """

    messages: Sequence[ChatMessage]
    num_tokens: int
    kv: KVSpec
    max_context: int | None
    room: CacheRoom
    loaded: LoadedModel
    render: Render
    keep_ratio: float = KEPT_SHARE
    pinned: frozenset[str] = frozenset()

    @property
    def needed_tokens(self) -> int:
        """Tokens of the prompt and of the shortest answer."""
        return self.num_tokens + MIN_ANSWER_TOKENS

    @property
    def allowed_tokens(self) -> int:
        """The context without regard to memory."""
        positions = self.room.info.context_tokens
        return positions if self.max_context is None else min(positions, self.max_context)

    @property
    def limit_tokens(self) -> int:
        """The context: what is allowed and fits into memory, at least what is there already."""
        return min(self.allowed_tokens, max(self.fitting_tokens, self.needed_tokens))

    @functools.cached_property
    def fitting_tokens(self) -> int:
        """The tokens that memory holds now: of what the user allows, no more than loading plans with."""
        return min(self.room.fitting_tokens(self.kv), self._planned_tokens)

    @property
    def _planned_tokens(self) -> int:
        if self.loaded.limits.most_nbytes is None:
            return self.room.info.context_tokens
        return max(self.loaded.plan_at(self.kv).fitting_tokens, self.room.held_tokens)

    def require_positions(self) -> None:
        """Raise a `ContextOverflowError` where the model does not have so many positions."""
        positions = self.room.info.context_tokens
        if self.needed_tokens <= positions:
            return
        choices = tuple(self._shorter(self.allowed_tokens))
        raise ContextOverflowError(
            f"The conversation has {self.num_tokens:,} tokens and the model can read {positions:,}, "
            f"{MIN_ANSWER_TOKENS} of them kept for the answer: that is {self.needed_tokens - positions:,} "
            f"tokens too many. {as_sentence(self._less(choices))}",
            needed_tokens=self.needed_tokens,
            limit_tokens=positions,
            needed_nbytes=self._kv_nbytes(self.needed_tokens),
            available_nbytes=self._kv_nbytes(positions),
            choices=choices,
        )

    def _less(self, choices: Sequence[Choice]) -> list[str]:
        """Return what there is to do beside choices, and these, as parts of a sentence."""
        has_documents = any(_documents(message) for message in self.messages)
        ways = ["remove a document"] if has_documents else []
        if len(turn_starts(self.messages)) > 1 and not self._is_last_too_long:
            ways.append("start a new conversation")
        ways.append("shorten the message")
        if self._is_last_too_long and not has_documents:
            ways.append(AS_DOCUMENT)
        return [*remedies(choices), *ways]

    @property
    def _is_last_too_long(self) -> bool:
        """Whether the last message does not even fit without the turns before it."""
        system = tuple(message for message in self.messages[:1] if message.role == "system")
        alone = len(self.render((*system, *self.messages[-1:])))
        return alone + MIN_ANSWER_TOKENS > min(self.allowed_tokens, self._planned_tokens)

    def require_fit(self) -> None:
        """Raise an `AdmissionError` where it is longer than the user allows, or memory does not hold it."""
        if self.needed_tokens > self.allowed_tokens:
            raise self._beyond_context()
        if self.needed_tokens > self._planned_tokens:
            raise self._beyond_plan()
        if not self.room.fits(self.kv, self.needed_tokens):
            raise self._beyond_memory()

    def _beyond_context(self) -> AdmissionError:
        surplus = self.needed_tokens - self.allowed_tokens
        longer = longer_context(self.needed_tokens, self.fitting_tokens)
        choices = (*([] if longer is None else [longer]), *self._shorter(self.limit_tokens))
        return AdmissionError(
            f"The conversation has {self.num_tokens:,} tokens and its context is set to "
            f"{self.allowed_tokens:,}, {MIN_ANSWER_TOKENS} of them kept for the answer: that is {surplus:,} "
            f"tokens too many. {as_sentence(self._less(choices))}",
            needed_nbytes=self._kv_nbytes(self.needed_tokens),
            available_nbytes=self._kv_nbytes(self.allowed_tokens),
            choices=choices,
            can_override=longer is None,
        )

    def _beyond_plan(self) -> AdmissionError:
        plan, limit = self.loaded.plan_at(self.kv), limit_of_plan(self.loaded, self.kv)
        more = more_room(self.loaded, self.kv, self.needed_tokens)
        choices = (*more, *self._shorter(min(self.allowed_tokens, plan.fitting_tokens)))
        allow = more_memory(limit)
        return AdmissionError(
            f"The conversation has {self.num_tokens:,} tokens. "
            f"{room_words(self.loaded, self.kv, self.needed_tokens)} "
            f"{as_sentence([allow, *self._less(choices)])}",
            needed_nbytes=self._kv_nbytes(self.needed_tokens),
            available_nbytes=plan.kv_budget_nbytes,
            choices=choices,
            limit_nbytes=limit,
        )

    def _beyond_memory(self) -> AdmissionError:
        needed = self.room.needed_nbytes(self.kv, self.needed_tokens)
        fitting = min(self.allowed_tokens, self.fitting_tokens)
        lower = self.room.mildest(self.kv, self.needed_tokens)
        choices: list[Choice] = list(self._packed())
        if lower is not None:
            choices.append(LowerPrecision(lower, min(self.allowed_tokens, self.room.fitting_tokens(lower))))
        choices.extend(self._shorter(fitting))
        wanted, there = format_apart(needed, self.room.headroom_nbytes)
        limit = limit_in_the_way(self.loaded.limits, needed)
        return AdmissionError(
            f"The conversation has {self.num_tokens:,} tokens. To read them takes {wanted} more memory, the "
            f"room to work in included, and {there} can be had now. "
            f"{as_sentence([more_memory(limit), *self._less(choices)])}",
            needed_nbytes=needed,
            available_nbytes=self.room.headroom_nbytes,
            choices=tuple(choices),
            limit_nbytes=limit,
        )

    def _packed(self) -> Iterator[PackedWeights]:
        """Yield to load with packed weights where all fits then."""
        packed = self.loaded.packed_plan_at(self.kv)
        if packed is None:
            return
        gained = self.loaded.plan.weights_nbytes - packed.weights_nbytes + self.room.held_nbytes
        room = dataclasses.replace(
            self.room,
            headroom_nbytes=self.room.headroom_nbytes + gained,
            held_nbytes=0,
            held_tokens=0,
        )
        if room.fits(self.kv, self.needed_tokens):
            yield PackedWeights(self.needed_tokens)

    def _shorter(self, limit_tokens: int) -> Iterator[Choice]:
        """Yield what makes the prompt fit a context of so many tokens, the milder first."""
        yield from self._read_otherwise(limit_tokens)
        yield from self._without_turns(limit_tokens)

    def _without_turns(self, limit_tokens: int) -> Iterator[Choice]:
        """Yield to summarize old turns or to leave them out, where what stays fits then.

        Only a conversation that is stored has keys, and a place to keep a summary in.
        """
        turns = self._turns_to_release(int(self.keep_ratio * limit_tokens))
        kept_tokens = len(self.render(self._released(turns)))
        room = limit_tokens - MIN_ANSWER_TOKENS - kept_tokens
        if not turns or room < 0:
            return
        summary_tokens = SUMMARY_SHARE * min(self.num_tokens - kept_tokens, limit_tokens)
        if self.messages[-1].key and summary_tokens <= room:
            yield SummarizeTurns(turns)
        yield DropTurns(turns)

    def _turns_to_release(self, most_tokens: int) -> int:
        """Return how many of the turns that may go have to, the oldest first, for so many tokens to stay."""

        def is_enough(num_turns: int) -> bool:
            return len(self.render(self._released(num_turns))) <= most_tokens

        return bisect.bisect_left(range(len(self._releasable())), True, key=is_enough)

    def _releasable(self) -> list[tuple[int, int]]:
        """Return where the turns that may go begin and end: all but the last one and pinned ones."""
        starts = turn_starts(self.messages)
        return [
            (start, stop)
            for start, stop in itertools.pairwise(starts)
            if self.pinned.isdisjoint(key for message in self.messages[start:stop] for key in _keys(message))
        ]

    def _released(self, num_turns: int) -> tuple[ChatMessage, ...]:
        gone = {index for turn in self._releasable()[:num_turns] for index in range(*turn)}
        return tuple(message for index, message in enumerate(self.messages) if index not in gone)

    def _read_otherwise(self, limit_tokens: int) -> Iterator[InSegments | LookUp]:
        """Yield to read the largest of the last message's documents in segments, or to look them up.

        So many of them that the others fit whole. The tokens of documents are estimated by their share of the
        characters.
        """
        documents = _documents(self.messages[-1]) if self.messages else []
        if not documents:
            return
        system = tuple(message for message in self.messages[:1] if message.role == "system")
        alone = (*system, self.messages[-1])
        num_tokens = len(self.render(alone))
        characters = max(1, sum(len(message.content) for message in alone))
        tokens = [num_tokens * (each.stop - each.start) // characters for each in documents]
        beside = num_tokens - sum(tokens)
        room = limit_tokens - reading_room_tokens(limit_tokens) - MIN_ANSWER_TOKENS
        taken = too_large(tokens, room - (self.num_tokens - sum(tokens)))
        yield from other_ways(
            [(documents[index].key, tokens[index]) for index in taken], beside, limit_tokens
        )

    def _kv_nbytes(self, num_tokens: int) -> int:
        return kv_nbytes(self.room.info, self.room.backend, self.kv, num_tokens)


def require_rebuild_fits(room: CacheRoom, kv: KVSpec, num_tokens: int, limits: MemoryLimits) -> None:
    """Raise an `AdmissionError` where a conversation that is read again at a precision does not fit."""
    if room.fits(kv, num_tokens):
        return
    lower = room.mildest(kv, num_tokens)
    needed = room.needed_nbytes(kv, num_tokens)
    limit = limit_in_the_way(limits, needed)
    wanted, there = format_apart(needed, room.headroom_nbytes)
    precision = "" if lower is None else " or choose a lower KV precision"
    raise AdmissionError(
        f"To read the {num_tokens:,} tokens of this conversation again takes {wanted} more memory, and "
        f"{there} can be had now. {more_memory(limit)}{precision}.",
        needed_nbytes=needed,
        available_nbytes=room.headroom_nbytes,
        choices=() if lower is None else (LowerPrecision(lower, room.fitting_tokens(lower)),),
        can_override=False,
    )


def _documents(message: ChatMessage) -> list[DocumentRange]:
    """Return the documents of a message: without summaries, which cannot be removed or read in segments."""
    return [each for each in message.documents if each.kind is SpanKind.DOCUMENT]


def _keys(message: ChatMessage) -> Iterator[str]:
    yield message.key
    yield from (document.key for document in message.documents)
