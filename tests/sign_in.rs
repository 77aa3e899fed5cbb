//! Sign-in for DeerFlow's frontend, programs and strangers.

mod adoption;
mod approvals;
mod endings;
pub mod jar;
mod oidc;
mod owners;
mod rooms;
mod routes;

use crate::house::{House, http};
pub use jar::add_user;
use jar::{Jar, Told};
use pudu_base::UserId;
use pudu_store::{Db, UserAccount};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse";

/// A house whose configuration ends with `rest`, with its daemon.
async fn open(rest: &str) -> House {
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    house
}

/// A house where `ada@example.org` is the administrator.
async fn settled(rest: &str) -> House {
    let house = House::furnish(Default::default(), "", rest).await;
    let (well, said) = add_user(&house, &["add", "ada@example.org", "--admin"], PASSWORD);
    assert!(well, "{said}");
    let mut house = house;
    house.start();
    house
}

fn login(email: &str, password: &str) -> Vec<(&'static str, String)> {
    vec![("username", email.to_owned()), ("password", password.to_owned())]
}

pub async fn signed_in(house: &House, email: &str) -> Jar {
    let mut jar = Jar::new(house);
    let told = jar.form("/api/v1/auth/login/local", &login(email, PASSWORD)).await;
    assert_eq!(told.status, 200, "{told:?}");
    jar
}

#[tokio::test]
async fn a_first_administrator_is_made_once_and_signs_in_and_out() {
    let house = open("").await;
    let mut jar = Jar::new(&house);
    let setup = jar.get("/api/v1/auth/setup-status").await;
    assert_eq!(setup.body, json!({"needs_setup": true, "registration_enabled": false}));
    assert_eq!(jar.get("/api/models").await.status, 200, "nobody has an account yet");
    let me = jar.get("/api/v1/auth/me").await;
    assert_eq!((me.status, me.code()), (401, "not_authenticated"));
    let weak = json!({"email": "ada@example.org", "password": "Password123"});
    let told = jar.post("/api/v1/auth/initialize", &weak).await;
    assert_eq!((told.status, &told.body["detail"][0]["loc"]), (422, &json!(["body", "password"])));
    let ada = json!({"email": "ada@Example.org", "password": PASSWORD});
    let made = jar.post("/api/v1/auth/initialize", &ada).await;
    let id = made.body["id"].as_str().unwrap().to_owned();
    let user = json!({
        "id": id, "email": "ada@example.org", "system_role": "admin", "needs_setup": false, "oauth_provider": null,
    });
    assert_eq!((made.status, made.body), (201, user.clone()));
    assert_eq!(id.len(), 36, "a UUID");
    let cookie = |name: &str| made.cookies.iter().find(|cookie| cookie.starts_with(name)).unwrap().as_str();
    for (name, rest) in [
        ("access_token=", "; Path=/; HttpOnly; SameSite=lax; Max-Age=604800"),
        ("csrf_token=", "; Path=/; SameSite=strict; Max-Age=604800"),
        ("deerflow_session_persistent=1", "; Path=/; HttpOnly; SameSite=lax; Max-Age=604800"),
    ] {
        assert!(cookie(name).ends_with(rest), "{}", cookie(name));
    }
    assert_eq!(jar.get("/api/v1/auth/me").await.body, user);
    let again = Jar::new(&house).post("/api/v1/auth/initialize", &ada).await;
    assert_eq!((again.status, again.code()), (409, "system_already_initialized"));
    assert_eq!(jar.get("/api/audit").await.status, 200, "an administrator is an operator");

    let mut other = Jar::new(&house);
    let told = other.form("/api/v1/auth/login/local", &login("ADA@example.org", PASSWORD)).await;
    assert_eq!((told.status, told.body), (200, json!({"expires_in": 604_800, "needs_setup": false})));
    assert_eq!(other.get("/api/v1/auth/me").await.body["email"], "ada@example.org");
    let out = other.post("/api/v1/auth/logout", &json!({})).await;
    assert_eq!((out.status, out.body), (200, json!({"message": "Successfully logged out"})));
    assert_eq!(other.get("/api/models").await.code(), "not_authenticated");
    assert_eq!(jar.get("/api/models").await.status, 200, "the other browser stays signed in");
    assert_eq!(Jar::new(&house).get("/api/v1/auth/providers").await.body, json!({"providers": []}));
    assert_eq!(Jar::new(&house).get("/api/v1/auth/oauth/acme").await.code(), "provider_not_found");
    for text in [house.log(), std::fs::read_to_string(house.path("config.yaml")).unwrap()] {
        assert!(!text.contains(PASSWORD) && !text.contains(jar.cookie("access_token").unwrap()));
    }
}

