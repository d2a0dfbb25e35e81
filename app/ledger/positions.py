"""When a conversation is to be read again for its positions: those of what was taken out stay unused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.reply_settings import ReplySettings
from engine.context_usage import SpanUsage
from engine.engine import Engine
from engine.kv.page_map import SpanKind
from engine.reply_admission import MIN_ANSWER_TOKENS

_ASKED = (SpanKind.USER, SpanKind.DOCUMENT)


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


def question_tokens(spans: Iterable[SpanUsage]) -> Iterator[int]:
    """Yield the tokens of each question with its documents, and at last those behind the last answer."""
    tokens = 0
    for span in spans:
        if span.kind in _ASKED:
            tokens += span.num_tokens
        elif span.kind is SpanKind.ASSISTANT:
            yield tokens
            tokens = 0
    yield tokens
