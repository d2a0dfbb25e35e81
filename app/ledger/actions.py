"""What a user does with the context: each as a change for the store, which returns its inverse.

A change without anything in it means that there is nothing to do, as for a turn that waits for its answer,
which cannot be dropped.
"""

from __future__ import annotations

from app.ledger.context import ConversationContext
from app.ledger.records import ContextChange


def pin(context: ConversationContext, key: str, pinned: bool) -> ContextChange:
    """Return the change that pins, or no longer, the turn of a message, or a document.

    Trims do not release a turn of which a message or document is pinned. A summary cannot be pinned.
    """
    raise NotImplementedError


def drop(context: ConversationContext, key: str) -> ContextChange:
    """Return the change that leaves out the turn of a message, a document, or a summary with all it covers.

    Nothing to do for what the model does not read anyway, and for what a summary stands for: drop that.
    """
    raise NotImplementedError


def restore(context: ConversationContext, key: str) -> ContextChange:
    """Return the change that lets the model read the turn of a message, a document, or a summary's originals.

    What a summary stands for comes back with all else that it stands for. Used summaries of the same items
    are retired with it, so that none of them takes its place. A document of a turn that is left out comes
    back with it.
    """
    raise NotImplementedError
