"""What stands for what on a path: which turns and documents are read, summarized, or left out.

A summary applies where all that it covers is on the path. So an edited turn makes a summary above it stale by
itself, a smaller and older one may apply instead, and going back to the former turn makes it valid again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.ledger.records import LedgerRows, Summary, SummaryState, attachment_key, message_key
from app.store.records import Attachment, Message, Role

Turns = Sequence[tuple[Message, ...]]


def turns_of(path: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Return a path by its turns: a question with all up to the next question.

    The same rule as `engine.turns.turn_starts`: a question that was never answered is a turn of its own. So
    is what stands before the first question.
    """
    starts = [index for index, message in enumerate(path) if index == 0 or message.role is Role.USER]
    return tuple(tuple(path[start:stop]) for start, stop in pairwise([*starts, len(path)]))


def pending_turn(turns: Turns) -> int | None:
    """Return the index of the turn that waits for its answer: the last one where it is a question alone."""
    return len(turns) - 1 if turns and turns[-1][-1].role is Role.USER else None


def keys_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the keys of messages."""
    return tuple(message_key(message.id) for message in messages)


def document_keys(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the keys of the documents of messages."""
    return tuple(attachment_key(each.id) for message in messages for each in message.attachments)


class PathItems:
    """The items of a path, by key.

    Attributes:
        turns: the messages of the path.
        keys: the keys of these messages, by turn.
        turn_of: the index of the turn that a message or a document is in.
        documents: the documents.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.keys = tuple(keys_of(turn) for turn in turns)
        self.turn_of: dict[str, int] = {}
        self.documents: dict[str, Attachment] = {}
        self._documents_of: dict[str, tuple[str, ...]] = {}
        self._covered: dict[tuple[str, ...], frozenset[str] | None] = {}
        for index, turn in enumerate(turns):
            for key, message in zip(self.keys[index], turn, strict=True):
                documents = document_keys([message])
                self.documents.update(zip(documents, message.attachments, strict=True))
                self._documents_of[key] = documents
                self.turn_of.update(dict.fromkeys((key, *documents), index))

    def covered(self, summary: Summary) -> frozenset[str] | None:
        """Return all that a summary covers, documents of its messages included; None if some is elsewhere."""
        if summary.covers not in self._covered:
            self._covered[summary.covers] = self._with_documents(summary.covers)
        return self._covered[summary.covers]

    def _with_documents(self, keys: tuple[str, ...]) -> frozenset[str] | None:
        if not keys or not self.turn_of.keys() >= set(keys):
            return None
        return frozenset(keys).union(*(self._documents_of.get(key, ()) for key in keys))

    def whole_turns(self, keys: frozenset[str]) -> frozenset[int] | None:
        """Return the turns that messages are, none for documents alone; None if half a turn is among them."""
        turns = frozenset(self.turn_of[key] for key in keys & self._documents_of.keys())
        return turns if all(keys.issuperset(self.keys[index]) for index in turns) else None

    def used(self, summaries: Sequence[Summary]) -> list[tuple[Summary, frozenset[str]]]:
        """Return the used summaries of what is on the path, with all that they cover.

        Those that cover most come first, newer before older among equals.
        """
        used = [each for each in reversed(summaries) if each.state is SummaryState.USED]
        found = [(each, covered) for each in used if (covered := self.covered(each)) is not None]
        return sorted(found, key=lambda one: -len(one[1]))


@dataclass(frozen=True)
class Standing:
    """The decisions of a ledger on a path.

    Attributes:
        turn_summaries: by the index of a turn, the summary that stands for it.
        document_summaries: by the key of a document of a turn that is read, the summary that stands for it.
        dropped_turns: indexes of the turns that are left out.
        dropped_documents: keys of the documents that are left out where no summary stands for them.
        summarized_documents: keys of all documents that a summary of documents alone stands for, also of
            turns that are not read.
    """

    turn_summaries: Mapping[int, Summary]
    document_summaries: Mapping[str, Summary]
    dropped_turns: frozenset[int]
    dropped_documents: frozenset[str]
    summarized_documents: frozenset[str] = frozenset()


def standing(items: PathItems, rows: LedgerRows) -> Standing:
    """Return what the rows say about a path.

    The turn that waits for its answer is whole but for its documents. Elsewhere summaries come first, none
    over another, and then what is dropped. A turn is dropped where all its messages are: never half of one.
    """
    pending = pending_turn(items.turns)
    by_turn: dict[int, Summary] = {}
    by_document: dict[str, Summary] = {}
    taken: set[str] = set()
    for summary, covered in items.used(rows.summaries):
        turns = items.whole_turns(covered) if taken.isdisjoint(covered) else None
        if turns is None or pending in turns:
            continue
        taken |= covered
        by_turn.update(dict.fromkeys(turns, summary))
        if not turns:
            by_document.update(dict.fromkeys(covered, summary))
    dropped = {key for key, mark in rows.marks.items() if mark.is_dropped}
    dropped_turns = frozenset(
        index
        for index, keys in enumerate(items.keys)
        if index != pending and index not in by_turn and dropped.issuperset(keys)
    )
    unread = by_turn.keys() | dropped_turns
    read = {key: each for key, each in by_document.items() if items.turn_of[key] not in unread}
    left_out = frozenset(items.documents.keys() & dropped)
    return Standing(by_turn, read, dropped_turns, left_out, frozenset(by_document))
