//! Ownership: the first administrator, runs, files, and the rights of tokens.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
    open, settled, signed_in,
};
use crate::house::{House, http};
use pudu_sim::model::Reply;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn where_somebody_has_an_account_only_the_operator_makes_the_first_administrator() {
    let house = House::furnish(Default::default(), "", "").await;
    let (well, said) = add_user(&house, &["add", "bo@example.org"], PASSWORD);
    assert!(well, "{said}");
    let mut house = house;
    house.start();
    let eve = json!({"email": "eve@example.org", "password": PASSWORD});
    let told = Jar::new(&house).post("/api/v1/auth/initialize", &eve).await;
    assert_eq!(told.status, 401, "{told:?}");
    let operator = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let mut jar = Jar::new(&house);
    jar.headers = vec![("authorization", format!("Bearer {operator}"))];
    let ada = json!({"email": "ada@example.org", "password": PASSWORD});
    assert_eq!(jar.post("/api/v1/auth/initialize", &ada).await.status, 201);
    // Without administrators the other accounts could not be managed.
    let (well, said) = house.pudu(&["user", "remove", "ada@example.org"]);
    assert!(!well && said.contains("the last administrator"), "{said}");
    assert!(house.pudu(&["user", "remove", "bo@example.org"]).0);
    assert!(house.pudu(&["user", "remove", "ada@example.org"]).0);
}

