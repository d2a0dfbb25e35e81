BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'conversations','001_conversations','2026-11-30 10:57:43.153153+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'conversations','002_profiles','2026-11-30 16:38:07.524515+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'conversations','003_context','2026-11-30 20:05:54.279075+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'conversations','004_readings','2026-12-01 03:00:47.268857+00:00');
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
        , page_starts TEXT) STRICT;
INSERT INTO "attachments" VALUES(1,1,1,'A document','/home/somebody/A document.txt','text',NULL,0,'utf-8',1,0,NULL);
INSERT INTO "attachments" VALUES(2,1,2,'Waiting','/home/somebody/Waiting.txt','text',NULL,0,'utf-8',1,1,'[0, 4]');
CREATE TABLE context_marks (
            conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            key TEXT NOT NULL,
            pinned INTEGER NOT NULL,
            dropped INTEGER NOT NULL, way TEXT, after_reading INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (conversation_id, key)
        ) STRICT;
INSERT INTO "context_marks" VALUES(1,'m2',0,1,NULL,0);
INSERT INTO "context_marks" VALUES(1,'m1',0,1,NULL,0);
INSERT INTO "context_marks" VALUES(1,'a1',1,0,'segments',0);
CREATE TABLE conversations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL,
            renamed INTEGER NOT NULL DEFAULT 0,
            created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL,
            pinned INTEGER NOT NULL DEFAULT 0,
            draft TEXT NOT NULL DEFAULT '',
            leaf_id INTEGER,
            deleted_at TEXT, profile TEXT,
            FOREIGN KEY (id, leaf_id) REFERENCES messages (conversation_id, id)
                DEFERRABLE INITIALLY DEFERRED
        ) STRICT;
INSERT INTO "conversations" VALUES(1,'question 0',0,'2026-11-30T10:57:43.169352+00:00','2026-11-30T10:57:43.220772+00:00',1,'half',7,NULL,'{"name": "Custom", "kv": "k8v4; warm=2", "max_context": 8192, "overflow": "drop", "document_mode": "segments"}');
INSERT INTO "conversations" VALUES(2,'Deleted',1,'2026-11-30T10:57:43.227786+00:00','2026-11-30T10:57:43.227786+00:00',0,'',NULL,'2026-11-30T10:57:43.228698+00:00',NULL);
INSERT INTO "conversations" VALUES(3,'Mine',1,'2026-11-30T10:57:43.229328+00:00','2026-11-30T10:57:43.267384+00:00',0,'',9,NULL,NULL);
CREATE TABLE documents (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            digest BLOB NOT NULL UNIQUE,
            text TEXT NOT NULL
        ) STRICT;
INSERT INTO "documents" VALUES(1,X'BC5348FD7C2DD8BBF411F0B9268265F7C2E0D31EBF314695882B8170C7E1E9D7','Zażółć gęślą jaźń');
INSERT INTO "documents" VALUES(2,X'80CFA3E7F28DDE4DF64436B652230AFF28D7779116D1369C21EF2BBF37261D71','waiting');
CREATE TABLE message_attachments (
            id INTEGER PRIMARY KEY,
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            attachment_id INTEGER NOT NULL REFERENCES attachments (id),
            position INTEGER NOT NULL,
            UNIQUE (message_id, position)
        ) STRICT;
INSERT INTO "message_attachments" VALUES(1,5,1,0);
INSERT INTO "message_attachments" VALUES(2,7,1,0);
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
INSERT INTO "messages" VALUES(1,1,NULL,'user','question 0','2026-11-30T10:57:43.178823+00:00','complete',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(2,1,1,'assistant','Answer to question 0','2026-11-30T10:57:43.184724+00:00','complete','A model','{"prompt_tokens": 120, "reused_tokens": 20, "completion_tokens": 33, "ttft_s": 0.25, "prefill_tps": 400.5, "decode_tps": 31.25, "kv_bits": 8, "kv_nbytes": 123456, "peak_nbytes": 987654321, "stop_reason": "end", "kv_note": null}',NULL);
INSERT INTO "messages" VALUES(3,1,2,'user','question 1','2026-11-30T10:57:43.192735+00:00','complete',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(4,1,3,'assistant','Answer to question 1','2026-11-30T10:57:43.198359+00:00','complete','A model','{"prompt_tokens": 120, "reused_tokens": 20, "completion_tokens": 33, "ttft_s": 0.25, "prefill_tps": 400.5, "decode_tps": 31.25, "kv_bits": 8, "kv_nbytes": 123456, "peak_nbytes": 987654321, "stop_reason": "end", "kv_note": null}',NULL);
INSERT INTO "messages" VALUES(5,1,4,'user','Read it.','2026-11-30T10:57:43.212913+00:00','complete',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(6,1,5,'assistant','It is','2026-11-30T10:57:43.216709+00:00','failed','A model',NULL,'The engine failed.');
INSERT INTO "messages" VALUES(7,1,4,'user','Read it well.','2026-11-30T10:57:43.220772+00:00','complete',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(8,3,NULL,'user','hi','2026-11-30T10:57:43.230134+00:00','complete',NULL,NULL,NULL);
INSERT INTO "messages" VALUES(9,3,8,'assistant','Good mor','2026-11-30T10:57:43.267384+00:00','streaming','A model',NULL,NULL);
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
INSERT INTO "reading_segments" VALUES(1,3,0,0,6,'read','Yellow.',0,'');
INSERT INTO "reading_segments" VALUES(2,3,1,6,18,'failed','',0,'The model wrote nothing.');
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
INSERT INTO "readings" VALUES(3,1,7,1,'segments','A model','[1] (p. 1) Yellow.');
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
INSERT INTO "sources" VALUES(1,9,0,1,1,0,6,'noted',1,NULL);
INSERT INTO "sources" VALUES(2,9,1,0,1,6,18,'attended',0,0.5);
CREATE TABLE speeds (
            model TEXT PRIMARY KEY,
            speed TEXT NOT NULL
        ) STRICT;
INSERT INTO "speeds" VALUES('A model','{}');
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
INSERT INTO "summaries" VALUES(1,1,'They spoke of owls.','["m1", "m2", "m3", "m4"]','model','','A model',120,12,'used');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
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
CREATE INDEX summaries_by_conversation ON summaries (conversation_id);
CREATE TRIGGER summaries_final BEFORE UPDATE OF
            id, conversation_id, text, covers, source, note, model, source_tokens, num_tokens ON summaries
        BEGIN SELECT RAISE (ABORT, 'of a summary only the state ever changes'); END;
CREATE TRIGGER summaries_kept BEFORE DELETE ON summaries
        WHEN EXISTS (SELECT 1 FROM conversations WHERE id = OLD.conversation_id)
        BEGIN SELECT RAISE (ABORT, 'summaries go only with their conversation'); END;
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('conversations',3);
INSERT INTO "sqlite_sequence" VALUES('messages',9);
INSERT INTO "sqlite_sequence" VALUES('documents',2);
INSERT INTO "sqlite_sequence" VALUES('attachments',2);
INSERT INTO "sqlite_sequence" VALUES('summaries',1);
INSERT INTO "sqlite_sequence" VALUES('readings',3);
COMMIT;
