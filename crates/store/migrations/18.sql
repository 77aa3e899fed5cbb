-- Threads as clients of the API have them: notes of theirs, a JSON object or empty, the assistant, and whether it stands above others.
ALTER TABLE threads ADD COLUMN metadata TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN assistant TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;

-- Runs that clients of the API asked for have a user, and a `request`, JSON, by which they go on after a restart; in all others both
-- are empty.
-- `begun` is NULL while a run waits, `cancelled` is how it was told to stop, `suspended` is 1 if the daemon was stopped in order.
ALTER TABLE runs ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN assistant TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN request TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN metadata TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN multitask TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN begun BIGINT;
ALTER TABLE runs ADD COLUMN cancelled TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN stop_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN first_words TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN last_words TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN messages BIGINT NOT NULL DEFAULT 0;
UPDATE runs SET begun = started;
CREATE INDEX runs_waiting ON runs (started) WHERE ended IS NULL AND user_id <> '';
CREATE INDEX threads_user_updated ON threads (user_id, updated);
