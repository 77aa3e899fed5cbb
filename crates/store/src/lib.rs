//! SQL: inbox, outbox, conversations, runs and the thread log.
