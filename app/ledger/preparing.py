"""What the next trim of a conversation will need, found out before its next question is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.records import LedgerRows
from app.ledger.trimming import TrimPlan
from app.store.records import Message, Role

RECENT_QUESTIONS = 5
"""So many of the last questions tell how long the next one will be."""
NEXT_QUESTION = 0
"""The id of the question that is still to come; the store's are positive."""


def next_trim(
    path: Sequence[Message], rows: LedgerRows, planner: TrimPlanner
) -> tuple[ConversationContext, TrimPlan] | None:
    """Return what the next trim does, and the context that it is for; None where it is still far away.

    The question that comes is taken to be one of the last ones. Until the trim is due, the conversation grows
    by what there is room for, and all of that stays.
    """
    if not path or path[-1].role is Role.USER:
        return None
    context = ConversationContext.of([*path, *_next_question(path)], rows)
    room = planner.room(context)
    if room.num_tokens <= room.prepare_tokens:
        return None
    growth_tokens = max(0, room.due_tokens - room.num_tokens)
    plan = planner.plan(context, room, summarizes=True, growth_tokens=growth_tokens)
    return None if plan is None else (context, plan)


def _next_question(path: Sequence[Message]) -> list[Message]:
    """Return the question of middle length among the last ones, as the next one; none without words."""
    asked = [message for message in path if message.role is Role.USER and message.text][-RECENT_QUESTIONS:]
    if not asked:
        return []
    typical = sorted(asked, key=lambda message: len(message.text))[len(asked) // 2]
    return [dataclasses.replace(typical, id=NEXT_QUESTION, attachments=())]