#[tokio::test]
async fn of_two_who_set_up_at_once_one_is_the_administrator() {
    let house = open("").await;
    let tries = (0..4).map(|n| {
        let mut jar = Jar::new(&house);
        async move {
            let body = json!({"email": format!("u{n}@example.org"), "password": PASSWORD});
            jar.post("/api/v1/auth/initialize", &body).await.status
        }
    });
    let mut all = futures_util::future::join_all(tries).await;
    all.sort_unstable();
    assert_eq!(all, [201, 409, 409, 409]);
}

#[tokio::test]
async fn only_the_operator_sets_up_where_others_could_come_first() {
    let house = open("gateway: {token: open-sesame-123}\n").await;
    let ada = json!({"email": "ada@example.org", "password": PASSWORD});
    let mut jar = Jar::new(&house);
    assert_eq!(jar.post("/api/v1/auth/initialize", &ada).await.status, 401);
    jar.headers = vec![("authorization", "Bearer wrong".into())];
    assert_eq!(jar.post("/api/v1/auth/initialize", &ada).await.status, 401);
    jar.headers = vec![("authorization", "Bearer open-sesame-123".into())];
    assert_eq!(jar.post("/api/v1/auth/initialize", &ada).await.status, 201);
    let house = open("").await;
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-real-ip", "203.0.113.7"),
        ("x-forwarded-host", "pudu.example"),
        ("forwarded", "for=203.0.113.7"),
    ] {
        let mut jar = Jar::new(&house);
        jar.headers = vec![(name, value.into())];
        assert_eq!(jar.post("/api/v1/auth/initialize", &ada).await.status, 401, "{name}");
    }
    assert_eq!(Jar::new(&house).post("/api/v1/auth/initialize", &ada).await.status, 201);
}

#[tokio::test]
async fn a_change_needs_the_token_of_its_own_cookie_and_its_own_origin() {
    let house = settled("").await;
    let mut jar = signed_in(&house, "ada@example.org").await;
    let body = json!({"name": "ci", "scopes": ["runs:read"]});
    jar.csrf = Some(String::new());
    let missing = "CSRF token missing. Include X-CSRF-Token header.";
    let told = jar.post("/api/v1/auth/tokens", &body).await;
    assert_eq!((told.status, &told.body["detail"]), (403, &json!(missing)));
    jar.csrf = Some("guessed".into());
    let told = jar.post("/api/v1/auth/tokens", &body).await;
    assert_eq!((told.status, &told.body["detail"]), (403, &json!("CSRF token mismatch.")));
    jar.csrf = None;
    assert_eq!(jar.post("/api/v1/auth/tokens", &body).await.status, 201);
    jar.headers = vec![("origin", "https://evil.example".into())];
    assert_eq!(jar.post("/api/v1/auth/tokens", &body).await.status, 403);
    let told = jar.form("/api/v1/auth/login/local", &login("ada@example.org", PASSWORD)).await;
    assert_eq!((told.status, &told.body["detail"]), (403, &json!("Cross-site auth request denied.")));
    assert!(told.cookies.is_empty());
    // Next.js sends requests from this machine, and includes its browser's address.
    let origin = ("origin", "http://localhost:3000".to_owned());
    jar.headers = vec![origin, ("x-forwarded-host", "localhost:3000".into())];
    assert_eq!(jar.post("/api/v1/auth/tokens", &body).await.status, 201);
}

