//! People of accounts who are one user with others. A person who is not listed is a separate user.
//!
//! For each person who joined, the issuer of the code is stored: when the issuer parts, all people who joined by the
//! issuer's codes part, too, and their codes end.

use crate::{
    Db, Result, crash,
    engines::{Tx, from_row, query},
    memory::merge,
};
use pudu_base::UserId;

/// A code by which a person lets another one become the same user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCode {
    /// The code's hash.
    pub hash: String,
    /// The account of the one who asked for it.
    pub account: String,
    /// The platform's id of the one who asked for it.
    pub issuer: String,
    /// Facts about the issuer for the person who uses the code, JSON.
    pub offer: String,
    /// Until when it is good, in milliseconds since 1970.
    pub expires: i64,
}

/// A person of an account, and the user that they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The account.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The user.
    pub user: UserId,
    /// The name that people see.
    pub name: String,
    /// Since when, in milliseconds since 1970.
    pub at: i64,
}

/// A person who is a separate user again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartedPerson {
    /// The account.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// Where to notify the person, as passed to [`Db::join`]; empty if unknown.
    pub route: String,
}

/// Returns the user that a person of an account is alone. Neither an account's name nor an id has a NUL, so two
/// people are never the same user.
#[must_use]
pub fn unpaired_user(account: &str, person: &str) -> UserId {
    UserId::from_raw(&format!("{account}\0{person}")).unwrap_or_default()
}

from_row!(Identity { account, person, user: "user_id", name, at });
from_row!(PartedPerson { account, person, route });

impl Db {
    /// Makes a person a user, in place of the one that they were.
    pub async fn identify(&self, identity: Identity) -> Result<()> {
        self.write(&crash::IDENTIFY, move |tx| identify(tx, &identity)).await
    }

    /// Keeps a code of a person in place of the one that they had.
    pub async fn offer_join(&self, code: JoinCode) -> Result<()> {
        self.write(&crash::OFFER_JOIN, move |tx| {
            drop_codes(tx, &code.account, &code.issuer)?;
            let sql = "INSERT INTO pairing_codes (hash, account, expires, issuer, offer)
                VALUES ($1, $2, $3, $4, $5)";
            let insert = query(sql).bind(&code.hash).bind(&code.account).bind(code.expires);
            insert.bind(&code.issuer).bind(&code.offer).execute(tx).map(drop)
        })
        .await
    }

    /// Returns the facts about a code's issuer, JSON, if the code is good.
    pub async fn join_offer(&self, hash: &str, now: i64) -> Result<Option<String>> {
        let sql = "SELECT offer FROM pairing_codes
            WHERE hash = $1 AND issuer IS NOT NULL AND person IS NULL AND expires > $2";
        self.find(query(sql).bind(hash).bind(now)).await
    }

    /// Makes the user of a code and its issuer one user. The same person may repeat it, as platforms redeliver events.
    /// The person brings the memory of their former user `brings`, if it is given and no other person is that user: it
    /// is then to be merged. `route` is where to notify the person of a later parting. False if the code is not good,
    /// or not any more, and if its issuer is not the user any more that the code promised.
    pub async fn join(
        &self,
        hash: &str,
        shows: Identity,
        issuer: Identity,
        brings: Option<UserId>,
        route: &str,
    ) -> Result<bool> {
        let (hash, route) = (hash.to_owned(), route.to_owned());
        self.write(&crash::JOIN, move |tx| {
            let sql = "SELECT user_id FROM identities WHERE account = $1 AND person = $2";
            let user = query(sql).bind(&issuer.account).bind(&issuer.person).fetch_optional::<UserId>(tx)?;
            if user.unwrap_or_else(|| unpaired_user(&issuer.account, &issuer.person)) != issuer.user {
                return Ok(false);
            }
            let sql =
                "UPDATE pairing_codes SET person = $1 WHERE hash = $2 AND issuer IS NOT NULL AND expires > $3
                    AND (person IS NULL OR person = $1)";
            let joined = mark(&shows.account, &shows.person);
            if query(sql).bind(&joined).bind(&hash).bind(shows.at).execute(tx)? == 0 {
                return Ok(false);
            }
            identify_if_new(tx, &issuer)?;
            identify(tx, &shows)?;
            let sql = "UPDATE identities SET via = $3, route = $4 WHERE account = $1 AND person = $2";
            let via = mark(&issuer.account, &issuer.person);
            query(sql).bind(&shows.account).bind(&shows.person).bind(&via).bind(&route).execute(tx)?;
            // The person's codes promised a user that the person is no more.
            drop_codes(tx, &shows.account, &shows.person)?;
            if let Some(source) = &brings {
                merge::begin(tx, source, &shows.user)?;
            }
            Ok(true)
        })
        .await
    }

