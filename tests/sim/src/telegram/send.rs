//! Messages, files and drafts of the bot.

use super::{
    entity::{self, Entity},
    error::{Answer, Refusal},
    files, html,
    methods::chat_id,
    params::Params,
    types::{Author, Body, Button, Chat, ChatId, Draft, File, Kind, MessageId, Shown},
    world::{NewMessage, World},
};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum length of a text, in UTF-16 units after parsing.
const TEXT: usize = 4096;
/// Maximum length of a caption, in UTF-16 units after parsing.
const CAPTION: usize = 1024;
/// Maximum size of callback data, in bytes.
const CALLBACK: usize = 64;
/// Lifetime of a draft unless it is renewed.
const DRAFT_LASTS: Duration = Duration::from_secs(30);

/// `sendMessage`.
pub(crate) fn message(world: &mut World, params: &Params) -> Answer {
    let (text, entities) = text(params)?;
    let (chat, mut new) = new_message(world, params)?;
    new.body.text = text;
    new.body.entities = entities;
    new.body.preview_off = preview_off(params)?;
    let id = world.post(chat, new)?;
    world.message_json(chat, id)
}

/// `sendPhoto`.
pub(crate) fn photo(world: &mut World, params: &Params) -> Answer {
    file(world, params, "photo")
}

/// `sendDocument`.
pub(crate) fn document(world: &mut World, params: &Params) -> Answer {
    file(world, params, "document")
}

fn file(world: &mut World, params: &Params, field: &str) -> Answer {
    let (text, entities) = formatted(params, "caption", "caption_entities")?;
    if entity::units(&text) > CAPTION {
        return Err(Refusal::bad("message caption is too long"));
    }
    let (chat, mut new) = new_message(world, params)?;
    let file: File = files::take(world, params, field)?;
    new.body = Body { text, entities, file: Some(file), ..new.body };
    let id = world.post(chat, new)?;
    world.message_json(chat, id)
}

/// `sendMessageDraft`.
pub(crate) fn draft(world: &mut World, params: &Params) -> Answer {
    let (text, _) = formatted(params, "text", "entities")?;
    if entity::units(&text) > TEXT {
        return Err(Refusal::bad("message is too long"));
    }
    let chat = world.open_chat(chat_id(params)?)?;
    if chat.kind != Kind::Private {
        return Err(Refusal::bad("method is available only for private chats"));
    }
    if params.int("draft_id")?.unwrap_or(0) == 0 {
        return Err(Refusal::bad("DRAFT_ID_INVALID"));
    }
    let (id, now) = (chat.id, Instant::now());
    let chat = world.chat_mut(id)?;
    chat.drafts.push(Shown { at: now, text: text.clone() });
    chat.draft = Some(Draft { text, until: now + DRAFT_LASTS });
    Ok(true.into())
}

/// Parses everything of a new message except its content.
fn new_message(world: &World, params: &Params) -> Answer<(ChatId, NewMessage)> {
    let body = Body { buttons: buttons(params)?, ..Body::default() };
    let chat = world.open_chat(chat_id(params)?)?;
    let mut new = NewMessage::new(Author::Bot, body);
    new.thread = thread(chat, params.int("message_thread_id")?)?;
    new.reply_to = reply(chat, params)?;
    if new.thread.is_none() {
        new.thread = new.reply_to.and_then(|replied| chat.thread_of(replied));
    }
    Ok((chat.id, new))
}

/// Returns the requested thread. The General topic has no number, not even 1.
pub(crate) fn thread(chat: &Chat, asked: Option<i64>) -> Answer<Option<MessageId>> {
    let Some(id) = asked.filter(|id| *id != 0).map(MessageId) else { return Ok(None) };
    let known = match chat.kind {
        Kind::Forum => chat.topics.contains_key(&id),
        Kind::Supergroup => chat.message(id).is_some(),
        Kind::Private | Kind::Group => false,
    };
    if known { Ok(Some(id)) } else { Err(Refusal::bad("message thread not found")) }
}

#[derive(Deserialize)]
struct ReplyParameters {
    message_id: i64,
    #[serde(default)]
    allow_sending_without_reply: bool,
}

fn reply(chat: &Chat, params: &Params) -> Answer<Option<MessageId>> {
    let asked = match params.object::<ReplyParameters>("reply_parameters")? {
        Some(reply) => Some((reply.message_id, reply.allow_sending_without_reply)),
        None => {
            let id = params.int("reply_to_message_id")?.filter(|id| *id != 0);
            id.map(|id| (id, params.flag("allow_sending_without_reply")))
        }
    };
    let Some((id, optional)) = asked else { return Ok(None) };
    match chat.message(MessageId(id)) {
        Some(message) => Ok(Some(message.id)),
        None if optional => Ok(None),
        None => Err(Refusal::bad("message to be replied not found")),
    }
}

#[derive(Deserialize)]
struct Keyboard {
    #[serde(default)]
    inline_keyboard: Vec<Vec<Button>>,
}

/// Returns the requested inline buttons.
pub(crate) fn buttons(params: &Params) -> Answer<Vec<Vec<Button>>> {
    let keyboard: Option<Keyboard> = params.object("reply_markup")?;
    let rows = keyboard.map_or_else(Vec::new, |keyboard| keyboard.inline_keyboard);
    for button in rows.iter().flatten() {
        let data = button.callback_data.as_ref();
        if data.is_some_and(|data| data.is_empty() || data.len() > CALLBACK) {
            return Err(Refusal::bad("BUTTON_DATA_INVALID"));
        }
        if data.is_none() && button.url.is_none() {
            let why = "Text buttons are unallowed in the inline keyboard";
            return Err(Refusal::bad(format!("can't parse inline keyboard button: {why}")));
        }
    }
    Ok(rows.into_iter().filter(|row| !row.is_empty()).collect())
}

#[derive(Deserialize)]
struct LinkPreview {
    #[serde(default)]
    is_disabled: bool,
}

/// Returns whether link previews are disabled, with the new or the old parameter.
pub(crate) fn preview_off(params: &Params) -> Answer<bool> {
    let options: Option<LinkPreview> = params.object("link_preview_options")?;
    Ok(options.map_or_else(|| params.flag("disable_web_page_preview"), |options| options.is_disabled))
}

/// Returns the text of a message, which is required and limited.
pub(crate) fn text(params: &Params) -> Answer<(String, Vec<Entity>)> {
    if params.text("text").is_none() {
        return Err(Refusal::bad("message text is empty"));
    }
    let (text, entities) = formatted(params, "text", "entities")?;
    match entity::units(&text) {
        0 => Err(Refusal::bad("text must be non-empty")),
        length if length > TEXT => Err(Refusal::bad("message is too long")),
        _ => Ok((text, entities)),
    }
}

/// Returns a text after parsing and trimming, with the requested and the detected entities.
fn formatted(params: &Params, field: &str, entities: &str) -> Answer<(String, Vec<Entity>)> {
    let raw = params.text(field).unwrap_or_default();
    let mode = params.text("parse_mode").unwrap_or_default().to_ascii_lowercase();
    let (text, found) = match mode.as_str() {
        "" => {
            let given: Vec<Entity> = params.object(entities)?.unwrap_or_default();
            entity::check(raw, &given)?;
            (raw.to_owned(), given)
        }
        "html" => html::parse(raw)?,
        _ => return Err(Refusal::bad("unsupported parse_mode")),
    };
    let (text, found) = entity::trim(&text, found);
    let all = entity::detect(&text, found);
    Ok((text, all))
}
