//! Edits, deletions and reactions of the bot.

use super::{
    error::{Answer, Refusal},
    methods::chat_id,
    params::Params,
    send,
    types::{Author, Body, ChatId, Kind, Message, MessageId, Shown},
    world::{World, unix_now},
};
use serde::Deserialize;
use tokio::time::Instant;

const NOT_MODIFIED: &str = "message is not modified: specified new message content and reply markup are exactly \
                            the same as a current content and reply markup of the message";

/// `editMessageText`. Buttons that are not repeated are removed.
pub(crate) fn text(world: &mut World, params: &Params) -> Answer {
    let (text, entities) = send::text(params).map_err(too_long)?;
    let buttons = send::buttons(params)?;
    let preview_off = send::preview_off(params)?;
    edit(world, params, |old| {
        if old.file.is_some() {
            return Err(Refusal::bad("there is no text in the message to edit"));
        }
        Ok(Body { text, entities, buttons, file: None, preview_off })
    })
}

/// Returns the error of an edit, whose wording differs.
fn too_long(refusal: Refusal) -> Refusal {
    match refusal.text.as_str() {
        "Bad Request: message is too long" => Refusal::bad("MESSAGE_TOO_LONG"),
        _ => refusal,
    }
}

/// `editMessageReplyMarkup`.
pub(crate) fn markup(world: &mut World, params: &Params) -> Answer {
    let buttons = send::buttons(params)?;
    edit(world, params, |old| Ok(Body { buttons, ..old.clone() }))
}

fn edit(world: &mut World, params: &Params, change: impl FnOnce(&Body) -> Answer<Body>) -> Answer {
    let chat = world.open_chat(chat_id(params)?)?.id;
    let id = message_id(params)?;
    let missing = || Refusal::bad("message to edit not found");
    let message = world.chat_mut(chat)?.message_mut(id).ok_or_else(missing)?;
    if message.from != Author::Bot || message.service.is_some() {
        return Err(Refusal::bad("message can't be edited"));
    }
    let body = change(&message.body)?;
    // A link preview is not content: changing only that changes nothing.
    if (Body { preview_off: message.body.preview_off, ..body.clone() }) == message.body {
        return Err(Refusal::bad(NOT_MODIFIED));
    }
    replace(message, body);
    world.message_json(chat, id)
}

/// Replaces the body of a message and records the previous one.
pub(crate) fn replace(message: &mut Message, body: Body) {
    if message.body.text != body.text {
        message.shown.push(Shown { at: Instant::now(), text: body.text.clone() });
    }
    message.body = body;
    message.edited = Some(unix_now());
}

fn message_id(params: &Params) -> Answer<MessageId> {
    let id = params.int("message_id")?.filter(|id| *id != 0);
    id.map(MessageId).ok_or_else(|| Refusal::bad("message identifier is not specified"))
}

/// `deleteMessage`: the bot's own, and any in a private chat.
pub(crate) fn delete(world: &mut World, params: &Params) -> Answer {
    let chat = world.open_chat(chat_id(params)?)?.id;
    let chat = world.chat_mut(chat)?;
    let anyone = chat.kind == Kind::Private;
    let missing = || Refusal::bad("message to delete not found");
    let message = chat.message_mut(message_id(params)?).ok_or_else(missing)?;
    if message.from != Author::Bot && !anyone {
        return Err(Refusal::bad("message can't be deleted"));
    }
    message.deleted = true;
    Ok(true.into())
}

#[derive(Deserialize)]
struct Reaction {
    #[serde(rename = "type")]
    kind: String,
    emoji: Option<String>,
}

/// Allowed emoji of reactions; others are refused.
const REACTIONS: &str = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡";

/// `setMessageReaction`: one of the known emoji, or none.
pub(crate) fn reaction(world: &mut World, params: &Params) -> Answer {
    let chat: ChatId = world.open_chat(chat_id(params)?)?.id;
    let reactions: Vec<Reaction> = params.object("reaction")?.unwrap_or_default();
    if reactions.len() > 1 {
        return Err(Refusal::bad("REACTIONS_TOO_MANY"));
    }
    let known = |reaction: &Reaction| {
        let emoji = reaction.emoji.as_deref().map(|emoji| emoji.trim_end_matches('\u{fe0f}'));
        reaction.kind == "emoji" && emoji.is_some_and(|emoji| REACTIONS.split(' ').any(|one| one == emoji))
    };
    if !reactions.iter().all(known) {
        return Err(Refusal::bad("REACTION_INVALID"));
    }
    let missing = || Refusal::bad("message to react not found");
    let message = world.chat_mut(chat)?.message_mut(message_id(params)?).ok_or_else(missing)?;
    message.reactions = reactions.into_iter().filter_map(|reaction| reaction.emoji).collect();
    Ok(true.into())
}
