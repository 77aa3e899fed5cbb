//! Change of a password, which ends all other sessions.

use super::{answer::invalid, desk::with_session, identify::CallerProof, limits::AttemptKey, login};
use crate::{ApiError, GatewayState, Json, http::NoticeAnswer};
use axum::{
    Extension,
    extract::ConnectInfo,
    http::{HeaderMap, StatusCode},
};
use pudu_people::{
    accounts::{self, AccountChange},
    passwords::{self, PasswordCheck},
};
use pudu_store::{ChangedPassword, PasswordChange, UserAccount};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use std::net::SocketAddr;

/// A change of a password.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewPassword {
    #[schemars(with = "String")]
    current_password: SecretString,
    #[schemars(with = "String")]
    new_password: SecretString,
    new_email: Option<String>,
    remember_me: Option<bool>,
}

/// Changes the password of the signed-in user.
pub(super) async fn change(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(proof): Extension<CallerProof>,
    headers: HeaderMap,
    body: Result<Json<NewPassword>, ApiError>,
) -> Result<(HeaderMap, Json<NoticeAnswer>), ApiError> {
    let CallerProof::Session(account) = proof else {
        return Err(wrong("Only an account that signs in with a password can change it."));
    };
    let Json(new) = body?;
    let email = match new.new_email.as_deref().map(accounts::email) {
        Some(None) => return Err(invalid("new_email", "value is not a valid email address")),
        email => email.flatten(),
    };
    if let Some(why) = passwords::objection(&new.new_password) {
        return Err(invalid("new_password", why));
    }
    let sign_in = &gateway.0.sign_in;
    let from = AttemptKey::From("password", login::client(sign_in, &headers, peer.ip()));
    let keys = [from, AttemptKey::named("password", account.user.as_str())];
    sign_in.attempt(&keys, "password")?;
    let account = changed(&gateway, &account, &new, email).await?;
    sign_in.limits.succeeded(&keys);
    let notice = Json(NoticeAnswer { message: "Password changed successfully" });
    with_session(sign_in, &headers, &account, new.remember_me, notice)
}

fn wrong(why: &str) -> ApiError {
    ApiError::coded(StatusCode::BAD_REQUEST, "invalid_credentials", why)
}

async fn changed(
    gateway: &GatewayState,
    account: &UserAccount,
    new: &NewPassword,
    email: Option<String>,
) -> Result<UserAccount, ApiError> {
    let passwords = &gateway.0.sign_in.passwords;
    let Some(hash) = account.password_hash.as_deref() else {
        return Err(wrong("OAuth users cannot change password"));
    };
    if passwords.check(&new.current_password, Some(hash)).await? == PasswordCheck::Wrong {
        return Err(wrong("Current password is incorrect"));
    }
    let hash = passwords.hash(&new.new_password).await?;
    let (user, token_version) = (account.user.clone(), account.token_version);
    let change = PasswordChange { user, token_version, hash, email, revokes_tokens: false };
    let db = gateway.db();
    let work = db.change_password(change);
    let user = account.user.as_str();
    match accounts::audited(&db, user, AccountChange::SetPassword, user, work).await? {
        ChangedPassword::Changed { token_version } => Ok(UserAccount { token_version, ..account.clone() }),
        ChangedPassword::Taken => {
            Err(ApiError::coded(StatusCode::BAD_REQUEST, "email_already_exists", "Email already in use"))
        }
        ChangedPassword::Stale => {
            let detail = "The password was changed in the meantime: sign in again";
            Err(ApiError::coded(StatusCode::UNAUTHORIZED, "token_invalid", detail))
        }
    }
}
