"""What a summary is to be written of, as plain data."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.document_prompt import without_documents, words_inside
from app.segments.prompts import without_reasoning
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec

if TYPE_CHECKING:
    from engine.model import ChatMessage

LEAST_SUMMARY_TOKENS = 24
"""What a summary of little may have, since 15 % of it would be no sentence."""


def most_summary_tokens(source_tokens: int, room_tokens: int | None = None) -> int:
    """Return the tokens that a summary may have: 15 % of what it replaces, rounded down.

    Below 160 tokens that would be no sentence, and it may have 24, but never more than what it replaces, nor
    than `room_tokens` where that is given.
    """
    most = max(source_tokens * 15 // 100, min(LEAST_SUMMARY_TOKENS, source_tokens))
    return most if room_tokens is None else min(most, room_tokens)


def summaries_room_tokens(limit_tokens: int, num_summaries: int = 1) -> int:
    """Return the tokens that each of several summaries may have in a context: 15 % of it for them together.

    What is summarized may be far longer than the context, which was longer before, or is another model's.
    """
    return max(limit_tokens * 15 // 100 // num_summaries, LEAST_SUMMARY_TOKENS)


MOST_EARLIER_SHARE = 2 / 3
"""Of a summary, so that what is new has room beside what was summarized before."""
_SPEAKERS = {"system": "System", "user": "User", "assistant": "Assistant"}
_SPEAKER_LINE = re.compile(rf"({'|'.join(_SPEAKERS.values())}): ")
"""How a line of an extract begins."""


class PartKind(enum.Enum):
    """Whose words a part of what is summarized is."""

    USER = "user"
    ANSWER = "answer"
    DOCUMENT = "document"
    EARLIER = "earlier"
    """An earlier summary, or what one speaker said in it: the only trace of many turns."""


@dataclass(frozen=True)
class SourcePart:
    """What one speaker said at a time, one document, or of an earlier summary.

    Attributes:
        speaker: who said it, or the document's title; empty where that is not to be told.
        text: the words.
        kind: whose words they are.
    """

    speaker: str
    text: str
    kind: PartKind

    @property
    def is_answer(self) -> bool:
        """Whether the model said it, now or in an earlier summary."""
        is_earlier = self.kind is PartKind.EARLIER
        return self.kind is PartKind.ANSWER or (is_earlier and self.speaker == _SPEAKERS["assistant"])


@dataclass(frozen=True)
class SummaryRequest:
    """A run of messages, or one document, and how it is summarized.

    Attributes:
        messages: what the model reads now, from the system prompt to the last message of the run. For a
            document the last one is the user message that it belongs to, which ends with it: its other
            documents may stand before it, what is behind it is cut off.
        first: index in `messages` of the first one of the run; for a document that of the last message.
        covers: keys of the messages, or of the attachment, that the summary stands for.
        num_turns: turns of the run; 0 for a document.
        source_tokens: tokens of the context that the summary replaces.
        room_tokens: what the context leaves for the summary, None where that is no matter.
        kv: precision of the conversation's cache.
        conversation_id: whose cache holds `messages` already.
        repetition_penalty: as in `SamplingParams`.
        anyway: whether the user lets it pass that the conversation does not fit.
    """

    messages: tuple[ChatMessage, ...]
    first: int
    covers: tuple[str, ...]
    num_turns: int
    source_tokens: int
    kv: KVSpec
    conversation_id: int
    repetition_penalty: float = 1.0
    anyway: bool = False
    room_tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        """The tokens that the summary may have."""
        return most_summary_tokens(self.source_tokens, self.room_tokens)

    @property
    def is_document(self) -> bool:
        """Whether it is the last document of the last message that is summarized."""
        return not self.num_turns

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        """What is to be summarized, in order."""
        if self.is_document:
            message = self.messages[-1]
            return (SourcePart("", words_inside(message.documents[-1], message.content), PartKind.DOCUMENT),)
        found = (part for message in self.messages[self.first :] for part in _parts(message))
        return tuple(part for part in found if part.text.strip())

    @property
    def earlier_share(self) -> float:
        """What earlier summaries should have of the new one: as much as their turns are of all, 0 to 2/3."""
        if self.is_document:
            return 0.0
        num_new = sum(part.kind is PartKind.USER for part in self.parts)
        return min(1 - min(num_new, self.num_turns) / self.num_turns, MOST_EARLIER_SHARE)

    @property
    def source(self) -> str:
        """The words of all parts."""
        return "\n\n".join(part.text for part in self.parts)


def _parts(message: ChatMessage) -> Iterator[SourcePart]:
    for each in message.documents:
        words = words_inside(each, message.content)
        if each.kind is SpanKind.SUMMARY:
            yield from _earlier_parts(words)
        else:
            yield SourcePart(each.title, words, PartKind.DOCUMENT)
    own = without_reasoning(without_documents(message.content, message.documents))
    kind = PartKind.ANSWER if message.role == "assistant" else PartKind.USER
    yield SourcePart(_SPEAKERS[message.role], own, kind)


def _earlier_parts(summary: str) -> Iterator[SourcePart]:
    """Yield an earlier summary by who said it, as an extract tells; all at once where nothing does."""
    speaker, said = "", list[str]()
    for line in summary.splitlines():
        begins = _SPEAKER_LINE.match(line)
        if begins:
            yield SourcePart(speaker, "\n".join(said), PartKind.EARLIER)
            speaker, said, line = begins[1], [], line[begins.end() :]
        said.append(line)
    yield SourcePart(speaker, "\n".join(said), PartKind.EARLIER)
