"""When a conversation has too few positions for its next turn: those of what was taken out stay unused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.ledger.context import ConversationContext
from app.ledger.planning import TrimPlanner
from app.ledger.trimming import TrimPlan
from app.reply_settings import ReplySettings
from engine.context_usage import SpanUsage
from engine.engine import Engine
from engine.kv.page_map import SpanKind
from engine.reply_admission import MIN_ANSWER_TOKENS

_ASKED = (SpanKind.USER, SpanKind.DOCUMENT, SpanKind.NOTES)
_ENDS = (SpanKind.USER, SpanKind.ASSISTANT)
"""What follows the documents of a question: its words, or its answer where it has none."""


def lacks_positions(engine: Engine, conversation_id: int, settings: ReplySettings) -> bool:
    """Return whether the next turn may run out of positions though reading again would give enough.

    For the conversation in hand. The next question is taken to be no longer than the longest one that is
    held, with its documents.
    """
    loaded, usage, left = engine.loaded, engine.context_usage(), engine.positions_left(conversation_id)
    if loaded is None or usage is None or left is None:
        return False
    limit = loaded.plan_at(settings.kv).fitting_tokens
    limit = min(limit, settings.max_context or limit)
    answer = max(MIN_ANSWER_TOKENS, min(settings.sampling.max_tokens, limit // 4))
    needed = answer + max(answer, *question_tokens(usage.spans))
    return left < needed <= usage.positions - usage.num_tokens


def lacks_positions_after(
    engine: Engine, planner: TrimPlanner, context: ConversationContext, plan: TrimPlan
) -> bool:
    """Return whether the turn that a trim is due for would have all behind the trim read again in it.

    For the conversation in hand. The trim frees no positions, and where the context is about all that the
    model has, too few are left behind it for the question and its answer.

    Args:
        engine: holds the conversation.
        planner: plans its trims.
        context: what the model reads with the next question as its last message.
        plan: the trim.
    """
    left, usage = engine.positions_left(planner.conversation_id), engine.context_usage()
    before = ConversationContext.of(context.path[:-1], context.rows)
    if left is None or usage is None or not before.messages:
        return False
    if before.messages[-1].key not in {span.key for span in usage.spans}:
        return False  # another branch, or not all of it
    room = planner.room(context)
    question_tokens = room.num_tokens - planner.room(before).num_tokens
    answer_tokens = min(planner.settings.sampling.max_tokens, room.limit_tokens - plan.num_tokens)
    return left < question_tokens + answer_tokens


def question_tokens(spans: Iterable[SpanUsage]) -> Iterator[int]:
    """Yield the tokens of each question with its documents, and those of documents at the end."""
    tokens = 0
    for span in spans:
        if span.kind in _ASKED:
            tokens += span.num_tokens
        if tokens and span.kind in _ENDS:
            yield tokens
            tokens = 0
    if tokens:
        yield tokens
