//! The files of a finished reply, sent in order after its text.
//!
//! During an outage of the platform, files are retried like text, unless a user waits for the reply's end. A file that
//! the platform refuses or that cannot be read is skipped at once, and the text says so.
//!
//! A file with an unknown outcome is looked for, or sent again under the same key ([`PlatformMessages::find_file`]), as
//! often as needed. On a platform with neither keys nor a history, it is sent once more: at worst it is duplicated. The
//! second attempt waits a minute, so that a brief failure of the platform does not use it up. If its outcome is unknown
//! too, the file is skipped, and the text says so. Text is never duplicated.
//!
//! Once a user waits, all files share one [`Deadline`]. After it, the conversation continues in any case.

use super::{
    FoundFile, MessageHistory, PlatformMessages, PlatformReply, UncertainFile,
    record::{Id, Sending, fresh_key},
};
use crate::{FinalView, Hurry, OutFile, SendError, clock::now, render::fenced, transport::CallError};
use pudu_texts::Language;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Maximum number of times that a file with an unknown outcome is sent.
const TRIES: u8 = 2;
/// Delay before the last of these attempts, and before sending again a file that may still appear, unless a user waits.
const REST: Duration = Duration::from_secs(60);
/// How long a failing platform is retried while a user waits for the reply's end.
const RETRY_TIMEOUT: Duration = Duration::from_secs(6);
/// Assumed speed of a connection while a user waits, in bytes per second (8 Mbit/s).
const RATE: u64 = 1_000_000;
/// Maximum time for a transfer while a user waits. Enough for the 50 MB limit of most platforms.
const MAX_TRANSFER_TIME: Duration = Duration::from_secs(60);
/// Delay between attempts while a user waits.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum length of a text that is sent in messages instead of as a file, in bytes.
const MAX_INLINE_TEXT_BYTES: u64 = 64 * 1024;

/// Attempts to send a file that is neither sent nor skipped.
#[derive(Clone, Debug)]
struct FileAttempts {
    /// Number of attempts with an unknown outcome, excluding repetitions that create no duplicate.
    times: u8,
    key: String,
    /// Start of the last of these attempts, in milliseconds since 1970.
    since: i64,
}

impl From<FileAttempts> for Sending {
    fn from(FileAttempts { times, key, since }: FileAttempts) -> Self {
        Self::Tried { times, key, since }
    }
}

impl<M: PlatformMessages> PlatformReply<M> {
    /// Skips the files that cannot be sent, such as empty or too large ones.
    pub(super) async fn look_at(&mut self, files: &[OutFile]) {
        for (n, file) in files.iter().enumerate() {
            if self.attempts(n).is_some()
                && let Err(why) = size::<M>(file, self.language).await
            {
                self.now_is(n, Sending::Failed { why });
            }
        }
    }

    /// Returns a line for each file that was not sent.
    pub(super) fn notes(&self, files: &[OutFile]) -> Vec<String> {
        let note = |(file, state): (&OutFile, &Sending)| match state {
            Sending::Failed { why } => Some(self.language.unsent(&file.name, why)),
            Sending::Sent { .. } | Sending::Tried { .. } => None,
        };
        files.iter().zip(&self.record.files).filter_map(note).collect()
    }

    /// Returns the reply with the text files that could not be sent added to its text.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or is too long for messages.
    pub(super) async fn in_words(&self, view: &FinalView) -> Result<FinalView, SendError> {
        let mut text = view.text.clone();
        for (file, state) in view.files.iter().zip(&self.record.files) {
            if let Sending::Failed { .. } = state {
                text.push_str(&format!(
                    "\n\n{}",
                    fenced(&read_text(file).await.map_err(SendError::Refused)?)
                ));
            }
        }
        Ok(FinalView { text, ..view.clone() })
    }

    /// Sends the remaining files.
    pub(super) async fn send_files(&mut self, files: &[OutFile]) -> Result<(), SendError> {
        let mut deadline = Deadline { hurry: self.hurry.clone(), since: None };
        for (n, file) in files.iter().enumerate() {
            if self.attempts(n).is_some() {
                let bytes = self.bytes_left(files).await;
                self.send_patiently(n, file, bytes, &mut deadline).await?;
            }
            self.save().await?;
        }
        Ok(())
    }

