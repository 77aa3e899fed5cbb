-- A user whose threads become another's: those that were there at `at`. The row goes with the last of them.
CREATE TABLE adoptions (
    source TEXT NOT NULL PRIMARY KEY,
    target TEXT NOT NULL,
    at BIGINT NOT NULL
);
