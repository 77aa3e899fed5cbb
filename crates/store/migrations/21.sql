-- People who said something to the agent in a room's thread, as the platform knows them. `at` is when the first turn of theirs began.
CREATE TABLE thread_people (
    thread TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (thread, account, person)
);
CREATE INDEX thread_people_person ON thread_people (account, person);