    /// Makes a person a separate user again, and all people who are that user then or who joined by the person's code.
    /// If there are such people, a person who used no code stays unchanged. Returns all people whose user changed; none
    /// if the person was a separate user.
    pub async fn part(&self, account: &str, person: &str) -> Result<Vec<PartedPerson>> {
        let texts = [account, person].map(str::to_owned);
        self.write(&crash::PART, move |tx| part(tx, &texts)).await
    }

    /// Returns the user that a person was made, if they were made one.
    pub async fn identity_of(&self, account: &str, person: &str) -> Result<Option<UserId>> {
        let sql = "SELECT user_id FROM identities WHERE account = $1 AND person = $2";
        self.find(query(sql).bind(account).bind(person)).await
    }

    /// Returns all people who are a user with others, by account and person.
    pub async fn identities(&self) -> Result<Vec<Identity>> {
        let sql = "SELECT account, person, user_id, name, at FROM identities ORDER BY account, person";
        self.all(query(sql)).await
    }
}

pub(crate) fn identify(tx: &mut Tx<'_>, identity: &Identity) -> Result<()> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO UPDATE SET user_id = excluded.user_id, name = excluded.name, at = excluded.at";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    insert.bind(&identity.name).bind(identity.at).execute(tx)?;
    Ok(())
}

/// Makes a person a user if they share none with others yet. Returns whether that was so.
pub(crate) fn identify_if_new(tx: &mut Tx<'_>, identity: &Identity) -> Result<bool> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO NOTHING";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    Ok(insert.bind(&identity.name).bind(identity.at).execute(tx)? > 0)
}

fn part(tx: &mut Tx<'_>, [account, person]: &[String; 2]) -> Result<Vec<PartedPerson>> {
    drop_codes(tx, account, person)?;
    merge::cancel(tx, &unpaired_user(account, person))?;
    let sql = "SELECT via, route, name FROM identities WHERE account = $1 AND person = $2";
    let own: Option<(String, String, String)> = query(sql).bind(account).bind(person).fetch_optional(tx)?;
    let sql = "WITH RECURSIVE gone(account, person) AS (
            SELECT account, person FROM identities WHERE via = $1 OR user_id = $2
            UNION SELECT other.account, other.person FROM identities other
                JOIN gone ON other.via = gone.account || '\n' || gone.person)
        SELECT known.account, known.person, known.route FROM identities known
            JOIN gone ON gone.account = known.account AND gone.person = known.person
        ORDER BY known.account, known.person";
    let (via, user) = (mark(account, person), unpaired_user(account, person));
    let mut parted: Vec<PartedPerson> = query(sql).bind(&via).bind(&user).fetch_all(tx)?;
    parted.retain(|one| (&one.account, &one.person) != (account, person));
    if let Some((via, route, _)) = own
        && (parted.is_empty() || !via.is_empty())
    {
        parted.push(PartedPerson { account: account.clone(), person: person.clone(), route });
    }
    for PartedPerson { account, person, .. } in &parted {
        drop_codes(tx, account, person)?;
        merge::cancel(tx, &unpaired_user(account, person))?;
        let sql = "DELETE FROM identities WHERE account = $1 AND person = $2";
        query(sql).bind(account).bind(person).execute(tx)?;
    }
    Ok(parted)
}

/// Ends the codes of a person, including used ones: the person who used one cannot use it again.
fn drop_codes(tx: &mut Tx<'_>, account: &str, person: &str) -> Result<()> {
    let sql = "DELETE FROM pairing_codes WHERE account = $1 AND issuer = $2";
    query(sql).bind(account).bind(person).execute(tx).map(drop)
}

/// Names a person of an account in one text.
fn mark(account: &str, person: &str) -> String {
    format!("{account}\n{person}")
}
