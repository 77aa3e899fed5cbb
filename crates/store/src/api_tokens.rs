//! Tokens by which programs act for a user. Only their hashes are kept.

use crate::{
    Db, StoreError, crash,
    statement::{Columns, FromColumns, Tx, query},
};
use pudu_base::UserId;

/// Maximum number of tokens of one user.
pub const MAX_USER_TOKENS: i64 = 100;
/// A token's use is noted no more often than this, in milliseconds.
const USE_NOTED_EVERY: i64 = 300_000;

/// A program's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    /// Its id, which is no secret.
    pub id: String,
    /// The user that it acts for.
    pub user: UserId,
    /// Its name for people.
    pub name: String,
    /// The scopes, with spaces between them.
    pub scopes: String,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// When it ends; never, if `None`.
    pub expires: Option<i64>,
    /// When it was used last, to a few minutes.
    pub used: Option<i64>,
}

const COLUMNS: &str = "SELECT id, user_id, name, scopes, created, expires, used FROM api_tokens";

impl Db {
    /// Keeps a token and its hash. False when the user has as many as there may be.
    pub async fn add_api_token(&self, token: ApiToken, hash: &str) -> Result<bool, StoreError> {
        self.write(&crash::ADD_API_TOKEN, (token, hash.to_owned()), |(token, hash), tx| {
            Box::pin(add(tx, token, hash))
        })
        .await
    }

    /// Returns the token with a hash, unless it has ended.
    pub async fn api_token(&self, hash: &str, now: i64) -> Result<Option<ApiToken>, StoreError> {
        self.read((hash, now), |(hash, now), tx| Box::pin(find(tx, hash, *now))).await
    }

    /// Lists the tokens of a user, or of all, those first that were made first.
    pub async fn api_tokens(&self, user: Option<&UserId>) -> Result<Vec<ApiToken>, StoreError> {
        self.read(user, |user, tx| Box::pin(list(tx, *user))).await
    }

    /// Notes that a token was used, unless that was noted a short while ago.
    pub async fn note_api_token_use(&self, token: &ApiToken, now: i64) -> Result<(), StoreError> {
        if token.used.is_some_and(|used| now - used < USE_NOTED_EVERY) {
            return Ok(());
        }
        self.write(&crash::USE_API_TOKEN, (token.id.clone(), now), |(id, now), tx| {
            Box::pin(async move {
                let update = query("UPDATE api_tokens SET used = $1 WHERE id = $2").bind(*now).bind(id);
                update.execute(tx).await.map(drop)
            })
        })
        .await
    }

    /// Revokes a token, of this user if one is named. False when there is none.
    pub async fn revoke_api_token(&self, id: &str, user: Option<&UserId>) -> Result<bool, StoreError> {
        let data = (id.to_owned(), user.cloned());
        self.write(&crash::REVOKE_API_TOKEN, data, |(id, user), tx| {
            Box::pin(async move {
                let sql = "DELETE FROM api_tokens WHERE id = $1 AND ($2 = '' OR user_id = $3)";
                let user = user.as_ref().map_or("", UserId::as_str);
                Ok(query(sql).bind(id).bind(user).bind(user).execute(tx).await? > 0)
            })
        })
        .await
    }
}

async fn add(tx: &mut Tx<'_>, token: &ApiToken, hash: &str) -> Result<bool, StoreError> {
    let count = query("SELECT COUNT(*) FROM api_tokens WHERE user_id = $1").bind(token.user.as_str());
    if count.fetch_one::<i64>(tx).await? >= MAX_USER_TOKENS {
        return Ok(false);
    }
    let sql = "INSERT INTO api_tokens (id, user_id, name, hash, scopes, created, expires)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let insert = query(sql).bind(&token.id).bind(token.user.as_str()).bind(&token.name).bind(hash);
    insert.bind(&token.scopes).bind(token.created).bind(token.expires).execute(tx).await?;
    Ok(true)
}

async fn find(tx: &mut Tx<'_>, hash: &str, now: i64) -> Result<Option<ApiToken>, StoreError> {
    let sql = format!("{COLUMNS} WHERE hash = $1 AND (expires IS NULL OR expires > $2)");
    query(sql).bind(hash).bind(now).fetch_optional(tx).await
}

async fn list(tx: &mut Tx<'_>, user: Option<&UserId>) -> Result<Vec<ApiToken>, StoreError> {
    let sql = format!("{COLUMNS} WHERE $1 = '' OR user_id = $2 ORDER BY created, id");
    let user = user.map_or("", UserId::as_str);
    query(sql).bind(user).bind(user).fetch_all(tx).await
}

impl FromColumns for ApiToken {
    fn from_columns(row: &impl Columns) -> Result<Self, StoreError> {
        let user: String = row.column("user_id")?;
        Ok(Self {
            id: row.column("id")?,
            user: UserId::from_raw(&user).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            name: row.column("name")?,
            scopes: row.column("scopes")?,
            created: row.column("created")?,
            expires: row.column("expires")?,
            used: row.column("used")?,
        })
    }
}
