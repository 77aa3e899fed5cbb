//! Accounts of people who sign in by a provider: bound to its issuer and to their subject there.

use crate::{
    Db, Result, UserAccount, crash,
    engines::{Tx, query},
    imports,
    people::accounts::{COLUMNS, is_taken},
};

/// A login by a provider.
#[derive(Clone)]
pub struct ProviderLogin {
    /// The issuer that vouches for the person.
    pub issuer: String,
    /// Whether a person who comes for the first time gets an account.
    pub creates: bool,
    /// The account that they get, with the provider and their subject there.
    pub account: UserAccount,
}

/// Outcome of looking for the account of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderAccount {
    /// The account was there.
    Known(Box<UserAccount>),
    /// The account was made.
    Added(Box<UserAccount>),
    /// The e-mail address is taken: an address alone opens no account.
    Taken,
    /// There is none, and none is made.
    Unknown,
    /// The subject is bound to another issuer.
    OtherIssuer,
}

impl Db {
    /// Finds the account of a login, or makes it. One that was moved in is bound to the issuer by the first login.
    pub async fn provider_login(&self, login: ProviderLogin) -> Result<ProviderAccount> {
        self.write(&crash::PROVIDER_LOGIN, move |tx| find_or_add(tx, &login)).await
    }
}

fn find_or_add(tx: &mut Tx<'_>, login: &ProviderLogin) -> Result<ProviderAccount> {
    let ProviderLogin { issuer, creates, account: new } = login;
    let (Some(provider), Some(subject)) = (&new.oauth_provider, &new.oauth_id) else {
        return Ok(ProviderAccount::Unknown);
    };
    let sql = format!("{COLUMNS} WHERE oauth_provider = $1 AND oauth_id = $2");
    let known = query(sql).bind(provider).bind(subject).fetch_optional::<UserAccount>(tx)?;
    if known.is_none() && !creates {
        return Ok(ProviderAccount::Unknown);
    }
    if known.is_none() && (is_taken(tx, &new.email, "")? || !imports::put_user(tx, new)?) {
        return Ok(ProviderAccount::Taken);
    }
    let sql = "UPDATE users SET oauth_issuer = $1 WHERE oauth_provider = $2 AND oauth_id = $3
        AND (oauth_issuer IS NULL OR oauth_issuer = $1)";
    let bound = query(sql).bind(issuer).bind(provider).bind(subject).execute(tx)?;
    Ok(match known {
        _ if bound == 0 => ProviderAccount::OtherIssuer,
        Some(account) => ProviderAccount::Known(Box::new(account)),
        None => ProviderAccount::Added(Box::new(new.clone())),
    })
}
