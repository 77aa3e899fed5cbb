-- How hard the model thinks in a conversation, as people chose.
ALTER TABLE conversations ADD COLUMN thinking TEXT;

-- What runs spent on models, by caller and model. Without a price the cost is unknown, and so it is of calls whose
-- provider told no usage. `day` is that of the run's end, in days since
-- 1970 in UTC; `cost` is in millionths of the currency.
CREATE TABLE spending (
    run TEXT NOT NULL,
    thread TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    day BIGINT NOT NULL,
    caller TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL,
    unreported BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    cache_writes BIGINT NOT NULL,
    reasoning BIGINT NOT NULL,
    cost BIGINT,
    currency TEXT,
    PRIMARY KEY (run, caller, model)
);
CREATE INDEX spending_thread ON spending (thread);
CREATE INDEX spending_day ON spending (day);
CREATE INDEX spending_person ON spending (account, person, day);
