-- Recall: entries of memory that are found by their words. A scope is what one search may see: one kind of one agent's
-- memory of one user. What stands at the end makes the engine's own full-text index, in which each word begins with
-- its scope's number.
CREATE TABLE recall_scopes (
    id ITEM_ID,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Statistics: entries, and words in all of them.
    docs BIGINT NOT NULL,
    words BIGINT NOT NULL,
    UNIQUE (user_id, agent, kind)
);

CREATE TABLE recall_docs (
    id ITEM_ID,
    scope BIGINT NOT NULL,
    doc TEXT NOT NULL,
    thread TEXT NOT NULL,
    author TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- In millionths.
    confidence BIGINT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (scope, doc)
);
CREATE INDEX recall_docs_thread ON recall_docs (thread) WHERE thread <> '';

-- The words of an entry as they are indexed, with repetitions, and its time. Apart from the texts, because many of them
-- are read for each search.
CREATE TABLE recall_bags (
    id ROW_KEY,
    at BIGINT NOT NULL,
    words TEXT NOT NULL
);

-- In how many entries of a scope a word is.
CREATE TABLE recall_words (
    scope BIGINT NOT NULL,
    word TEXT NOT NULL,
    docs BIGINT NOT NULL,
    PRIMARY KEY (scope, word)
);

RECALL_INDEX
