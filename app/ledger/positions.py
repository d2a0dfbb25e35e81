"""When a conversation is to be read again for its positions: those of what was taken out stay unused."""

from __future__ import annotations

from app.reply_settings import ReplySettings
from engine.engine import Engine
from engine.reply_admission import MIN_ANSWER_TOKENS


def lacks_positions(engine: Engine, conversation_id: int, settings: ReplySettings) -> bool:
    """Return whether the next turn may run out of positions though reading again would give enough.

    For the conversation in hand.
    """
    loaded, held, left = engine.loaded, engine.held(), engine.positions_left(conversation_id)
    if loaded is None or held is None or left is None:
        return False
    limit = loaded.plan_at(settings.kv).fitting_tokens
    limit = min(limit, settings.max_context or limit)
    answer = max(MIN_ANSWER_TOKENS, min(settings.sampling.max_tokens, limit // 4))
    return left < 2 * answer <= loaded.info.context_tokens - held.usage.num_tokens
