//! Finds a file that may have been sent. For two minutes it can simply be sent again, because its nonce prevents a
//! duplicate. After that, it is identified as an unrecorded message of the bot with a file of the same size, because
//! Discord changes file names.

use super::{DiscordMessages, NONCE, SKEW, known_ids};
use crate::{
    SendError,
    clock::now,
    discord::wire::{DiscordMessage, id_at},
    reply::{FoundFile, MessageHistory},
    transport::CallError,
};

impl DiscordMessages {
    /// Looks for a file that may have been sent at `since` or later, in milliseconds since 1970. If the bot may not
    /// read the history, the result is unknown.
    pub(super) async fn look_for_file(
        &self,
        since: i64,
        size: u64,
        history: &MessageHistory<'_>,
    ) -> Result<FoundFile, SendError> {
        // Older records do not contain when the file was sent.
        if since == 0 {
            return Ok(FoundFile::Perhaps);
        }
        if (0..NONCE).contains(&now().saturating_sub(since)) {
            return Ok(FoundFile::Repeatable);
        }
        self.state.me().await?;
        let earliest = since.saturating_sub(SKEW);
        let known = known_ids(earliest, history).await?;
        match self.history(id_at(earliest)).await {
            Ok(messages) => {
                let unknown = messages.into_iter().filter(|message| !known.contains(&message.id));
                let found = unknown.into_iter().find(|message| self.has_own_file(message, size));
                Ok(found.map_or(FoundFile::Repeatable, |message| FoundFile::There(message.id)))
            }
            Err(CallError::Refused(why) | CallError::Gone(why)) => {
                tracing::warn!(why, "failed to look for a file that may have been sent; it may appear twice");
                Ok(FoundFile::Perhaps)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a message is the bot's and has a file of this size.
    fn has_own_file(&self, message: &DiscordMessage, size: u64) -> bool {
        let me = self.state.me.get().map(|me| me.user.as_str());
        let own = message.author.as_ref().is_some_and(|author| Some(author.id.as_str()) == me);
        own && message.attachments.iter().any(|file| file.size == Some(size))
    }
}
