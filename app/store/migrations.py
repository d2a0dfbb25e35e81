"""The schema of `conversations.db`, one numbered migration after another.

A migration that was released is never changed; the table `_sqlite_migrations` is the only record of what a
file has gone through.
"""

from __future__ import annotations

import sqlite_utils
from sqlite_utils import Migrations

CONVERSATIONS = Migrations("conversations")


@CONVERSATIONS(name="001_conversations")
def _conversations(db: sqlite_utils.Database) -> None:
    # A parent is always older than its children, so that a walk to the root ends even in a damaged file.
    # Self-references have no cascade: it would recurse once per message and stop at a depth of 1,000.
    db.executescript("""
        CREATE TABLE conversations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            renamed INTEGER NOT NULL DEFAULT 0,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            pinned INTEGER NOT NULL DEFAULT 0,
            draft TEXT NOT NULL DEFAULT '',
            leaf_id INTEGER,
            deleted_at TEXT,
            FOREIGN KEY (id, leaf_id) REFERENCES messages (conversation_id, id)
                DEFERRABLE INITIALLY DEFERRED
        ) STRICT;

        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            parent_id INTEGER CHECK (parent_id < id),
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            text TEXT NOT NULL,
            created_at TEXT NOT NULL,
            state TEXT NOT NULL
                CHECK (state IN ('complete', 'streaming', 'stopped', 'interrupted', 'failed')),
            model TEXT,
            stats TEXT,
            error TEXT,
            UNIQUE (conversation_id, id),
            FOREIGN KEY (conversation_id, parent_id) REFERENCES messages (conversation_id, id)
        ) STRICT;

        CREATE TABLE documents (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            digest BLOB NOT NULL UNIQUE,
            text TEXT NOT NULL
        ) STRICT;

        CREATE TABLE attachments (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            document_id INTEGER NOT NULL REFERENCES documents (id),
            title TEXT NOT NULL,
            source TEXT NOT NULL,
            kind TEXT NOT NULL,
            num_pages INTEGER,
            num_textless_pages INTEGER NOT NULL,
            encoding TEXT,
            encoding_guessed INTEGER NOT NULL,
            in_draft INTEGER NOT NULL DEFAULT 1
        ) STRICT;

        CREATE TABLE message_attachments (
            id INTEGER PRIMARY KEY,
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            attachment_id INTEGER NOT NULL REFERENCES attachments (id),
            position INTEGER NOT NULL,
            UNIQUE (message_id, position)
        ) STRICT;

        CREATE INDEX messages_by_parent ON messages (conversation_id, parent_id);
        CREATE INDEX messages_streaming ON messages (id) WHERE state = 'streaming';
        CREATE INDEX attachments_by_conversation ON attachments (conversation_id, in_draft);
        CREATE INDEX attachments_by_document ON attachments (document_id);
        CREATE INDEX message_attachments_by_attachment ON message_attachments (attachment_id);

        CREATE TRIGGER messages_final BEFORE UPDATE ON messages
        WHEN OLD.state <> 'streaming'
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER messages_place BEFORE UPDATE OF id, conversation_id, parent_id, role, created_at
        ON messages
        BEGIN SELECT RAISE (ABORT, 'a message never changes its place'); END;

        CREATE TRIGGER messages_kept BEFORE DELETE ON messages
        WHEN EXISTS (SELECT 1 FROM conversations WHERE id = OLD.conversation_id)
        BEGIN SELECT RAISE (ABORT, 'messages go only with their conversation'); END;

        CREATE TRIGGER message_attachments_added BEFORE INSERT ON message_attachments
        WHEN EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id AND state <> 'streaming')
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER message_attachments_changed BEFORE UPDATE ON message_attachments
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER message_attachments_kept BEFORE DELETE ON message_attachments
        WHEN EXISTS (SELECT 1 FROM messages WHERE id = OLD.message_id)
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER attachments_sent BEFORE UPDATE ON attachments
        WHEN NOT OLD.in_draft
        BEGIN SELECT RAISE (ABORT, 'an attachment that was sent never changes'); END;

        CREATE TRIGGER documents_final BEFORE UPDATE ON documents
        BEGIN SELECT RAISE (ABORT, 'the text of a document never changes'); END;
    """)


@CONVERSATIONS(name="002_profiles")
def _profiles(db: sqlite_utils.Database) -> None:
    # Neither is worth a rule of the schema: what cannot be read there is as if it were not there.
    db.executescript("""
        ALTER TABLE conversations ADD COLUMN profile TEXT;
        ALTER TABLE conversations ADD COLUMN context_from INTEGER;
    """)