#[tokio::test]
async fn five_failures_lock_an_address_and_a_name_and_no_header_helps() {
    let house = settled("").await;
    let (_, said) = add_user(&house, &["add", "bo@example.org"], PASSWORD);
    assert!(said.contains("can sign in"), "{said}");
    let mut jar = Jar::new(&house);
    for n in 0..5 {
        jar.headers =
            vec![("x-real-ip", format!("203.0.113.{n}")), ("x-forwarded-for", format!("203.0.113.{n}"))];
        let wrong = [("nobody@example.org", PASSWORD), ("ada@example.org", "wrong horse")][n % 2];
        let begun = std::time::Instant::now();
        let told = jar.form("/api/v1/auth/login/local", &login(wrong.0, wrong.1)).await;
        assert_eq!((told.status, told.code()), (401, "invalid_credentials"), "{n}");
        assert_eq!(told.body["detail"]["message"], "Incorrect email or password");
        assert!(
            begun.elapsed() >= std::time::Duration::from_millis(500),
            "a name that is unknown is no quicker"
        );
    }
    let told = jar.form("/api/v1/auth/login/local", &login("bo@example.org", PASSWORD)).await;
    assert_eq!(
        (told.status, &told.body["detail"]),
        (429, &json!("Too many login attempts. Try again later."))
    );
}

#[tokio::test]
async fn a_name_is_locked_from_everywhere_and_a_trusted_proxy_says_from_where() {
    let house = settled("auth: {trusted_proxies: [127.0.0.1]}\n").await;
    let mut jar = Jar::new(&house);
    for n in 0..5 {
        jar.headers = vec![("x-real-ip", format!("203.0.113.{n}"))];
        let told = jar.form("/api/v1/auth/login/local", &login("Ada@example.org", "wrong horse")).await;
        assert_eq!(told.status, 401, "{n}");
    }
    jar.headers = vec![("x-real-ip", "198.51.100.1".into())];
    assert_eq!(jar.form("/api/v1/auth/login/local", &login("ada@example.org", PASSWORD)).await.status, 429);
    let told = jar.form("/api/v1/auth/login/local", &login("bo@example.org", PASSWORD)).await;
    assert_eq!(told.status, 401, "others are not locked");
}

#[tokio::test]
async fn a_new_password_ends_all_other_sessions() {
    let house = settled("").await;
    let (mut jar, mut other) =
        (signed_in(&house, "ada@example.org").await, signed_in(&house, "ada@example.org").await);
    let change = |current: &str, new: &str| json!({"current_password": current, "new_password": new});
    let path = "/api/v1/auth/change-password";
    let told = jar.post(path, &change("wrong horse", "staple battery")).await;
    assert_eq!((told.status, told.code()), (400, "invalid_credentials"));
    assert_eq!(jar.post(path, &change(PASSWORD, "short")).await.status, 422);
    let told = jar.post(path, &change(PASSWORD, "staple battery")).await;
    assert_eq!((told.status, told.body), (200, json!({"message": "Password changed successfully"})));
    assert_eq!(jar.get("/api/v1/auth/me").await.status, 200, "this browser goes on");
    let told = other.get("/api/v1/auth/me").await;
    assert_eq!((told.status, told.code()), (401, "token_invalid"));
    let mut new = Jar::new(&house);
    assert_eq!(new.form("/api/v1/auth/login/local", &login("ada@example.org", PASSWORD)).await.status, 401);
    assert_eq!(
        new.form("/api/v1/auth/login/local", &login("ada@example.org", "staple battery")).await.status,
        200
    );
    for _ in 0..4 {
        jar.post(path, &change("guessed", "staple battery!")).await;
    }
    assert_eq!(
        jar.post(path, &change("staple battery", "staple battery!")).await.status,
        429,
        "guessing ends"
    );
}

