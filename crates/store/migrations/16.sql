-- Things that were moved in from another program: a digest of each as it was there, and of a thread the position up to which
-- the log is its copy. `done` is 0 while the work on it goes on.
CREATE TABLE imports (
    kind TEXT NOT NULL,
    item TEXT NOT NULL,
    digest TEXT NOT NULL,
    seq BIGINT NOT NULL,
    done BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (kind, item)
);

-- People who sign in. `password_hash` is as DeerFlow writes it.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password_hash TEXT,
    system_role TEXT NOT NULL,
    needs_setup BIGINT NOT NULL,
    token_version BIGINT NOT NULL,
    oauth_provider TEXT,
    oauth_id TEXT,
    created BIGINT NOT NULL
);

-- Judgements of people on answers: `rating` is 1 or -1.
CREATE TABLE feedback (
    id TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    thread TEXT NOT NULL,
    user_id TEXT NOT NULL,
    message TEXT,
    rating BIGINT NOT NULL,
    comment TEXT,
    created BIGINT NOT NULL,
    UNIQUE (thread, run, user_id)
);
CREATE INDEX feedback_user ON feedback (user_id);
