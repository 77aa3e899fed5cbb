-- Messages of groups that do not address the bot, of accounts that keep them because their platform gives bots no history.
-- `topic` is empty outside of topics. `person` is empty for an author who may not use the bot, whose row has neither name nor words,
-- and for another bot. `piece` is JSON without the text. `taken` is the first event of the turn that got the message.
CREATE TABLE buffered_messages (
    id ITEM_ID,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    topic TEXT NOT NULL,
    message TEXT NOT NULL,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    piece TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    at BIGINT NOT NULL,
    taken BIGINT,
    UNIQUE (account, chat, message)
);
CREATE INDEX buffered_messages_place ON buffered_messages (account, chat, topic, id);
CREATE INDEX buffered_messages_person ON buffered_messages (account, person) WHERE person <> '';
