-- What calls of models cost, one row a call: it is stored once, however often that is said. Rows of before stand for all
-- calls of a run by one caller to one model.
CREATE TABLE spent_calls (
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    thread TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    user_id TEXT NOT NULL,
    room TEXT NOT NULL,
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
    PRIMARY KEY (run, call)
);
INSERT INTO spent_calls (run, call, thread, account, person, user_id, room, day, caller, model, calls, unreported, input,
    output, cached, cache_writes, reasoning, cost, currency)
    SELECT run, caller || ':' || model, thread, account, person, user_id, '', day, caller, model, calls, unreported,
    input, output, cached, cache_writes, reasoning, cost, currency FROM spending;
DROP TABLE spending;
ALTER TABLE spent_calls RENAME TO spending;
CREATE INDEX spending_thread ON spending (thread);
CREATE INDEX spending_day ON spending (day);
CREATE INDEX spending_account ON spending (account, day);
CREATE INDEX spending_user ON spending (user_id, day);
CREATE INDEX spending_room ON spending (room, day) WHERE room <> '';

-- What was spent of budgets that somebody set: the sum of the rows above. A budget begins on the day `since` and is over
-- on `until`; its unit is a currency, or empty for tokens. `warned` is the limit of which people were told that little of it
-- is left, `made` the day on which the row was.
CREATE TABLE budgets (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    unit TEXT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    warned BIGINT NOT NULL,
    made BIGINT NOT NULL,
    PRIMARY KEY (scope, subject, unit, since, until)
);

-- Calls that are under way and may spend so much of budgets: by which process, the tokens and the cost of the prompt, and
-- those of the whole call at most.
CREATE TABLE reservations (
    call TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    run TEXT NOT NULL,
    thread TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    user_id TEXT NOT NULL,
    room TEXT NOT NULL,
    day BIGINT NOT NULL,
    caller TEXT NOT NULL,
    model TEXT NOT NULL,
    input BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    input_cost BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    currency TEXT NOT NULL
);
