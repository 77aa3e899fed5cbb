//! The chat of a daemon in this process.

use super::wire::{Act, Entry, Letter, News, Unsent, Wire};
use crate::{
    dispatch::{Shared, command},
    local::Local,
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_channels::{BoxFuture, Refusal};
use std::sync::Arc;

/// The chat of a daemon in this process.
pub(super) struct Inside {
    pub(super) local: Arc<Local>,
    pub(super) shared: Arc<Shared>,
    pub(super) chat: String,
}

impl Wire for Inside {
    fn follow(&self) -> BoxStream<'static, News> {
        let (local, shared, chat) = (self.local.clone(), self.shared.clone(), self.chat.clone());
        let changes = async move { local.follow(&chat, &shared.db, &shared.client).await };
        stream::once(changes).flatten().map(News::Change).boxed()
    }

    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>> {
        Box::pin(async move {
            let (local, chat, key) = (&self.local, &self.chat, &letter.key);
            let kept = match &letter.act {
                Act::Say(text) => local.say(chat, key, text).await,
                Act::Press { line, action } => local.press(chat, key, line, action).await,
            };
            kept.map(drop).map_err(|refusal| match refusal {
                Refusal::Full | Refusal::Store(_) => {
                    Unsent::Later { reason: refusal.to_string(), after: None }
                }
            })
        })
    }

    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<Entry>> {
        let entry = |row: &command::Row| Entry {
            name: row.name.to_owned(),
            argument: row.argument.to_owned(),
            help: row.help.to_owned(),
        };
        Box::pin(std::future::ready(command::TABLE.iter().map(entry).collect()))
    }

    fn file(&self, line: &str, index: usize) -> Option<String> {
        Some(self.local.room(&self.chat).file(line, index)?.path.display().to_string())
    }
}
