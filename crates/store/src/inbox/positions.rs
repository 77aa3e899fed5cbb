//! Positions of accounts' streams, in their channels' own words: where a stream continues after its accepted events.

use crate::{
    Db, Result, crash,
    engines::{Tx, query},
};

impl Db {
    /// Stores the position where an account's stream continues, in place of the earlier one. With an event it is stored
    /// by
    /// [`Db::accept`].
    pub async fn save_position(&self, account: &str, position: &str, now: i64) -> Result<()> {
        let (account, position) = (account.to_owned(), position.to_owned());
        self.write(&crash::SAVE_POSITION, move |tx| save(tx, &account, &position, now)).await
    }

    /// Returns the position where an account's stream continues.
    pub async fn position(&self, account: &str) -> Result<Option<String>> {
        let sql = "SELECT position FROM stream_positions WHERE account = $1";
        self.find(query(sql).bind(account)).await
    }
}

pub(crate) fn save(tx: &mut Tx<'_>, account: &str, position: &str, now: i64) -> Result<()> {
    let sql = "INSERT INTO stream_positions (account, position, at) VALUES ($1, $2, $3)
        ON CONFLICT (account) DO UPDATE SET position = excluded.position, at = excluded.at";
    query(sql).bind(account).bind(position).bind(now).execute(tx)?;
    Ok(())
}
