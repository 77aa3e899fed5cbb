//! How a file is found that was perhaps sent: nothing that can be hung on it comes back, so by its name and size,
//! behind the message that is answered.

use super::SlackMessages;
use crate::{
    OutFile,
    clock::now,
    reply::FoundFile,
    slack::{
        failure::SlackError,
        wire::{SlackIdentity, SlackMessage},
    },
};

/// Time to look back if no message before the reply is known, in milliseconds.
const RECENT: i64 = 3600 * 1000;

impl SlackMessages {
    /// Looks for a file of this reply that is not known to be there. Where the history may not be read nothing tells.
    pub(super) async fn look_for_file(&self, file: &OutFile, size: u64) -> Result<FoundFile, SlackError> {
        let me = self.state.me().await?;
        match self.here(self.begun()).await {
            Ok(messages) => {
                let found = self.pick_file(me, &messages, file, size);
                Ok(found.map_or(FoundFile::Absent, FoundFile::There))
            }
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "failed to look for file that was perhaps sent; it may be there twice");
                Ok(FoundFile::Perhaps)
            }
        }
    }

    /// Returns when the reply was not there yet, in milliseconds since 1970.
    fn begun(&self) -> i64 {
        let seconds = self.behind.split('.').next().and_then(|seconds| seconds.parse::<i64>().ok());
        seconds.map_or_else(|| now() - RECENT, |seconds| seconds.saturating_mul(1000))
    }

    fn pick_file(
        &self,
        me: &SlackIdentity,
        messages: &[SlackMessage],
        file: &OutFile,
        size: u64,
    ) -> Option<String> {
        let ours = messages.iter().filter(|message| message.is_by(me));
        let behind = ours.filter(|message| message.ts.as_deref().is_some_and(|ts| ts > self.behind.as_str()));
        let same = |found: &&crate::slack::wire::SlackFile| {
            found.name.as_deref() == Some(&file.name)
                && found.size == Some(size)
                && !self.files.contains(&found.id)
        };
        behind.flat_map(|message| &message.files).find(same).map(|found| found.id.clone())
    }
}
