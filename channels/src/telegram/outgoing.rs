//! The files of a finished reply, in order, behind its text.
//!
//! No edit finds a document again whose number is not known. A file whose sending had no answer is therefore
//! sent once more: at worst it is there twice. If that has no answer either it is left, and the text says so.
//! Text is never doubled.

use super::{
    api::{Call, CallError, Thread},
    record::Sending,
    reply::Reply,
    upload::{DOCUMENT, is_picture},
};
use crate::{OutFile, SendError};

/// How often a file is sent whose sending has no answer.
const TRIES: u8 = 2;

impl Reply {
    /// Gives up the files that cannot be sent as they are.
    pub(super) async fn look_at(&mut self, files: &[OutFile]) {
        for (n, file) in files.iter().enumerate() {
            if self.tries(n).is_some()
                && let Err(why) = size(file).await
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
                Some(TRIES..) => {
                    let why = "it is not certain that it arrived".to_owned();
                    self.now_is(n, Sending::Failed { why });
                }
                Some(times) => self.send_file(n, file, times).await?,
            }
            self.save().await?;
        }
        Ok(())
    }

    async fn send_file(&mut self, n: usize, file: &OutFile, times: u8) -> Result<(), SendError> {
        self.now_is(n, Sending::Tried { times: times + 1 });
        self.save().await?;
        let state = match self.upload(file).await {
            Ok(id) => Sending::Sent { id },
            Err(CallError::Refused(why) | CallError::File(why)) => {
                tracing::warn!(why, "a file was not sent");
                Sending::Failed { why: "it could not be sent".to_owned() }
            }
            Err(error) => {
                if !error.may_be_done() {
                    self.now_is(n, Sending::Tried { times });
                }
                return Err(error.into());
            }
        };
        self.now_is(n, state);
        Ok(())
    }

    /// Uploads a file: a picture as one, and as a document if Telegram does not like it.
    async fn upload(&mut self, file: &OutFile) -> Result<i64, CallError> {
        let to = Thread { reply_to: None, ..self.thread };
        let size = size(file).await.map_err(CallError::File)?;
        let upload = |photo| Call::Upload { to, file: file.clone(), photo };
        if is_picture(file, size) {
            match self.desk.call(&upload(true)).await {
                Err(CallError::Refused(why)) => tracing::debug!(why, "a picture is sent as a document"),
                result => return result.map(|posted| posted.id),
            }
        }
        self.desk.call(&upload(false)).await.map(|posted| posted.id)
    }

    /// Returns how often an unsettled file was tried; `None` for one that is there or given up.
    fn tries(&self, n: usize) -> Option<u8> {
        match self.record.files.get(n) {
            None => Some(0),
            Some(Sending::Tried { times }) => Some(*times),
            Some(Sending::Sent { .. } | Sending::Failed { .. }) => None,
        }
    }

    fn now_is(&mut self, n: usize, state: Sending) {
        let files = &mut self.record.files;
        files.resize(files.len().max(n + 1), Sending::Tried { times: 0 });
        if let Some(file) = files.get_mut(n) {
            *file = state;
        }
        self.changed();
    }
}

/// Returns a file's size, or why it cannot be sent.
async fn size(file: &OutFile) -> Result<u64, String> {
    match tokio::fs::metadata(&file.path).await {
        Ok(data) if !data.is_file() => Err("it is not a file".to_owned()),
        Ok(data) if data.len() == 0 => Err("it is empty".to_owned()),
        Ok(data) if data.len() > DOCUMENT => {
            Err(format!("it is larger than the {} MB that Telegram takes", DOCUMENT / 1_000_000))
        }
        Ok(data) => Ok(data.len()),
        Err(_) => Err("it is not there any more".to_owned()),
    }
}
