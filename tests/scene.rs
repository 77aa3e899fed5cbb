//! A house with one user in one chat of a platform, and helpers to read its messages.

use crate::house::{House, SOON};
use pudu_sim::{
    Platform,
    model::{Answer, Reply},
    platform::{Shown, Words},
};
use std::{sync::Arc, time::Duration};

/// A house with a running daemon, and Ada in a private chat.
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

    /// Starts the daemon and waits until it is connected.
    pub(crate) async fn start(&mut self) {
        self.house.start();
        let hears = self.platform.wait(&self.chat, SOON, |platform| platform.hears().then_some(()));
        hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    }

    /// The same without the daemon.
    pub(crate) async fn build(platform: Arc<dyn Platform>) -> Self {
        let house = House::elsewhere(platform.clone()).await;
        let ada = platform.person("Ada");
        let chat = platform.private(&ada);
        Self { house, platform, ada, chat }
    }

    /// Sends a message of Ada in private.
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

    /// Waits until the bot's last final message in a chat has this text.
    pub(crate) async fn reads(&self, chat: &str, answer: &str) {
        self.sees(chat, |shown| last(shown).filter(|text| text == answer)).await;
    }

    /// Waits until the bot's messages in a chat meet a condition.
    pub(crate) async fn sees<T>(&self, chat: &str, wanted: impl Fn(&[Shown]) -> Option<T>) -> T {
        let found = self.platform.wait(chat, SOON, |platform| wanted(&platform.shown(chat))).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}"))
    }

    /// Returns the bot's complete texts in a chat, in order.
    pub(crate) fn words(&self, chat: &str) -> Vec<String> {
        self.platform.shown(chat).into_iter().map(|shown| shown.text).collect()
    }

    pub(crate) fn model_calls(&self) -> u64 {
        self.house.model.count()
    }
}

/// Returns the text of the last message if it is final.
pub(crate) fn last(shown: &[Shown]) -> Option<String> {
    let last = shown.iter().rev().find(|shown| shown.files.is_empty() || !shown.text.is_empty())?;
    is_final(last).then(|| last.text.trim().to_owned())
}

/// Returns whether a message is final.
pub(crate) fn is_final(shown: &Shown) -> bool {
    !shown.growing && !shown.buttons.iter().any(|button| button == "Stop")
}

/// An answer that arrives word by word.
pub(crate) fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}
