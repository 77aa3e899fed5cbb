//! The files of a finished reply, in order, behind its text.
//!
//! No change finds a file again whose id is not known. A file whose sending had no answer is therefore sent
//! once more, under the same key: at worst it is there twice, where the platform does not know keys. If that
//! has no answer either it is left, and the text says so. Text is never doubled.

use super::{
    CallError, Messages, Reply,
    record::{Id, Sending, fresh_key},
};
use crate::{OutFile, SendError};

/// How often a file is sent whose sending has no answer.
const TRIES: u8 = 2;

impl<M: Messages> Reply<M> {
    /// Gives up the files that cannot be sent as they are.
    pub(super) async fn look_at(&mut self, files: &[OutFile]) {
        for (n, file) in files.iter().enumerate() {
            if self.tries(n).is_some()
                && let Err(why) = size::<M>(file).await
            {
                self.now_is(n, Sending::Failed { why });
            }
        }
    }

    /// Returns a line for each file that was not sent.
    pub(super) fn notes(&self, files: &[OutFile]) -> Vec<String> {
        let note = |(file, state): (&OutFile, &Sending)| match state {
            Sending::Failed { why } => Some(format!("📎 {} ({why})", file.name)),
            Sending::Sent { .. } | Sending::Tried { .. } => None,
        };
        files.iter().zip(&self.record.files).filter_map(note).collect()
    }

    /// Sends what is not there yet.
    pub(super) async fn send_files(&mut self, files: &[OutFile]) -> Result<(), SendError> {
        for (n, file) in files.iter().enumerate() {
            match self.tries(n) {
                None => {}
                Some((TRIES.., _)) => {
                    let why = "it is not certain that it arrived".to_owned();
                    self.now_is(n, Sending::Failed { why });
                }
                Some((times, key)) => self.send_file(n, file, times, key).await?,
            }
            self.save().await?;
        }
        Ok(())
    }

    async fn send_file(&mut self, n: usize, file: &OutFile, times: u8, key: String) -> Result<(), SendError> {
        self.now_is(n, Sending::Tried { times: times + 1, key: key.clone() });
        self.save().await?;
        let uploaded = match size::<M>(file).await {
            Ok(size) => self.messages.upload(&key, file, size).await,
            Err(why) => Err(CallError::File(why)),
        };
        let state = match uploaded {
            Ok(id) => Sending::Sent { id: Id::Text(id) },
            Err(CallError::Refused(why) | CallError::File(why)) => {
                tracing::warn!(why, "a file was not sent");
                Sending::Failed { why: "it could not be sent".to_owned() }
            }
            Err(error) => {
                if !error.may_be_done() {
                    self.now_is(n, Sending::Tried { times, key });
                }
                return Err(error.into());
            }
        };
        self.now_is(n, state);
        Ok(())
    }

    /// Returns how often an unsettled file was tried, and its key; `None` for one that is there or given up.
    fn tries(&self, n: usize) -> Option<(u8, String)> {
        match self.record.files.get(n) {
            None => Some((0, fresh_key())),
            Some(Sending::Tried { times, key }) => Some((*times, key.clone())),
            Some(Sending::Sent { .. } | Sending::Failed { .. }) => None,
        }
    }

    fn now_is(&mut self, n: usize, state: Sending) {
        let files = &mut self.record.files;
        files.resize_with(files.len().max(n + 1), || Sending::Tried { times: 0, key: fresh_key() });
        if let Some(file) = files.get_mut(n) {
            *file = state;
        }
        self.unsaved = true;
    }
}

/// Returns a file's size, or why it cannot be sent.
async fn size<M: Messages>(file: &OutFile) -> Result<u64, String> {
    match tokio::fs::metadata(&file.path).await {
        Ok(data) if !data.is_file() => Err("it is not a file".to_owned()),
        Ok(data) if data.len() == 0 => Err("it is empty".to_owned()),
        Ok(data) if data.len() > M::LARGEST_FILE => Err(format!(
            "it is larger than the {} MB that {} takes",
            M::LARGEST_FILE / 1_000_000,
            M::PLATFORM
        )),
        Ok(data) => Ok(data.len()),
        Err(_) => Err("it is not there any more".to_owned()),
    }
}
