-- A run is one record, whoever asks for it: `origin` is `chat` or `api`. `owner` is the process that works on it, `resumed` counts how
-- often a process took it over after a crash of the one before. `goal_dropped`: people cleared the goal that it works towards.
ALTER TABLE runs ADD COLUMN origin TEXT NOT NULL DEFAULT 'api';
ALTER TABLE runs ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN resumed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN goal_dropped BIGINT NOT NULL DEFAULT 0;
UPDATE runs SET origin = 'chat' WHERE user_id = '';
-- Before, the run of a turn that waited had no row, and one whose turn was given up could stay without an end.
INSERT INTO runs (id, thread, model, started, origin)
    SELECT run, thread, '', MIN(created), 'chat' FROM turns
    WHERE run IS NOT NULL AND thread IS NOT NULL AND delivered IS NULL AND parked IS NULL
        AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = turns.run)
    GROUP BY run, thread;
UPDATE runs SET
    suspended = (SELECT MAX(turns.suspended) FROM turns WHERE turns.run = runs.id),
    resumed = (SELECT MAX(turns.resumed) FROM turns WHERE turns.run = runs.id),
    goal_dropped = (SELECT MAX(turns.goal_dropped) FROM turns WHERE turns.run = runs.id)
    WHERE ended IS NULL AND origin = 'chat' AND EXISTS (SELECT 1 FROM turns WHERE turns.run = runs.id);
UPDATE runs SET ended = COALESCE(begun, started), outcome = '{"status":"error","class":"internal","hint":"the process ended during the run"}'
    WHERE ended IS NULL AND origin = 'chat' AND NOT EXISTS
        (SELECT 1 FROM turns WHERE turns.run = runs.id AND delivered IS NULL AND parked IS NULL);
ALTER TABLE turns DROP COLUMN suspended;
ALTER TABLE turns DROP COLUMN resumed;
ALTER TABLE turns DROP COLUMN goal_dropped;
DROP INDEX runs_waiting;
CREATE INDEX runs_unfinished ON runs (started) WHERE ended IS NULL;
