//! What sign-in leaves behind: lines in the audit, streams that end with their session, codes that do not pile up.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
    settled, signed_in,
};
use crate::house::http;
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

#[tokio::test]
async fn changes_of_accounts_stand_in_the_audit_without_a_name() {
    let house = settled("").await;
    let mut ada = signed_in(&house, "ada@example.org").await;
    let id = ada.get("/api/v1/auth/me").await.body["id"].as_str().unwrap().to_owned();
    let bo = json!({"email": "bo@example.org", "password": PASSWORD});
    let bo = ada.post("/api/accounts", &bo).await.body["id"].as_str().unwrap().to_owned();
    let made = ada.post("/api/v1/auth/tokens", &json!({"name": "ci", "scopes": ["runs:read"]})).await;
    let token = made.body["id"].as_str().unwrap().to_owned();
    assert_eq!(ada.delete(&format!("/api/v1/auth/tokens/{token}")).await.status, 200);
    assert_eq!(ada.delete(&format!("/api/v1/auth/tokens/{token}")).await.status, 404);
    let change = json!({"current_password": PASSWORD, "new_password": "staple battery"});
    assert_eq!(ada.post("/api/v1/auth/change-password", &change).await.status, 200);
    assert!(add_user(&house, &["password", "bo@example.org"], "staple battery").0);
    assert!(house.pudu(&["user", "remove", "bo@example.org"]).0);
    let deeds = ada.get("/api/audit").await.body["deeds"].clone();
    let mut told: Vec<(&str, &str, &str, &Value)> = Vec::new();
    for deed in deeds.as_array().unwrap() {
        let text = |key: &str| deed[key].as_str().unwrap();
        told.push((text("person"), text("action"), text("detail"), &deed["code"]));
    }
    told.reverse();
    let (done, failed) = (json!(0), json!(1));
    let expected = [
        ("operator", "add account", id.as_str(), &done),
        (id.as_str(), "add account", bo.as_str(), &done),
        (id.as_str(), "add token", id.as_str(), &done),
        (id.as_str(), "revoke token", token.as_str(), &done),
        (id.as_str(), "revoke token", token.as_str(), &failed),
        (id.as_str(), "set password", id.as_str(), &done),
        ("operator", "set password", bo.as_str(), &done),
        ("operator", "remove account", bo.as_str(), &done),
    ];
    assert_eq!(told, expected);
    let text = deeds.to_string();
    // Whoever has an account is named when the audit is told; what is kept has ids alone.
    assert!(text.contains("\"name\":\"ada@example.org\"") && !text.contains("bo@example.org"), "{text}");
    assert!(!text.contains(made.body["token"].as_str().unwrap()), "{text}");
    // Who is forgotten is named nowhere.
    add_user(&house, &["add", "zoe@example.org", "--admin"], PASSWORD);
    let (well, said) = house.pudu(&["forget", "--user", "ada@example.org", "--yes"]);
    assert!(well, "{said}");
    let (_, audit) = house.pudu(&["audit", "--json"]);
    assert!(!audit.contains(&id) && audit.contains("remove account"), "{audit}");
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    let house = settled("").await;
    let mut ada = signed_in(&house, "ada@example.org").await;
    let mut hold = house.model.hold(1, At::Chunk(1));
    house.model.next(Reply::text("one two").words_per_chunk(1));
    ada.post("/api/threads", &json!({"thread_id": "t"})).await;
    let asked =
        json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": "go"}]}});
    let run = ada.post("/api/threads/t/runs", &asked).await.body["run_id"].as_str().unwrap().to_owned();
    hold.reached().await.unwrap();
    let url = format!("http://{}/api/threads/t/runs/{run}/stream", house.address);
    let session = format!("access_token={}", ada.cookie("access_token").unwrap());
    let answer = http().get(&url).header("cookie", session).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let program = super::owners::token(&house, Some("ada@example.org"), &["runs:read"]).await;
    let open = http().get(&url).bearer_auth(program).send().await.unwrap();
    assert!(add_user(&house, &["password", "ada@example.org"], "staple battery").0);
    // An end without the run's own: the connection is left in order.
    let ended =
        tokio::time::timeout(std::time::Duration::from_secs(30), answer.text()).await.unwrap().unwrap();
    assert!(!ended.contains("two") && !ended.contains("event: end"), "{ended}");
    hold.proceed();
    let told = open.text().await.unwrap();
    assert!(told.contains("two") && told.contains("event: end"), "that of another proof goes on: {told}");
}

#[tokio::test]
async fn codes_that_link_chats_do_not_pile_up() {
    let house = settled("").await;
    for email in ["bo@example.org", "cy@example.org"] {
        add_user(&house, &["add", email], PASSWORD);
    }
    let (mut bo, mut cy): (Jar, Jar) =
        (signed_in(&house, "bo@example.org").await, signed_in(&house, "cy@example.org").await);
    let path = "/api/channels/telegram/connect";
    for n in 0..5 {
        assert_eq!(bo.post(path, &json!({})).await.status, 200, "{n}");
    }
    assert_eq!(bo.post(path, &json!({})).await.status, 429);
    assert_eq!(cy.post(path, &json!({})).await.status, 200, "others have their own");
}
