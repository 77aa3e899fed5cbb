//! People of accounts who are one user with others. Who is not listed is a user by themselves.

use crate::{
    Db, StoreError, crash, memory_merge,
    statement::{WriteTx, query},
};
use pudu_base::UserId;
use sqlx::AnyConnection;

/// A code by which a person lets somebody be the same user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCode {
    /// The code's hash.
    pub hash: String,
    /// The account of the one who asked for it.
    pub account: String,
    /// The platform's id of the one who asked for it.
    pub issuer: String,
    /// Facts about them for whoever shows the code, JSON.
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

type IdentityColumns = (String, String, String, String, i64);

impl Db {
    /// Makes a person a user, in place of the one that they were.
    pub async fn identify(&self, identity: Identity) -> Result<(), StoreError> {
        self.write(&crash::IDENTIFY, identity, |identity, tx| Box::pin(identify(tx, identity))).await
    }

    /// Keeps a code of a person in place of the one that they had.
    pub async fn offer_join(&self, code: JoinCode) -> Result<(), StoreError> {
        self.write(&crash::OFFER_JOIN, code, |code, tx| Box::pin(offer(tx, code))).await
    }

    /// Returns what is to be known of the one whose code this is, JSON, if it is good.
    pub async fn join_offer(&self, hash: &str, now: i64) -> Result<Option<String>, StoreError> {
        self.read((hash, now), |(hash, now), tx| Box::pin(offered(tx, hash, *now))).await
    }

    /// Makes who shows a code and whose it is one user. The same person may say it again, as a platform delivers again.
    /// Whoever shows it brings the memory of the user that they were, if that is said and nobody else is that user: it
    /// is to be merged then. False when the code is not good, or not any more.
    pub async fn join(
        &self,
        hash: &str,
        shows: Identity,
        issuer: Identity,
        brings: Option<UserId>,
    ) -> Result<bool, StoreError> {
        let data = (hash.to_owned(), shows, issuer, brings);
        self.write(&crash::JOIN, data, |(hash, shows, issuer, brings), tx| {
            Box::pin(join(tx, hash, shows, issuer, brings.as_ref()))
        })
        .await
    }

    /// Makes a person a user by themselves again. False when they were.
    pub async fn part(&self, account: &str, person: &str) -> Result<bool, StoreError> {
        let texts = [account, person].map(str::to_owned);
        self.write(&crash::PART, texts, |texts, tx| Box::pin(part(tx, texts))).await
    }

    /// Returns all people who are a user with others, by account and person.
    pub async fn identities(&self) -> Result<Vec<Identity>, StoreError> {
        self.read((), |(), tx| Box::pin(identities(tx))).await
    }
}

async fn identities(tx: &mut AnyConnection) -> Result<Vec<Identity>, StoreError> {
    let sql = "SELECT account, person, user_id, name, at FROM identities ORDER BY account, person";
    let rows: Vec<IdentityColumns> = sqlx::query_as(sql).fetch_all(tx).await?;
    let identity = |(account, person, user, name, at): IdentityColumns| {
        let user = UserId::of(&user).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Identity { account, person, user, name, at })
    };
    rows.into_iter().map(identity).collect()
}

pub(crate) async fn identify(tx: &mut WriteTx<'_>, identity: &Identity) -> Result<(), StoreError> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO UPDATE SET user_id = excluded.user_id, name = excluded.name, at = excluded.at";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    insert.bind(&identity.name).bind(identity.at).execute(tx).await?;
    Ok(())
}

/// Makes a person a user if they are none with others yet. Tells whether they were not.
pub(crate) async fn identify_if_new(tx: &mut WriteTx<'_>, identity: &Identity) -> Result<bool, StoreError> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO NOTHING";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    Ok(insert.bind(&identity.name).bind(identity.at).execute(tx).await? > 0)
}

async fn offer(tx: &mut WriteTx<'_>, code: &JoinCode) -> Result<(), StoreError> {
    let sql = "DELETE FROM pairing_codes WHERE account = $1 AND issuer = $2";
    query(sql).bind(&code.account).bind(&code.issuer).execute(tx).await?;
    let sql = "INSERT INTO pairing_codes (hash, account, expires, issuer, offer) VALUES ($1, $2, $3, $4, $5)";
    let insert = query(sql).bind(&code.hash).bind(&code.account).bind(code.expires);
    insert.bind(&code.issuer).bind(&code.offer).execute(tx).await?;
    Ok(())
}

async fn offered(tx: &mut AnyConnection, hash: &str, now: i64) -> Result<Option<String>, StoreError> {
    let sql = "SELECT offer FROM pairing_codes
        WHERE hash = $1 AND issuer IS NOT NULL AND person IS NULL AND expires > $2";
    Ok(sqlx::query_scalar(sql).bind(hash).bind(now).fetch_optional(tx).await?)
}

async fn join(
    tx: &mut WriteTx<'_>,
    hash: &str,
    shows: &Identity,
    issuer: &Identity,
    brings: Option<&UserId>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE pairing_codes SET person = $1 WHERE hash = $2 AND issuer IS NOT NULL AND expires > $3
        AND (person IS NULL OR person = $1)";
    let who = format!("{}\n{}", shows.account, shows.person);
    if query(sql).bind(&who).bind(hash).bind(shows.at).execute(tx).await? == 0 {
        return Ok(false);
    }
    identify(tx, issuer).await?;
    identify(tx, shows).await?;
    if let Some(source) = brings {
        memory_merge::begin(tx, source, &shows.user).await?;
    }
    Ok(true)
}

async fn part(tx: &mut WriteTx<'_>, texts: &[String; 2]) -> Result<bool, StoreError> {
    let sql = "DELETE FROM identities WHERE account = $1 AND person = $2";
    Ok(texts.iter().fold(query(sql), |query, text| query.bind(text)).execute(tx).await? > 0)
}