#[tokio::test]
async fn who_comes_from_deerflow_signs_in_and_gets_a_better_hash() {
    let mut house = House::build("").await;
    let id = "0b9f4d3e-1111-4aaa-8bbb-000000000001";
    // OpenBSD's test vector of bcrypt, in the format of DeerFlow's first version.
    let old = "$dfv1$$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    let account = UserAccount {
        user: UserId::from_raw(id).unwrap(),
        email: "ada@example.org".into(),
        password_hash: Some(old.into()),
        role: "user".into(),
        needs_setup: true,
        token_version: 3,
        oauth_provider: None,
        oauth_id: None,
        created: 0,
    };
    std::fs::create_dir_all(house.path(".pudu/data")).unwrap();
    let db = house.database().await;
    db.add_account(account).await.unwrap();
    db.close().await;
    house.set("AUTH_JWT_SECRET", "a-secret-that-two-programs-share");
    house.start();
    let mut jar = Jar::new(&house);
    let told = jar.form("/api/v1/auth/login/local", &login("ada@example.org", "U*U")).await;
    assert_eq!((told.status, told.body), (200, json!({"expires_in": 604_800, "needs_setup": true})));
    assert_eq!(jar.get("/api/v1/auth/me").await.body["id"], id);
    let hash = async |db: &Db| {
        db.account_of(&UserId::from_raw(id).unwrap()).await.unwrap().unwrap().password_hash.unwrap()
    };
    let db = house.database().await;
    assert!(hash(&db).await.starts_with("$argon2id$"));
    let again = Jar::new(&house).form("/api/v1/auth/login/local", &login("ada@example.org", "U*U")).await;
    assert_eq!(again.status, 200);
    // A session survives a restart, with the secret and the store.
    house.kill();
    house.start();
    jar.at(&house);
    assert_eq!(jar.get("/api/v1/auth/me").await.body["id"], id);
    house.kill();
    house.set("AUTH_JWT_SECRET", "another-secret-that-signs-else");
    house.start();
    jar.at(&house);
    assert_eq!(jar.get("/api/v1/auth/me").await.code(), "token_invalid");
}

#[tokio::test]
async fn visitors_make_themselves_accounts_only_where_the_operator_says_so() {
    let house = settled("").await;
    let body = json!({"email": "bo@example.org", "password": PASSWORD, "remember_me": false});
    let told = Jar::new(&house).post("/api/v1/auth/register", &body).await;
    assert_eq!((told.status, told.code()), (403, "registration_disabled"));
    let house = settled("auth: {local: {allow_registration: true}}\n").await;
    let mut jar = Jar::new(&house);
    let told = jar.post("/api/v1/auth/register", &body).await;
    assert_eq!((told.status, &told.body["system_role"]), (201, &json!("user")), "{told:?}");
    assert!(told.cookies.iter().all(|cookie| cookie.contains("pudu_token") || !cookie.contains("Max-Age")));
    assert!(told.cookies.iter().any(|cookie| cookie.starts_with("deerflow_session_persistent=0")));
    assert_eq!(jar.get("/api/models").await.status, 200);
    let told = jar.get("/api/audit").await;
    assert_eq!((told.status, &told.body["detail"]), (403, &json!("only administrators may do this")));
    // Users cannot assign themselves a role.
    let sly =
        json!({"email": "eve@example.org", "password": PASSWORD, "system_role": "admin", "role": "admin"});
    let mut eve = Jar::new(&house);
    assert_eq!(eve.post("/api/v1/auth/register", &sly).await.body["system_role"], "user");
    assert_eq!(eve.get("/api/accounts").await.status, 403);
    let told = Jar::new(&house).post("/api/v1/auth/register", &body).await;
    assert_eq!((told.status, told.code()), (400, "email_already_exists"));
    for n in 0..2 {
        let more = json!({"email": format!("u{n}@example.org"), "password": PASSWORD});
        Jar::new(&house).post("/api/v1/auth/register", &more).await;
    }
    let told = Jar::new(&house).post("/api/v1/auth/register", &body).await;
    assert_eq!(
        (told.status, &told.body["detail"]),
        (429, &json!("Too many registration attempts. Try again later."))
    );
}

