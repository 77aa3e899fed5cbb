//! Files of a reply. Slack assigns an id before a file is shared, and shares an id only once. A file without a stored
//! id, from an older version, is found by its name and size among messages newer than the one being replied to.

use super::SlackMessages;
use crate::{
    OutFile,
    clock::now,
    reply::FoundFile,
    slack::{
        facts::SlackError,
        upload::{self, ShareOutcome},
        wire::{SlackIdentity, SlackMessage},
    },
    transport::CallError,
};

/// How far back to search if no message before the reply is known, in milliseconds.
const RECENT: i64 = 3600 * 1000;

impl SlackMessages {
    /// Looks for a file that may have been shared.
    pub(super) async fn find_upload(
        &mut self,
        key: &str,
        file: &OutFile,
        size: u64,
    ) -> Result<FoundFile, SlackError> {
        let found = match self.uploads.get(key) {
            Some(id) => match upload::is_shown(&self.state, &self.channel, id).await {
                Ok(true) => FoundFile::There(id.clone()),
                Err(error) if error.is_passing() => return Err(error),
                // Sharing again is safe: Slack shares a file only once.
                Ok(false) | Err(_) => FoundFile::Repeatable,
            },
            None => self.look_for_file(file, size).await?,
        };
        if let FoundFile::There(id) = &found {
            self.files.push(id.clone());
            self.uploads.remove(key);
        }
        Ok(found)
    }

    /// Uploads a file's bytes, unless that was already done. The id is stored before the file is shared.
    pub(super) async fn upload_bytes(
        &mut self,
        key: &str,
        file: &OutFile,
        size: u64,
    ) -> Result<(), CallError> {
        if !self.uploads.contains_key(key) {
            let id = upload::upload_file(&self.state, file, size).await?;
            self.uploads.insert(key.to_owned(), id);
        }
        Ok(())
    }

    /// Shares an uploaded file and returns its id.
    pub(super) async fn share(&mut self, key: &str, file: &OutFile) -> Result<String, CallError> {
        let gone = || CallError::Unconnected("Slack no longer has the file's bytes".to_owned());
        let id = self.uploads.get(key).cloned().ok_or_else(gone)?;
        let shared = upload::share(&self.state, &self.channel, self.thread.as_deref(), file, &id).await?;
        self.uploads.remove(key);
        // Slack deletes bytes that stay unshared for too long, so they have to be uploaded again.
        if shared == ShareOutcome::Never {
            return Err(gone());
        }
        self.files.push(id.clone());
        Ok(id)
    }

    /// Looks for a file of this reply in the history. If the history may not be read, the result is unknown.
    async fn look_for_file(&self, file: &OutFile, size: u64) -> Result<FoundFile, SlackError> {
        let me = self.state.me().await?;
        match self.messages_in_place(self.start_time()).await {
            Ok(messages) => {
                let found = self.pick_file(me, &messages, file, size);
                Ok(found.map_or(FoundFile::Absent, FoundFile::There))
            }
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "failed to look for a file that may have been sent; it may appear twice");
                Ok(FoundFile::Perhaps)
            }
        }
    }

    /// Returns a time before the reply began, in milliseconds since 1970.
    fn start_time(&self) -> i64 {
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
        let newer = ours.filter(|message| message.ts.as_deref().is_some_and(|ts| ts > self.behind.as_str()));
        let same = |found: &&crate::slack::wire::SlackFile| {
            found.name.as_deref() == Some(&file.name)
                && found.size == Some(size)
                && !self.files.contains(&found.id)
        };
        newer.flat_map(|message| &message.files).find(same).map(|found| found.id.clone())
    }
}
