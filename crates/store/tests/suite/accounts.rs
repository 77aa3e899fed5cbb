use crate::fixture::NOW;
use pudu_base::UserId;
use pudu_store::{
    AddedAccount, ApiToken, ChangedPassword, Db, MAX_USER_TOKENS, PasswordChange, PersonKeys,
    ProviderAccount, ProviderLogin, RemovedAccount, UserAccount,
};

pub(crate) fn account(id: &str, email: &str, role: &str) -> UserAccount {
    UserAccount {
        user: UserId::from_raw(id).unwrap(),
        email: email.into(),
        password_hash: Some(format!("hash of {id}")),
        role: role.into(),
        needs_setup: true,
        token_version: 0,
        oauth_provider: None,
        oauth_id: None,
        created: NOW,
    }
}

pub(crate) fn change(id: &str, token_version: i64, email: Option<&str>) -> PasswordChange {
    let (user, email) = (UserId::from_raw(id).unwrap(), email.map(str::to_owned));
    PasswordChange { user, token_version, hash: "new".into(), email, revokes_tokens: false }
}

pub(crate) fn token(id: &str, user: &str) -> ApiToken {
    ApiToken {
        id: id.into(),
        user: UserId::from_raw(user).unwrap(),
        name: "ci".into(),
        scopes: "runs:create runs:read".into(),
        created: NOW,
        expires: Some(NOW + 10),
        used: None,
    }
}

pub(crate) async fn an_email_address_has_one_account_regardless_of_case(db: Db) {
    let ada = account("ada", "Ada@Example.org", "user");
    assert!(!db.has_accounts().await.unwrap());
    assert_eq!(db.add_account(ada.clone()).await.unwrap(), AddedAccount::Added);
    let other = account("other", "ada@example.ORG", "user");
    assert_eq!(db.add_account(other).await.unwrap(), AddedAccount::Taken);
    for email in ["Ada@Example.org", "ada@example.org"] {
        assert_eq!(db.account_with(email).await.unwrap(), Some(ada.clone()), "{email}");
    }
    assert_eq!(db.account_of(&ada.user).await.unwrap(), Some(ada.clone()));
    assert_eq!(db.user_accounts().await.unwrap(), [ada]);
    assert!(db.has_accounts().await.unwrap() && !db.has_administrator().await.unwrap());
}

pub(crate) async fn only_one_of_many_first_administrators_is_created(db: Db) {
    let add = |n: usize| {
        let db = db.clone();
        let account = account(&format!("u{n}"), &format!("u{n}@example.org"), "admin");
        async move { db.add_first_administrator(account, None).await.unwrap() }
    };
    let outcomes = futures_util::future::join_all((0..20).map(add)).await;
    let added = outcomes.iter().filter(|outcome| **outcome == AddedAccount::Added).count();
    assert_eq!((added, db.user_accounts().await.unwrap().len()), (1, 1), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| *outcome != AddedAccount::Taken));
}

pub(crate) async fn a_new_password_ends_sessions_but_a_rehash_does_not(db: Db) {
    db.add_account(account("ada", "ada@example.org", "user")).await.unwrap();
    db.add_account(account("bo", "bo@example.org", "user")).await.unwrap();
    let ada = UserId::from_raw("ada").unwrap();
    assert!(db.rehash_password(&ada, "hash of ada", "better").await.unwrap());
    assert!(!db.rehash_password(&ada, "hash of ada", "late").await.unwrap());
    let taken = change("ada", 0, Some("BO@example.org"));
    assert_eq!(db.change_password(taken).await.unwrap(), ChangedPassword::Taken);
    let changed = ChangedPassword::Changed { token_version: 1 };
    assert_eq!(db.change_password(change("ada", 0, None)).await.unwrap(), changed);
    assert_eq!(db.change_password(change("ada", 0, None)).await.unwrap(), ChangedPassword::Stale);
    let found = db.account_of(&ada).await.unwrap().unwrap();
    assert_eq!((found.password_hash.as_deref(), found.needs_setup), (Some("new"), true));
    db.add_api_token(token("one", "ada"), "h1").await.unwrap();
    db.change_password(change("ada", 1, Some("countess@example.org"))).await.unwrap();
    assert_eq!(db.api_tokens(Some(&ada)).await.unwrap().len(), 1);
    let found = db.account_with("countess@example.org").await.unwrap().unwrap();
    assert_eq!((found.user.clone(), found.token_version, found.needs_setup), (ada.clone(), 2, false));
    let by_operator = PasswordChange { revokes_tokens: true, ..change("ada", 2, None) };
    db.change_password(by_operator).await.unwrap();
    assert_eq!(db.api_tokens(Some(&ada)).await.unwrap(), [], "all tokens are revoked");
}

