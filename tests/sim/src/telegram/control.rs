//! The same controls over HTTP, for scripts and manual use: JSON in, JSON out, under `/sim/`.

use super::{
    core::Core,
    people::{Impossible, Post},
    types::{ChatId, Kind, MessageId, UpdateId, Upload, UserId},
    view::View,
};
use crate::Fault;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

type Told = Result<Json<Value>, (StatusCode, String)>;

/// Routes of the control.
pub(crate) fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/sim/people", post(person))
        .route("/sim/groups", post(group))
        .route("/sim/topics", post(topic))
        .route("/sim/say", post(say))
        .route("/sim/edit", post(edit))
        .route("/sim/press", post(press))
        .route("/sim/redeliver", post(redeliver))
        .route("/sim/fail", post(fail))
        .route("/sim/transcript/{chat}", get(transcript))
        .route("/sim/history/{chat}/{message}", get(history))
        .route("/sim/calls", get(calls))
        .with_state(core)
}

fn impossible(why: &Impossible) -> (StatusCode, String) {
    (StatusCode::UNPROCESSABLE_ENTITY, why.to_string())
}

#[derive(Deserialize)]
struct Person {
    name: String,
    username: Option<String>,
}

async fn person(State(core): State<Arc<Core>>, Json(asked): Json<Person>) -> Told {
    let id = core.act(|world| world.add_person(&asked.name, asked.username.as_deref()));
    Ok(Json(json!({"user": id, "chat": id})))
}

#[derive(Deserialize)]
struct Group {
    title: String,
    kind: Kind,
    members: Vec<UserId>,
}

async fn group(State(core): State<Arc<Core>>, Json(asked): Json<Group>) -> Told {
    if asked.kind == Kind::Private {
        return Err(impossible(&Impossible::Kind));
    }
    let id = core.act(|world| world.add_chat(asked.kind, &asked.title, &asked.members));
    Ok(Json(json!({"chat": id})))
}

#[derive(Deserialize)]
struct Topic {
    chat: ChatId,
    name: String,
}

async fn topic(State(core): State<Arc<Core>>, Json(asked): Json<Topic>) -> Told {
    let id = core.act(|world| world.open_topic(asked.chat, &asked.name)).map_err(|why| impossible(&why))?;
    Ok(Json(json!({"topic": id})))
}

#[derive(Deserialize)]
struct Say {
    chat: ChatId,
    /// The author; by default the user of a private chat.
    from: Option<UserId>,
    #[serde(default)]
    text: String,
    reply_to: Option<MessageId>,
    topic: Option<MessageId>,
    file: Option<Content>,
}

/// A file: its content as text, or a number of zeros.
#[derive(Deserialize)]
struct Content {
    name: Option<String>,
    text: Option<String>,
    size: Option<usize>,
    #[serde(default)]
    photo: bool,
}

impl Content {
    fn upload(self) -> Upload {
        let bytes = self.text.map_or_else(|| vec![0; self.size.unwrap_or(0)], String::into_bytes);
        match self.photo {
            true => Upload::photo(bytes),
            false => {
                let name = self.name.unwrap_or_else(|| "file.bin".to_owned());
                Upload::document(&name, "application/octet-stream", bytes)
            }
        }
    }
}

async fn say(State(core): State<Arc<Core>>, Json(asked): Json<Say>) -> Told {
    let mut post = Post::text(&asked.text);
    if let Some(message) = asked.reply_to {
        post = post.reply_to(message);
    }
    if let Some(topic) = asked.topic {
        post = post.topic(topic);
    }
    if let Some(file) = asked.file {
        post = post.file(file.upload());
    }
    let from = asked.from.unwrap_or(UserId(asked.chat.0));
    let ids = core.act(|world| world.say(asked.chat, from, &post)).map_err(|why| impossible(&why))?;
    let update = core.look(|world| world.updates.newest());
    Ok(Json(json!({"messages": ids, "update": update})))
}

#[derive(Deserialize)]
struct Edit {
    chat: ChatId,
    message: MessageId,
    text: String,
}

async fn edit(State(core): State<Arc<Core>>, Json(asked): Json<Edit>) -> Told {
    core.act(|world| world.person_edits(asked.chat, asked.message, &asked.text))
        .map_err(|why| impossible(&why))?;
    Ok(Json(json!({})))
}

#[derive(Deserialize)]
struct Push {
    chat: ChatId,
    from: Option<UserId>,
    message: MessageId,
    button: String,
}

async fn press(State(core): State<Arc<Core>>, Json(asked): Json<Push>) -> Told {
    let from = asked.from.unwrap_or(UserId(asked.chat.0));
    let pressed = core.act(|world| world.press(asked.chat, from, asked.message, &asked.button));
    Ok(Json(json!({"query": pressed.map_err(|why| impossible(&why))?})))
}

#[derive(Deserialize)]
struct Redeliver {
    update: UpdateId,
}

async fn redeliver(State(core): State<Arc<Core>>, Json(asked): Json<Redeliver>) -> Told {
    let known = core.act(|world| world.updates.repeat(asked.update, Instant::now()));
    Ok(Json(json!({"known": known})))
}

/// Format of a failure: `{"too_many": 3}`, `"cut_after"`, `{"delay_ms": 200}`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Written {
    TooMany(u64),
    Internal,
    BadGateway,
    CutBefore,
    CutAfter,
    DelayMs(u64),
    Garbage,
}

#[derive(Deserialize)]
struct Fail {
    method: String,
    nth: Option<u64>,
    fault: Written,
}

async fn fail(State(core): State<Arc<Core>>, Json(asked): Json<Fail>) -> Told {
    let fault = match asked.fault {
        Written::TooMany(seconds) => Fault::TooMany(seconds),
        Written::Internal => Fault::Internal,
        Written::BadGateway => Fault::BadGateway,
        Written::CutBefore => Fault::CutBefore,
        Written::CutAfter => Fault::CutAfter,
        Written::DelayMs(ms) => Fault::Delay(Duration::from_millis(ms)),
        Written::Garbage => Fault::Garbage,
    };
    core.act(|world| world.books.faults.fail_nth(&asked.method, asked.nth.unwrap_or(1), fault));
    Ok(Json(json!({})))
}

async fn transcript(State(core): State<Arc<Core>>, Path(chat): Path<i64>) -> Told {
    let chat = ChatId(chat);
    Ok(Json(core.look(|world| {
        let view = View { world };
        json!({"messages": view.transcript(chat), "action": view.action(chat), "draft": view.draft(chat)})
    })))
}

async fn history(State(core): State<Arc<Core>>, Path((chat, message)): Path<(i64, i64)>) -> Told {
    Ok(Json(core.look(|world| {
        let shown = View { world }.history(ChatId(chat), MessageId(message));
        let since = |at: Instant| at.duration_since(world.started).as_millis();
        shown.iter().map(|shown| json!({"ms": since(shown.at), "text": shown.text})).collect()
    })))
}

async fn calls(State(core): State<Arc<Core>>) -> Told {
    Ok(Json(core.look(|world| {
        let since = |at: Instant| at.duration_since(world.started).as_millis();
        let calls = world.books.calls.all().map(|call| {
            json!({
                "n": call.n, "ms": since(call.at), "method": call.method, "params": call.params,
                "outcome": format!("{:?}", call.outcome),
            })
        });
        calls.collect()
    })))
}
