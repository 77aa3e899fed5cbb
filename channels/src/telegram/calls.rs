//! The calls of a reply, as teloxide's methods.

use super::{
    api::{SentMessage, TelegramApi, TelegramCall, TelegramText, Thread},
    client::{CALL_TIMEOUT, OwnMessage, TelegramClient},
    facts::TelegramError,
    upload,
};
use crate::{BoxFuture, Choice, transport::CallError};
use serde::Serialize;
use teloxide_core::{
    payloads::{
        DeleteMessage, EditMessageText, EditMessageTextSetters as _, SendChatAction,
        SendChatActionSetters as _, SendMessage, SendMessageSetters as _, SetMessageReaction,
        SetMessageReactionSetters as _,
    },
    requests::Payload,
    types::{
        ChatAction, ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageId,
        ParseMode, ReactionType, ReplyParameters, ThreadId,
    },
};

impl TelegramApi for TelegramClient {
    fn call<'a>(
        &'a self,
        chat: i64,
        call: &'a TelegramCall,
    ) -> BoxFuture<'a, Result<SentMessage, TelegramError>> {
        let chat_id = ChatId(chat);
        match call {
            TelegramCall::Send { to, text } => Box::pin(self.posted(send(chat_id, *to, text))),
            TelegramCall::Edit { id, text } => {
                Box::pin(async move { self.posted(edit(chat_id, *id, text)?).await })
            }
            TelegramCall::Delete { id } => {
                Box::pin(async move { self.done(DeleteMessage::new(chat_id, message_id(*id)?)).await })
            }
            TelegramCall::Upload { to, file, photo } => Box::pin(upload::send(self, chat, *to, file, *photo)),
            TelegramCall::Typing { topic } => {
                let mut typing = SendChatAction::new(chat_id, ChatAction::Typing);
                if let Some(topic) = thread_id(*topic) {
                    typing = typing.message_thread_id(topic);
                }
                Box::pin(self.done(typing))
            }
            TelegramCall::Seen { id } => Box::pin(async move {
                let eyes = ReactionType::Emoji { emoji: "👀".to_owned() };
                self.done(SetMessageReaction::new(chat_id, message_id(*id)?).reaction([eyes])).await
            }),
        }
    }
}

impl TelegramClient {
    async fn done<P: Payload + Serialize + Sync>(&self, payload: P) -> Result<SentMessage, TelegramError> {
        self.ask::<_, bool>(&payload, CALL_TIMEOUT).await.map(|_| SentMessage::default())
    }

    async fn posted<P: Payload + Serialize + Sync>(&self, payload: P) -> Result<SentMessage, TelegramError> {
        self.ask::<_, OwnMessage>(&payload, CALL_TIMEOUT).await.map(SentMessage::from)
    }
}

fn send(chat: ChatId, to: Thread, text: &TelegramText) -> SendMessage {
    let mut message = SendMessage::new(chat, &text.body).link_preview_options(no_preview());
    if text.html {
        message = message.parse_mode(ParseMode::Html);
    }
    if let Some(topic) = thread_id(to.topic) {
        message = message.message_thread_id(topic);
    }
    if let Some(answered) = to.reply_to.and_then(|id| message_id(id).ok()) {
        message = message.reply_parameters(ReplyParameters::new(answered).allow_sending_without_reply());
    }
    match keyboard(&text.buttons) {
        Some(keyboard) => message.reply_markup(keyboard),
        None => message,
    }
}

/// Returns the payload of an edit. An edit without a keyboard removes the existing one.
fn edit(chat: ChatId, id: i64, text: &TelegramText) -> Result<EditMessageText, TelegramError> {
    let mut edit = EditMessageText::new(chat, message_id(id)?, &text.body).link_preview_options(no_preview());
    if text.html {
        edit = edit.parse_mode(ParseMode::Html);
    }
    Ok(match keyboard(&text.buttons) {
        Some(keyboard) => edit.reply_markup(keyboard),
        None => edit,
    })
}

/// Disables previews: a preview would fetch any URL that the model wrote, and thereby contact its server.
fn no_preview() -> LinkPreviewOptions {
    LinkPreviewOptions {
        is_disabled: true,
        url: None,
        prefer_small_media: false,
        prefer_large_media: false,
        show_above_text: false,
    }
}

fn keyboard(buttons: &[Choice]) -> Option<InlineKeyboardMarkup> {
    let row = |choice: &Choice| [InlineKeyboardButton::callback(&choice.label, &choice.action)];
    (!buttons.is_empty()).then(|| InlineKeyboardMarkup::new(buttons.iter().map(row)))
}

fn message_id(id: i64) -> Result<MessageId, TelegramError> {
    i32::try_from(id).map(MessageId).map_err(|_| CallError::Gone("the message does not exist".to_owned()))
}

fn thread_id(topic: Option<i64>) -> Option<ThreadId> {
    topic.and_then(|topic| message_id(topic).ok()).map(ThreadId)
}

#[cfg(test)]
mod tests;
