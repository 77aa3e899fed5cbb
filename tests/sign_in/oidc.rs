//! Sign-in with an identity provider, for users and attackers.

use super::{
    PASSWORD,
    jar::{Jar, Told, add_user},
};
use crate::house::{House, http};
use pudu_sim::{
    Oidc,
    oidc::{CLIENT_ID, CLIENT_SECRET, OidcFault, TokenSigning},
};
use serde_json::{Value, json};

/// A provider, and a house whose users sign in with it.
struct Login {
    house: House,
    provider: Oidc,
}

/// Returns the section of a provider; `more` contains additional keys.
fn section(provider: &Oidc, more: &str) -> String {
    format!(
        "auth:\n  oidc:\n    enabled: true\n    providers:\n      acme:\n        display_name: Acme\n        issuer: {}\n        \
         client_id: {CLIENT_ID}\n        client_secret: \"{CLIENT_SECRET}\"\n{}",
        provider.issuer(),
        more.lines().map(|line| format!("        {line}\n")).collect::<String>()
    )
}

impl Login {
    async fn open(more: &str) -> Self {
        let provider = Oidc::start().await.unwrap();
        let mut house = House::furnish(Default::default(), "", &section(&provider, more)).await;
        house.start();
        Self { house, provider }
    }

    /// The same behind a proxy that reports the browsers' addresses.
    async fn behind_proxy(more: &str) -> Self {
        let provider = Oidc::start().await.unwrap();
        let rest = section(&provider, more) + "  trusted_proxies: [127.0.0.1]\n";
        let mut house = House::furnish(Default::default(), "", &rest).await;
        house.start();
        Self { house, provider }
    }

    fn browser(&self) -> Jar {
        Jar::new(&self.house)
    }

    /// A browser with its own address: failures are counted by address.
    fn browser_at(&self, n: usize) -> Jar {
        let mut jar = self.browser();
        jar.headers = vec![("x-real-ip", format!("10.{}.{}.1", n / 250, n % 250))];
        jar
    }

    /// Starts a login; returns the provider's redirect to the browser.
    async fn begun(&self, jar: &mut Jar, query: &str) -> String {
        let told = jar.get(&format!("/api/v1/auth/oauth/acme{query}")).await;
        assert_eq!(told.status, 302, "{told:?}: {}", self.house.log());
        let answer = http().get(told.location.unwrap()).send().await.unwrap();
        assert_eq!(answer.status(), 302);
        let back = answer.headers()["location"].to_str().unwrap().to_owned();
        let here = format!("http://{}", self.house.address);
        back.strip_prefix(&here).unwrap_or_else(|| panic!("{back} is not {here}")).to_owned()
    }

    async fn signs_in(&self, jar: &mut Jar) -> Told {
        let back = self.begun(jar, "").await;
        jar.get(&back).await
    }

    /// Signs in with a new browser; returns the final address.
    async fn leads(&self) -> String {
        let told = self.signs_in(&mut self.browser()).await;
        assert_eq!(told.status, 302, "{told:?}");
        told.location.unwrap()
    }
}

const WELCOME: &str = "/auth/callback?next=%2Fworkspace";
const FAILED: &str = "/login?error=sso_failed";
const NOT_ALLOWED: &str = "/login?error=sso_not_allowed";
const EXISTS: &str = "/login?error=sso_account_exists";

