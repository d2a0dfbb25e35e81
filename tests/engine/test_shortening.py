"""Text that leaves a conversation in the middle of a reply, beside dense attention in numpy."""

from __future__ import annotations

import pytest

from engine.shortening import Shortening
from tests.engine.kv.caches import text_of
from tests.engine.ledger_prompts import WHOLE, Ledger, prompt_for
from tests.engine.test_extending import SUMMARIZED, SYSTEM, TURNS, Conversation, check_logits

PROMPT = prompt_for(TURNS, WHOLE, SYSTEM, is_asked=True)


@pytest.mark.parametrize("num_read", [40, 130, 250, len(PROMPT.tokens)])
@pytest.mark.parametrize("ledger", [Ledger(frozenset({0, 2})), Ledger(frozenset({0, 1, 2})), SUMMARIZED])
def test_what_stays_is_at_its_positions_wherever_reading_or_writing_was(
    ledger: Ledger, num_read: int
) -> None:
    conversation, words = Conversation(), [41, 42, 43] if num_read == len(PROMPT.tokens) else []
    context = conversation.context
    context.read_is(PROMPT, "n4")
    context.cache.read([*PROMPT.tokens[:num_read], *words])
    expected, left = text_of(context.cache), list(PROMPT.tokens)

    shorter = prompt_for(TURNS, ledger, SYSTEM, is_asked=True)
    cuts = Shortening(context, PROMPT, "n4", lambda: shorter).carry_out()

    for cut in reversed(cuts):
        del left[cut.start : cut.stop]
        expected.drop(min(cut.start, num_read), min(cut.stop, num_read))
    assert len(left) < len(PROMPT.tokens)
    if rest := left[context.cache.num_tokens :]:
        context.cache.read(rest)
        expected.append(rest)
    assert context.cache.tokens == [*left, *words]
    gone = {f"{kind}{number}" for number in ledger.gone for kind in "mn"}
    assert gone.isdisjoint(span.key for span in context.spans)
    check_logits(context, expected)
