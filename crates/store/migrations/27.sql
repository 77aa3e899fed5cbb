-- Scheduled tasks. `thread` is the thread of every run, or NULL for a new thread each time. `account`, `chat` and `person` are empty
-- unless the answer goes to a chat; `target` is its address, JSON. `failures` counts failed runs since the last success.
CREATE TABLE scheduled_tasks (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    thread TEXT,
    title TEXT NOT NULL,
    prompt TEXT NOT NULL,
    kind TEXT NOT NULL,
    spec TEXT NOT NULL,
    zone TEXT NOT NULL,
    status TEXT NOT NULL,
    agent TEXT,
    model TEXT,
    budget BIGINT,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    person TEXT NOT NULL,
    target TEXT NOT NULL,
    next_run BIGINT,
    last_run BIGINT,
    last_run_id TEXT,
    last_thread TEXT,
    last_error TEXT,
    run_count BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL
);
CREATE INDEX scheduled_tasks_due ON scheduled_tasks (next_run) WHERE status = 'enabled' AND next_run IS NOT NULL;
CREATE INDEX scheduled_tasks_user ON scheduled_tasks (user_id, created);
-- One row for each due time and each start by hand. A due time has one row, and a task has one run at a time.
CREATE TABLE scheduled_task_runs (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL,
    thread TEXT,
    run TEXT,
    scheduled_for BIGINT NOT NULL,
    cause TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    started BIGINT,
    finished BIGINT,
    created BIGINT NOT NULL
);
CREATE UNIQUE INDEX scheduled_task_runs_due ON scheduled_task_runs (task, scheduled_for) WHERE cause = 'scheduled';
CREATE UNIQUE INDEX scheduled_task_runs_active ON scheduled_task_runs (task) WHERE status IN ('queued', 'running');
CREATE INDEX scheduled_task_runs_task ON scheduled_task_runs (task, created);
CREATE INDEX scheduled_task_runs_run ON scheduled_task_runs (run) WHERE run IS NOT NULL;
