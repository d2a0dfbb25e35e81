"""Turns in a row for which one summary is to stand, and where they are in what the model reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from app.document_prompt import Passage, chat_message, without_documents
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import Summary
from app.ledger.written_context import written_summary
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
        room_tokens: what the context leaves for its summary, None where that is no matter.
    """

    turns: tuple[int, ...]
    covers: tuple[str, ...]
    merged: frozenset[str] = frozenset()
    prepared: Summary | None = None
    room_tokens: int | None = None

    def with_prepared(self, prepared: Sequence[Summary]) -> Run:
        """Return the same with the first summary that covers just these turns and that there is room for."""
        fitting = (each for each in prepared if each.num_tokens <= (self.room_tokens or each.num_tokens))
        found = next((each for each in fitting if set(each.covers) == set(self.covers)), None)
        return dataclasses.replace(self, prepared=found)


def find_runs(context: ConversationContext, released: Collection[int]) -> tuple[Run, ...]:
    """Return what a summary each is to stand for: turns in a row, with the summaries between and beside them.

    What was dropped does not part a run, and is no part of it.
    """
    runs, stretch = [], list[int]()
    for index, turn in enumerate(context.turns):
        if index in released or turn.state is SpanState.SUMMARIZED:
            stretch.append(index)
        elif turn.state is SpanState.IN_CONTEXT:
            runs.append(_run(context, released, stretch))
            stretch = []
    runs.append(_run(context, released, stretch))
    return tuple(run for run in runs if run is not None)


def _run(context: ConversationContext, released: Collection[int], stretch: Sequence[int]) -> Run | None:
    """Return the run of a stretch, None where nothing in it is released.

    A summary that stands for a turn elsewhere, too, is no part of it.
    """
    if not any(index in released for index in stretch):
        return None
    inside = {index: context.turns[index].summary for index in stretch if index not in released}
    elsewhere = {
        turn.summary.key
        for index, turn in enumerate(context.turns)
        if turn.summary is not None and index not in inside
    }
    merged = {
        index: summary.key
        for index, summary in inside.items()
        if summary is not None and summary.key not in elsewhere
    }
    turns = tuple(index for index in stretch if index in released or index in merged)
    covers = tuple(key for index in turns for key in context.turns[index].keys)
    return Run(turns, covers, frozenset(merged.values()))


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
    """Return where a run stands in the messages of its context; one turn of it is read at least.

    Summaries of turns at the heads of its messages that it does not take in stay what they are, and are left
    away.
    """
    messages, covers = context.messages, set(run.covers)
    staying = {each.key for each in context.standing.turn_summaries.values()} - run.merged
    own = [index for index, message in enumerate(messages) if message.key in covers]
    first, stop = own[0], own[-1] + 1
    inside = (_without(message, staying) for message in messages[first:stop])
    behind = [_head(_without(message, staying), run.merged) for message in messages[stop : stop + 1]]
    if stop == len(messages):
        behind = [_waiting(context, run.merged)]
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
    """Return keys of messages, documents and summaries by what one summary is to stand for.

    That is a document, or turns that follow each other, with those summaries of turns that are named and
    stand between or beside them. What is left out does not part them. A summary alone is none, nor one that
    stands for a turn elsewhere, too.
    """
    documents, wanted = list[tuple[int, tuple[str, ...]]](), dict[int, str]()
    for key in keys:
        turns = _turns(context, key)
        wanted.update(dict.fromkeys(turns, key))
        if not turns and key in context.items.documents:
            documents.append((context.items.turn_of[key], (key,)))
    split = {key for key in wanted.values() if not _is_together(context, key, wanted)}
    rows = list[tuple[int, tuple[str, ...]]]()
    last = None
    for index in sorted(index for index, key in wanted.items() if key not in split):
        if last is not None and not _parts(context, range(last + 1, index)):
            rows[-1] = (rows[-1][0], (*rows[-1][1], wanted[index]))
        else:
            rows.append((index, (wanted[index],)))
        last = index
    runs = [(index, tuple(dict.fromkeys(row))) for index, row in rows]
    found = [(index, row) for index, row in runs if any(key in context.items.turn_of for key in row)]
    return [row for _, row in sorted([*found, *documents])]


def _turns(context: ConversationContext, key: str) -> list[int]:
    """Return the turn of a message, or the turns that a summary stands for; none for another key."""
    if key in context.items.turn_of:
        index = context.items.turn_of[key]
        return [index] if key in context.turns[index].keys else []
    standing = context.standing.turn_summaries.items()
    return sorted(index for index, summary in standing if summary.key == key)


def _is_together(context: ConversationContext, key: str, wanted: Collection[int]) -> bool:
    """Return whether all that is read between the turns of a key is wanted, too."""
    turns = _turns(context, key)
    between = (index for index in range(turns[0], turns[-1]) if index not in wanted)
    return not _parts(context, between)


def _parts(context: ConversationContext, turns: Iterable[int]) -> bool:
    """Return whether any of these turns is read, itself or its summary."""
    return any(context.turns[index].state is not SpanState.DROPPED for index in turns)


def text_of(context: ConversationContext, keys: Sequence[str]) -> RunText:
    """Return what a summary by hand is written of: turns and summaries in a row, or a document alone.

    Raises:
        OctavoError: the model does not read it, or it waits for its answer.
    """
    indexes, merged = set[int](), set[str]()
    for key in keys:
        turns = _turns(context, key)
        if key in context.items.documents:
            return _document_text(context, key)
        if not turns:
            raise OctavoError("This is no longer part of the conversation.")
        turn = context.turns[turns[0]]
        if key not in turn.keys:
            merged.add(key)
        elif turn.state is not SpanState.IN_CONTEXT:
            raise OctavoError("The model does not read this. Restore it first.")
        elif turn.is_pending:
            raise OctavoError("This turn waits for its answer. Summarize it when it is answered.")
        indexes.update(turns)
    covers = tuple(key for index in sorted(indexes) for key in context.turns[index].keys)
    return run_text(context, Run(tuple(sorted(indexes)), covers, frozenset(merged)))


def _document_text(context: ConversationContext, key: str) -> RunText:
    for index, message in enumerate(context.messages):
        for document in message.documents:
            if document.key == key:
                cut = _cut(message, document.stop)
                return RunText((*context.messages[:index], cut), index, (key,), 0)
    if context.ways.is_whole(key):
        raise OctavoError("The model does not read this document. Restore it first.")
    raise OctavoError(
        "Only a document that is read whole can be summarized. Choose to read this one whole first."
    )


def _waiting(context: ConversationContext, summaries: Collection[str]) -> ChatMessage | None:
    """Return a message of those summaries that wait for the next question, None where none of them does."""
    read = {document.key for message in context.messages for document in message.documents}
    standing = dict.fromkeys(context.standing.turn_summaries.values())
    passages = [
        written_summary(each, context.items)
        for each in standing
        if each.key in summaries and each.key not in read
    ]
    return chat_message("user", "", passages) if passages else None


def _cut(message: ChatMessage, stop: int) -> ChatMessage:
    """Return the head of a message up to the end of one of its documents."""
    kept = tuple(each for each in message.documents if each.stop <= stop)
    return dataclasses.replace(message, content=message.content[:stop], documents=kept)
