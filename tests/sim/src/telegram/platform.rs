//! Implements the common interface of platforms for Telegram.

use super::{ChatId, Kind, MessageId, Post, Seen, Telegram, Upload, UserId};
use crate::{
    Fault,
    platform::{Platform, Shown, Words},
};

impl Platform for Telegram {
    fn name(&self) -> &'static str {
        "telegram"
    }

    fn settings(&self) -> String {
        format!("bot_token: '{}'\napi_url: {}\n", self.token(), self.url())
    }

    fn person(&self, name: &str) -> String {
        self.add_person(name, None).to_string()
    }

    fn private(&self, person: &str) -> String {
        person.to_owned()
    }

    fn group(&self, title: &str, members: &[&str]) -> String {
        let members: Vec<UserId> = members.iter().map(|person| UserId(number(person))).collect();
        self.add_group(Kind::Supergroup, title, &members).to_string()
    }

    fn write(&self, words: &Words) -> String {
        let (chat, person) = (ChatId(number(&words.chat)), UserId(number(&words.person)));
        let mention = if words.to_bot && words.chat != words.person { "@pudu_bot " } else { "" };
        let mut post = Post::text(&format!("{mention}{}", words.text));
        if let Some(answered) = &words.answers {
            post = post.reply_to(MessageId(number(answered)));
        }
        for (name, bytes) in &words.files {
            post = post.file(Upload::document(name, "application/octet-stream", bytes.clone()));
        }
        let ids = self.post(chat, person, &post).unwrap_or_default();
        ids.first().map(ToString::to_string).unwrap_or_default()
    }

    fn edit(&self, chat: &str, message: &str, text: &str) -> bool {
        Self::edit(self, ChatId(number(chat)), MessageId(number(message)), text).is_ok()
    }

    fn recall(&self, chat: &str, message: &str) -> bool {
        self.delete(ChatId(number(chat)), MessageId(number(message))).ok();
        // Bots do not receive recalls.
        false
    }

    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool {
        let (chat, person) = (ChatId(number(chat)), UserId(number(person)));
        Self::press(self, chat, person, MessageId(number(message)), label).is_ok()
    }

    fn shown(&self, chat: &str) -> Vec<Shown> {
        self.look(|view| {
            let shown = |seen: Seen| {
                let bytes = seen.file.as_ref().and_then(|file| Some((file.name.clone(), view.bytes(file)?)));
                Shown {
                    id: seen.id.to_string(),
                    text: seen.text,
                    growing: false,
                    buttons: seen.buttons.into_iter().flatten().map(|button| button.text).collect(),
                    files: bytes.into_iter().collect(),
                    answers: seen.reply_to.map(|id| id.to_string()),
                    pings: seen
                        .entities
                        .iter()
                        .any(|entity| matches!(entity.kind.as_str(), "mention" | "text_mention")),
                }
            };
            view.answers(ChatId(number(chat))).into_iter().map(shown).collect()
        })
    }

    fn history(&self, chat: &str, message: &str) -> Vec<String> {
        let shown = Self::history(self, ChatId(number(chat)), MessageId(number(message)));
        shown.into_iter().map(|shown| shown.text).collect()
    }

    fn redeliver(&self, chat: &str, message: &str) {
        if let Some(update) = self.update_of(ChatId(number(chat)), MessageId(number(message))) {
            Self::redeliver(self, update);
        }
    }

    fn drop_connection(&self) {
        self.fail_next("getUpdates", Fault::CutAfter);
    }

    fn sends(&self) -> &'static [&'static str] {
        &["sendMessage", "editMessageText", "deleteMessage", "sendDocument", "sendPhoto"]
    }

    fn uploads(&self) -> &'static [&'static str] {
        &["sendDocument", "sendPhoto"]
    }

    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)] {
        &[("editMessageText", 400, "Bad Request: message can't be edited")]
    }

    fn stage(&self) -> &dyn crate::Staged {
        &*self.core
    }
}

/// Parses an ID; an invalid one matches no user.
fn number(id: &str) -> i64 {
    id.parse().unwrap_or(0)
}