    /// Sends a file once. While a user waits, retries it until the grace period ends, and then skips it.
    async fn send_patiently(
        &mut self,
        n: usize,
        file: &OutFile,
        bytes: u64,
        deadline: &mut Deadline,
    ) -> Result<(), SendError> {
        loop {
            let Some(sent) = deadline.keep(bytes, self.send_file(n, file)).await else {
                if !deadline.is_over(bytes) {
                    continue;
                }
                tracing::warn!(file = file.name, "gave up file: it takes too long, and a user is waiting");
                // An interrupted file may have arrived.
                let was_tried = self.attempts(n).is_some_and(|tries| tries.times > 0);
                let why = if was_tried { Language::unsent_uncertain } else { Language::unsent_late };
                self.give_up(n, why);
                return Ok(());
            };
            let Err(error) = sent else {
                deadline.moves_on(matches!(self.record.files.get(n), Some(Sending::Sent { .. })));
                return Ok(());
            };
            let Some(last) = deadline.last_try() else { return Err(error) };
            let pause = match error {
                SendError::Later { after } => after,
                _ => PAUSE,
            };
            if !deadline.pause(last, pause).await {
                tracing::warn!(file = file.name, %error, "gave up file: a user is waiting");
                self.give_up(n, Language::unsent_failed);
                return Ok(());
            }
        }
    }

