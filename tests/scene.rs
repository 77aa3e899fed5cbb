//! A house with one person in one chat of a platform, and how its messages are read.

use crate::house::{House, SOON};
use pudu_sim::{
    Platform,
    model::{Answer, Reply},
    platform::{Shown, Words},
};
use std::{sync::Arc, time::Duration};

/// A house whose daemon runs, with Ada, who talks to the bot in private.
pub(crate) struct Scene {
    pub(crate) house: House,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) ada: String,
    pub(crate) chat: String,
}

impl Scene {
    pub(crate) async fn open(platform: Arc<dyn Platform>) -> Self {
        let mut scene = Self::build(platform).await;
        scene.start().await;
        scene
    }

    /// The same with a group in place of her private chat.
    pub(crate) async fn in_group(platform: Arc<dyn Platform>) -> Self {
        let scene = Self::open(platform).await;
        let chat = scene.platform.group("team", &[&scene.ada]);
        Self { chat, ..scene }
    }

    /// Starts the daemon and waits until it hears.
    pub(crate) async fn start(&mut self) {
        self.house.start();
        let hears = self.platform.wait(&self.chat, SOON, |platform| platform.hears().then_some(()));
        hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    }

    /// Without the daemon.
    pub(crate) async fn build(platform: Arc<dyn Platform>) -> Self {
        let house = House::elsewhere(platform.clone()).await;
        let ada = platform.person("Ada");
        let chat = platform.private(&ada);
        Self { house, platform, ada, chat }
    }

    /// Ada says something in private.
    pub(crate) fn say(&self, text: &str) -> String {
        self.write(&self.chat, &self.ada, text, true, None)
    }

    pub(crate) fn write(
        &self,
        chat: &str,
        person: &str,
        text: &str,
        to_bot: bool,
        answers: Option<&str>,
    ) -> String {
        self.platform.write(&Words {
            chat: chat.to_owned(),
            person: person.to_owned(),
            text: text.to_owned(),
            to_bot,
            answers: answers.map(str::to_owned),
            files: Vec::new(),
        })
    }

    /// Waits until the bot's last finished message in a chat reads so.
    pub(crate) async fn reads(&self, chat: &str, answer: &str) {
        self.sees(chat, |shown| last(shown).filter(|text| text == answer)).await;
    }

    /// Waits until what the bot shows in a chat is as wanted.
    pub(crate) async fn sees<T>(&self, chat: &str, wanted: impl Fn(&[Shown]) -> Option<T>) -> T {
        let found = self.platform.wait(chat, SOON, |platform| wanted(&platform.shown(chat))).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}"))
    }

    /// The bot's words in a chat, whole, in order.
    pub(crate) fn words(&self, chat: &str) -> Vec<String> {
        self.platform.shown(chat).into_iter().map(|shown| shown.text).collect()
    }

    pub(crate) fn model_calls(&self) -> u64 {
        self.house.model.count()
    }
}

/// The words of the last message that will not change any more.
pub(crate) fn last(shown: &[Shown]) -> Option<String> {
    let last = shown.iter().rev().find(|shown| shown.files.is_empty() || !shown.text.is_empty())?;
    is_final(last).then(|| last.text.trim().to_owned())
}

/// Tells whether a message will not change any more.
pub(crate) fn is_final(shown: &Shown) -> bool {
    !shown.growing && !shown.buttons.iter().any(|button| button == "Stop")
}

/// Words that come one by one.
pub(crate) fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}
