//! Threads of rooms: only their members can read them over HTTP.

use super::{
    PASSWORD,
    jar::{Jar, Told, add_user},
    owners::{asks, token},
    settled, signed_in,
};
use crate::{
    house::{House, SOON, Talker},
    openapi::{self, filled},
};
use pudu_sim::{
    model::{At, Reply},
    telegram::{Kind, MessageId, Post},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const FILE: &str = "artifacts/mnt/user-data/outputs/a.txt";

/// Routes that read a thread with another method than GET.
const POSTED_READS: &[&str] = &["history", "state/checkpoint", "runs/{run}/stream", "stream/events"];
/// Routes that do not check a thread's owner: an administrator's, and one without data of the thread.
const OTHER_RULES: &[&str] = &["tasks", "uploads/limits"];

/// A user with an account and a chat in the room.
struct Member {
    jar: Jar,
    private: Talker,
    chat: Talker,
}

impl Member {
    /// Links the chat's identity to the account's user.
    async fn links(&mut self) {
        let offer = self.jar.post("/api/channels/telegram/connect", &json!({})).await.body;
        self.private.say(&format!("/connect {} yes", offer["code"].as_str().unwrap()));
        self.private.reads_so(|text| text.starts_with("Done: you are now ")).await;
    }

    async fn unlinks(&mut self) {
        let linked = self.jar.get("/api/channels/connections").await.body;
        let id = linked["connections"][0]["id"].as_str().unwrap();
        assert_eq!(self.jar.delete(&format!("/api/channels/connections/{id}")).await.status, 204);
    }

    /// Returns the threads of a search; the count must match.
    async fn finds(&mut self) -> Vec<Value> {
        let mut found = self.jar.post("/api/threads/search", &json!({})).await.body;
        let found: Vec<Value> =
            found.as_array_mut().unwrap().iter_mut().map(|thread| thread["thread_id"].take()).collect();
        assert_eq!(self.jar.post("/api/threads/count", &json!({})).await.body, found.len());
        found
    }

    async fn reads(&mut self, thread: &str) -> u16 {
        self.jar.get(&format!("/api/threads/{thread}")).await.status
    }
}

/// A topic of a forum, whose thread belongs to the room.
struct Room {
    house: House,
    topic: MessageId,
    bo: Member,
    cy: Member,
}

impl Room {
    async fn open() -> Self {
        let house = settled("").await;
        let (bo, cy) = (Talker::new(&house, "Bo"), Talker::new(&house, "Cy"));
        let forum = house.telegram.add_group(Kind::Forum, "team", &[bo.person, cy.person]);
        let topic = house.telegram.open_topic(forum, "plans").unwrap();
        let member = async |private: Talker, email: &str| {
            assert!(add_user(&house, &["add", email], PASSWORD).0);
            let (jar, chat) = (signed_in(&house, email).await, private.at(forum));
            let mut member = Member { jar, private, chat };
            member.links().await;
            member
        };
        let (bo, cy) = (member(bo, "bo@example.org").await, member(cy, "cy@example.org").await);
        Self { house, topic, bo, cy }
    }

    fn say(&self, who: &Member, text: &str) {
        let post = Post::text(&format!("@pudu_bot {text}")).topic(self.topic);
        self.house.telegram.post(who.chat.chat, who.chat.person, &post).unwrap();
    }

    /// Makes Bo talk in the room; returns the thread.
    async fn talk(&mut self) -> String {
        self.say(&self.bo, "hello");
        self.bo.chat.reads("echo: [Bo] hello").await;
        self.bo.finds().await[0].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_member_reads_and_follows_a_rooms_thread_until_their_chat_is_unlinked() {
    let mut room = Room::open().await;
    let thread = room.talk().await;
    let mut hold = room.house.model.hold(1, At::Chunk(1));
    room.house.model.next(Reply::text("the plan is made").words_per_chunk(1));
    room.say(&room.cy, "and the plan?");
    hold.reached().await.unwrap();
    let runs = format!("/api/threads/{thread}/runs");
    // The run is stored with the next write.
    let deadline = Instant::now() + SOON;
    let run = loop {
        let newest = room.bo.jar.get(&runs).await.body[0].clone();
        if newest["status"] == "running" {
            break newest["run_id"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "{newest}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    hold.proceed();
    let told = room.bo.jar.get(&format!("{runs}/{run}/stream")).await;
    assert!(told.status == 200 && told.body.to_string().contains("the plan is made"), "{told:?}");
    for path in ["", "/state", "/messages"] {
        let told = room.bo.jar.get(&format!("/api/threads/{thread}{path}")).await;
        assert!(told.status == 200 && told.body.to_string().contains("and the plan?"), "{path} {told:?}");
    }
    assert_eq!((room.bo.finds().await, room.cy.finds().await), (vec![json!(thread)], vec![json!(thread)]));
    let own = room.bo.jar.post("/api/threads", &json!({})).await.body;
    let mark = async |jar: &mut Jar, id: &Value| {
        let found = jar.post("/api/threads/search", &json!({"ids": [id]})).await.body[0]["read_only"].take();
        let shown = jar.get(&format!("/api/threads/{}", id.as_str().unwrap())).await.body["read_only"].take();
        (found, shown)
    };
    let (rooms, owns) =
        (mark(&mut room.bo.jar, &json!(thread)).await, mark(&mut room.bo.jar, &own["thread_id"]).await);
    assert_eq!((rooms, owns), ((json!(true), json!(true)), (json!(false), json!(false))));
    room.bo.jar.delete(&format!("/api/threads/{}", own["thread_id"].as_str().unwrap())).await;

    room.bo.unlinks().await;
    assert_eq!((room.bo.finds().await.len(), room.bo.reads(&thread).await), (0, 404));
    assert_eq!(room.cy.reads(&thread).await, 200, "others stay members");
    room.bo.private.says("hello", "echo: hello").await;
    room.bo.links().await;
    assert_eq!(room.bo.reads(&thread).await, 200, "what they said there is still theirs");
}

#[tokio::test]
async fn who_never_spoke_in_a_room_and_who_spoke_in_private_read_nothing_of_others() {
    let mut room = Room::open().await;
    let thread = room.talk().await;
    assert_eq!((room.cy.finds().await.len(), room.cy.reads(&thread).await), (0, 404), "linked, and silent");
    let post = Post::text("we talk among us").topic(room.topic);
    room.house.telegram.post(room.cy.chat.chat, room.cy.chat.person, &post).unwrap();
    room.cy.private.says("hello", "echo: hello").await;
    let private = room.cy.finds().await;
    assert_eq!(
        (private.len(), room.cy.reads(&thread).await),
        (1, 404),
        "words to others are none to the agent"
    );
    assert_eq!(room.bo.reads(private[0].as_str().unwrap()).await, 404);

    // Linking later does not change the owner of a private chat's earlier messages.
    room.cy.unlinks().await;
    room.cy.private.says("again", "echo: again").await;
    std::mem::swap(&mut room.bo.private, &mut room.cy.private);
    room.bo.links().await;
    assert_eq!(room.bo.reads(private[0].as_str().unwrap()).await, 404);
    assert_eq!(room.cy.finds().await, private);
}

#[tokio::test]
async fn a_member_changes_nothing_and_a_stranger_sees_nothing_whatever_the_route() {
    let mut room = Room::open().await;
    let path = json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"});
    room.house.model.next(Reply::tool("write_file", &path));
    let thread = room.talk().await;
    let state = room.bo.jar.get(&format!("/api/threads/{thread}/state")).await.body;
    let run = room.bo.jar.get(&format!("/api/threads/{thread}/runs")).await.body[0]["run_id"].clone();
    let parts = [
        ("{thread}", thread.as_str()),
        ("{run}", run.as_str().unwrap()),
        ("{checkpoint}", state["checkpoint"]["checkpoint_id"].as_str().unwrap()),
        ("artifacts/{path}", FILE),
    ];
    let address =
        |path: &str| filled(&parts.iter().fold(path.to_owned(), |path, (from, to)| path.replace(from, to)));
    let document = openapi::document(&room.house).await;
    let mut wrong = Vec::new();
    for operation in openapi::operations(&document) {
        let Some((_, rest)) = operation.path.split_once("/threads/{thread}") else { continue };
        let rest = rest.trim_start_matches('/');
        if OTHER_RULES.contains(&rest) || operation.path.starts_with("/api/storage") {
            continue;
        }
        let reads = operation.method == Method::GET || POSTED_READS.contains(&rest);
        let body = match rest {
            "runs/{run}/feedback" => json!({"rating": 1}),
            "suggestions" => json!({"messages": []}),
            "stream/events" => json!({"channels": ["lifecycle"]}),
            _ => json!({}),
        };
        let expected = if reads { 200 } else { 403 };
        let path = address(&operation.path);
        for (jar, expected) in [(&mut room.cy.jar, 404), (&mut room.bo.jar, expected)] {
            // This stream has no end.
            if rest == "stream/events" && expected == 200 {
                continue;
            }
            let send = |call: reqwest::RequestBuilder| match rest {
                _ if operation.method == Method::GET => call,
                "uploads" => call.multipart(reqwest::multipart::Form::new()),
                _ => call.json(&body),
            };
            let Told { status, body, .. } = jar.send(operation.method.clone(), &path, send).await;
            let why = body["detail"].as_str().unwrap_or_default();
            if status != expected || (status == 403 && !why.contains("write in the chat")) {
                wrong.push(format!("{} {path}: {status} instead of {expected}: {body}", operation.method));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let follow = format!("/api/threads/{thread}/runs/{}/stream", run.as_str().unwrap());
    assert_eq!(room.bo.jar.get(&format!("{follow}?cancel_on_disconnect=1")).await.status, 403);
    assert_eq!(room.bo.jar.post(&format!("{follow}?action=interrupt"), &json!({})).await.status, 403);
    let elsewhere = json!({"input": {"messages": []}, "config": {"configurable": {"thread_id": thread}}});
    assert_eq!(room.bo.jar.post("/api/runs", &elsewhere).await.status, 403);
    assert_eq!(room.cy.jar.post("/api/runs", &elsewhere).await.status, 404);
    let messages = format!("/api/runs/{}/messages", run.as_str().unwrap());
    let (bos, cys) = (room.bo.jar.get(&messages).await.status, room.cy.jar.get(&messages).await.status);
    assert_eq!((bos, cys), (200, 404));
}

#[tokio::test]
async fn a_members_token_that_reads_reads_a_rooms_thread_until_the_person_is_forgotten() {
    let mut room = Room::open().await;
    let thread = room.talk().await;
    let (house, path) = (&room.house, format!("/api/threads/{thread}/state"));
    let scopes = ["threads:read", "threads:delete"];
    let bos = token(house, Some("bo@example.org"), &scopes).await;
    let cys = token(house, Some("cy@example.org"), &scopes).await;
    let deletes = format!("/api/threads/{thread}");
    assert_eq!(
        (asks(house, &bos, "GET", &path).await.0, asks(house, &cys, "GET", &path).await.0),
        (200, 404)
    );
    assert_eq!(asks(house, &bos, "DELETE", &deletes).await.0, 403);
    let mut ada = signed_in(house, "ada@example.org").await;
    let told = ada.get("/api/users/bo@example.org/export").await;
    assert_eq!(told.status, 200);
    assert_eq!(ada.delete("/api/users/bo@example.org").await.status, 200);
    assert_eq!(asks(house, &bos, "GET", &path).await.0, 401, "the token went with them");
    room.bo.private.says("hello", "echo: hello").await;
    assert!(add_user(&room.house, &["add", "bo@example.org"], PASSWORD).0);
    room.bo.jar = signed_in(&room.house, "bo@example.org").await;
    room.bo.links().await;
    assert_eq!(room.bo.reads(&thread).await, 404, "who comes back is no member");
}
