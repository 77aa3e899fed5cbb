//! The table of supported methods, and the small ones.

use super::{
    edit,
    error::{Answer, Refusal},
    files,
    params::Params,
    send,
    types::{ChatId, Typing},
    webhook, wire,
    world::World,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How a method is executed.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Immediately, on the state.
    Now(fn(&mut World, &Params) -> Answer),
    /// Like `Now`, with rate limits.
    Paced(fn(&mut World, &Params) -> Answer),
    /// `getUpdates`, which may wait.
    Poll,
}

const METHODS: [(&str, Work); 19] = [
    ("getMe", Work::Now(get_me)),
    ("getUpdates", Work::Poll),
    ("setWebhook", Work::Now(webhook::set)),
    ("deleteWebhook", Work::Now(webhook::delete)),
    ("getWebhookInfo", Work::Now(webhook::info)),
    ("setMyCommands", Work::Now(set_commands)),
    ("getMyCommands", Work::Now(get_commands)),
    ("sendMessage", Work::Paced(send::message)),
    ("sendPhoto", Work::Paced(send::photo)),
    ("sendDocument", Work::Paced(send::document)),
    ("sendMessageDraft", Work::Paced(send::draft)),
    ("editMessageText", Work::Paced(edit::text)),
    ("editMessageReplyMarkup", Work::Paced(edit::markup)),
    ("deleteMessage", Work::Now(edit::delete)),
    ("sendChatAction", Work::Now(chat_action)),
    ("setMessageReaction", Work::Now(edit::reaction)),
    ("answerCallbackQuery", Work::Now(answer_callback)),
    ("getFile", Work::Now(files::get)),
    ("getChat", Work::Now(get_chat)),
];

/// Finds a method; names are case-insensitive.
pub(crate) fn find(name: &str, world: &World) -> Option<(&'static str, Work)> {
    let found = METHODS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).copied()?;
    (world.options.drafts || found.0 != "sendMessageDraft").then_some(found)
}

/// Returns the chat of a call.
pub(crate) fn chat_id(params: &Params) -> Answer<ChatId> {
    let empty = || Refusal::bad("chat_id is empty");
    params.int("chat_id").map_err(|_| Refusal::bad("chat not found"))?.map(ChatId).ok_or_else(empty)
}

/// The result of any other method.
pub(crate) fn unknown(_: &mut World, _: &Params) -> Answer {
    Err(Refusal::new(404, "Not Found: method not found"))
}

fn get_me(world: &mut World, _: &Params) -> Answer {
    Ok(wire::me(world))
}

fn set_commands(world: &mut World, params: &Params) -> Answer {
    let commands: Value = params.object("commands")?.unwrap_or_else(|| json!([]));
    let fits = |name: &str| {
        (1..=32).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    for command in commands.as_array().into_iter().flatten() {
        if !command["command"].as_str().is_some_and(fits) {
            return Err(Refusal::bad("BOT_COMMAND_INVALID"));
        }
        if !command["description"].as_str().is_some_and(|text| (1..=256).contains(&text.chars().count())) {
            return Err(Refusal::bad("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
    }
    world.commands.insert(params.text("language_code").unwrap_or_default().to_owned(), commands);
    Ok(true.into())
}

fn get_commands(world: &mut World, params: &Params) -> Answer {
    let own = world.commands.get(params.text("language_code").unwrap_or_default());
    Ok(own.cloned().unwrap_or_else(|| json!([])))
}

fn get_chat(world: &mut World, params: &Params) -> Answer {
    Ok(wire::full_chat(world, world.chat(chat_id(params)?)?))
}

const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

/// Duration of "typing…" unless it is repeated.
const ACTION_LASTS: Duration = Duration::from_secs(5);

fn chat_action(world: &mut World, params: &Params) -> Answer {
    let chat = world.open_chat(chat_id(params)?)?;
    let thread = params.int("message_thread_id")?;
    send::thread(chat, thread)?;
    let (id, action) = (chat.id, params.text("action").unwrap_or_default());
    if !ACTIONS.contains(&action) {
        return Err(Refusal::bad("wrong parameter action in request"));
    }
    let typing = Typing { action: action.to_owned(), until: Instant::now() + ACTION_LASTS };
    world.chat_mut(id)?.typing = Some(typing);
    Ok(true.into())
}

fn answer_callback(world: &mut World, params: &Params) -> Answer {
    let id = params.text("callback_query_id").unwrap_or_default();
    let press = world.presses.iter_mut().find(|press| press.id == id);
    let Some(press) = press else {
        let old = "query is too old and response timeout expired or query ID is invalid";
        return Err(Refusal::bad(old));
    };
    press.answer = Some(params.text("text").unwrap_or_default().to_owned());
    Ok(true.into())
}
