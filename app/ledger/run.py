"""Turns in a row for which one summary is to stand, and where they are in what the model reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from app.document_prompt import Passage, chat_message, without_documents
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import Summary
from engine.errors import OctavoError
from engine.model import ChatMessage


@dataclass(frozen=True)
class Run:
    """Turns for which one summary is to stand.

    Attributes:
        turns: their indexes in the context, those included that a summary stands for now.
        covers: the keys of their messages.
        merged: keys of the summaries that it takes in.
        prepared: a summary of just these, None where it is still to be written.
    """

    turns: tuple[int, ...]
    covers: tuple[str, ...]
    merged: frozenset[str] = frozenset()
    prepared: Summary | None = None

    def with_prepared(self, prepared: Sequence[Summary]) -> Run:
        """Return the same with the first summary that covers just these turns."""
        found = next((each for each in prepared if set(each.covers) == set(self.covers)), None)
        return dataclasses.replace(self, prepared=found)


@dataclass(frozen=True)
class RunText:
    """What a summary is to be written of, in what the model reads.

    Attributes:
        messages: all that is read, up to its last word. Summaries that a run takes in and that stand behind
            it are one more message, without the words that follow them.
        first: index of its first message; for a document of the one that ends with it.
        covers: the keys of what the summary stands for.
        num_turns: turns that these are; 0 for a document.
    """

    messages: tuple[ChatMessage, ...]
    first: int
    covers: tuple[str, ...]
    num_turns: int


def run_text(context: ConversationContext, run: Run) -> RunText:
    """Return where a run stands in the messages of its context.

    Summaries of turns at the heads of its messages that it does not take in stay what they are, and are left
    away.
    """
    messages, covers = context.messages, set(run.covers)
    staying = {each.key for each in context.standing.turn_summaries.values()} - run.merged
    own = [index for index, message in enumerate(messages) if message.key in covers]
    first, stop = own[0], own[-1] + 1
    inside = (_without(message, staying) for message in messages[first:stop])
    behind = (_head(_without(message, staying), run.merged) for message in messages[stop : stop + 1])
    return RunText((*messages[:first], *inside, *filter(None, behind)), first, run.covers, len(run.turns))


def _without(message: ChatMessage, summaries: Collection[str]) -> ChatMessage:
    """Return a message without some of the summaries in it.

    One that had any loses its key, which promises the words.
    """
    kept = [each for each in message.documents if each.key not in summaries]
    if len(kept) == len(message.documents):
        return message
    passages = [
        Passage(each.title, message.content[each.start : each.stop], each.key, each.kind) for each in kept
    ]
    words = without_documents(message.content, message.documents)
    return chat_message(message.role, words, passages)


def _head(message: ChatMessage, merged: frozenset[str]) -> ChatMessage | None:
    """Return a message up to the last of these summaries at its head, None where there is none."""
    stop = max((each.stop for each in message.documents if each.key in merged), default=0)
    return _cut(message, stop) if stop else None


def in_a_row(context: ConversationContext, keys: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the keys by what one summary stands for: turns that follow each other, or a document."""
    found: list[tuple[str, ...]] = []
    last = None
    for index, key in sorted(
        (context.items.turn_of[key], key) for key in keys if key in context.items.turn_of
    ):
        is_turn = key in context.turns[index].keys
        if is_turn and last is not None and index - last == 1:
            found[-1] = (*found[-1], key)
        else:
            found.append((key,))
        last = index if is_turn else None
    return found


def text_of(context: ConversationContext, keys: Sequence[str]) -> RunText:
    """Return what a summary by hand is written of: the turns of messages, in a row, or a document alone.

    Raises:
        OctavoError: the model does not read it, or it waits for its answer.
    """
    indexes = []
    for key in keys:
        index = context.items.turn_of.get(key)
        if index is None:
            raise OctavoError("This is no longer part of the conversation.")
        turn = context.turns[index]
        if turn.state is not SpanState.IN_CONTEXT:
            raise OctavoError("The model does not read this. Restore it first.")
        if key not in turn.keys:
            return _document_text(context, key)
        if turn.is_pending:
            raise OctavoError("This turn waits for its answer. Summarize it when it is answered.")
        indexes.append(index)
    covers = tuple(key for index in indexes for key in context.turns[index].keys)
    return run_text(context, Run(tuple(indexes), covers))


def _document_text(context: ConversationContext, key: str) -> RunText:
    for index, message in enumerate(context.messages):
        for document in message.documents:
            if document.key == key:
                cut = _cut(message, document.stop)
                return RunText((*context.messages[:index], cut), index, (key,), 0)
    raise OctavoError("The model does not read this document. Restore it first.")


def _cut(message: ChatMessage, stop: int) -> ChatMessage:
    """Return the head of a message up to the end of one of its documents."""
    kept = tuple(each for each in message.documents if each.stop <= stop)
    return dataclasses.replace(message, content=message.content[:stop], documents=kept)
