-- By whose code somebody joined, account and person with a line feed between them, and where they are told of it, JSON; both
-- empty for those who came otherwise.
ALTER TABLE identities ADD COLUMN via TEXT NOT NULL DEFAULT '';
ALTER TABLE identities ADD COLUMN route TEXT NOT NULL DEFAULT '';
