-- The process that had the database last, on a server.
CREATE TABLE owner (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

-- Whether the process that worked on a turn was stopped in order, and the turn with it.
ALTER TABLE turns ADD COLUMN suspended BIGINT NOT NULL DEFAULT 0;
