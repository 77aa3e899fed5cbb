-- The conversations of the terminal are threads of the HTTP API: their metadata has the name by which it finds them. What people chose
-- for one holds for its thread.
UPDATE threads SET metadata =
    (SELECT '{"terminal":"' || MAX(chat) || '"}' FROM conversations WHERE account = 'local' AND thread = threads.id)
    WHERE metadata = '' AND EXISTS (SELECT 1 FROM conversations WHERE account = 'local' AND thread = threads.id);
INSERT INTO conversations (key, account, chat, thread, model, agent, thinking, updated)
    SELECT 'api:' || thread, 'api', thread, thread, MAX(model), MAX(agent), MAX(thinking), MAX(updated) FROM conversations
    WHERE account = 'local' AND thread NOT IN (SELECT chat FROM conversations WHERE account = 'api')
        AND (model IS NOT NULL OR agent IS NOT NULL OR thinking IS NOT NULL)
    GROUP BY thread;
