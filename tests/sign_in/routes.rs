//! All routes of the gateway, requested without credentials, by a stranger, and by another site. New routes are
//! included automatically.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
    settled, signed_in,
};
use crate::{
    house::House,
    openapi::{self, filled},
};
use reqwest::Method;
use std::collections::BTreeSet;

/// Routes that need no credentials, or contain them.
const PUBLIC: &[&str] = &[
    "/",
    "/page/{version}/{file}",
    "/health",
    "/ready",
    "/openapi.json",
    "/docs",
    "/api/session",
    "/api/webhooks/{platform}/{account}",
    "/files/{token}",
    "/api/v1/auth/login/local",
    "/api/v1/auth/register",
    "/api/v1/auth/initialize",
    "/api/v1/auth/logout",
    "/api/v1/auth/setup-status",
    "/api/v1/auth/providers",
    "/api/v1/auth/oauth/{provider}",
    "/api/v1/auth/callback/{provider}",
    "/auth/callback",
    "/ok",
    "/info",
    "/login",
];

/// Routes for administrators only, with any method.
const OPERATED: &[&str] = &[
    "/api/accounts",
    "/api/audit",
    "/api/storage",
    "/api/tokens",
    "/api/usage",
    "/api/users",
    "/api/channels/{name}/people",
    "/api/skills/custom",
];

/// Reads the routes with their methods from the document. It lists all routes: `tests/openapi.rs`.
async fn routes(house: &House) -> BTreeSet<(String, String)> {
    let document = openapi::document(house).await;
    let there = openapi::operations(&document);
    let open: BTreeSet<&str> =
        there.iter().filter(|one| one.is_open()).map(|one| one.path.as_str()).collect();
    assert_eq!(
        open,
        BTreeSet::from_iter(PUBLIC.iter().copied()),
        "the document tells who is asked for a proof"
    );
    let there = there.into_iter();
    let mut found: BTreeSet<_> = there.map(|one| (one.method.to_string(), one.path)).collect();
    // Missing nested paths respond to no method.
    for path in openapi::missing(&document) {
        found.extend(
            ["GET", "POST", "PUT", "PATCH", "DELETE"].map(|method| (method.to_owned(), path.clone())),
        );
    }
    found
}

#[tokio::test]
async fn no_route_answers_somebody_without_proof() {
    let house = settled("agents_api: {enabled: true}\n").await;
    let all = routes(&house).await;
    let guarded = all.iter().filter(|(_, route)| !PUBLIC.contains(&route.as_str()));
    let mut wrong = Vec::new();
    for (method, route) in guarded {
        let method: Method = method.parse().unwrap();
        let told = Jar::new(&house).send(method.clone(), &filled(route), |call| call).await;
        if (told.status, told.code()) != (401, "not_authenticated") {
            wrong.push(format!("{method} {route}: {} {}", told.status, told.body));
        }
        let mut forged = Jar::new(&house);
        forged.keep("access_token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkZWZhdWx0IiwidmVyIjowfQ.");
        let told = forged.send(method.clone(), &filled(route), |call| call).await;
        if (told.status, told.code()) != (401, "token_invalid") {
            wrong.push(format!("{method} {route}, forged: {} {}", told.status, told.body));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_stranger_operates_nothing_and_changes_nothing_from_another_site() {
    let house = settled("agents_api: {enabled: true}\n").await;
    add_user(&house, &["add", "eve@example.org"], PASSWORD);
    let mut eve = signed_in(&house, "eve@example.org").await;
    let all = routes(&house).await;
    let mut wrong = Vec::new();
    for (method, route) in all.iter().filter(|(_, route)| !PUBLIC.contains(&route.as_str())) {
        let parsed: Method = method.parse().unwrap();
        if OPERATED.iter().any(|operated| route == operated || route.starts_with(&format!("{operated}/"))) {
            let told = eve.send(parsed.clone(), &filled(route), |call| call).await;
            if told.status != 403 {
                wrong.push(format!("{method} {route}: {} {}", told.status, told.body));
            }
        }
        if method != "GET" {
            eve.csrf = Some(String::new());
            let told = eve.send(parsed, &filled(route), |call| call).await;
            if told.status != 403 {
                wrong.push(format!("{method} {route} without a CSRF token: {} {}", told.status, told.body));
            }
            eve.csrf = None;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // No request has deleted an account.
    assert_eq!(house.pudu(&["user", "list"]).1.lines().count(), 2);
}
