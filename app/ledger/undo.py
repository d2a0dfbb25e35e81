"""Taking back what the user has changed of a context, as long as that leads back to what it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import ContextChange
from engine.kv.page_map import SpanKind


@dataclass(frozen=True)
class ItemStanding:
    """How a message or a document stands.

    That is whether it is read and pinned, the key of its summary, if any, and how a document is read.
    """

    state: SpanState
    is_pinned: bool
    summary: str
    way: DocumentWay | None


@dataclass(frozen=True)
class UserChange:
    """A change that the user made, and what takes it back.

    Attributes:
        inverse: what takes it back.
        before: by key, how the items stood that it changed.
        after: how they stood then.
    """

    inverse: ContextChange
    before: Mapping[str, ItemStanding]
    after: Mapping[str, ItemStanding]

    @classmethod
    def between(
        cls, before: ConversationContext, after: ConversationContext, inverse: ContextChange
    ) -> UserChange:
        """Return the change from one context to another of the same path."""
        was, now = _standings(before), _standings(after)
        changed = [key for key in was if was[key] != now[key]]
        return cls(inverse, {key: was[key] for key in changed}, {key: now[key] for key in changed})

    def leads_back(self, context: ConversationContext) -> bool:
        """Return whether to take it back changes just what it changed, to what that was, on this path.

        It does not where a trim or another change has changed the same since, nor where nothing of it is on
        the path.
        """
        now = _standings(context)
        here = [key for key in self.after if key in now]
        if not here or any(now[key] != self.after[key] for key in here):
            return False
        undone = _standings(context.changed(self.inverse))
        return undone == now | {key: self.before[key] for key in here}


class UserChanges:
    """What the user has changed of conversations since the program was started."""

    def __init__(self) -> None:
        self._of: dict[int, list[UserChange]] = {}

    def add(
        self,
        conversation_id: int,
        before: ConversationContext,
        after: ConversationContext,
        inverse: ContextChange,
    ) -> None:
        """Remember what was changed, where that is anything."""
        change = UserChange.between(before, after, inverse)
        if change.after:
            self._of.setdefault(conversation_id, []).append(change)

    def last(self, conversation_id: int | None, context: ConversationContext) -> UserChange | None:
        """Return the last change that can be taken back on the path of a context, None where none can."""
        changes = reversed(self._of.get(conversation_id or 0, []))
        return next((each for each in changes if each.leads_back(context)), None)

    def remove(self, conversation_id: int, change: UserChange) -> None:
        """Forget a change: it was taken back."""
        self._of[conversation_id].remove(change)


def _standings(context: ConversationContext) -> dict[str, ItemStanding]:
    return {
        span.key: ItemStanding(
            span.state, span.is_pinned, "" if span.summary is None else span.summary.key, span.way
        )
        for span in context.spans
        if span.kind is not SpanKind.SUMMARY
    }
