"""What a user says in a long conversation about a document that is handed over part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.long_talk.facts import Fact

TURNS_PER_EXCERPT = 4
FACTS_PER_EXCERPT = 3
HANDED_OVER = "Here is the next part of the document. What is it about? Answer in one sentence."
OPEN_QUESTIONS = (
    "What is the most important thing that you have read so far? Answer in one sentence.",
    "What would you ask the authors about it? One question, please.",
    "Who should read this, and why? Answer in one sentence.",
)


@dataclass(frozen=True)
class Step:
    """One question.

    Attributes:
        question: its words.
        excerpt: index of the excerpt that is handed over with it, None for none.
        fact: what it asks for, None for an open question.
    """

    question: str
    excerpt: int | None = None
    fact: Fact | None = None


def script(num_excerpts: int, facts: Sequence[Fact], num_turns: int) -> Iterator[Step]:
    """Yield so many steps: every fourth hands over an excerpt, the next ones ask for what is in it."""
    for number in range(num_turns):
        excerpt, place = divmod(number, TURNS_PER_EXCERPT)
        own = [fact for fact in facts if fact.excerpts[0] == excerpt][:FACTS_PER_EXCERPT]
        if place == 0 and excerpt < num_excerpts:
            yield Step(HANDED_OVER, excerpt=excerpt)
        elif 0 < place <= len(own):
            yield Step(own[place - 1].question, fact=own[place - 1])
        else:
            yield Step(OPEN_QUESTIONS[number % len(OPEN_QUESTIONS)])
