-- Conversations from which something may be learnt: of each the newest run, when it is due, and how often that failed. A
-- room's people are all its own.
CREATE TABLE learnings (
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    thread TEXT NOT NULL,
    run TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    spender TEXT NOT NULL,
    due BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (user_id, agent, thread)
);
CREATE INDEX learnings_due ON learnings (due);

-- Up to which message a conversation was read.
CREATE TABLE learnt (
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    thread TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (user_id, agent, thread)
);

-- Users who want nothing remembered.
CREATE TABLE memory_off (user_id TEXT NOT NULL PRIMARY KEY);
