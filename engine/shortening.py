"""What leaves a conversation in the middle of a reply, where memory is short: text that needs no reading."""

from __future__ import annotations

from collections.abc import Callable

from engine.branching import departure
from engine.held_context import HeldContext
from engine.spans import Prompt


class Shortening:
    """Takes out of a context, once, what a shorter form of its conversation lacks.

    What that form has beside it, such as a summary, waits for the next reply.

    Args:
        context: the conversation, of which a part of the prompt may be unread.
        prompt: what is answered.
        answer_key: names the answer.
        shorter: gives the shorter form.
    """

    def __init__(
        self, context: HeldContext, prompt: Prompt, answer_key: str, shorter: Callable[[], Prompt]
    ) -> None:
        self._context = context
        self._prompt = prompt
        self._answer_key = answer_key
        self._shorter: Callable[[], Prompt] | None = shorter

    def carry_out(self) -> list[range]:
        """Take the text out; return which tokens of the prompt that was, in order."""
        if self._shorter is None or not self._context.cache.can_edit:
            return []
        shorter, self._shorter = self._shorter(), None
        found = departure(self._prompt, shorter)
        if not found.stays_to_the_end:  # the template writes it otherwise: it would have to be read again
            return []
        left = list(self._prompt.tokens)
        for stretch in reversed(found.released):
            self._context.drop(stretch.start, stretch.stop)
            del left[stretch.start : stretch.stop]
        if left == shorter.tokens:  # markers at the borders may count to another message there
            self._context.read_is(shorter, self._answer_key)
        return list(found.released)
