"""Where in a conversation turns and documents are that the model no longer reads themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from app.ledger.context import ConversationContext, SpanState, Turn
from app.ledger.records import Summary, message_key


@dataclass(frozen=True)
class LeftOutRun:
    """Turns in a row that the model does not read, or for which one summary stands.

    Attributes:
        key: of the summary, else of the first message.
        num_messages: messages of the turns.
        below_id: the first message behind them, None where they are the last.
        summary: what stands for them, None for nothing.
    """

    key: str
    num_messages: int
    below_id: int | None
    summary: Summary | None


def left_out_runs(context: ConversationContext) -> tuple[LeftOutRun, ...]:
    """Return where the path has turns that are not in the context, in order."""
    runs: list[LeftOutRun] = []
    passed = 0
    for (state, summary), turns in groupby(context.turns, key=_standing):
        messages = [message for turn in turns for message in turn.messages]
        passed += len(messages)
        if state is not SpanState.IN_CONTEXT:
            below = context.path[passed].id if passed < len(context.path) else None
            key = summary.key if summary is not None else message_key(messages[0].id)
            runs.append(LeftOutRun(key, len(messages), below, summary))
    return tuple(runs)


def left_out_documents(context: ConversationContext) -> Mapping[int, SpanState]:
    """Return what became of documents, by their ids, that are left out or summarized by themselves."""
    states = dict.fromkeys(context.standing.dropped_documents, SpanState.DROPPED)
    states |= dict.fromkeys(context.standing.document_summaries, SpanState.SUMMARIZED)
    return {context.items.documents[key].id: state for key, state in states.items()}


def _standing(turn: Turn) -> tuple[SpanState, Summary | None]:
    return turn.state, turn.summary
