-- The threads: whose they are, when they were last used, how far their log goes, and how large they are. NOW_MS
-- stands for the time at which the database is brought to this version.
CREATE TABLE threads (
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL,
    seq BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    log_bytes BIGINT NOT NULL,
    file_bytes BIGINT NOT NULL,
    -- What `updated` was when the files were measured.
    measured BIGINT NOT NULL
);

INSERT INTO threads (id, account, seq, created, updated, log_bytes, file_bytes, measured)
    SELECT thread, '', MAX(seq), NOW_MS, NOW_MS, CAST(SUM(OCTET_LENGTH(body)) AS BIGINT), 0, 0
    FROM log GROUP BY thread;
INSERT INTO threads (id, account, seq, created, updated, log_bytes, file_bytes, measured)
    SELECT DISTINCT thread, '', 0, NOW_MS, NOW_MS, 0, 0, 0 FROM conversations
    WHERE thread NOT IN (SELECT id FROM threads);
CREATE INDEX conversations_thread ON conversations (thread);
CREATE INDEX turns_thread ON turns (thread) WHERE thread IS NOT NULL;
CREATE INDEX approvals_thread ON approvals (thread);
UPDATE threads SET account = COALESCE(
    (SELECT MAX(account) FROM conversations WHERE conversations.thread = threads.id),
    (SELECT MAX(account) FROM turns WHERE turns.thread = threads.id),
    (SELECT MAX(account) FROM audit WHERE audit.thread = threads.id),
    '');
UPDATE threads SET
    created = (SELECT MIN(started) FROM runs WHERE runs.thread = threads.id),
    updated = (SELECT MAX(COALESCE(ended, started)) FROM runs WHERE runs.thread = threads.id)
    WHERE id IN (SELECT thread FROM runs);

-- When a row was written, and by which run.
ALTER TABLE log ADD COLUMN at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN run TEXT NOT NULL DEFAULT '';

CREATE INDEX audit_account ON audit (account, id);

-- Threads whose rows are gone and whose files are not yet.
CREATE TABLE deleted_threads (
    id TEXT NOT NULL PRIMARY KEY
);
