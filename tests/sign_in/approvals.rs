//! Who may decide a run's questions: its owner, an administrator, and a program that may start runs for its owner.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
    settled, signed_in,
};
use crate::house::{House, SOON, http};
use pudu_sim::model::Reply;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts a user's run that waits for an approval; returns the addresses of the question, of all questions, and of the
/// run's end.
async fn asks(house: &House, jar: &mut Jar) -> [String; 3] {
    let thread = jar.post("/api/threads", &json!({})).await.body["thread_id"].as_str().unwrap().to_owned();
    house
        .model
        .next(Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"})));
    let run = json!({"input": {"messages": [{"type": "human", "content": "write"}]}, "context": {"approvals": "ask"}});
    let begun = jar.post(&format!("/api/threads/{thread}/runs"), &run).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let (list, deadline) = (format!("/api/threads/{thread}/approvals"), Instant::now() + SOON);
    loop {
        let open = jar.get(&list).await.body;
        if let Some(id) = open[0]["id"].as_str() {
            let run = format!("/api/threads/{thread}/runs/{}/join", begun.body["run_id"].as_str().unwrap());
            return [format!("{list}/{id}"), list, run];
        }
        assert!(Instant::now() < deadline, "{open}: {}", house.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn with_token(house: &House, token: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let at = format!("http://{}{path}", house.address);
    let call = body.map_or_else(|| http().get(&at), |body| http().post(&at).json(&body)).bearer_auth(token);
    let told = call.send().await.unwrap();
    (told.status().as_u16(), told.json().await.unwrap())
}

#[tokio::test]
async fn only_who_may_go_on_with_a_thread_decides() {
    let house = settled("approvals: {tools: [write_file]}\n").await;
    for email in ["bo@example.org", "eve@example.org"] {
        let (well, said) = add_user(&house, &["add", email], PASSWORD);
        assert!(well, "{said}");
    }
    let (mut ada, mut bo, mut eve) = (
        signed_in(&house, "ada@example.org").await,
        signed_in(&house, "bo@example.org").await,
        signed_in(&house, "eve@example.org").await,
    );
    let yes = json!({"approved": true});
    let [question, list, end] = asks(&house, &mut bo).await;
    assert_eq!((eve.get(&list).await.status, eve.post(&question, &yes).await.status), (404, 404));
    let mut tokens = Vec::new();
    for (user, scopes) in [
        ("bo@example.org", &["runs:read", "threads:write"][..]),
        ("eve@example.org", &["runs:create"]),
        ("bo@example.org", &["runs:create"]),
    ] {
        let made = ada.post("/api/tokens", &json!({"name": "ci", "scopes": scopes, "user": user})).await;
        tokens.push(made.body["token"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned());
    }
    assert_eq!(with_token(&house, &tokens[0], &list, None).await.0, 200);
    assert_eq!(with_token(&house, &tokens[0], &question, Some(yes.clone())).await.0, 403);
    assert_eq!(with_token(&house, &tokens[1], &question, Some(yes.clone())).await.0, 404);
    let (status, decided) = with_token(&house, &tokens[2], &question, Some(yes.clone())).await;
    assert_eq!((status, &decided["decided_by"]), (200, &json!("bo@example.org (token ci)")));
    assert_eq!(bo.post(&question, &yes).await.status, 200, "the same decision");
    let other = bo.post(&question, &json!({"approved": false})).await;
    assert_eq!(other.body["detail"], "bo@example.org (token ci) has already approved this call");
    assert_eq!(bo.get(&end).await.status, 200);

    let [question, ..] = asks(&house, &mut bo).await;
    assert_eq!(ada.post(&question, &json!({"approved": false})).await.body["status"], "denied");
    let id = bo.get("/api/v1/auth/me").await.body["id"].clone();
    let deeds = ada.get("/api/audit").await.body["deeds"].clone();
    let own = |deed: &&Value| deed["account"] == "api";
    let (mut own, whose) = (deeds.as_array().unwrap().iter().filter(own), (&id, &json!("bo@example.org")));
    assert!(own.all(|deed| (&deed["person"], &deed["name"]) == whose), "{deeds}");
    let deadline = Instant::now() + SOON;
    loop {
        let audit = house.pudu(&["audit"]).1;
        if audit.contains("approved by bo@example.org (token ci)")
            && audit.contains("denied by ada@example.org")
        {
            break;
        }
        assert!(Instant::now() < deadline, "{audit}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