#[tokio::test]
async fn people_sign_in_by_a_provider_and_are_who_they_were() {
    let login = Login::open("admin_emails: [Ada@example.org]\n").await;
    let mut jar = login.browser();
    let listed = jar.get("/api/v1/auth/providers").await;
    assert_eq!(listed.body, json!({"providers": [{"id": "acme", "display_name": "Acme", "type": "oidc"}]}));
    assert_eq!(jar.get("/api/v1/auth/oauth/other").await.code(), "provider_not_found");
    assert_eq!(
        jar.get("/api/models").await.code(),
        "not_authenticated",
        "nobody is let in before the first one"
    );
    let told = jar.get("/api/v1/auth/oauth/acme?next=/workspace/chats/1").await;
    let [cookie] = told.cookies.as_slice() else { panic!("{told:?}") };
    let (name, rest) = cookie.split_once('=').unwrap();
    assert_eq!(name, "df_oidc_state_acme");
    assert!(
        rest.ends_with("; Path=/api/v1/auth/callback/acme; HttpOnly; SameSite=lax; Max-Age=300"),
        "{rest}"
    );
    let place = told.location.unwrap();
    for part in
        ["response_type=code", "scope=openid+email+profile", "code_challenge_method=S256", "nonce=", "state="]
    {
        assert!(place.contains(part), "{place}");
    }
    let back = login.begun(&mut jar, "?next=/workspace/chats/1&remember_me=false").await;
    let told = jar.get(&back).await;
    assert_eq!(
        told.location.as_deref(),
        Some("/auth/callback?next=%2Fworkspace%2Fchats%2F1"),
        "{}",
        login.house.log()
    );
    assert!(
        told.cookies.iter().any(|cookie| cookie.starts_with("deerflow_session_persistent=0")),
        "{told:?}"
    );
    assert_eq!(jar.cookie("df_oidc_state_acme"), None);
    assert_eq!(jar.get(WELCOME).await.location.as_deref(), Some("/"), "pudu's own page is the frontend");
    let ada = jar.get("/api/v1/auth/me").await.body;
    let id = ada["id"].as_str().unwrap();
    assert_eq!(
        ada,
        json!({"id": id, "email": "ada@example.org", "system_role": "admin", "needs_setup": false, "oauth_provider": "acme"})
    );
    let change = json!({"current_password": "x", "new_password": PASSWORD});
    assert_eq!(jar.post("/api/v1/auth/change-password", &change).await.code(), "invalid_credentials");
    // The account belongs to her subject, whatever her address is now.
    login.provider.person("ada-1", "countess@example.org", true);
    let mut again = login.browser();
    assert_eq!(login.signs_in(&mut again).await.location.as_deref(), Some(WELCOME));
    assert_eq!(again.get("/api/v1/auth/me").await.body, ada);
    login.provider.person("bo-1", "bo@example.org", true);
    let mut bo = login.browser();
    login.signs_in(&mut bo).await;
    assert_eq!(bo.get("/api/v1/auth/me").await.body["system_role"], "user");
    assert_eq!(bo.get("/api/audit").await.status, 403);
    let (log, stored) =
        (login.house.log(), std::fs::read(login.house.path(".pudu/data/pudu.db-wal")).unwrap());
    assert!(!log.contains(CLIENT_SECRET) && !log.contains("eyJ") && !log.contains("code%2F"), "{log}");
    assert!(!stored.windows(CLIENT_SECRET.len()).any(|part| part == CLIENT_SECRET.as_bytes()));
}

#[tokio::test]
async fn clients_prove_themselves_in_the_header_and_keys_may_change() {
    let login = Login::behind_proxy("token_endpoint_auth_method: client_secret_basic\n").await;
    assert_eq!(login.leads().await, WELCOME, "{}", login.house.log());
    assert_eq!(login.leads().await, WELCOME);
    let calls = |endpoint: &str| login.provider.calls(endpoint);
    assert_eq!((calls("/jwks"), calls("/.well-known/openid-configuration")), (1, 1));
    login.provider.rotate().unwrap();
    let deadline = std::time::Instant::now() + crate::house::SOON;
    // Keys are requested again, but not immediately.
    for n in 0.. {
        let mut jar = login.browser_at(n);
        if login.signs_in(&mut jar).await.location.as_deref() == Some(WELCOME) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{}", login.house.log());
    }
    assert_eq!(calls("/jwks"), 2);
}

