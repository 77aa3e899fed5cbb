-- Times are milliseconds since 1970. ITEM_ID stands for the engine's way to number rows.

-- One row per event that a platform believes delivered. It outlives its answer, so that a late
-- redelivery is recognised.
CREATE TABLE inbox (
    id ITEM_ID,
    account TEXT NOT NULL,
    event_key TEXT NOT NULL,
    payload TEXT NOT NULL,
    at BIGINT NOT NULL,
    turn TEXT,
    done BIGINT,
    UNIQUE (account, event_key)
);
CREATE INDEX inbox_pending ON inbox (id) WHERE done IS NULL;
CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL;
CREATE INDEX inbox_done ON inbox (done) WHERE done IS NOT NULL;

-- One row per reply that people will see. Open while both `delivered` and `parked` are NULL.
CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    conversation TEXT NOT NULL,
    account TEXT NOT NULL,
    thread TEXT,
    run TEXT,
    placement TEXT NOT NULL,
    handle TEXT,
    final_view TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    next_at BIGINT NOT NULL,
    resumed BIGINT NOT NULL DEFAULT 0,
    error TEXT,
    created BIGINT NOT NULL,
    delivered BIGINT,
    parked BIGINT
);
CREATE INDEX turns_open ON turns (created) WHERE delivered IS NULL AND parked IS NULL;
CREATE INDEX turns_delivered ON turns (delivered) WHERE delivered IS NOT NULL;
CREATE INDEX turns_parked ON turns (conversation) WHERE parked IS NOT NULL;

-- Which thread a place talks to.
CREATE TABLE conversations (
    key TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL,
    model TEXT,
    mode TEXT,
    updated BIGINT NOT NULL
);
CREATE INDEX conversations_chat ON conversations (account, chat, updated);

-- The platforms' messages, theirs and ours. `conversation` is NULL until it is known.
CREATE TABLE messages (
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    message TEXT NOT NULL,
    conversation TEXT,
    ours BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account, chat, message)
);
CREATE INDEX messages_at ON messages (at);

-- The agent's runs and what they cost. Unfinished while `ended` is NULL.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    thread TEXT NOT NULL,
    model TEXT NOT NULL,
    started BIGINT NOT NULL,
    ended BIGINT,
    outcome TEXT,
    input BIGINT NOT NULL DEFAULT 0,
    output BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX runs_thread ON runs (thread);

-- A thread is the fold of its rows, in order of `seq`, from 1 without a gap.
CREATE TABLE log (
    thread TEXT NOT NULL,
    seq BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (thread, seq)
);

-- The newest fold of a thread that was worth keeping: the state after row `seq`.
CREATE TABLE snapshots (
    thread TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL,
    body TEXT NOT NULL
);
