//! Sign-in accounts of an identity provider, bound to its issuer and the user's subject at the provider.

use crate::{
    Db, Result, UserAccount, crash,
    engines::{Tx, query},
    imports,
    people::accounts::{COLUMNS, is_taken},
};

/// A login through a provider.
#[derive(Clone)]
pub struct ProviderLogin {
    /// The issuer of the login.
    pub issuer: String,
    /// Whether an account is created on the first login.
    pub creates: bool,
    /// The account to create, with the provider and the subject.
    pub account: UserAccount,
}

/// Outcome of finding the account of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderAccount {
    /// The account existed.
    Known(Box<UserAccount>),
    /// The account was created.
    Added(Box<UserAccount>),
    /// The e-mail address is taken. A matching address alone does not give access to an account.
    Taken,
    /// There is no account, and none is created.
    Unknown,
    /// The subject is bound to another issuer.
    OtherIssuer,
}

impl Db {
    /// Finds or creates the account of a login. The first login binds an imported account to the issuer.
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
