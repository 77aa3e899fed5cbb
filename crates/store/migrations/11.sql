-- Whether people took the goal back that the run of a turn works towards.
ALTER TABLE turns ADD COLUMN goal_dropped BIGINT NOT NULL DEFAULT 0;

-- The user in whose folder the files of a thread are, and for whom a run spent. All that was before there were users is
-- the local one's.
ALTER TABLE threads ADD COLUMN user_id TEXT NOT NULL DEFAULT 'default';
ALTER TABLE deleted_threads ADD COLUMN user_id TEXT NOT NULL DEFAULT 'default';
ALTER TABLE spending ADD COLUMN user_id TEXT NOT NULL DEFAULT 'default';
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
-- A code of a person joins whoever shows it to their user.
ALTER TABLE pairing_codes ADD COLUMN user_id TEXT;
