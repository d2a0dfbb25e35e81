"""What a chat template adds to the texts of a conversation, measured with the template itself."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model import ChatMessage, Model
from engine.tokens import TokenCounter

_WORD = "word"


@dataclass(frozen=True)
class TemplateTokens:
    """Tokens around the texts of a conversation; exact as long as a text does not melt into its markers.

    Attributes:
        first: around the first question: its markers, the model's own system prompt where it has one, and
            the start of the answer.
        first_with_system: the same when there is a system prompt, whose text is not counted.
        pair: around each further answer and question together.
    """

    first: int
    first_with_system: int
    pair: int

    def around(self, num_turns: int, has_system_prompt: bool) -> int:
        """Return the tokens that so many turns take beside their texts, the start of an answer included.

        Exact where the last turn is a question, about right after an answer, 0 without turns.
        """
        if not num_turns:
            return 0
        first = self.first_with_system if has_system_prompt else self.first
        return first + (num_turns - 1) * self.pair // 2


def measure_template(model: Model, counter: TokenCounter) -> TemplateTokens:
    """Render three tiny conversations and solve for the parts; `counter` is the model's."""
    question, answer = ChatMessage("user", _WORD), ChatMessage("assistant", _WORD)
    word = counter.count(_WORD)
    first = len(model.render([question])) - word
    three = len(model.render([question, answer, question])) - 3 * word
    with_system = len(model.render([ChatMessage("system", _WORD), question])) - 2 * word
    return TemplateTokens(first, with_system, three - first)