#[tokio::test]
async fn a_token_that_says_something_else_signs_nobody_in() {
    type Twist = fn(&mut Value);
    let twists: [(&str, Twist); 16] = [
        ("another issuer", |claims| claims["iss"] = json!("https://evil.example")),
        ("issuers", |claims| claims["iss"] = json!([claims["iss"], "https://evil.example"])),
        ("another audience", |claims| claims["aud"] = json!("another")),
        ("no audience", |claims| claims["aud"] = json!([])),
        ("many audiences", |claims| claims["aud"] = json!([CLIENT_ID, "another"])),
        ("another party", |claims| claims["azp"] = json!("another")),
        ("another nonce", |claims| claims["nonce"] = json!("guessed")),
        ("no nonce", |claims| claims["nonce"] = Value::Null),
        ("expired", |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 61)),
        ("endless", |claims| claims["exp"] = Value::Null),
        ("an end in words", |claims| claims["exp"] = json!("9999999999")),
        ("of tomorrow", |claims| claims["iat"] = json!(claims["iat"].as_i64().unwrap() + 3600)),
        ("not yet", |claims| claims["nbf"] = json!(claims["iat"].as_i64().unwrap() + 3600)),
        ("of nobody", |claims| claims["sub"] = json!("")),
        ("of a giant", |claims| claims["sub"] = json!("x".repeat(256))),
        ("of several", |claims| claims["sub"] = json!(["ada-1", "bo-1"])),
    ];
    let login = Login::behind_proxy("").await;
    let from = |n: usize| login.browser_at(n);
    for (n, (what, twist)) in twists.into_iter().enumerate() {
        login.provider.twist(twist);
        let mut jar = from(n);
        let told = login.signs_in(&mut jar).await;
        assert_eq!(told.location.as_deref(), Some(FAILED), "{what}");
        assert_eq!(jar.cookie("access_token"), None, "{what}");
    }
    login.provider.untwist();
    for (n, signing) in
        [TokenSigning::Unsigned, TokenSigning::HmacOfPublicKey, TokenSigning::Forged].into_iter().enumerate()
    {
        login.provider.sign(signing);
        assert_eq!(login.signs_in(&mut from(100 + n)).await.location.as_deref(), Some(FAILED), "{signing:?}");
    }
    login.provider.sign(TokenSigning::Newest);
    // Our client as authorized party, with several audiences.
    login.provider.twist(|claims| {
        claims["aud"] = json!([CLIENT_ID, "another"]);
        claims["azp"] = json!(CLIENT_ID);
    });
    assert_eq!(
        login.signs_in(&mut from(120)).await.location.as_deref(),
        Some(WELCOME),
        "{}",
        login.house.log()
    );
    assert_eq!(login.house.pudu(&["user", "list"]).1.lines().count(), 1, "nobody else got an account");
}

#[tokio::test]
async fn an_answer_is_that_of_its_own_browser_and_counts_once() {
    let login = Login::open("").await;
    let (mut ada, mut eve) = (login.browser(), login.browser());
    let back = login.begun(&mut ada, "").await;
    assert_eq!(eve.get(&back).await.location.as_deref(), Some(FAILED), "a browser without a login");
    login.begun(&mut eve, "").await;
    assert_eq!(eve.get(&back).await.location.as_deref(), Some(FAILED), "the state of another login");
    let state = ada.cookie("df_oidc_state_acme").unwrap().to_owned();
    let told = ada.get(&back).await;
    assert_eq!(told.location.as_deref(), Some(WELCOME));
    // A replayed code with both secrets.
    let mut late = login.browser();
    late.keep("df_oidc_state_acme", &state);
    assert_eq!(late.get(&back).await.location.as_deref(), Some(FAILED), "a code is good once");
    late.keep("df_oidc_state_acme", &state[1..]);
    assert_eq!(late.get(&back).await.location.as_deref(), Some(FAILED), "a cookie that was changed");
    late.keep("df_oidc_state_acme", &state);
    assert_eq!(late.get(&back).await.location.as_deref(), Some(FAILED));
    late.keep("df_oidc_state_acme", &state);
    let told = late.get(&back).await;
    assert_eq!(told.status, 429, "guessing ends: {told:?}");
    // A response without state and code is invalid, too.
    let login = Login::open("").await;
    let mut jar = login.browser();
    for query in ["", "?code=x", "?state=x", "?code=&state=", "?error=access_denied"] {
        login.begun(&mut jar, "").await;
        let told = jar.get(&format!("/api/v1/auth/callback/acme{query}")).await;
        assert_eq!(told.location.as_deref(), Some(FAILED), "{query}");
    }
}

#[tokio::test]
async fn a_cookie_and_an_answer_of_one_provider_are_none_of_another() {
    let (acme, evil) = (Oidc::start().await.unwrap(), Oidc::start().await.unwrap());
    let other = format!(
        "      evil: {{issuer: \"{}\", client_id: {CLIENT_ID}, client_secret: \"{CLIENT_SECRET}\"}}\n",
        evil.issuer()
    );
    let mut house = House::furnish(Default::default(), "", &(section(&acme, "") + &other)).await;
    house.start();
    let login = Login { house, provider: acme };
    let mut jar = login.browser();
    let back = login.begun(&mut jar, "").await;
    let state = jar.cookie("df_oidc_state_acme").unwrap().to_owned();
    jar.keep("df_oidc_state_evil", &state);
    let there = back.replace("/acme?", "/evil?");
    assert_eq!(jar.get(&there).await.location.as_deref(), Some(FAILED), "a cookie of another provider");
    jar.keep("df_oidc_state_acme", &state);
    let issuer: String = url::form_urlencoded::byte_serialize(evil.issuer().as_bytes()).collect();
    let own: String = url::form_urlencoded::byte_serialize(login.provider.issuer().as_bytes()).collect();
    let mixed = back.replace(&own, &issuer);
    assert_ne!(mixed, back);
    assert_eq!(jar.get(&mixed).await.location.as_deref(), Some(FAILED), "an answer of another provider");
}

