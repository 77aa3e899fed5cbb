-- Whether people took the goal back that the run of a turn works towards.
ALTER TABLE turns ADD COLUMN goal_dropped BIGINT NOT NULL DEFAULT 0;

-- The user in whose folder the files of a thread are: of those that were there before users, the local one. And the user for
-- whom a run spent; before there were users, none.
ALTER TABLE threads ADD COLUMN user_id TEXT NOT NULL DEFAULT 'default';
ALTER TABLE deleted_threads ADD COLUMN user_id TEXT NOT NULL DEFAULT 'default';
ALTER TABLE spending ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_user ON threads (user_id);
CREATE INDEX spending_user ON spending (user_id, day);

-- People of accounts who are a user together with others: one person on several platforms. Who is not listed is a user
-- by themselves.
CREATE TABLE identities (
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account, person)
);
CREATE INDEX identities_user ON identities (user_id);
-- A code of a person makes whoever shows it the same user: the one who asked for it, and what is to be known of them, JSON.
ALTER TABLE pairing_codes ADD COLUMN issuer TEXT;
ALTER TABLE pairing_codes ADD COLUMN offer TEXT;