    /// Sends a file once, unless it is found on the platform or its attempts are used up.
    async fn send_file(&mut self, n: usize, file: &OutFile) -> Result<(), SendError> {
        let Some(before) = self.attempts(n) else { return Ok(()) };
        let Ok(size) = size::<M>(file, self.language).await else {
            self.give_up(n, Language::unsent_failed);
            return Ok(());
        };
        let tries = match self.look_for(&before, file, size).await? {
            FoundFile::There(id) => {
                self.now_is(n, Sending::Sent { id: Id::Text(id) });
                return Ok(());
            }
            FoundFile::Repeatable => before.clone(),
            FoundFile::Absent if before.times >= TRIES && self.hurry.is_waited_for() => {
                self.give_up(n, Language::unsent_uncertain);
                return Ok(());
            }
            FoundFile::Absent => {
                self.check_last_try(before.times)?;
                let times = before.times + u8::from(self.hurry.is_waited_for());
                FileAttempts { times, ..before.clone() }
            }
            FoundFile::Perhaps if before.times >= TRIES => {
                self.give_up(n, Language::unsent_uncertain);
                return Ok(());
            }
            FoundFile::Perhaps => {
                self.check_last_try(before.times)?;
                FileAttempts { times: before.times + 1, since: now(), ..before.clone() }
            }
        };
        let sent = match self.messages.prepare_upload(&tries.key, file, size).await {
            Ok(()) => {
                self.now_is(n, tries.clone().into());
                self.save().await?;
                self.messages.upload(&tries.key, file, size).await
            }
            Err(error) => Err(error.before()),
        };
        match sent {
            Ok(id) => self.now_is(n, Sending::Sent { id: Id::Text(id) }),
            Err(error @ (CallError::Refused(_) | CallError::File(_) | CallError::Gone(_))) => {
                tracing::warn!(%error, "failed to send file");
                self.give_up(n, Language::unsent_failed);
            }
            Err(error) => {
                match error.may_be_done() {
                    true => self.lost = Some(Instant::now()),
                    false => self.now_is(n, before.into()),
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    async fn look_for(
        &mut self,
        tries: &FileAttempts,
        file: &OutFile,
        size: u64,
    ) -> Result<FoundFile, SendError> {
        if tries.times == 0 {
            return Ok(FoundFile::Perhaps);
        }
        let history = MessageHistory::new(&*self.store, self.record.ids().collect());
        let lost = UncertainFile { key: &tries.key, since: tries.since, file, size, history: &history };
        self.messages.find_file(&lost).await
    }

    /// Fails while a file's last attempt has to wait. After a restart, it does not wait.
    fn check_last_try(&self, times: u8) -> Result<(), SendError> {
        let lost = self.lost.filter(|_| times > 0 && !self.hurry.is_waited_for());
        let left = lost.map_or(Duration::ZERO, |lost| REST.saturating_sub(lost.elapsed()));
        if left.is_zero() { Ok(()) } else { Err(SendError::Later { after: left }) }
    }

    /// Returns the total size of the remaining files, in bytes.
    async fn bytes_left(&self, files: &[OutFile]) -> u64 {
        let mut left = 0u64;
        for (_, file) in files.iter().enumerate().filter(|(n, _)| self.attempts(*n).is_some()) {
            left = left.saturating_add(size::<M>(file, self.language).await.unwrap_or(0));
        }
        left
    }

    /// Returns the attempts to send a file; `None` if it was sent or skipped.
    fn attempts(&self, n: usize) -> Option<FileAttempts> {
        match self.record.files.get(n) {
            None => Some(FileAttempts { times: 0, key: fresh_key(), since: 0 }),
            Some(Sending::Tried { times, key, since }) => {
                Some(FileAttempts { times: *times, key: key.clone(), since: *since })
            }
            Some(Sending::Sent { .. } | Sending::Failed { .. }) => None,
        }
    }

    fn give_up(&mut self, n: usize, why: fn(Language) -> &'static str) {
        self.now_is(n, Sending::Failed { why: why(self.language).to_owned() });
    }

    fn now_is(&mut self, n: usize, state: Sending) {
        let files = &mut self.record.files;
        let unknown = || Sending::Tried { times: 0, key: fresh_key(), since: 0 };
        files.resize_with(files.len().max(n + 1), unknown);
        if let Some(file) = files.get_mut(n) {
            *file = state;
        }
        self.unsaved = true;
    }
}

/// Deadline of the files once a user waits for the reply's end: a grace period for a failing platform, plus the
/// transfer time of the remaining bytes. All files share it. It restarts when a file has arrived, because the platform
/// is working then.
struct Deadline {
    hurry: Hurry,
    /// Start of the deadline, if a user waits.
    since: Option<Instant>,
}

impl Deadline {
    /// Runs `work` while `bytes` remain; `None` if a user waits and it takes too long. Work that hangs is dropped after
    /// half of the grace period plus the transfer time, so that there is time for another attempt.
    async fn keep<T>(&mut self, bytes: u64, work: impl Future<Output = T>) -> Option<T> {
        let (hurry, since) = (&self.hurry, &mut self.since);
        let over = async {
            hurry.waited_for().await;
            let since = *since.get_or_insert_with(Instant::now);
            let half = since + RETRY_TIMEOUT / 2 + transfer(bytes);
            sleep_until(if Instant::now() < half { half } else { half + RETRY_TIMEOUT / 2 }).await;
        };
        tokio::select! {
            biased;
            () = hurry.stopped() => None,
            () = over => None,
            done = work => Some(done),
        }
    }

    /// Returns whether the deadline has passed while `bytes` remain.
    fn is_over(&self, bytes: u64) -> bool {
        self.hurry.is_stopped()
            || self.since.is_some_and(|since| since.elapsed() >= RETRY_TIMEOUT + transfer(bytes))
    }

    /// Returns the latest time for another attempt at a failing platform, if a user waits.
    fn last_try(&mut self) -> Option<Instant> {
        let waits = self.hurry.is_waited_for();
        waits.then(|| *self.since.get_or_insert_with(Instant::now) + RETRY_TIMEOUT)
    }

    /// Waits before another attempt. Returns false if there is no time for one.
    async fn pause(&self, last: Instant, pause: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.hurry.stopped() => false,
            waited = timeout_at(last, sleep(pause)) => waited.is_ok(),
        }
    }

    /// Records that a file is sent or skipped. `arrived` means that it was sent.
    fn moves_on(&mut self, arrived: bool) {
        self.since = self.since.filter(|_| !arrived);
    }
}

/// Returns how long a transfer of `bytes` bytes may take while a user waits.
fn transfer(bytes: u64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / RATE).min(MAX_TRANSFER_TIME)
}

/// Returns a file's text, or why it cannot be sent in messages.
async fn read_text(file: &OutFile) -> Result<String, String> {
    let length = tokio::fs::metadata(&file.path).await.map_err(|error| error.to_string())?.len();
    if length > MAX_INLINE_TEXT_BYTES {
        return Err(format!("{} cannot be sent as a file, and is too long for messages", file.name));
    }
    tokio::fs::read_to_string(&file.path).await.map_err(|error| error.to_string())
}

/// Returns a file's size, or why it cannot be sent.
async fn size<M: PlatformMessages>(file: &OutFile, language: Language) -> Result<u64, String> {
    match tokio::fs::metadata(&file.path).await {
        Ok(data) if !data.is_file() => Err(language.unsent_not_file().to_owned()),
        Ok(data) if data.len() == 0 => Err(language.unsent_empty().to_owned()),
        Ok(data) if data.len() > M::CAPABILITIES.max_upload_bytes => {
            let megabytes = M::CAPABILITIES.max_upload_bytes / 1_000_000;
            Err(language.unsent_large(megabytes, M::CAPABILITIES.platform))
        }
        Ok(data) => Ok(data.len()),
        Err(_) => Err(language.unsent_gone().to_owned()),
    }
}

#[cfg(test)]
mod tests;
