-- People who sign in by a provider: `oauth_provider` is its name in the configuration, `oauth_id` their subject there, and
-- `oauth_issuer` the issuer that vouched for them, NULL before their first login here. Each subject has one account.
ALTER TABLE users ADD COLUMN oauth_issuer TEXT;
UPDATE users SET oauth_provider = NULL, oauth_id = NULL WHERE oauth_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM users AS other WHERE other.oauth_provider = users.oauth_provider AND other.oauth_id = users.oauth_id
        AND other.id < users.id);
CREATE UNIQUE INDEX users_oauth ON users (oauth_provider, oauth_id) WHERE oauth_id IS NOT NULL;
