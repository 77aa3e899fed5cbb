//! Platform identities that paired with a bot using a code, which is valid once and for a few minutes.
//!
//! Only the hash of a code is stored. The caller chooses the form and the lifetime of a code.

use crate::{
    Db, Result, crash,
    engines::{from_row, query},
};

/// Maximum number of unused codes of one bot. Further codes are refused.
pub const MAX_UNUSED_CODES: i64 = 20;

/// An identity paired with a bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paired {
    /// The bot.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The displayed name.
    pub name: String,
    /// Time of the pairing, in milliseconds since 1970.
    pub at: i64,
}

from_row!(Paired { account, person, name, at });

impl Db {
    /// Stores a code's hash until `expires`. Returns false if too many codes of this bot are unused.
    pub async fn offer_code(&self, account: &str, hash: &str, expires: i64, now: i64) -> Result<bool> {
        let [account, hash] = [account, hash].map(str::to_owned);
        self.write(&crash::OFFER_CODE, move |tx| {
            query("DELETE FROM pairing_codes WHERE expires <= $1").bind(now).execute(tx)?;
            let sql =
                "SELECT COUNT(*) FROM pairing_codes WHERE account = $1 AND person IS NULL AND issuer IS NULL";
            let waiting: i64 = query(sql).bind(&account).fetch_one(tx)?;
            if waiting >= MAX_UNUSED_CODES {
                return Ok(false);
            }
            let sql = "INSERT INTO pairing_codes (hash, account, expires) VALUES ($1, $2, $3)";
            query(sql).bind(&hash).bind(&account).bind(expires).execute(tx)?;
            Ok(true)
        })
        .await
    }

    /// Pairs an identity by a code. The same identity may redeem it again, because platforms redeliver events. Returns
    /// false if the code is invalid or expired.
    pub async fn redeem_code(&self, hash: &str, person: Paired) -> Result<bool> {
        let hash = hash.to_owned();
        self.write(&crash::REDEEM_CODE, move |tx| {
            let sql = "UPDATE pairing_codes SET person = $1 WHERE hash = $2 AND account = $3 AND expires > $4
                AND issuer IS NULL AND (person IS NULL OR person = $5)";
            let update = query(sql).bind(&person.person).bind(&hash).bind(&person.account).bind(person.at);
            if update.bind(&person.person).execute(tx)? == 0 {
                return Ok(false);
            }
            let sql = "INSERT INTO paired (account, person, name, at) VALUES ($1, $2, $3, $4)
                ON CONFLICT (account, person) DO UPDATE SET name = excluded.name";
            let insert = query(sql).bind(&person.account).bind(&person.person);
            insert.bind(&person.name).bind(person.at).execute(tx)?;
            Ok(true)
        })
        .await
    }

    /// Removes a pairing. Returns false if the identity was not paired with the bot.
    pub async fn unpair(&self, account: &str, person: &str) -> Result<bool> {
        let texts = [account, person].map(str::to_owned);
        self.write(&crash::UNPAIR, move |tx| {
            // Otherwise the person could use the same code again.
            let codes = "DELETE FROM pairing_codes WHERE account = $1 AND person = $2";
            query(codes).bind_all(&texts).execute(tx)?;
            let sql = "DELETE FROM paired WHERE account = $1 AND person = $2";
            let delete = query(sql).bind_all(&texts);
            Ok(delete.execute(tx)? > 0)
        })
        .await
    }

    /// Returns all pairings, sorted by bot and time.
    pub async fn paired(&self) -> Result<Vec<Paired>> {
        let sql = "SELECT account, person, name, at FROM paired ORDER BY account, at, person";
        self.all(query(sql)).await
    }
}
