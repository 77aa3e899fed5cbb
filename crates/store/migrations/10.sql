-- What a thread is about, for lists; empty until it is known.
ALTER TABLE threads ADD COLUMN title TEXT NOT NULL DEFAULT '';
