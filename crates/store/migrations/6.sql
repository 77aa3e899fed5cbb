-- Which reply a message of ours shows, so that what is pressed below it is known.
ALTER TABLE messages ADD COLUMN turn TEXT;
-- The event by which somebody chose one of the things that a reply offers.
ALTER TABLE turns ADD COLUMN chosen BIGINT;
