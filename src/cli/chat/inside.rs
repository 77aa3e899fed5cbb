//! The chat of a daemon in this process.

use super::wire::{Act, ChatNews, ChatWire, CommandEntry, Letter, Unsent};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_channels::{AcceptError, BoxFuture, ReplyHandle};
use pudu_dispatch::{
    Shared, commands,
    local::{self, LocalChannel, TranscriptChange, TranscriptLine},
};
use pudu_texts::Language;
use std::sync::Arc;

/// The chat of a daemon in this process.
pub(super) struct Inside {
    pub(super) local: Arc<LocalChannel>,
    pub(super) shared: Arc<Shared>,
    pub(super) chat: String,
    /// The person's language.
    pub(super) language: Option<Language>,
}

impl ChatWire for Inside {
    fn follow(&self) -> BoxStream<'static, ChatNews> {
        let (local, shared, chat) = (self.local.clone(), self.shared.clone(), self.chat.clone());
        let changes = async move {
            let mut resumed = resumed(&chat, &shared).await;
            let changes = local.follow(&chat, &shared.db, &shared.client).await;
            changes.map(move |change| ChatNews::Change(with(change, std::mem::take(&mut resumed))))
        };
        stream::once(changes).flatten().boxed()
    }

    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>> {
        Box::pin(async move {
            let (local, chat, key) = (&self.local, &self.chat, &letter.key);
            let language = local::language(&self.shared, self.language);
            let kept = match &letter.act {
                Act::Say(text) => local.say(chat, key, language, text.as_str().into()).await,
                Act::Press { line, action } => local.press(chat, key, language, line, action).await,
            };
            kept.map(drop).map_err(|refusal| match refusal {
                AcceptError::Full | AcceptError::Store(_) => {
                    Unsent::Later { reason: refusal.to_string(), after: None }
                }
            })
        })
    }

    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>> {
        Box::pin(async move {
            let skills = self.shared.client.catalog().await.enabled();
            let entry = |(name, argument, help): (&str, &str, String)| CommandEntry {
                name: name.to_owned(),
                argument: argument.to_owned(),
                help,
            };
            let language = local::language(&self.shared, self.language);
            commands::offered(language, &skills).map(entry).collect()
        })
    }

    fn file(&self, line: &str, index: usize) -> Option<String> {
        Some(self.local.room(&self.chat).file(line, index)?.path.display().to_string())
    }
}

/// Returns the lines in which the process before this one had begun to answer. They go on growing, but the
/// room may not have them yet.
async fn resumed(chat: &str, shared: &Shared) -> Vec<TranscriptLine> {
    let conversation = LocalChannel::conversation(chat);
    let turns = shared.db.open_turns().await.unwrap_or_default();
    let own = turns.into_iter().filter(|turn| turn.conversation == conversation);
    let handles = own.filter_map(|turn| serde_json::from_str::<ReplyHandle>(&turn.handle?).ok());
    handles.flat_map(|handle| handle.messages).map(|id| TranscriptLine::by_agent(id, "", false)).collect()
}

/// Adds to a transcript the lines that it does not have.
fn with(change: TranscriptChange, more: Vec<TranscriptLine>) -> TranscriptChange {
    let TranscriptChange::Transcript(mut lines) = change else { return change };
    for line in more {
        if lines.iter().all(|other| other.id != line.id) {
            lines.push(line);
        }
    }
    TranscriptChange::Transcript(lines)
}
