//! A reply in a room: one line that grows in place.

use super::room::{LocalRoom, TranscriptLine};
use pudu_channels::{BoxFuture, FinalView, LiveReply, ReplyHandle, ReplyStore, ReplyView, SendError};
use pudu_client::base::MessageId;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Unfinished views are shown at most this often.
const EVERY: Duration = Duration::from_millis(40);

pub(super) struct LocalReply {
    room: Arc<LocalRoom>,
    reply_store: Box<dyn ReplyStore>,
    line: Option<String>,
    shown: Option<Instant>,
}

impl LocalReply {
    pub(super) fn new(
        room: Arc<LocalRoom>,
        saved: Option<ReplyHandle>,
        reply_store: Box<dyn ReplyStore>,
    ) -> Self {
        let line = saved.and_then(|handle| handle.messages.into_iter().next());
        Self { room, reply_store, line, shown: None }
    }

    /// Returns the line's id; it is kept before the line is shown.
    async fn line(&mut self) -> Result<String, SendError> {
        if let Some(line) = &self.line {
            return Ok(line.clone());
        }
        let line = MessageId::fresh().to_string();
        let handle = ReplyHandle { messages: vec![line.clone()], ..ReplyHandle::default() };
        self.reply_store.save(&handle).await?;
        Ok(self.line.insert(line).clone())
    }
}

impl LiveReply for LocalReply {
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(shown) = self.shown {
                tokio::time::sleep_until(shown + EVERY).await;
            }
        })
    }

    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            let id = self.line().await?;
            let ((text, choices), activity) = (view.whole(), view.activity.clone());
            let below = view.below + text.len().saturating_sub(view.text.len());
            self.room.put(TranscriptLine { id, text, below, activity, choices, ..TranscriptLine::default() });
            self.shown = Some(Instant::now());
            Ok(())
        })
    }

    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            let id = self.line().await?;
            let FinalView { text, files, choices, failed, title, diff, .. } = view.clone();
            let names = files.iter().map(|file| file.name.clone()).collect();
            self.room.put(TranscriptLine {
                id,
                text,
                choices,
                files: names,
                paths: files,
                done: true,
                failed,
                title,
                diff,
                ..TranscriptLine::default()
            });
            Ok(())
        })
    }
}
