//! Positions of accounts' streams, in their channels' own words: where a stream continues after its accepted events.

use crate::{
    Db, StoreError, crash,
    statement::{Tx, query},
};

impl Db {
    /// Stores the position where an account's stream continues, in place of the earlier one. With an event it is stored
    /// by
    /// [`Db::accept`].
    pub async fn save_position(&self, account: &str, position: &str, now: i64) -> Result<(), StoreError> {
        let data = (account.to_owned(), position.to_owned(), now);
        self.write(&crash::SAVE_POSITION, data, |(account, position, now), tx| {
            Box::pin(save(tx, account, position, *now))
        })
        .await
    }

    /// Returns the position where an account's stream continues.
    pub async fn position(&self, account: &str) -> Result<Option<String>, StoreError> {
        self.read(account, |account, tx| Box::pin(position(tx, account))).await
    }
}

async fn position(tx: &mut Tx<'_>, account: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT position FROM stream_positions WHERE account = $1";
    query(sql).bind(account).fetch_optional(tx).await
}

pub(crate) async fn save(tx: &mut Tx<'_>, account: &str, position: &str, now: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO stream_positions (account, position, at) VALUES ($1, $2, $3)
        ON CONFLICT (account) DO UPDATE SET position = excluded.position, at = excluded.at";
    query(sql).bind(account).bind(position).bind(now).execute(tx).await?;
    Ok(())
}
