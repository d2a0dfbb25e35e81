"""Asking the user what to do with a conversation that outgrows its context: the refusal, and the choices."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import Protocol

from app.documents.ways import DocumentWay
from app.ledger.actions import read_by, together
from app.ledger.context import ConversationContext, SpanState
from app.ledger.planning import ContextRoom
from app.ledger.records import ContextChange
from app.ledger.trimming import TrimPlan
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from engine.admission import (
    AdmissionError,
    DropTurns,
    LongerContext,
    LookUp,
    SummarizeTurns,
    longer_context,
)
from engine.budget import kv_nbytes
from engine.kv.page_map import SpanKind
from engine.remedies import as_sentence, remedies
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import LoadedModel


class TrimPlanning(Protocol):
    """What plans a trim: the engine's thread with the numbers as they are, the window with an estimate."""

    @property
    def loaded(self) -> LoadedModel:
        """The model."""

    @property
    def settings(self) -> ReplySettings:
        """How the conversation is answered."""

    def room(self, context: ConversationContext) -> ContextRoom:
        """Return the room that there is for a context."""

    def plan(self, context: ConversationContext, room: ContextRoom, *, summarizes: bool) -> TrimPlan | None:
        """Return what brings a context down to what is kept; None where nothing may be released."""


def turn_choices(planner: TrimPlanning, context: ConversationContext) -> Iterator[SummarizeTurns | DropTurns]:
    """Yield what a trim would do where all fits after it, beyond what is done without asking."""
    room, policy = planner.room(context), planner.settings.overflow
    for kind, summarizes in ((SummarizeTurns, True), (DropTurns, False)):
        is_done = policy is Overflow.DROP or (summarizes and policy is Overflow.SUMMARIZE)
        plan = None if is_done else planner.plan(context, room, summarizes=summarizes)
        if plan is not None and plan.num_tokens + MIN_ANSWER_TOKENS <= room.limit_tokens:
            yield kind(plan.num_turns)


def document_choices(planner: TrimPlanning, context: ConversationContext) -> Iterator[LookUp]:
    """Yield to look up what is read whole now, where a context needs nothing else then.

    As few documents as can be, the largest first.
    """
    whole = [
        span.key
        for span in context.spans
        if span.kind is SpanKind.DOCUMENT
        and span.state is SpanState.IN_CONTEXT
        and context.ways.is_whole(span.key)
    ]
    by_size = sorted(whole, key=lambda key: -len(context.ways.document(key).text))

    def is_enough(num_documents: int) -> bool:
        room = planner.room(context.changed(together(context, by_size[:num_documents], _looked_up)))
        return not room.is_due and room.num_tokens + MIN_ANSWER_TOKENS <= room.limit_tokens

    num_documents = bisect.bisect_left(range(1, len(whole) + 1), True, key=is_enough) + 1
    if num_documents <= len(whole):
        yield LookUp(tuple(key for key in whole if key in by_size[:num_documents]))


def _looked_up(context: ConversationContext, key: str) -> ContextChange:
    return read_by(context, key, DocumentWay.LOOK_UP)


def with_turn_choices(
    error: AdmissionError, planner: TrimPlanning, context: ConversationContext
) -> AdmissionError:
    """Put what a trim by this conversation's settings would do into a refusal by the engine.

    And to look documents up, which the engine offers only for those of the question.
    """
    others = [each for each in error.choices if not isinstance(each, SummarizeTurns | DropTurns)]
    has_look_up = any(isinstance(each, LookUp) for each in others)
    documents = () if has_look_up else tuple(document_choices(planner, context))
    error.choices = (*others, *documents, *turn_choices(planner, context))
    return error


def due_refusal(planner: TrimPlanning, context: ConversationContext) -> AdmissionError | None:
    """Return the refusal of what fits still and is to be trimmed; None where nothing may be released."""
    room, turns = planner.room(context), tuple(turn_choices(planner, context))
    if not turns:
        return None
    documents = document_choices(planner, context)
    choices = (*_longer(room, planner.settings.trim_at), *documents, *turns)
    return AdmissionError(
        f"The conversation has {room.num_tokens:,} tokens. With {room.answer_tokens:,} for the answer that "
        f"is more than the {room.due_tokens + room.answer_tokens:,} at which this profile asks what to do. "
        f"{as_sentence(remedies(choices))}",
        needed_nbytes=_nbytes(planner, room.num_tokens + room.answer_tokens),
        available_nbytes=_nbytes(planner, room.limit_tokens),
        choices=choices,
    )


def _longer(room: ContextRoom, trim_at: float) -> Iterator[LongerContext]:
    """Yield a context in which it is not to be trimmed yet, where model and memory hold one."""
    longer = longer_context(math.ceil((room.num_tokens + room.answer_tokens) / trim_at), room.fitting_tokens)
    if longer is not None and longer.max_context > room.limit_tokens:
        yield longer


def _nbytes(planner: TrimPlanning, num_tokens: int) -> int:
    loaded = planner.loaded
    return kv_nbytes(loaded.info, loaded.backend, planner.settings.kv, num_tokens)