@CONVERSATIONS(name="003_context")
def _context(db: sqlite_utils.Database) -> None:
    # What cannot be read here is as if it were not there, so the values have no rules.
    # A key promises words, also to what is held of a conversation: ids of summaries are never used again.
    # The model began to read at `context_from`: what is above that message was left out.
    db.executescript("""
        CREATE TABLE context_marks (
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            pinned INTEGER NOT NULL,
            dropped INTEGER NOT NULL,
            PRIMARY KEY (conversation_id, key)
        ) STRICT;

        CREATE TABLE summaries (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            text TEXT NOT NULL,
            covers TEXT NOT NULL,
            source TEXT NOT NULL,
            note TEXT NOT NULL,
            model TEXT NOT NULL,
            source_tokens INTEGER NOT NULL,
            num_tokens INTEGER NOT NULL,
            state TEXT NOT NULL
        ) STRICT;

        CREATE INDEX summaries_by_conversation ON summaries (conversation_id);

        CREATE TRIGGER summaries_final BEFORE UPDATE OF
            id, conversation_id, text, covers, source, note, model, source_tokens, num_tokens ON summaries
        BEGIN SELECT RAISE (ABORT, 'of a summary only the state ever changes'); END;

        CREATE TRIGGER summaries_kept BEFORE DELETE ON summaries
        WHEN EXISTS (SELECT 1 FROM conversations WHERE id = OLD.conversation_id)
        BEGIN SELECT RAISE (ABORT, 'summaries go only with their conversation'); END;

        INSERT INTO context_marks (conversation_id, key, pinned, dropped)
            WITH RECURSIVE above (conversation_id, id) AS (
                SELECT conversations.id, messages.parent_id FROM conversations
                JOIN messages ON messages.id = context_from AND messages.conversation_id = conversations.id
                UNION
                SELECT above.conversation_id, messages.parent_id FROM above JOIN messages USING (id)
            )
            SELECT conversation_id, 'm' || id, 0, 1 FROM above WHERE id IS NOT NULL;

        ALTER TABLE conversations DROP COLUMN context_from;
    """)


@CONVERSATIONS(name="004_readings")
def _readings(db: sqlite_utils.Database) -> None:
    # What cannot be read here is as if it were not there, so the values have no rules.
    # A key promises words: ids of readings are never used again, and a reading that has its text is final.
    # A reading of the same document for the same question takes the place of the former one.
    db.executescript("""
        ALTER TABLE attachments ADD COLUMN page_starts TEXT;
        ALTER TABLE context_marks ADD COLUMN way TEXT;
        ALTER TABLE context_marks ADD COLUMN after_reading INTEGER NOT NULL DEFAULT 0;

        CREATE TABLE readings (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            attachment_id INTEGER NOT NULL REFERENCES attachments (id) ON DELETE CASCADE,
            way TEXT NOT NULL,
            model TEXT NOT NULL,
            text TEXT NOT NULL DEFAULT '',
            UNIQUE (message_id, attachment_id)
        ) STRICT;

        CREATE TABLE reading_segments (
            id INTEGER PRIMARY KEY,
            reading_id INTEGER NOT NULL REFERENCES readings (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            start INTEGER NOT NULL,
            stop INTEGER NOT NULL,
            state TEXT NOT NULL,
            note TEXT NOT NULL,
            is_extract INTEGER NOT NULL,
            error TEXT NOT NULL,
            UNIQUE (reading_id, position)
        ) STRICT;

        CREATE TABLE sources (
            id INTEGER PRIMARY KEY,
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            number INTEGER NOT NULL,
            attachment_id INTEGER NOT NULL REFERENCES attachments (id) ON DELETE CASCADE,
            start INTEGER NOT NULL,
            stop INTEGER NOT NULL,
            kind TEXT NOT NULL,
            is_cited INTEGER NOT NULL,
            share REAL,
            UNIQUE (message_id, position)
        ) STRICT;

        CREATE TABLE speeds (
            model TEXT PRIMARY KEY,
            speed TEXT NOT NULL
        ) STRICT;

        CREATE INDEX readings_by_conversation ON readings (conversation_id);
        CREATE INDEX readings_by_attachment ON readings (attachment_id);
        CREATE INDEX reading_segments_by_state ON reading_segments (reading_id, state);
        CREATE INDEX sources_by_attachment ON sources (attachment_id);

        CREATE TRIGGER readings_final BEFORE UPDATE ON readings
        WHEN OLD.text <> ''
        BEGIN SELECT RAISE (ABORT, 'a finished reading never changes'); END;

        CREATE TRIGGER reading_segments_final BEFORE UPDATE ON reading_segments
        WHEN EXISTS (SELECT 1 FROM readings WHERE id = OLD.reading_id AND text <> '')
        BEGIN SELECT RAISE (ABORT, 'a finished reading never changes'); END;

        CREATE TRIGGER sources_added BEFORE INSERT ON sources
        WHEN EXISTS (SELECT 1 FROM messages WHERE id = NEW.message_id AND state <> 'streaming')
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER sources_changed BEFORE UPDATE ON sources
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;

        CREATE TRIGGER sources_kept BEFORE DELETE ON sources
        WHEN EXISTS (SELECT 1 FROM messages WHERE id = OLD.message_id)
            AND EXISTS (SELECT 1 FROM attachments WHERE id = OLD.attachment_id)
        BEGIN SELECT RAISE (ABORT, 'a final message never changes'); END;
    """)