pub(crate) async fn a_token_is_found_by_its_hash_until_it_expires(db: Db) {
    let (one, ada) = (token("one", "ada"), UserId::from_raw("ada").unwrap());
    assert!(db.add_api_token(one.clone(), "h1").await.unwrap());
    assert_eq!(db.api_token("h1", NOW).await.unwrap(), Some(one.clone()));
    assert_eq!(db.api_token("h1", NOW + 10).await.unwrap(), None, "it has expired");
    assert_eq!(db.api_token("one", NOW).await.unwrap(), None, "its id gives no access");
    db.note_api_token_use(&one, NOW + 1).await.unwrap();
    let used = db.api_token("h1", NOW).await.unwrap().unwrap();
    assert_eq!(used.used, Some(NOW + 1));
    db.note_api_token_use(&used, NOW + 2).await.unwrap();
    assert_eq!(db.api_tokens(Some(&ada)).await.unwrap(), [used]);
    assert_eq!(db.api_tokens(Some(&UserId::local())).await.unwrap(), []);
    assert!(!db.revoke_api_token("one", Some(&UserId::local())).await.unwrap(), "it belongs to another user");
    assert!(db.revoke_api_token("one", Some(&ada)).await.unwrap());
    assert!(!db.revoke_api_token("one", None).await.unwrap());
    assert_eq!(db.api_token("h1", NOW).await.unwrap(), None);
    for n in 0..MAX_USER_TOKENS {
        assert!(db.add_api_token(token(&n.to_string(), "ada"), &n.to_string()).await.unwrap());
    }
    assert!(!db.add_api_token(token("more", "ada"), "more").await.unwrap());
}

pub(crate) async fn removing_an_account_removes_its_sessions_and_tokens(db: Db) {
    for (id, email) in [("ada", "ada@example.org"), ("bo", "bo@example.org")] {
        db.add_account(account(id, email, "user")).await.unwrap();
        db.add_api_token(token(id, id), id).await.unwrap();
    }
    let remove = async |id: &str| db.remove_account(&UserId::from_raw(id).unwrap()).await.unwrap();
    assert_eq!(remove("ada").await, RemovedAccount::Removed);
    assert_eq!(remove("ada").await, RemovedAccount::Missing);
    assert_eq!(db.api_token("ada", NOW).await.unwrap(), None);
    assert_eq!(db.api_tokens(None).await.unwrap(), [token("bo", "bo")]);
    let keys = PersonKeys { user: UserId::from_raw("bo").unwrap(), ..crate::person::ada() };
    db.forget_person(&keys, Vec::new(), Vec::new()).await.unwrap();
    assert_eq!((db.api_tokens(None).await.unwrap(), db.user_accounts().await.unwrap()), (vec![], vec![]));
}

/// A login through the provider `acme` that gets this account ID.
pub(crate) fn provider_login(id: &str, issuer: &str, creates: bool) -> ProviderLogin {
    let account = UserAccount {
        password_hash: None,
        oauth_provider: Some("acme".into()),
        oauth_id: Some(format!("subject of {id}")),
        ..account(id, &format!("{id}@example.org"), "user")
    };
    ProviderLogin { issuer: issuer.into(), creates, account }
}

pub(crate) async fn a_subject_of_an_issuer_has_one_account_and_an_email_address_gives_no_access(db: Db) {
    let (a, b) = ("https://a.example", "https://b.example");
    let login = async |login: ProviderLogin| db.provider_login(login).await.unwrap();
    assert_eq!(login(provider_login("ada", a, false)).await, ProviderAccount::Unknown);
    let ada = provider_login("ada", a, true);
    let known = Box::new(ada.account.clone());
    assert_eq!(login(ada.clone()).await, ProviderAccount::Added(known.clone()));
    // A later login gets the existing account, regardless of its own rules.
    let again = ProviderLogin {
        account: UserAccount { role: "admin".into(), email: "x@y.z".into(), ..ada.account.clone() },
        ..ada
    };
    assert_eq!(login(again.clone()).await, ProviderAccount::Known(known.clone()));
    assert_eq!(login(ProviderLogin { issuer: b.into(), ..again }).await, ProviderAccount::OtherIssuer);
    assert_eq!(login(provider_login("ada", a, false)).await, ProviderAccount::Known(known));
    db.add_account(account("bo", "BO@example.org", "user")).await.unwrap();
    assert_eq!(login(provider_login("bo", a, true)).await, ProviderAccount::Taken);
    assert_eq!(db.account_with("bo@example.org").await.unwrap().unwrap().oauth_id, None);
    // An imported account has no issuer yet: it gets the first one.
    let moved = UserAccount {
        oauth_provider: Some("acme".into()),
        oauth_id: Some("1".into()),
        ..account("cy", "cy@example.org", "user")
    };
    db.add_account(moved.clone()).await.unwrap();
    let cy = |issuer: &str| ProviderLogin { issuer: issuer.into(), creates: true, account: moved.clone() };
    assert_eq!(login(cy(b)).await, ProviderAccount::Known(Box::new(moved.clone())));
    assert_eq!(login(cy(a)).await, ProviderAccount::OtherIssuer);
    let all =
        futures_util::future::join_all((0..20).map(|_| db.provider_login(provider_login("dee", a, true))))
            .await;
    let added = all.iter().filter(|outcome| matches!(outcome, Ok(ProviderAccount::Added(_)))).count();
    assert_eq!((added, db.user_accounts().await.unwrap().len()), (1, 4));
}

pub(crate) async fn the_last_administrator_cannot_be_removed_while_other_accounts_exist(db: Db) {
    for (id, role) in [("ada", "admin"), ("bo", "admin"), ("cy", "user")] {
        db.add_account(account(id, &format!("{id}@example.org"), role)).await.unwrap();
    }
    let remove = async |id: &str| db.remove_account(&UserId::from_raw(id).unwrap()).await.unwrap();
    assert_eq!(remove("bo").await, RemovedAccount::Removed);
    assert_eq!(remove("ada").await, RemovedAccount::LastAdministrator);
    assert_eq!((remove("dee").await, remove("cy").await), (RemovedAccount::Missing, RemovedAccount::Removed));
    assert_eq!(remove("ada").await, RemovedAccount::Removed);
}
