//! Positions in the bots' event streams, in each channel's own format. After a restart, a stream continues at its
//! position.

use crate::{
    Db, Result, crash,
    engines::{Tx, query},
};

impl Db {
    /// Replaces the position at which a bot's stream continues. [`Db::accept`] stores a position with an event.
    pub async fn save_position(&self, account: &str, position: &str, now: i64) -> Result<()> {
        let (account, position) = (account.to_owned(), position.to_owned());
        self.write(&crash::SAVE_POSITION, move |tx| save(tx, &account, &position, now)).await
    }

    /// Returns the position at which a bot's stream continues.
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
