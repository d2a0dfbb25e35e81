"""Conversations: the list, the draft, the tree of messages and the reply that is being written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import sqlite_utils

from app.documents.document import Document
from app.ledger.records import attachment_key
from app.profiles import Profile
from app.reading.records import Source
from app.store import attachments, ledger, messages
from app.store import conversation_rows as rows
from app.store.connection import StoreConnection
from app.store.context_store import ContextStore
from app.store.document_texts import TEXTS
from app.store.errors import NotFoundError, StoreError
from app.store.migrations import CONVERSATIONS
from app.store.records import Attachment, Conversation, Message, MessageState, Role
from app.store.sources import insert_sources
from app.store.text import search_key
from app.store.titles import DEFAULT_TITLE, title_of
from app.valid_unicode import valid_unicode
from engine.events import GenerationStats


class ConversationStore(ContextStore):
    """The conversations of one file, for the one thread that opened it.

    Every method is one transaction: after a crash or an error it has happened whole or not at all. What goes
    wrong is a `StoreError`; a conversation, message or attachment that is not there, a `NotFoundError`.
    """

    @classmethod
    def open(cls, path: Path) -> ConversationStore:
        """Open the file, creating it when it is missing and migrating it, after a copy, when it is old."""
        return cls(StoreConnection.open(path, CONVERSATIONS))

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._connection.close()

    def create_conversation(self, title: str = DEFAULT_TITLE) -> Conversation:
        """Start an empty conversation; with the default title it is named after its first user message."""
        now = messages.now_text()
        with self._connection.write() as db:
            (row,) = db.execute(
                """INSERT INTO conversations (title, renamed, created_at, updated_at) VALUES (?, ?, ?, ?)
                   RETURNING *""",
                (rows.title(title), title != DEFAULT_TITLE, now, now),
            ).fetchall()
            return rows.record(row)

    def conversation(self, conversation_id: int) -> Conversation:
        """Return one conversation."""
        with self._connection.read() as db:
            return rows.record(rows.living(db, conversation_id))

    def conversations(self, search: str = "") -> list[Conversation]:
        """Return the conversations whose title contains `search`: pinned first, then newest first."""
        sql = """SELECT * FROM conversations WHERE deleted_at IS NULL
                 ORDER BY pinned DESC, updated_at DESC, id DESC"""
        wanted = search_key(search.strip())
        with self._connection.read() as db:
            found = db.execute(sql).fetchall()
        return [rows.record(row) for row in found if not wanted or wanted in search_key(row["title"])]

    def rename(self, conversation_id: int, title: str) -> None:
        """Give a conversation a title, which then no longer follows its first message."""
        with self._connection.write() as db:
            rows.update(db, conversation_id, "title = ?, renamed = 1", rows.title(title))

    def set_pinned(self, conversation_id: int, pinned: bool) -> None:
        """Keep a conversation at the top of the list, or no longer."""
        with self._connection.write() as db:
            rows.update(db, conversation_id, "pinned = ?", pinned)

    def set_draft(self, conversation_id: int, text: str) -> None:
        """Keep text that was typed and not sent."""
        with self._connection.write() as db:
            rows.update(db, conversation_id, "draft = ?", valid_unicode(text))

    def set_leaf(self, conversation_id: int, message_id: int | None) -> None:
        """Let a conversation end at one of its messages."""
        with self._connection.write() as db:
            if message_id is not None:
                messages.require_message(db, conversation_id, message_id)
            rows.update(db, conversation_id, "leaf_id = ?", message_id)

    def set_profile(self, conversation_id: int, profile: Profile | None) -> None:
        """Keep how a conversation is read, or that this is as for any other."""
        with self._connection.write() as db:
            rows.update(db, conversation_id, "profile = ?", rows.profile_text(profile))

    def replace_profile(self, name: str, profile: Profile) -> None:
        """Give all conversations that have a profile of this name another, as when it was renamed."""
        with self._connection.write() as db:
            db.execute(
                """UPDATE conversations SET profile = ?
                   WHERE CASE WHEN json_valid(profile) THEN json_extract(profile, '$.name') END = ?""",
                (rows.profile_text(profile), name),
            )

    def delete(self, conversation_id: int) -> None:
        """Take a conversation out of the list; `undo_delete` brings it back until `purge_deleted`."""
        with self._connection.write() as db:
            rows.update(db, conversation_id, "deleted_at = ?", messages.now_text())

    def undo_delete(self, conversation_id: int) -> None:
        """Bring a deleted conversation back as it was."""
        with self._connection.write() as db:
            sql = "UPDATE conversations SET deleted_at = NULL WHERE id = ?"
            if not db.execute(sql, (conversation_id,)).rowcount:
                raise NotFoundError("This conversation was deleted for good.")

    def purge_deleted(self) -> int:
        """Remove deleted conversations and all that only they used from the disk; return how many."""
        with self._connection.write() as db:
            purged = db.execute("DELETE FROM conversations WHERE deleted_at IS NOT NULL").rowcount
            attachments.delete_unused_documents(db)
        if purged:
            TEXTS.forget()
            self._connection.rewrite()
            self._connection.empty_log()
        return purged

    def add_attachment(self, conversation_id: int, document: Document) -> Attachment:
        """Add a document to a conversation's draft."""
        with self._connection.write() as db:
            rows.living(db, conversation_id)
            return attachments.attachment(db, attachments.insert_attachment(db, conversation_id, document))

    def attachment(self, attachment_id: int) -> Attachment:
        """Return a document of any conversation, sent or not."""
        with self._connection.read() as db:
            return attachments.attachment(db, attachment_id)

    def draft_attachments(self, conversation_id: int) -> list[Attachment]:
        """Return the attachments of a conversation's draft in the order in which they were added."""
        with self._connection.read() as db:
            return attachments.draft_of(db, conversation_id)

    def update_attachment(self, attachment_id: int, document: Document) -> Attachment:
        """Put another reading of its file, such as one with another encoding, into a draft's attachment."""
        with self._connection.write() as db:
            _require_draft(db, attachment_id)
            attachments.replace_document(db, attachment_id, document)
            return attachments.attachment(db, attachment_id)

    def remove_attachment(self, attachment_id: int) -> None:
        """Take an attachment out of a draft."""
        with self._connection.write() as db:
            _require_draft(db, attachment_id)
            ledger.delete_mark(db, attachment_key(attachment_id))
            db.execute("DELETE FROM attachments WHERE id = ?", (attachment_id,))
            attachments.delete_unused_documents(db)

    def add_user_message(
        self,
        conversation_id: int,
        parent_id: int | None,
        text: str,
        attachment_ids: Sequence[int] = (),
        *,
        keep_draft: bool = False,
    ) -> Message:
        """Add what the user sent below `parent_id` and let the conversation end there.

        An edited message has the parent of the old one and may share its attachments. Attachments leave the
        draft, and its text is cleared unless `keep_draft`, which an edit beside a half-written draft needs.
        The first user message names a conversation that has no title of its own.
        """
        with self._connection.write() as db:
            conversation = rows.living(db, conversation_id)
            first = not db.execute(
                "SELECT 1 FROM messages WHERE conversation_id = ? LIMIT 1", (conversation_id,)
            ).fetchone()
            # Attachments can be added only to a message that is not yet final.
            message_id = _add_message(db, conversation_id, parent_id, Role.USER, text=valid_unicode(text))
            attachments.send_attachments(db, conversation_id, message_id, attachment_ids)
            db.execute("UPDATE messages SET state = 'complete' WHERE id = ?", (message_id,))
            message = messages.message(db, message_id)
            if not keep_draft:
                rows.update(db, conversation_id, "draft = ?", "")
            if first and not conversation["renamed"]:
                fallback = message.attachments[0].title if message.attachments else None
                rows.update(db, conversation_id, "title = ?", title_of(message.text, fallback))
            return message

    def begin_reply(self, conversation_id: int, parent_id: int, model: str) -> Message:
        """Add an empty reply in the state STREAMING and let the conversation end there."""
        with self._connection.write() as db:
            message_id = _add_message(
                db, conversation_id, parent_id, Role.ASSISTANT, model=valid_unicode(model)
            )
            return messages.message(db, message_id)

    def save_partial(self, message_id: int, text: str) -> None:
        """Keep all the text that a reply has so far."""
        with self._connection.write() as db:
            messages.update_reply(db, message_id, "text = ?", valid_unicode(text))

    def finish_reply(
        self,
        message_id: int,
        text: str,
        state: MessageState,
        stats: GenerationStats | None = None,
        error: str | None = None,
        sources: Sequence[Source] = (),
    ) -> Message:
        """Give a reply its last text, sources and final state, after which it never changes; return it."""
        if state is MessageState.STREAMING:
            raise ValueError("STREAMING is not a final state")
        with self._connection.write() as db:
            insert_sources(db, message_id, sources)
            values = (
                valid_unicode(text),
                state.value,
                messages.stats_text(stats),
                error and valid_unicode(error),
            )
            messages.update_reply(db, message_id, "text = ?, state = ?, stats = ?, error = ?", *values)
            conversation_id, _ = messages.place_of(db, message_id)
            sql = "UPDATE conversations SET updated_at = ? WHERE id = ?"
            db.execute(sql, (messages.now_text(), conversation_id))
            return messages.message(db, message_id)

    def message(self, message_id: int) -> Message:
        """Return one message."""
        with self._connection.read() as db:
            return messages.message(db, message_id)

    def path(self, leaf_id: int, limit: int | None = None, before: int | None = None) -> list[Message]:
        """Return the messages from the root to `leaf_id`.

        With `limit` the last so many; with `before`, a message on that path, only those above it.
        """
        with self._connection.read() as db:
            if before is None:
                return messages.ancestry(db, leaf_id, limit)
            _, parent_id = messages.place_of(db, before)
            return [] if parent_id is None else messages.ancestry(db, parent_id, limit)

    def deepest_leaf(self, message_id: int) -> int:
        """Return the newest leaf below a message: where the conversation ends after switching to it."""
        with self._connection.read() as db:
            return messages.newest_descendant(db, message_id)

    def mark_interrupted(self) -> int:
        """Make the replies that an earlier process left STREAMING INTERRUPTED; return how many."""
        with self._connection.write() as db:
            return db.execute("UPDATE messages SET state = 'interrupted' WHERE state = 'streaming'").rowcount


def _add_message(
    db: sqlite_utils.Database,
    conversation_id: int,
    parent_id: int | None,
    role: Role,
    *,
    text: str = "",
    model: str | None = None,
) -> int:
    rows.living(db, conversation_id)
    now = messages.now_text()
    message_id = messages.insert_message(db, conversation_id, parent_id, role, text, model, now)
    rows.update(db, conversation_id, "leaf_id = ?, updated_at = ?", message_id, now)
    return message_id


def _require_draft(db: sqlite_utils.Database, attachment_id: int) -> None:
    row = db.execute("SELECT in_draft FROM attachments WHERE id = ?", (attachment_id,)).fetchone()
    if row is None:
        raise NotFoundError("This attachment no longer exists.")
    if not row["in_draft"]:
        raise StoreError("This attachment was sent and can no longer change.")
