-- The title of a run's thread as the run found it and as it left it: the frames of its stream show these, whenever they are read.
ALTER TABLE runs ADD COLUMN title_found TEXT;
ALTER TABLE runs ADD COLUMN title_left TEXT;

-- Whether the run's thread is deleted after it.
ALTER TABLE runs ADD COLUMN deletes_thread BIGINT NOT NULL DEFAULT 0;
CREATE INDEX runs_temporary ON runs (thread) WHERE deletes_thread <> 0;
