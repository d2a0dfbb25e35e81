"""What the next trim of a conversation does and needs, found out before its next question is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.records import LedgerRows
from app.ledger.trimming import TrimPlan
from app.store.records import Message, Role

RECENT_TURNS = 5
"""So many of the last turns tell how long the next ones will be."""
NEXT_QUESTION = 0
"""The id of the question that is still to come; the store's are positive."""


def next_trim(
    path: Sequence[Message], rows: LedgerRows, planner: TrimPlanner
) -> tuple[ConversationContext, TrimPlan] | None:
    """Return what the next trim does, and the context that it is for; None where it is still far away.

    None, too, where no question tells what the next one will be: a summary that waits for it cannot be read.

    The questions and answers that come are taken to be like the last ones. Those that there is still room for
    stay, so that more of what is there now will have to go.
    """
    context = _next_context(path, rows)
    if context is None:
        return None
    room = planner.room(context)
    if room.num_tokens <= room.prepare_tokens:
        return None
    growth_tokens = _growth_tokens(room.due_tokens - room.num_tokens, context, planner)
    plan = planner.plan(context, room, summarizes=True, growth_tokens=growth_tokens)
    return None if plan is None else (context, plan)


def due_trim(
    path: Sequence[Message], rows: LedgerRows, planner: TrimPlanner
) -> tuple[ConversationContext, TrimPlan] | None:
    """Return the trim that the next question makes due, and the context that it is for; None for no trim."""
    context = _next_context(path, rows)
    if context is None:
        return None
    room = planner.room(context)
    plan = planner.plan(context, room, summarizes=planner.summarizes) if room.is_due else None
    return None if plan is None else (context, plan)


def _next_context(path: Sequence[Message], rows: LedgerRows) -> ConversationContext | None:
    """Return the context with the next question; None where nothing tells what that will be."""
    question = _next_question(path)
    if question is None or path[-1].role is Role.USER:
        return None
    return ConversationContext.of([*path, question], rows)


def _growth_tokens(room_tokens: int, context: ConversationContext, planner: TrimPlanner) -> int:
    """Return what turns are long together of which the last one is too much for the room."""
    if room_tokens < 0:
        return 0
    recent = context.turns[-1 - RECENT_TURNS : -1]
    words = [message.text for turn in recent for message in turn.messages]
    turn_tokens = max(1, sum(map(planner.count, words)) // max(1, len(recent)))
    return (room_tokens // turn_tokens + 1) * turn_tokens


def _next_question(path: Sequence[Message]) -> Message | None:
    """Return the question of middle length among the last ones, as the next one; None without words."""
    asked = [message for message in path if message.role is Role.USER and message.text][-RECENT_TURNS:]
    if not asked:
        return None
    typical = sorted(asked, key=lambda message: len(message.text))[len(asked) // 2]
    return dataclasses.replace(typical, id=NEXT_QUESTION, attachments=())
