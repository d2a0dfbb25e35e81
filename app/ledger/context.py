"""What the model reads of a conversation: its turns, or summaries in their place, or nothing.

One rule for a path with and without a question that waits: the turn that waits for its answer is whole in
the context, but for its documents; every other turn, the last one included, is what the ledger says. So what
is in the context between two replies is also what stands before the next question.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from app.documents.ways import DocumentWay
from app.ledger.records import ContextChange, ItemMark, LedgerRows, Summary, attachment_key, message_key
from app.ledger.standing import (
    PathItems,
    Standing,
    document_keys,
    pending_turn,
    standing,
    turns_of,
)
from app.ledger.ways import DocumentWays
from app.ledger.written_context import summary_title, written_messages
from app.store.records import Attachment, Message, MessageState, Role
from app.store.titles import title_of
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage

_KINDS = {Role.USER: SpanKind.USER, Role.ASSISTANT: SpanKind.ASSISTANT}
_REASONING_END = "</think>"
DRAFT_ID = 0
"""The id of a message that is being written; the store's are positive."""
_NEVER = datetime.fromtimestamp(0, UTC)
_TITLE_CHARACTERS = 1000
"""So many characters of a message are looked at for its first words."""


class SpanState(enum.Enum):
    """Whether the model reads an item of the context; the value says so."""

    IN_CONTEXT = "in context"
    SUMMARIZED = "summarized"
    DROPPED = "left out"


@dataclass(frozen=True)
class Turn:
    """A question with its answer, or without one where that was stopped before its first word.

    Attributes:
        messages: those that have words.
        keys: the keys of these messages: what a summary of the turn covers.
        state: whether the model reads it.
        summary: what stands for it, where it is summarized.
        is_pinned: whether a message or document of it is pinned, so that no trim releases it.
        is_pending: whether it waits for its answer, as only the last one does.
    """

    messages: tuple[Message, ...]
    keys: tuple[str, ...]
    state: SpanState
    summary: Summary | None
    is_pinned: bool
    is_pending: bool


@dataclass(frozen=True)
class LedgerSpan:
    """An item of the context as it is shown.

    Attributes:
        kind: a question, an answer, a document or a summary.
        key: its key.
        title: a message's first words, a document's title, what a summary stands for.
        state: whether the model reads it.
        is_pinned: whether it is pinned itself.
        summary: the summary itself, or the one that stands for the message or document.
        message_id: the message that it is or belongs to; of a summary, the first that it stands for.
        turn: index of its turn in `ConversationContext.turns`; of a summary, the first it stands for.
        way: how a document is read for the question that waits or the next one; None for all else, and while
            that is not decided.
    """

    kind: SpanKind
    key: str
    title: str
    state: SpanState
    is_pinned: bool
    summary: Summary | None
    message_id: int
    turn: int
    way: DocumentWay | None = None