/// Creates a token for a user; for the local one by default.
pub async fn token(house: &House, user: Option<&str>, scopes: &[&str]) -> String {
    let mut ada = signed_in(house, "ada@example.org").await;
    let made = ada.post("/api/tokens", &json!({"name": "ci", "scopes": scopes, "user": user})).await;
    made.body["token"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

/// Sends a request with a token; returns the status and the body.
pub async fn asks(house: &House, token: &str, method: &str, path: &str) -> (u16, Value) {
    let method: Method = method.parse().unwrap();
    let call = http().request(method, format!("http://{}{path}", house.address)).bearer_auth(token);
    let told = call.send().await.unwrap();
    let status = told.status().as_u16();
    (status, serde_json::from_str(&told.text().await.unwrap()).unwrap_or_default())
}

#[tokio::test]
async fn a_token_that_reads_runs_stops_none() {
    let house = settled("").await;
    let reads = token(&house, None, &["runs:read"]).await;
    let stops = token(&house, None, &["runs:read", "runs:cancel"]).await;
    for prefix in ["/api", "/api/langgraph"] {
        let at = |query: &str| format!("{prefix}/threads/t/runs/r/stream?{query}");
        for (method, query, reader, stopper) in [
            ("GET", "stream_mode=values", 404, 404),
            ("GET", "cancel_on_disconnect=0", 404, 404),
            ("GET", "cancel_on_disconnect=False", 404, 404),
            ("GET", "cancel_on_disconnect=1", 403, 404),
            ("GET", "cancel%5Fon%5Fdisconnect=true", 403, 404),
            ("GET", "cancel_on_disconnect=maybe", 403, 422),
            ("POST", "action=rollback", 403, 404),
            ("POST", "wait=1&action=interrupt", 403, 404),
            // Another site's page cannot make a browser do it.
            ("GET", "action=rollback", 403, 405),
        ] {
            assert_eq!(asks(&house, &reads, method, &at(query)).await.0, reader, "{method} {query}");
            assert_eq!(asks(&house, &stops, method, &at(query)).await.0, stopper, "{method} {query}");
        }
        let joins = |query: &str| format!("{prefix}/threads/t/runs/r/join?{query}");
        for (query, reader) in [("cancel_on_disconnect=0", 404), ("cancel_on_disconnect=1", 403)] {
            assert_eq!(asks(&house, &reads, "GET", &joins(query)).await.0, reader, "{query}");
            assert_eq!(asks(&house, &stops, "GET", &joins(query)).await.0, 404, "{query}");
        }
    }
}

pub async fn put(jar: &mut Jar, thread: &str) -> u16 {
    let part = reqwest::multipart::Part::bytes(b"words".to_vec()).file_name("a.txt");
    let form = reqwest::multipart::Form::new().part("files", part);
    let path = format!("/api/threads/{thread}/uploads");
    jar.send(Method::POST, &path, |call| call.multipart(form)).await.status
}

#[tokio::test]
async fn files_without_a_thread_are_an_administrators_and_new_ones_are_whose_they_are() {
    let house = settled("").await;
    add_user(&house, &["add", "bo@example.org"], PASSWORD);
    let folder = house.path(".pudu/users/default/threads/gone/user-data/uploads");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "what was left").unwrap();
    let file = "/api/threads/gone/artifacts/mnt/user-data/uploads/a.txt";
    let (mut ada, mut bo) =
        (signed_in(&house, "ada@example.org").await, signed_in(&house, "bo@example.org").await);
    assert_eq!((bo.get(file).await.status, ada.get(file).await.status), (404, 200));
    assert_eq!(bo.get("/api/threads/gone/uploads/list").await.status, 404);
    assert_eq!(bo.get("/api/threads/gone/uploads/limits").await.status, 200, "they tell nothing of a thread");
    assert_eq!(put(&mut ada, "fresh").await, 200);
    assert_eq!(ada.get("/api/threads/fresh").await.status, 200, "who brings files has the thread");
    assert_eq!(ada.get("/api/threads/fresh/uploads/list").await.body["count"], 1);
    assert_eq!(bo.get("/api/threads/fresh/uploads/list").await.status, 404);
    // An administrator who uploads files to another user's thread does not take it over.
    assert_eq!(bo.post("/api/threads", &json!({"thread_id": "bos"})).await.status, 200);
    assert_eq!(put(&mut ada, "bos").await, 200);
    assert_eq!(bo.get("/api/threads/bos/uploads/list").await.body["count"], 1);
}

#[tokio::test]
async fn nobody_asks_for_suggestions_at_the_cost_of_a_strangers_thread() {
    let house = settled("").await;
    add_user(&house, &["add", "bo@example.org"], PASSWORD);
    house.model.otherwise(|_| Reply::text("[\"Why?\"]").usage(7, 2).into());
    let (mut ada, mut bo) =
        (signed_in(&house, "ada@example.org").await, signed_in(&house, "bo@example.org").await);
    ada.post("/api/threads", &json!({"thread_id": "adas"})).await;
    let ask = json!({"messages": [{"role": "user", "content": "hello"}], "n": 1});
    let of = |thread: &str| format!("/api/threads/{thread}/suggestions");
    assert_eq!(bo.post(&of("adas"), &ask).await.status, 404);
    assert_eq!(house.model.count(), 0, "nothing is spent");
    assert_eq!(ada.post(&of("adas"), &ask).await.body, json!({"suggestions": ["Why?"]}));
    assert_eq!(bo.post(&of("later"), &ask).await.status, 200, "a thread that is not there is nobody's");
}

#[tokio::test]
async fn a_wrong_token_is_refused_though_nobody_asks_for_one() {
    let house = open("").await;
    let mut jar = Jar::new(&house);
    assert_eq!(jar.get("/api/models").await.status, 200);
    jar.headers = vec![("authorization", "Bearer wrong".into())];
    assert_eq!(jar.get("/api/models").await.status, 401);
    // Cookies may belong to another program of this machine: browsers do not separate ports.
    jar.headers.clear();
    jar.keep("access_token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJkZWZhdWx0In0.");
    jar.keep("pudu_token", "another's");
    assert_eq!(jar.get("/api/models").await.status, 200);
    assert_eq!(jar.get("/api/audit").await.status, 401, "and they open nothing");
}

#[tokio::test]
async fn the_operators_cookie_keeps_to_https_and_comes_from_no_other_site() {
    let house = open("").await;
    let operator = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let login = json!({"token": operator});
    let mut jar = Jar::new(&house);
    let plain = jar.post("/api/session", &login).await;
    assert!(plain.status == 204 && !plain.cookies[0].contains("Secure"), "{plain:?}");
    jar.headers = vec![("x-forwarded-proto", "https".into())];
    let told = jar.post("/api/session", &login).await;
    assert!(told.status == 204 && told.cookies[0].contains("; Secure"), "{told:?}");
    jar.headers = vec![("sec-fetch-site", "cross-site".into())];
    assert_eq!(jar.post("/api/session", &login).await.status, 403);
    assert_eq!(jar.get("/").await.status, 200, "a link from elsewhere leads here");
}

#[tokio::test]
async fn a_password_that_the_operator_sets_revokes_the_tokens() {
    let house = settled("").await;
    add_user(&house, &["add", "bo@example.org"], PASSWORD);
    let (bos, locals) = (
        token(&house, Some("bo@example.org"), &["runs:read"]).await,
        token(&house, None, &["runs:read"]).await,
    );
    assert_eq!(asks(&house, &bos, "GET", "/api/models").await.0, 200);
    let (well, said) = add_user(&house, &["password", "bo@example.org"], "staple battery");
    assert!(well, "{said}");
    assert_eq!(asks(&house, &bos, "GET", "/api/models").await.0, 401);
    assert_eq!(asks(&house, &locals, "GET", "/api/models").await.0, 200, "others go on");
}
