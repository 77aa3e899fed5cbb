//! Threads of rooms: their members read them over HTTP, and nobody else does.

use super::{
    PASSWORD,
    jar::{Jar, add_user},
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

/// A topic of a forum in which Bo and Cy are, who have accounts.
struct Room {
    house: House,
    topic: MessageId,
    bo: Member,
    cy: Member,
}

/// Somebody with an account and a chat, in the topic.
struct Member {
    jar: Jar,
    chat: Talker,
    private: Talker,
}

impl Member {
    async fn new(house: &House, name: &str) -> Self {
        let email = format!("{}@example.org", name.to_lowercase());
        assert!(add_user(house, &["add", &email], PASSWORD).0);
        let private = Talker::new(house, name);
        Self { jar: signed_in(house, &email).await, chat: private.at(private.chat), private }
    }

    /// Makes the person of the chat the user of the account.
    async fn links(&mut self) {
        let code = self.jar.post("/api/channels/telegram/connect", &json!({})).await.body["code"].clone();
        self.private.say(&format!("/connect {} yes", code.as_str().unwrap()));
        self.private.reads_so(|text| text.starts_with("Done: here you are ")).await;
    }

    async fn unlinks(&mut self) {
        let linked = self.jar.get("/api/channels/connections").await.body;
        let id = linked["connections"][0]["id"].as_str().unwrap();
        assert_eq!(self.jar.delete(&format!("/api/channels/connections/{id}")).await.status, 204);
    }

    /// Returns the threads that a search finds; a count says as many.
    async fn finds(&mut self) -> Vec<String> {
        let found = self.jar.post("/api/threads/search", &json!({})).await.body;
        let ids = found.as_array().unwrap().iter().map(|thread| thread["thread_id"].as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        assert_eq!(self.jar.post("/api/threads/count", &json!({})).await.body, ids.len());
        ids
    }
}

impl Room {
    async fn open() -> Self {
        let house = settled("").await;
        let (mut bo, mut cy) = (Member::new(&house, "Bo").await, Member::new(&house, "Cy").await);
        let forum = house.telegram.add_group(Kind::Forum, "team", &[bo.chat.person, cy.chat.person]);
        for member in [&mut bo, &mut cy] {
            member.chat = member.chat.at(forum);
            member.links().await;
        }
        let topic = house.telegram.open_topic(forum, "plans").unwrap();
        Self { house, topic, bo, cy }
    }

    /// Says something to the bot in the topic.
    fn say(&self, who: &Talker, text: &str) {
        let post = Post::text(&format!("@pudu_bot {text}")).topic(self.topic);
        self.house.telegram.post(who.chat, who.person, &post).unwrap();
    }

    async fn talk(&self, who: &Talker, text: &str) {
        self.say(who, text);
        who.reads_so(|answer| answer.starts_with("echo: ") && answer.contains(text)).await;
    }
}

#[tokio::test]
async fn a_member_reads_a_rooms_thread_until_their_chat_is_unlinked() {
    let Room { .. } = &mut Room::open().await;
}
