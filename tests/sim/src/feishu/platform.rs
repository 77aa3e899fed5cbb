//! Implements the common interface of platforms.

use super::{Feishu, files, socket::Out, types::Kind};
use crate::{
    Platform,
    platform::{Shown, Words},
};

/// Calls that show or change messages.
const SENDS: &[&str] = &[
    "im.message.create",
    "im.message.reply",
    "im.message.update",
    "im.message.patch",
    "cardkit.card.create",
    "cardkit.element.content",
    "cardkit.card.update",
    "cardkit.card.settings",
];

impl Platform for Feishu {
    fn name(&self) -> &'static str {
        "feishu"
    }

    fn settings(&self) -> String {
        let (app_id, app_secret, url) = (self.app_id(), self.app_secret(), self.url());
        format!("app_id: {app_id}\napp_secret: {app_secret}\ndomain: {url}\n")
    }

    fn person(&self, name: &str) -> String {
        self.core.act(|world| world.add_person(name))
    }

    fn private(&self, person: &str) -> String {
        self.core.look(|world| world.private(person).unwrap_or_default())
    }

    fn group(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(Kind::Group, title, members))
    }

    fn write(&self, words: &Words) -> String {
        self.core.act(|world| world.write(words))
    }

    /// The platform does not report edits to bots.
    fn edit(&self, _chat: &str, _message: &str, _text: &str) -> bool {
        false
    }

    fn recall(&self, chat: &str, message: &str) -> bool {
        self.core.act(|world| world.recall(chat, message))
    }

    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool {
        self.core.act(|world| world.press(chat, person, message, label))
    }

    fn shown(&self, chat: &str) -> Vec<Shown> {
        self.core.look(|world| {
            let ids = world.chats.get(chat).map(|chat| chat.messages.as_slice()).unwrap_or_default();
            let own = ids.iter().filter_map(|id| world.messages.get(id));
            let own = own.filter(|message| message.from.is_none() && !message.deleted);
            own.map(|message| {
                let face = world.face(&message.id);
                Shown {
                    id: message.id.clone(),
                    text: face.text,
                    growing: face.growing,
                    buttons: face.buttons.into_iter().map(|(label, _)| label).collect(),
                    files: files::carried(world, &message.content),
                    answers: message.parent.clone(),
                    pings: face.pings,
                }
            })
            .collect()
        })
    }

    fn history(&self, _chat: &str, message: &str) -> Vec<String> {
        self.core.look(|world| world.messages.get(message).map(|one| one.history.clone()).unwrap_or_default())
    }

    fn redeliver(&self, _chat: &str, message: &str) {
        self.core.act(|world| world.redeliver(message));
    }

    fn drop_connection(&self) {
        self.core.act(|world| {
            for connection in world.connections.values() {
                connection.out.try_send(Out::Break).ok();
            }
            world.connections.clear();
        });
    }

    fn sends(&self) -> &'static [&'static str] {
        SENDS
    }

    fn uploads(&self) -> &'static [&'static str] {
        &["im.file.create", "im.image.create"]
    }

    fn misused(&self) -> Vec<String> {
        let numbers = self.refusals("300317").into_iter().filter(|words| {
            let numbers = words.rsplit_once(": ").and_then(|(_, numbers)| numbers.split_once(" after "));
            let number = |text: &str| text.parse::<i64>().ok();
            numbers.is_none_or(|(number_is, last)| number(number_is) <= number(last))
        });
        numbers.chain(self.violations()).collect()
    }

    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)] {
        &[
            ("cardkit.element.content", 400, "200750 card entity expired"),
            ("cardkit.card.update", 400, "200750 card entity expired"),
            ("im.message.patch", 400, "230031 message is too old to be changed"),
        ]
    }

    fn stage(&self) -> &dyn crate::Staged {
        &*self.core
    }
}
