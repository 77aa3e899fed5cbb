//! API tokens, which let programs act for a user. Only their hashes are stored.

use crate::{
    Db, Result, crash,
    engines::{from_row, query},
};
use pudu_base::UserId;

/// Maximum number of API tokens of one user.
pub const MAX_USER_TOKENS: i64 = 100;
/// Minimum interval between two records of a token's use, in milliseconds.
const USE_NOTED_EVERY: i64 = 300_000;

/// An API token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Its id, which is not secret.
    pub id: String,
    /// The user that it acts for.
    pub user: UserId,
    /// Its name for people.
    pub name: String,
    /// The scopes, separated by spaces.
    pub scopes: String,
    /// Time of its creation, in milliseconds since 1970.
    pub created: i64,
    /// Time of its expiry; `None` means never.
    pub expires: Option<i64>,
    /// Time of its last use, accurate to a few minutes.
    pub used: Option<i64>,
}

const COLUMNS: &str = "SELECT id, user_id, name, scopes, created, expires, used FROM api_tokens";

impl Db {
    /// Stores a token and its hash. Returns false if the user has the maximum number of tokens.
    pub async fn add_api_token(&self, token: ApiToken, hash: &str) -> Result<bool> {
        let hash = hash.to_owned();
        self.write(&crash::ADD_API_TOKEN, move |tx| {
            let count = query("SELECT COUNT(*) FROM api_tokens WHERE user_id = $1").bind(token.user.as_str());
            if count.fetch_one::<i64>(tx)? >= MAX_USER_TOKENS {
                return Ok(false);
            }
            let sql = "INSERT INTO api_tokens (id, user_id, name, hash, scopes, created, expires)
                VALUES ($1, $2, $3, $4, $5, $6, $7)";
            let insert = query(sql).bind(&token.id).bind(token.user.as_str()).bind(&token.name).bind(&hash);
            insert.bind(&token.scopes).bind(token.created).bind(token.expires).execute(tx)?;
            Ok(true)
        })
        .await
    }

    /// Returns the token with a hash, unless it has expired.
    pub async fn api_token(&self, hash: &str, now: i64) -> Result<Option<ApiToken>> {
        let sql = format!("{COLUMNS} WHERE hash = $1 AND (expires IS NULL OR expires > $2)");
        self.find(query(sql).bind(hash).bind(now)).await
    }

    /// Lists the tokens of a user, or of all users, oldest first.
    pub async fn api_tokens(&self, user: Option<&UserId>) -> Result<Vec<ApiToken>> {
        let sql = format!("{COLUMNS} WHERE $1 = '' OR user_id = $2 ORDER BY created, id");
        let user = user.map_or("", UserId::as_str);
        self.all(query(sql).bind(user).bind(user)).await
    }

    /// Records that a token was used, unless a use was recorded recently.
    pub async fn note_api_token_use(&self, token: &ApiToken, now: i64) -> Result<()> {
        if token.used.is_some_and(|used| now - used < USE_NOTED_EVERY) {
            return Ok(());
        }
        let update = query("UPDATE api_tokens SET used = $1 WHERE id = $2").bind(now).bind(&token.id);
        self.execute(&crash::USE_API_TOKEN, update).await.map(drop)
    }

    /// Revokes a token; if a user is given, only a token of that user. Returns false if there is no such token.
    pub async fn revoke_api_token(&self, id: &str, user: Option<&UserId>) -> Result<bool> {
        let sql = "DELETE FROM api_tokens WHERE id = $1 AND ($2 = '' OR user_id = $3)";
        let user = user.map_or("", UserId::as_str);
        Ok(self.execute(&crash::REVOKE_API_TOKEN, query(sql).bind(id).bind(user).bind(user)).await? > 0)
    }
}

from_row!(ApiToken { id, user: "user_id", name, scopes, created, expires, used });
