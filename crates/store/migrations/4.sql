-- Who answers in a conversation, where people chose somebody.
ALTER TABLE conversations ADD COLUMN agent TEXT;