#[tokio::test]
async fn who_may_not_sign_in_does_not_and_an_address_opens_no_account() {
    let rules = "allowed_email_domains: [Example.org, \"@example.net\"]\nadmin_emails: [eve@example.com]\n";
    let provider = Oidc::start().await.unwrap();
    let rest = section(&provider, rules) + "  trusted_proxies: [127.0.0.1]\n";
    let mut house = House::furnish(Default::default(), "", &rest).await;
    let (well, said) = add_user(&house, &["add", "bo@example.org", "--admin"], PASSWORD);
    assert!(well, "{said}");
    house.start();
    let login = Login { house, provider };
    for (n, (email, is_verified, expected)) in [
        ("ada@example.org", false, NOT_ALLOWED),
        ("ada@example.com", true, NOT_ALLOWED),
        ("eve@example.com", true, NOT_ALLOWED),
        ("ada@example.org.evil.example", true, NOT_ALLOWED),
        ("ada@sub.example.org", true, NOT_ALLOWED),
        ("\"ada@example.org\"@evil.example", true, NOT_ALLOWED),
        ("ada", true, NOT_ALLOWED),
        ("", true, NOT_ALLOWED),
        ("BO@Example.Org", true, EXISTS),
        ("ada@EXAMPLE.net", true, WELCOME),
    ]
    .into_iter()
    .enumerate()
    {
        login.provider.person("somebody", email, is_verified);
        let mut jar = login.browser_at(n);
        let told = login.signs_in(&mut jar).await;
        assert_eq!(told.location.as_deref(), Some(expected), "{email}");
        assert_eq!(jar.cookie("access_token").is_some(), expected == WELCOME, "{email}");
    }
    let mut bo = login.browser();
    let form = [("username", "bo@example.org".to_owned()), ("password", PASSWORD.to_owned())];
    assert_eq!(bo.form("/api/v1/auth/login/local", &form).await.status, 200, "his account is his");
    assert_eq!(bo.get("/api/v1/auth/me").await.body["oauth_provider"], Value::Null);
    // Losing the address means losing access.
    login.provider.person("somebody", "ada@example.com", true);
    assert_eq!(login.leads().await, NOT_ALLOWED);
}

#[tokio::test]
async fn an_address_that_is_not_verified_makes_nobody_an_administrator() {
    let rules = "require_verified_email: false\nadmin_emails: [ada@example.org]\n";
    let login = Login::open(rules).await;
    login.provider.person("ada-1", "ada@example.org", false);
    let mut jar = login.browser();
    assert_eq!(login.signs_in(&mut jar).await.location.as_deref(), Some(WELCOME));
    assert_eq!(jar.get("/api/v1/auth/me").await.body["system_role"], "user");
    let login = Login::open("auto_create_users: false\n").await;
    assert_eq!(login.leads().await, NOT_ALLOWED, "nobody made her an account");
    assert_eq!(
        login.house.pudu(&["user", "list"]).1.lines().count(),
        1,
        "{}",
        login.house.pudu(&["user", "list"]).1
    );
}

#[tokio::test]
async fn facts_that_a_token_lacks_are_asked_for_and_those_of_another_person_do_not_count() {
    let login = Login::open("").await;
    let without_email = |claims: &mut Value| {
        claims.as_object_mut().unwrap().remove("email");
        claims.as_object_mut().unwrap().remove("email_verified");
    };
    login.provider.twist(without_email);
    let mut jar = login.browser();
    assert_eq!(login.signs_in(&mut jar).await.location.as_deref(), Some(WELCOME), "{}", login.house.log());
    assert_eq!(jar.get("/api/v1/auth/me").await.body["email"], "ada@example.org");
    assert_eq!(login.provider.calls("/userinfo"), 1);
    login.provider.twist(move |claims| {
        without_email(claims);
        claims["sub"] = json!("bo-1");
    });
    assert_eq!(login.leads().await, FAILED);
    login.provider.twist(without_email);
    login.provider.spoil("/userinfo", Some(OidcFault::Status(500)));
    assert_eq!(login.leads().await, FAILED);
}

