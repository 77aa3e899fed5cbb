//! Every route of the gateway, asked by nobody, by a stranger, and by another site. A new route is walked as soon as its
//! line is written.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
    settled, signed_in,
};
use reqwest::Method;
use std::{collections::BTreeSet, path::Path};

/// Routes that ask for no proof, or bring it along.
const PUBLIC: &[&str] = &[
    "/",
    "/health",
    "/ready",
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
    "/login",
];

/// Routes that only an administrator may ask, with any method, and those of the local user.
const OPERATED: &[&str] = &[
    "/api/active-runs",
    "/api/chat",
    "/api/accounts",
    "/api/audit",
    "/api/storage",
    "/api/tokens",
    "/api/usage",
    "/api/users",
    "/api/channels/{name}/people",
    "/api/skills/custom",
];

/// Reads the routes from the sources: each with its methods.
fn routes() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            let source = source.split("#[cfg(test)]").next().unwrap();
            for part in source.split(".route(").skip(1) {
                let Some((route, rest)) =
                    part.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
                else {
                    continue;
                };
                let handlers = rest.split_at(end_of_call(rest)).0;
                // A handler that has a name of its own above.
                let named = handlers.trim_matches([',', ' ']);
                let handlers = match source.split(&format!("let {named} = ")).nth(1) {
                    Some(defined) if !named.is_empty() => defined.split(';').next().unwrap(),
                    _ => handlers,
                };
                let has = |method: &str| {
                    let before =
                        |at: usize| handlers[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                    handlers.match_indices(&format!("{method}(")).any(|(at, _)| !before(at))
                };
                // Those of DeerFlow's API are nested in two places.
                let is_whole = route.starts_with("/api/") || PUBLIC.contains(&route);
                let places: &[&str] = if is_whole { &[""] } else { &["/api", "/api/langgraph"] };
                let mut any = false;
                // What there is not answers any method.
                let is_missing = has("no");
                for method in ["get", "post", "put", "patch", "delete"]
                    .into_iter()
                    .filter(|method| has(method) || is_missing)
                {
                    let routes =
                        places.iter().map(|place| (method.to_uppercase(), format!("{place}{route}")));
                    found.extend(routes);
                    any = true;
                }
                assert!(any, "{}: no method is read from {handlers:?}", path.display());
            }
        }
    }
    found
}

/// Returns where the parenthesis of a call ends that was opened before.
fn end_of_call(text: &str) -> usize {
    let mut open = 1;
    let ends = text.char_indices().find(|(_, c)| {
        open += i32::from(*c == '(') - i32::from(*c == ')');
        open == 0
    });
    ends.map_or(text.len(), |(at, _)| at)
}

/// Puts something in the place of each parameter.
fn filled(route: &str) -> String {
    let part = |segment: &str| if segment.starts_with('{') { "x".to_owned() } else { segment.to_owned() };
    route.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn no_route_answers_somebody_without_proof() {
    let house = settled("agents_api: {enabled: true}\n").await;
    let all = routes();
    assert!(all.len() > 100, "{all:?}");
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
    let all = routes();
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
    // Whatever was asked, nobody lost anything.
    assert_eq!(house.pudu(&["user", "list"]).1.lines().count(), 2);
}
