-- Tokens by which programs act for a user. `hash` is the SHA-256 of the token, which nothing keeps; `scopes` are names with
-- spaces between them. The user may be one who does not sign in.
CREATE TABLE api_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT,
    used BIGINT
);
CREATE INDEX api_tokens_user ON api_tokens (user_id);