#[tokio::test]
async fn whatever_a_provider_answers_nobody_waits_long_and_nobody_is_signed_in() {
    let moved = Oidc::start().await.unwrap();
    let login = Login::behind_proxy("").await;
    let mut n = 0;
    for fault in
        [OidcFault::Garbage, OidcFault::Giant, OidcFault::Cut, OidcFault::Status(503), OidcFault::Hang]
    {
        n += 1;
        let mut jar = login.browser_at(n);
        login.provider.spoil("/token", None);
        let back = login.begun(&mut jar, "").await;
        login.provider.spoil("/token", Some(fault));
        let begun = std::time::Instant::now();
        assert_eq!(jar.get(&back).await.location.as_deref(), Some(FAILED), "{fault:?}");
        assert!(begun.elapsed() < crate::house::SOON, "{fault:?}");
    }
    login.provider.spoil("/token", None);
    login.provider.spoil("/jwks", Some(OidcFault::Giant));
    let mut jar = login.browser();
    assert_eq!(login.signs_in(&mut jar).await.location.as_deref(), Some(FAILED));
    assert_eq!(login.house.get("/health").await.0, 200);
    // An unreachable provider: the browser gets an error immediately, and the next one within seconds.
    let away = section(&moved, "").replace(&moved.issuer(), &format!("{}/realm", moved.issuer()));
    let mut house = House::furnish(Default::default(), "", &away).await;
    house.start();
    for _ in 0..3 {
        let told = Jar::new(&house).get("/api/v1/auth/oauth/acme").await;
        assert_eq!(told.location.as_deref(), Some(FAILED));
    }
    assert_eq!(moved.calls("/realm/.well-known/openid-configuration"), 1, "it is left alone for a while");
}

#[tokio::test]
async fn the_frontend_of_deerflow_is_where_people_land_and_no_other_site() {
    let provider = Oidc::start().await.unwrap();
    let rest = section(&provider, "redirect_uri: http://localhost:2026/api/v1/auth/callback/acme\n")
        .replace("enabled: true\n", "enabled: true\n    frontend_base_url: http://localhost:3000/\n");
    let mut house = House::furnish(Default::default(), "", &rest).await;
    house.start();
    for (next, lands) in [
        ("/workspace/a", "%2Fworkspace%2Fa"),
        ("//evil.example", "%2Fworkspace"),
        ("https://evil.example", "%2Fworkspace"),
        ("/%5Cevil.example", "%2Fworkspace"),
        ("/%09/evil.example", "%2Fworkspace"),
    ] {
        let mut jar = Jar::new(&house);
        let told = jar.get(&format!("/api/v1/auth/oauth/acme?next={next}")).await;
        let answer = http().get(told.location.unwrap()).send().await.unwrap();
        let back = answer.headers()["location"].to_str().unwrap().to_owned();
        let back = back.strip_prefix("http://localhost:2026").unwrap();
        let told = jar.get(back).await;
        assert_eq!(
            told.location,
            Some(format!("http://localhost:3000/auth/callback?next={lands}")),
            "{next}"
        );
    }
    let told = Jar::new(&house).get("/api/v1/auth/callback/acme").await;
    assert_eq!(told.location.as_deref(), Some("http://localhost:3000/login?error=sso_failed"));
}

#[tokio::test]
async fn what_cannot_be_obeyed_stops_the_start() {
    let provider = Oidc::start().await.unwrap();
    for (more, complaint) in [
        ("issuer: http://login.example.com\n", "is not an issuer"),
        ("scopes: [email]\n", "without `openid`"),
        (
            "client_secret: \"\"\ntoken_endpoint_auth_method: client_secret_basic\n",
            "auth.oidc.providers.acme.client_secret",
        ),
        ("client_secret: \"\"\npkce_enabled: false\n", "needs PKCE"),
        ("pkce_enabled: false\nnonce_enabled: false\n", "can sign in another user"),
        ("token_endpoint: http://login.example.com/token\n", "without TLS"),
        ("redirect_uri: http://pudu.example.com/callback\n", "without TLS"),
        ("alowed_email_domains: [example.org]\n", "allowed_email_domains"),
        ("token_endpoint_auth_method: private_key_jwt\n", "token_endpoint_auth_method"),
    ] {
        let text = section(&provider, "");
        let kept = text.lines().filter(|line| {
            let key = line.trim().split(':').next().unwrap_or_default();
            !more.lines().any(|other| other.split(':').next() == Some(key))
        });
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let rest = kept + &more.lines().map(|line| format!("        {line}\n")).collect::<String>();
        let mut house = House::furnish(Default::default(), "", &rest).await;
        assert!(!house.try_start(), "{more}");
        assert!(house.log().contains(complaint), "{more}: {}", house.log());
    }
}
