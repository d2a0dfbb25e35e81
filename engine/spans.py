"""Which tokens of a prompt are which message, which document, which answer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.chat_template import Turn
from engine.errors import ModelError
from engine.kv.page_map import SpanKind, TextSpan

if TYPE_CHECKING:
    from engine.model import ChatMessage

Render = Callable[[list[Turn]], str]
"""Writes turns in a model's template, with the marker of the answer that is to come."""

OWN_SYSTEM_PROMPT = "The model's own"
"""Title of a system prompt that the template brings along."""

_KINDS = {"system": SpanKind.SYSTEM, "user": SpanKind.USER, "assistant": SpanKind.ASSISTANT}
_REASONING_END = "</think>"
_TITLE_CHARACTERS = 80
_MARKER_WORDS = 3
"""What stands before the first message and has more words than this is a system prompt, not only markers."""


@dataclass(frozen=True)
class DocumentRange:
    """Where a document, or the summary of what was left out before, stands in the content of a message.

    Characters `start` to `stop`. `key` and `kind` are those of the `TextSpan` that it becomes.
    """

    title: str
    start: int
    stop: int
    key: str = ""
    kind: SpanKind = SpanKind.DOCUMENT


@dataclass(frozen=True)
class Prompt:
    """A conversation in the words of a model's template.

    Attributes:
        tokens: its ids.
        spans: what they are, in order and without overlap. What the template rewrote has none. The last one
            is the marker of the answer that is to come; its title is empty.
    """

    tokens: list[int]
    spans: tuple[TextSpan, ...]

    @property
    def said(self) -> Prompt:
        """What its messages say: all but the marker of the answer that is to come."""
        last = self.spans[-1] if self.spans else None
        if last is None or last.title or last.kind is not SpanKind.ASSISTANT:
            return self
        return Prompt(self.tokens[: last.start], self.spans[:-1])


@dataclass(frozen=True)
class _Stretch:
    """Characters `start` to `stop` of a rendered conversation; before `words` it is a marker."""

    kind: SpanKind
    title: str
    start: int
    words: int
    stop: int
    key: str = ""


def prompt_spans(
    messages: Sequence[ChatMessage], text: str, offsets: Sequence[tuple[int, int]], render: Render
) -> tuple[TextSpan, ...]:
    """Return what the tokens of a rendered conversation are.

    A message is found by its words behind the marker that introduces it, so that the same words elsewhere are
    not taken for it. A marker counts to what it introduces, a token across a border to what it begins in.

    Args:
        messages: the conversation.
        text: what `render` made of it.
        offsets: the first character of each token in `text`, and the one behind its last.
        render: called once more, with other words, to see the markers alone.
    """
    try:
        template = _Template.of(messages, render)
    except ModelError:
        return ()  # a template that refuses other words must not keep the reply from being written
    stretches, cursor = [], 0
    if template.own_prompt:
        cursor = len(template.own_prompt)
        stretches.append(_Stretch(SpanKind.SYSTEM, OWN_SYSTEM_PROMPT, 0, 0, cursor))
    for message, marker in zip(messages, template.markers, strict=True):
        found = list(_find(message, marker, text, cursor))
        stretches.extend(found)
        cursor = found[-1].stop if found else cursor
    start = len(text) - len(template.ending)
    if start >= cursor and text.endswith(template.ending):
        stretches.append(_Stretch(SpanKind.ASSISTANT, "", start, len(text), len(text)))
    return tuple(_in_tokens(stretches, offsets))


def _find(message: ChatMessage, marker: str | None, text: str, cursor: int) -> Iterator[_Stretch]:
    """Yield the parts of a message that are found from `cursor` on; nothing where it was rewritten.

    A template may leave out white space around it, and the reasoning before an answer. Of messages that are
    merged, it leaves out only what precedes the first and what follows the last.
    """
    if marker is None:
        return
    content = message.content
    answer = content.rpartition(_REASONING_END)[2].strip()
    ways = dict.fromkeys((content, content.lstrip(), content.rstrip(), content.strip(), answer))
    places = [(text.find(marker + words, cursor), words) for words in ways if words]
    found = [place for place in places if place[0] == cursor or (place[0] > cursor and marker.strip())]
    if found:
        start, words = min(found, key=lambda place: place[0])  # a later message may begin as this one does
        yield from _parts(message, words, start, start + len(marker))


def _parts(message: ChatMessage, words: str, start: int, inside: int) -> Iterator[_Stretch]:
    """Yield the documents of a message, then its own words.

    Args:
        message: it begins in the text with its marker at `start`.
        words: what stands there of its content.
        start: where it begins.
        inside: where its words begin.
    """
    shift, stop, own = inside - message.content.rindex(words), inside + len(words), 0
    for document in message.documents:
        end = min(document.stop + shift, stop)
        yield _Stretch(document.kind, document.title, start, document.start + shift, end, document.key)
        start, own = end, document.stop
    if start < stop:
        rest = message.content[own:] if own else words
        title = _title(rest.rpartition(_REASONING_END)[2].strip() or message.content)
        first = own + shift + len(rest) - len(rest.lstrip()) if own else inside
        yield _Stretch(_KINDS[message.role], title, start, first, stop, message.key)


def _title(text: str) -> str:
    """Return the first words of a message in one line."""
    line = " ".join(text[: 4 * _TITLE_CHARACTERS].split())
    return line if len(line) <= _TITLE_CHARACTERS else f"{line[: _TITLE_CHARACTERS - 1].rstrip()}…"


def _in_tokens(stretches: Sequence[_Stretch], offsets: Sequence[tuple[int, int]]) -> Iterator[TextSpan]:
    for stretch in stretches:
        start, words, stop = (
            bisect_left(offsets, (place,)) for place in (stretch.start, stretch.words, stretch.stop)
        )
        if start < stop:
            marker_tokens = max(0, min(words, stop) - start)
            yield TextSpan(stretch.kind, stretch.title, start, stop, stretch.key, marker_tokens)


@dataclass(frozen=True)
class _Template:
    """What a template puts around messages.

    Attributes:
        own_prompt: a system prompt that it brings along, empty without one.
        markers: what introduces each message, None for one that it leaves out.
        ending: what follows the last message.
    """

    own_prompt: str
    markers: list[str | None]
    ending: str

    @classmethod
    def of(cls, messages: Sequence[ChatMessage], render: Render) -> _Template:
        """Render the messages with other words, with an answer and a question more to compare with."""
        roles = [*(message.role for message in messages), "assistant", "user"]
        words = [f"90817263{number:06}" for number in range(len(roles))]  # what no template changes
        text = render([{"role": role, "content": word} for role, word in zip(roles, words, strict=True)])
        markers: list[str | None] = []
        for word in words:
            before, found, behind = text.partition(word)
            markers.append(before if found else None)
            text = behind if found else text
        own_prompt = "" if messages[0].role == "system" else _own_prompt(markers[0] or "", markers[-1] or "")
        if markers[0]:
            markers[0] = markers[0][len(own_prompt) :]
        return cls(own_prompt, markers[:-2], text)


def _own_prompt(first: str, later: str) -> str:
    """Return what introduces the first message and no later one, if that is more than markers."""
    ends = zip(reversed(first), reversed(later), strict=False)
    shared = next((at for at, (one, other) in enumerate(ends) if one != other), len(later))
    own = first[: -shared or None]
    return own if len(own.split()) > _MARKER_WORDS else ""
