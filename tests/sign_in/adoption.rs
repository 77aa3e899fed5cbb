//! The first administrator takes over the data from before sign-in.

use super::{PASSWORD, jar::Jar, open, owners::put, signed_in};
use crate::house::{House, SOON, Talker, http};
use pudu_base::UserId;
use serde_json::{Value, json};

const ADA: &str = "ada@example.org";
/// Memory is not updated automatically during the test.
const REMEMBERS: &str = "memory: {mode: tool}\n";

/// Creates a conversation with a file, and a fact in memory.
async fn holds(house: &House) {
    let mut nobody = Jar::new(house);
    assert_eq!(nobody.post("/api/threads", &json!({"thread_id": "held"})).await.status, 200);
    assert_eq!(put(&mut nobody, "held").await, 200);
    let said =
        json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": "hi"}]}});
    assert_eq!(nobody.post("/api/threads/held/runs/wait", &said).await.status, 200);
    let fact = json!({"content": "Likes tea", "category": "preference", "confidence": 0.9});
    assert_eq!(nobody.post("/api/memory/facts", &fact).await.status, 200);
}

async fn initializes(house: &House, adopt: &Value) -> Jar {
    let mut ada = Jar::new(house);
    let mut body = json!({"email": ADA, "password": PASSWORD});
    if !adopt.is_null() {
        body["adopt"] = adopt.clone();
    }
    let told = ada.post("/api/v1/auth/initialize", &body).await;
    assert_eq!(told.status, 201, "{told:?}");
    ada
}

async fn threads(jar: &mut Jar) -> Vec<String> {
    let found = jar.post("/api/threads/search", &json!({"limit": 50})).await.body;
    let ids = found.as_array().unwrap().iter();
    ids.map(|thread| thread["thread_id"].as_str().unwrap().to_owned()).collect()
}

/// Checks that all of it belongs to the account, and nowhere else.
async fn has_all(house: &House, ada: &mut Jar) {
    assert_eq!(threads(ada).await, ["held"]);
    let page = ada.get("/api/threads/held/messages/page").await.body.to_string();
    assert!(page.contains("echo: hi"), "{page}");
    assert_eq!(ada.get("/api/threads/held/uploads/list").await.body["count"], 1);
    let id = ada.get("/api/v1/auth/me").await.body["id"].as_str().unwrap().to_owned();
    let files = |user: &str| house.path(format!(".pudu/users/{user}/threads/held")).exists();
    assert!(files(&id) && !files("default"));
    let runs = ada.get("/api/threads/held/runs").await.body;
    assert_eq!(runs.as_array().unwrap().len(), 1);
    house.logs("merged two memories").await;
    let memory = ada.get("/api/memory").await.body["facts"].to_string();
    assert_eq!(memory.matches("Likes tea").count(), 1, "{memory}");
    let db = house.database().await;
    assert_eq!((db.adoptions().await.unwrap(), db.memory_merges().await.unwrap()), (vec![], vec![]));
    let audit = ada.get("/api/audit").await.body.to_string();
    assert!(audit.contains("adopt threads"), "{audit}");
}

#[tokio::test]
async fn the_first_administrator_has_what_was_held_without_an_account_and_no_chat_of_anybody() {
    let house = open(REMEMBERS).await;
    let bo = Talker::new(&house, "Bo");
    bo.says("hello", "echo: hello").await;
    holds(&house).await;
    let mut ada = initializes(&house, &Value::Null).await;
    has_all(&house, &mut ada).await;
    let said =
        json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": "more"}]}});
    assert_eq!(ada.post("/api/threads/held/runs/wait", &said).await.status, 200, "it goes on");
    bo.says("again", "echo: again").await;
    assert_eq!(threads(&mut ada).await, ["held"]);
}

#[tokio::test]
async fn whoever_does_not_want_it_gets_it_later_by_the_operators_word() {
    let house = open(REMEMBERS).await;
    holds(&house).await;
    let mut ada = initializes(&house, &json!(false)).await;
    assert_eq!(threads(&mut ada).await, [""; 0]);
    let (well, said) = house.pudu(&["user", "adopt", "eve@example.org"]);
    assert!(!well && said.contains("no account signs in as"), "{said}");
    let (well, said) = house.pudu(&["user", "adopt", ADA]);
    assert!(well && said.contains("ada@example.org now owns the data"), "{said}");
    has_all(&house, &mut ada).await;
}

#[tokio::test]
async fn what_was_asked_for_while_pudu_was_away_is_done_at_its_start() {
    let mut house = open(REMEMBERS).await;
    holds(&house).await;
    initializes(&house, &json!(false)).await;
    house.stop().await;
    let (well, said) = house.pudu(&["user", "adopt", ADA]);
    assert!(well && said.contains("once pudu starts"), "{said}");
    house.start();
    has_all(&house, &mut signed_in(&house, ADA).await).await;
}

#[tokio::test]
async fn a_memory_that_is_several_peoples_stays_and_so_do_their_chats() {
    let house = open(&format!("  unpaired_people: shared\n{REMEMBERS}")).await;
    let bo = Talker::new(&house, "Bo");
    bo.says("hello", "echo: hello").await;
    holds(&house).await;
    let mut ada = initializes(&house, &Value::Null).await;
    assert_eq!(threads(&mut ada).await, ["held"]);
    let db = house.database().await;
    assert_eq!(db.memory_merges().await.unwrap(), []);
    let rows = db.threads_of_user(&UserId::local()).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.account.as_str()).collect::<Vec<_>>(), ["telegram"]);
    bo.say("/memory add I live in Quito");
    bo.reads_so(|text| text.starts_with("Remembered as")).await;
}

#[tokio::test]
async fn a_death_anywhere_in_it_leads_to_all_of_it() {
    for point in [
        "accounts.add.after",
        "adoption.files",
        "adoption.thread.before",
        "adoption.thread.after",
        "adoption.end.before",
        "memory.merged_files",
        "memory.merged.before",
    ] {
        let mut house = House::furnish(Default::default(), "", REMEMBERS).await;
        house.set("PUDU_CRASH_AT", point);
        house.start();
        holds(&house).await;
        let body = json!({"email": ADA, "password": PASSWORD});
        let order = http().post(format!("http://{}/api/v1/auth/initialize", house.address)).json(&body);
        order.send().await.ok();
        assert!(house.ended(SOON).await.is_some(), "{point}: it did not die\n{}", house.log());
        house.set("PUDU_CRASH_AT", "");
        house.start();
        has_all(&house, &mut signed_in(&house, ADA).await).await;
    }
}