/// Sends a request with a token.
async fn with(house: &House, token: &str, method: &str, path: &str) -> u16 {
    let method = method.parse::<reqwest::Method>().unwrap();
    let call = http().request(method, format!("http://{}{path}", house.address)).bearer_auth(token);
    call.json(&json!({})).send().await.unwrap().status().as_u16()
}

/// CVE-2026-22172: scopes come from the stored token. CVE-2026-25253: tokens in URLs are ignored.
#[tokio::test]
async fn a_token_may_what_it_was_made_for_until_it_is_revoked() {
    let house = settled("").await;
    let mut jar = signed_in(&house, "ada@example.org").await;
    let order =
        json!({"name": "ci", "scopes": ["threads:read", "runs:read", "runs:read"], "expires_in_days": 1});
    let made = jar.post("/api/v1/auth/tokens", &order).await;
    assert_eq!((made.status, &made.body["scopes"]), (201, &json!(["threads:read", "runs:read"])));
    let (token, id) = (made.body["token"].as_str().unwrap(), made.body["id"].as_str().unwrap());
    let listed = jar.get("/api/v1/auth/tokens").await;
    assert_eq!(listed.body[0]["name"], "ci");
    assert!(!listed.body.to_string().contains(token));
    let file = std::fs::read(house.path(".pudu/data/pudu.db")).unwrap();
    let log = std::fs::read(house.path(".pudu/data/pudu.db-wal")).unwrap();
    let holds = |bytes: &[u8]| bytes.windows(token.len()).any(|part| part == token.as_bytes());
    assert!(!holds(&file) && !holds(&log) && !house.log().contains(token), "only its hash is kept");
    for (method, path, expected) in [
        ("GET", "/api/models", 200),
        ("GET", "/api/v1/auth/me", 200),
        ("POST", "/api/threads/search", 200),
        ("POST", "/api/langgraph/threads/search", 200),
        ("GET", "/api/threads/t/runs", 404),
        ("GET", "/api/threads/t/uploads/limits", 200),
        ("DELETE", "/api/threads/t/uploads/a", 403),
        ("POST", "/api/threads", 403),
        ("POST", "/api/threads/t/runs/stream", 403),
        ("POST", "/api/threads/t/runs?scopes=runs:create&scope=runs:create", 403),
        ("POST", "/api/runs/wait", 403),
        ("POST", "/api/v1/auth/tokens", 403),
        ("POST", "/api/v1/auth/change-password", 403),
        ("GET", "/api/audit", 403),
        ("GET", "/api/accounts", 403),
    ] {
        assert_eq!(with(&house, token, method, path).await, expected, "{method} {path}");
    }
    let url = format!("http://{}/api/runs/wait", house.address);
    let call = http().post(&url).bearer_auth(token).header("x-scopes", "runs:create");
    let told = call.json(&json!({"text": "hi", "scopes": ["runs:create"]})).send().await.unwrap();
    assert_eq!(told.status(), 403, "scopes of a request are nobody's");
    for query in ["token", "access_token", "api_key", "pudu_token"] {
        let told = Jar::new(&house).get(&format!("/api/models?{query}={token}")).await;
        assert_eq!(told.status, 401, "{query}");
    }
    let mut cookie = Jar::new(&house);
    cookie.keep("access_token", token);
    cookie.keep("pudu_token", token);
    assert_eq!(cookie.get("/api/models").await.status, 401, "a token is no cookie");
    let told = jar.post("/api/v1/auth/tokens", &json!({"name": "x", "scopes": ["admin"]})).await;
    assert_eq!(told.status, 400);
    assert_eq!(
        jar.delete(&format!("/api/v1/auth/tokens/{id}")).await.body,
        json!({"message": "Token revoked"})
    );
    let mut refusals = Vec::new();
    for token in [token, "pudu_", "pudu_never-made"] {
        let call = http().get(format!("http://{}/api/models", house.address)).bearer_auth(token);
        let told = call.send().await.unwrap();
        refusals.push((told.status().as_u16(), told.json::<Value>().await.unwrap()));
    }
    let words = refusals[0].1["detail"]["message"].as_str().unwrap();
    assert!(words.contains("unknown, revoked or expired") && words.contains("pudu token add"), "{words}");
    assert_eq!((refusals[0].0, &refusals[0].1["detail"]["code"]), (401, &json!("token_invalid")));
    assert_eq!(
        refusals[1..],
        [refusals[0].clone(), refusals[0].clone()],
        "which tokens there are is not told"
    );
}

