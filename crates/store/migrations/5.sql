-- Up to where an account's events were accepted, in the channel's own words: where its stream goes on.
CREATE TABLE stream_positions (
    account TEXT NOT NULL PRIMARY KEY,
    position TEXT NOT NULL,
    at BIGINT NOT NULL
);