@dataclass(frozen=True)
class ConversationContext:
    """The context of a path of a conversation.

    Attributes:
        path: the messages that have words, from the first one on.
        rows: what is stored of the context.
    """

    path: tuple[Message, ...]
    rows: LedgerRows

    @classmethod
    def of(cls, path: Sequence[Message], rows: LedgerRows) -> ConversationContext:
        """Return the context of a path; messages without a word are no part of it."""
        return cls(tuple(each for each in path if each.text or each.attachments), rows)

    @cached_property
    def items(self) -> PathItems:
        """The messages and documents of the path, by key."""
        return PathItems(turns_of(self.path))

    @cached_property
    def standing(self) -> Standing:
        """What stands for what."""
        return standing(self.items, self.rows)

    @cached_property
    def ways(self) -> DocumentWays:
        """How its documents are read."""
        return DocumentWays(self.items, self.standing, self.rows)

    def way(self, attachment_key: str, message_id: int | None = None) -> DocumentWay | None:
        """Return how a document is read for a question, see `DocumentWays.way`."""
        return self.ways.way(attachment_key, message_id)

    def documents_to_read(self) -> tuple[tuple[Attachment, DocumentWay], ...]:
        """Return what is read in segments or looked up for the question that waits."""
        return self.ways.to_read()

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """All turns of the path, oldest first."""
        pending = pending_turn(self.items.turns)
        pinned = self.pinned_keys
        return tuple(
            Turn(
                messages=messages,
                keys=(keys := self.items.keys[index]),
                state=self._state(index),
                summary=self.standing.turn_summaries.get(index),
                is_pinned=not pinned.isdisjoint((*keys, *document_keys(messages))),
                is_pending=index == pending,
            )
            for index, messages in enumerate(self.items.turns)
        )

    def _state(self, turn: int) -> SpanState:
        if turn in self.standing.turn_summaries:
            return SpanState.SUMMARIZED
        return SpanState.DROPPED if turn in self.standing.dropped_turns else SpanState.IN_CONTEXT

    @cached_property
    def messages(self) -> tuple[ChatMessage, ...]:
        """What the model reads, with keys, without a system prompt.

        A summary stands at the head of the first turn behind what it stands for that is read. Where there is
        none, it waits for the next question and is not among them.
        """
        return tuple(written_messages(self.items, self.standing, self.ways))

    @cached_property
    def spans(self) -> tuple[LedgerSpan, ...]:
        """All items of the path in order; a summary precedes what it stands for, a document its message."""
        shown: set[Summary] = set()
        return tuple(
            span
            for index, turn in enumerate(self.turns)
            for message in turn.messages
            for span in self._spans_of(message, index, shown)
        )

    def _spans_of(self, message: Message, turn: int, shown: set[Summary]) -> Iterator[LedgerSpan]:
        state, summary = self.turns[turn].state, self.turns[turn].summary
        yield from self._summary_span(summary, message, turn, shown)
        for document in message.attachments:
            key = attachment_key(document.id)
            own = summary or self.standing.document_summaries.get(key)
            yield from self._summary_span(own, message, turn, shown)
            is_dropped = summary is None and key in self.standing.dropped_documents
            kept = SpanState.SUMMARIZED if own else SpanState.DROPPED if is_dropped else state
            yield LedgerSpan(
                SpanKind.DOCUMENT,
                key,
                document.title,
                kept,
                key in self.pinned_keys,
                own,
                message.id,
                turn,
                self.ways.way(key),
            )
        key = message_key(message.id)
        kind, title = _KINDS[message.role], _first_words(message)
        yield LedgerSpan(kind, key, title, state, key in self.pinned_keys, summary, message.id, turn)

    def _summary_span(
        self, summary: Summary | None, message: Message, turn: int, shown: set[Summary]
    ) -> Iterator[LedgerSpan]:
        """Yield the span of a summary before the first item that it stands for."""
        if summary is not None and summary not in shown:
            shown.add(summary)
            title = summary_title(summary, self.items)
            yield LedgerSpan(
                SpanKind.SUMMARY,
                summary.key,
                title,
                SpanState.IN_CONTEXT,
                False,
                summary,
                message.id,
                turn,
            )

    @cached_property
    def pinned_keys(self) -> frozenset[str]:
        """Keys of the messages and documents of the path that are pinned."""
        pinned = (key for key, mark in self.rows.marks.items() if mark.is_pinned)
        return frozenset(pinned) & self.items.turn_of.keys()

    @cached_property
    def left_keys(self) -> frozenset[str]:
        """Keys of the messages and documents of the path that the model does not read themselves."""
        return frozenset(span.key for span in self.spans if span.state is not SpanState.IN_CONTEXT)

    @property
    def left_out_turns(self) -> int:
        """How many turns the model does not read themselves: those that are summarized or dropped."""
        return len(self.standing.turn_summaries) + len(self.standing.dropped_turns)

    def changed(self, change: ContextChange, *new: Summary) -> ConversationContext:
        """Return the context as if a change, and with it new summaries, had been stored.

        Summaries that have no id yet are told apart by numbers below zero.
        """
        states = dict(change.summaries)
        summaries = [
            dataclasses.replace(each, state=states.get(each.id, each.state)) for each in self.rows.summaries
        ]
        unsaved = (
            each if each.id else dataclasses.replace(each, id=-number) for number, each in enumerate(new, 1)
        )
        marks = {**self.rows.marks, **{mark.key: mark for mark in change.marks}}
        set_marks = {key: mark for key, mark in marks.items() if mark != ItemMark(key)}
        return self.with_rows(LedgerRows(set_marks, (*summaries, *unsaved), self.rows.readings))

    def with_rows(self, rows: LedgerRows) -> ConversationContext:
        """Return the context of the same path with other rows; what is in the path is not found out again."""
        context = ConversationContext(self.path, rows)
        vars(context)["items"] = self.items  # where the cached property would put it
        return context

    def with_draft(self, attachments: Sequence[Attachment]) -> ConversationContext:
        """Return the context as if a message with these documents and no words waited for its answer."""
        draft = Message(
            id=DRAFT_ID,
            conversation_id=0,
            parent_id=self.path[-1].id if self.path else None,
            role=Role.USER,
            text="",
            created_at=_NEVER,
            state=MessageState.COMPLETE,
            attachments=tuple(attachments),
            siblings=(DRAFT_ID,),
            stats=None,
            model=None,
            error=None,
        )
        return ConversationContext((*self.path, draft), self.rows)


def _first_words(message: Message) -> str:
    """Return the first words of a message, of an answer those behind its reasoning; else its documents."""
    text = message.text.rpartition(_REASONING_END)[2].strip() or message.text
    return title_of(text[:_TITLE_CHARACTERS], ", ".join(each.title for each in message.attachments))