#[tokio::test]
async fn nobody_lists_or_revokes_somebody_elses_tokens() {
    let house = settled("").await;
    add_user(&house, &["add", "bo@example.org"], PASSWORD);
    let (mut ada, mut bo) =
        (signed_in(&house, "ada@example.org").await, signed_in(&house, "bo@example.org").await);
    let made = ada
        .post("/api/v1/auth/pats", &json!({"name": "ci", "scopes": ["runs:read"], "user": "bo@example.org"}))
        .await;
    let (id, token) = (made.body["id"].as_str().unwrap(), made.body["token"].as_str().unwrap());
    assert_eq!(bo.get("/api/v1/auth/pats").await.body, json!([]));
    assert_eq!(bo.delete(&format!("/api/v1/auth/pats/{id}")).await.status, 404);
    assert_eq!(with(&house, token, "GET", "/api/models").await, 200);
    // A removed account's tokens and sessions are removed, too.
    add_user(&house, &["add", "zoe@example.org", "--admin"], PASSWORD);
    assert!(house.pudu(&["user", "remove", "ada@example.org"]).0);
    assert_eq!(with(&house, token, "GET", "/api/models").await, 401);
    let told = ada.get("/api/v1/auth/me").await;
    assert_eq!((told.status, told.code()), (401, "user_not_found"));
}

#[tokio::test]
async fn files_of_a_thread_are_its_users() {
    let house = settled("").await;
    for email in ["bo@example.org", "eve@example.org"] {
        add_user(&house, &["add", email], PASSWORD);
    }
    let (mut bo, mut eve) =
        (signed_in(&house, "bo@example.org").await, signed_in(&house, "eve@example.org").await);
    assert_eq!(bo.post("/api/threads", &json!({"thread_id": "own"})).await.status, 200);
    let put = async |jar: &mut Jar, thread: &str| {
        let part = reqwest::multipart::Part::bytes(b"secret of Bo".to_vec()).file_name("a.txt");
        let form = reqwest::multipart::Form::new().part("files", part);
        let path = format!("/api/threads/{thread}/uploads");
        jar.send(reqwest::Method::POST, &path, |call| call.multipart(form)).await.status
    };
    assert_eq!(put(&mut bo, "own").await, 200);
    assert_eq!((put(&mut eve, "own").await, put(&mut eve, "unmade").await), (404, 404));
    let file = "/api/threads/own/artifacts/mnt/user-data/uploads/a.txt";
    assert_eq!(bo.get(file).await.body, "secret of Bo");
    assert_eq!(bo.get("/api/threads/unmade/uploads/limits").await.status, 200);
    for path in
        [file, "/api/threads/own/uploads/list", "/api/threads/own", "/api/langgraph/threads/own/state"]
    {
        let told = eve.get(path).await;
        assert_eq!(told.status, 404, "{path}");
        assert!(!told.body.to_string().contains("secret"), "{path}");
    }
    assert_eq!(eve.delete("/api/threads/own/uploads/a.txt").await.status, 404);
    assert_eq!(eve.post("/api/threads/search", &json!({})).await.body, json!([]));
    assert_eq!(bo.get("/api/threads/own/uploads/list").await.body["count"], 1);
}

