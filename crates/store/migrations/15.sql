-- Conversations to learn from: which goes first, who reads it, and until when that reader has it, in milliseconds since
-- 1970.
ALTER TABLE learnings ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;
ALTER TABLE learnings ADD COLUMN reader TEXT NOT NULL DEFAULT '';
ALTER TABLE learnings ADD COLUMN reads_until BIGINT NOT NULL DEFAULT 0;
-- The first and the last message that somebody said as this user; empty in rows of before. And the room in which they did.
ALTER TABLE learnings ADD COLUMN first TEXT NOT NULL DEFAULT '';
ALTER TABLE learnings ADD COLUMN last TEXT NOT NULL DEFAULT '';
ALTER TABLE learnings ADD COLUMN room TEXT NOT NULL DEFAULT '';
UPDATE learnings SET room = user_id WHERE user_id <> spender;

-- Users who became another one: what is remembered of the first is still to be merged into the memory of the second.
CREATE TABLE memory_merges (
    source TEXT NOT NULL PRIMARY KEY,
    target TEXT NOT NULL
);

-- Old entries of recall go by their time.
CREATE INDEX recall_docs_at ON recall_docs (at);
