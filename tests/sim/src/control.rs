//! Controls a platform's users over HTTP, for scripts, official clients and manual use. JSON in, JSON out, under
//! `/sim/`. The same for every implementation of [`Platform`]; Telegram, which came first, has its own.

use crate::{
    Fault,
    platform::{Platform, Words},
};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

type People = State<Arc<dyn Platform>>;
type Told = Result<Json<Value>, (StatusCode, String)>;

/// Routes of the control.
pub(crate) fn router(platform: Arc<dyn Platform>) -> Router {
    Router::new()
        .route("/sim/people", post(person))
        .route("/sim/groups", post(group))
        .route("/sim/write", post(write))
        .route("/sim/edit", post(edit))
        .route("/sim/recall", post(recall))
        .route("/sim/press", post(press))
        .route("/sim/redeliver", post(redeliver))
        .route("/sim/drop", post(drop_connection))
        .route("/sim/fail", post(fail))
        .route("/sim/shown/{chat}", get(shown))
        .route("/sim/history/{chat}/{message}", get(history))
        .route("/sim/calls", get(calls))
        .with_state(platform)
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn person(State(platform): People, Json(asked): Json<Named>) -> Told {
    let user = platform.person(&asked.name);
    Ok(Json(json!({"user": user, "chat": platform.private(&user)})))
}

#[derive(Deserialize)]
struct Group {
    title: String,
    #[serde(default)]
    members: Vec<String>,
}

async fn group(State(platform): People, Json(asked): Json<Group>) -> Told {
    let members: Vec<&str> = asked.members.iter().map(String::as_str).collect();
    Ok(Json(json!({"chat": platform.group(&asked.title, &members)})))
}

#[derive(Deserialize)]
struct Written {
    chat: String,
    from: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    to_bot: bool,
    answers: Option<String>,
    /// Names and texts of files.
    #[serde(default)]
    files: Vec<(String, String)>,
}

async fn write(State(platform): People, Json(asked): Json<Written>) -> Told {
    let Written { chat, from, text, to_bot, answers, files } = asked;
    let files = files.into_iter().map(|(name, text)| (name, text.into())).collect();
    let message = platform.write(&Words { chat, person: from, text, to_bot, answers, files });
    Ok(Json(json!({"message": message})))
}

#[derive(Deserialize)]
struct Changed {
    chat: String,
    message: String,
    #[serde(default)]
    text: String,
}

async fn edit(State(platform): People, Json(asked): Json<Changed>) -> Told {
    possible(platform.edit(&asked.chat, &asked.message, &asked.text))
}

async fn recall(State(platform): People, Json(asked): Json<Changed>) -> Told {
    possible(platform.recall(&asked.chat, &asked.message))
}

#[derive(Deserialize)]
struct Pressed {
    chat: String,
    from: String,
    message: String,
    button: String,
}

async fn press(State(platform): People, Json(asked): Json<Pressed>) -> Told {
    possible(platform.press(&asked.chat, &asked.from, &asked.message, &asked.button))
}

async fn redeliver(State(platform): People, Json(asked): Json<Changed>) -> Told {
    platform.redeliver(&asked.chat, &asked.message);
    Ok(Json(json!({})))
}

async fn drop_connection(State(platform): People) -> Told {
    platform.drop_connection();
    Ok(Json(json!({})))
}

#[derive(Deserialize)]
struct Spoilt {
    method: String,
    #[serde(default = "first")]
    nth: u64,
    fault: Cause,
}

fn first() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    TooMany(u64),
    Refused(u16, String),
    Internal,
    BadGateway,
    CutBefore,
    CutAfter,
    Silent,
    DelayMs(u64),
    Garbage,
}

async fn fail(State(platform): People, Json(asked): Json<Spoilt>) -> Told {
    let fault = match asked.fault {
        Cause::TooMany(seconds) => Fault::TooMany(seconds),
        Cause::Refused(code, text) => Fault::Refused(code, text),
        Cause::Internal => Fault::Internal,
        Cause::BadGateway => Fault::BadGateway,
        Cause::CutBefore => Fault::CutBefore,
        Cause::CutAfter => Fault::CutAfter,
        Cause::Silent => Fault::Silent,
        Cause::DelayMs(ms) => Fault::Delay(Duration::from_millis(ms)),
        Cause::Garbage => Fault::Garbage,
    };
    platform.fail(&asked.method, asked.nth, fault);
    Ok(Json(json!({})))
}

async fn shown(State(platform): People, Path(chat): Path<String>) -> Told {
    let messages = platform.shown(&chat).into_iter().map(|message| {
        let files: Vec<_> = message.files.iter().map(|(name, bytes)| json!([name, bytes.len()])).collect();
        json!({
            "id": message.id, "text": message.text, "growing": message.growing,
            "buttons": message.buttons, "files": files, "answers": message.answers, "pings": message.pings,
        })
    });
    Ok(Json(json!({"messages": messages.collect::<Vec<_>>()})))
}

async fn history(State(platform): People, Path((chat, message)): Path<(String, String)>) -> Told {
    Ok(Json(json!(platform.history(&chat, &message))))
}

async fn calls(State(platform): People) -> Told {
    let calls = platform.calls("*").into_iter().map(|call| {
        json!({"n": call.n, "method": call.method, "params": call.params, "outcome": format!("{:?}", call.outcome)})
    });
    Ok(Json(calls.collect()))
}

fn possible(done: bool) -> Told {
    if done {
        return Ok(Json(json!({})));
    }
    Err((StatusCode::UNPROCESSABLE_ENTITY, "that cannot be done on this platform, or not there".to_owned()))
}
