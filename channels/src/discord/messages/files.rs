//! Finds a file that was perhaps sent: for two minutes its nonce makes one message of both. Later it is a message of
//! ours that no record knows, with a file of its size: Discord changes names.

use super::{DiscordMessages, NONCE, SKEW, known_ids};
use crate::{
    SendError,
    clock::now,
    discord::wire::{DiscordMessage, id_at},
    reply::{FoundFile, MessageHistory},
    transport::CallError,
};

impl DiscordMessages {
    /// Looks for a file that was perhaps sent, first at `since`, in milliseconds since 1970. Where the history may not
    /// be read the result is unknown.
    pub(super) async fn look_for_file(
        &self,
        since: i64,
        size: u64,
        history: &MessageHistory<'_>,
    ) -> Result<FoundFile, SendError> {
        // An older record does not say when it was sent.
        if since == 0 {
            return Ok(FoundFile::Perhaps);
        }
        if (0..NONCE).contains(&now().saturating_sub(since)) {
            return Ok(FoundFile::Repeatable);
        }
        self.state.me().await?;
        let begun = since.saturating_sub(SKEW);
        let known = known_ids(begun, history).await?;
        match self.history(id_at(begun)).await {
            Ok(messages) => {
                let unknown = messages.into_iter().filter(|message| !known.contains(&message.id));
                let found = unknown.into_iter().find(|message| self.has_own_file(message, size));
                Ok(found.map_or(FoundFile::Repeatable, |message| FoundFile::There(message.id)))
            }
            Err(CallError::Refused(why) | CallError::Gone(why)) => {
                tracing::warn!(why, "failed to look for file that was perhaps sent; it may be there twice");
                Ok(FoundFile::Perhaps)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a message is ours and has a file of this size.
    fn has_own_file(&self, message: &DiscordMessage, size: u64) -> bool {
        let me = self.state.me.get().map(|me| me.user.as_str());
        let own = message.author.as_ref().is_some_and(|author| Some(author.id.as_str()) == me);
        own && message.attachments.iter().any(|file| file.size == Some(size))
    }
}