#[tokio::test]
async fn the_command_line_looks_after_accounts_and_tokens_with_and_without_a_daemon() {
    let mut house = House::build("").await;
    for running in [false, true] {
        let name = if running { "bo@example.org" } else { "ada@example.org" };
        let (well, said) = add_user(&house, &["add", name, "--admin"], PASSWORD);
        assert!(well && said.contains("as an administrator"), "{said}");
        let (well, said) = add_user(&house, &["add", name], PASSWORD);
        assert!(!well && said.contains("is already in use"), "{said}");
        let (well, said) = add_user(&house, &["add", "nobody"], PASSWORD);
        assert!(!well && said.contains("is not a valid e-mail address"), "{said}");
        let (well, said) = add_user(&house, &["add", "weak@example.org"], "password");
        assert!(!well && said.contains("too common"), "{said}");
        let (well, said) = house.pudu(&["user", "list"]);
        assert!(well && said.contains(&format!("{name}  admin  ")), "{said}");
        let (well, said) = add_user(&house, &["password", name], "staple battery");
        assert!(well && said.contains("has a new password"), "{said}");
        let (well, token) =
            house.pudu(&["token", "add", "ci", "--user", name, "--scope", "runs:read,threads:read"]);
        assert!(well && token.starts_with("pudu_"), "{token}");
        let (_, listed) = house.pudu(&["token", "list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed.last().unwrap()["scopes"], json!(["threads:read", "runs:read"]));
        assert!(!house.pudu(&["token", "add", "ci", "--scope", "everything"]).0);
        if running {
            let mut jar = Jar::new(&house);
            let told = jar.form("/api/v1/auth/login/local", &login(name, "staple battery")).await;
            assert_eq!(told.status, 200);
            assert_eq!(with(&house, token.trim(), "POST", "/api/threads/search").await, 200);
        }
        for token in listed {
            assert_eq!(
                house.pudu(&["token", "revoke", "ci"]),
                (true, "Revoked the token ci.\n".to_owned()),
                "{token}"
            );
        }
        assert!(!house.pudu(&["token", "revoke", "none"]).0);
        assert_eq!(house.pudu(&["token", "list"]).1.trim(), "There are no tokens.");
        if running {
            assert!(house.pudu(&["user", "remove", name]).0);
            assert!(!house.pudu(&["user", "remove", name]).0);
        } else {
            house.start();
        }
    }
}

#[tokio::test]
async fn the_installations_own_programs_act_for_a_user() {
    let mut house = House::build("").await;
    house.set("DEER_FLOW_INTERNAL_AUTH_TOKEN", "a-token-of-the-installation");
    add_user(&house, &["add", "ada@example.org", "--admin"], PASSWORD);
    house.start();
    let mut jar = Jar::new(&house);
    let ask = async |jar: &mut Jar, token: &str, owner: Option<&str>, path: &str| {
        jar.headers = vec![("x-deerflow-internal-token", token.to_owned())];
        jar.headers.extend(owner.map(|owner| ("x-deerflow-owner-user-id", owner.to_owned())));
        jar.get(path).await
    };
    let right = "a-token-of-the-installation";
    let me = "/api/v1/auth/me";
    assert_eq!(ask(&mut jar, right, None, me).await.body["id"], "default");
    let told = ask(&mut jar, right, Some("tg:1"), me).await;
    assert_eq!(told.body["id"], UserId::from_raw("tg:1").unwrap().as_str());
    assert_eq!(ask(&mut jar, right, Some("tg:1"), "/api/audit").await.status, 403);
    assert_eq!(ask(&mut jar, "a-token-of-somebody", None, me).await.status, 401);
    assert_eq!(ask(&mut jar, "", None, me).await.status, 401);
    assert_eq!(ask(&mut jar, right, Some(""), me).await.status, 400);
    // Without the variable no token is valid.
    let house = settled("").await;
    let mut jar = Jar::new(&house);
    assert_eq!(ask(&mut jar, "", None, me).await.status, 401);
    assert_eq!(ask(&mut jar, right, None, me).await.status, 401);
}

#[tokio::test]
async fn sign_in_can_be_off_but_not_in_production_nor_beside_a_token() {
    let mut house = House::build("").await;
    house.set("DEER_FLOW_AUTH_DISABLED", "1");
    add_user(&house, &["add", "ada@example.org"], PASSWORD);
    house.start();
    let mut jar = Jar::new(&house);
    let me = jar.get("/api/v1/auth/me").await;
    assert_eq!((&me.body["id"], &me.body["system_role"]), (&json!("default"), &json!("admin")));
    assert_eq!(jar.get("/api/audit").await.status, 200);
    assert_eq!(jar.post("/api/tokens", &json!({"name": "a", "scopes": ["runs:read"]})).await.status, 201);
    house.logs("SIGN-IN IS OFF").await;
    house.kill();
    house.set("DEER_FLOW_ENV", "production");
    house.start();
    jar.at(&house);
    assert_eq!(jar.get("/api/v1/auth/me").await.status, 401);
    house.kill();
    house.set("DEER_FLOW_ENV", "");
    house.configure("", "gateway: {token: open-sesame-123}\n");
    assert!(!house.try_start());
    house.configure("", "");
    house.set("AUTH_JWT_SECRET", "short");
    assert!(!house.try_start(), "a secret that can be guessed");
}

#[tokio::test]
async fn a_page_of_another_origin_reads_answers_if_it_is_named() {
    let house = settled("gateway: {cors_origins: [\"https://app.example\", \"*\"]}\n").await;
    let url = format!("http://{}/api/models", house.address);
    let ask = |origin: &'static str| {
        let preflight = http().request(reqwest::Method::OPTIONS, &url).header("origin", origin);
        preflight
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "x-csrf-token")
            .send()
    };
    let header = |told: &reqwest::Response, name: &str| {
        told.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let told = ask("https://app.example").await.unwrap();
    assert_eq!(header(&told, "access-control-allow-origin").as_deref(), Some("https://app.example"));
    assert_eq!(header(&told, "access-control-allow-credentials").as_deref(), Some("true"));
    assert_eq!(header(&told, "access-control-allow-headers").as_deref(), Some("x-csrf-token"));
    let told = ask("https://evil.example").await.unwrap();
    assert_eq!(header(&told, "access-control-allow-origin"), None);
    let mut jar = Jar::new(&house);
    jar.headers = vec![("origin", "https://app.example".into()), ("sec-fetch-site", "cross-site".into())];
    let told = jar.form("/api/v1/auth/login/local", &login("ada@example.org", PASSWORD)).await;
    assert_eq!(told.status, 200);
    let told = jar.get("/api/models").await;
    assert_eq!(told.status, 200);
    assert_eq!(
        told.exposed.as_deref(),
        Some("content-location,location,x-pudu-ignored,x-pagination-next,x-pagination-cursor")
    );
    jar.headers = vec![("origin", "https://evil.example".into())];
    assert_eq!(jar.get("/api/models").await.status, 403);
}

#[tokio::test]
async fn a_browser_is_one_person_at_a_time() {
    let house = settled("").await;
    let operator = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let mut jar = signed_in(&house, "ada@example.org").await;
    let told: Told = jar.post("/api/session", &json!({"token": operator})).await;
    assert_eq!(told.status, 204);
    assert_eq!((jar.cookie("access_token"), jar.cookie("pudu_token")), (None, Some(operator.as_str())));
    assert_eq!(jar.get("/api/v1/auth/me").await.body["id"], "default");
    jar.form("/api/v1/auth/login/local", &login("ada@example.org", PASSWORD)).await;
    assert_eq!(jar.cookie("pudu_token"), None);
    assert_eq!(jar.get("/api/v1/auth/me").await.body["email"], "ada@example.org");
    // A forged or foreign token is not a session.
    for forged in ["x", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkZWZhdWx0In0."] {
        jar.keep("access_token", forged);
        assert_eq!(jar.get("/api/v1/auth/me").await.code(), "token_invalid");
    }
}
