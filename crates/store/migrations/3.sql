-- What agents asked people to approve. `approved` is 1 or 0 once somebody decided, or time ran out.
CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    run TEXT NOT NULL,
    call TEXT NOT NULL,
    thread TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    wish TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    asked BIGINT NOT NULL,
    deadline BIGINT NOT NULL,
    approved BIGINT,
    decided_by TEXT,
    decided BIGINT
);
CREATE UNIQUE INDEX approvals_call ON approvals (run, call);
CREATE INDEX approvals_asked ON approvals (asked);

-- What agents did with their sandboxes, for people to look at.
CREATE TABLE audit (
    id ITEM_ID,
    at BIGINT NOT NULL,
    thread TEXT NOT NULL,
    run TEXT NOT NULL,
    account TEXT NOT NULL,
    person TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL,
    verdict TEXT NOT NULL,
    code BIGINT,
    ended BIGINT
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_thread ON audit (thread, id);
