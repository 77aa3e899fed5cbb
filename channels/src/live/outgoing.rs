//! The files of a finished reply, in order, behind its text.
//!
//! No change finds a file again whose id is not known. A file whose sending had no answer is therefore sent
//! once more, under the same key: at worst it is there twice, where the platform does not know keys. If that
//! has no answer either it is left, and the text says so. Text is never doubled.
//!
//! A file that certainly did not arrive is tried more often, with the pauses of whoever delivers; when somebody
//! waits for the reply's end, for a few seconds more. The conversation goes on behind it in any case.

use super::{
    CallError, Messages, Reply,
    record::{Id, Sending, fresh_key},
};
use crate::{FinalView, OutFile, SendError, render::fenced};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// How often a file is sent whose sending has no answer.
const TRIES: u8 = 2;
/// How often a file is tried that certainly did not arrive.
const FAILURES: u8 = 8;
/// So long is a file tried on when somebody waits for the reply's end.
const GRACE: Duration = Duration::from_secs(6);
/// The pause between tries then.
const PAUSE: Duration = Duration::from_secs(1);

/// A longer text is not said in messages instead of a file, in bytes.
const LONGEST_WORDS: u64 = 64 * 1024;

/// Why a file is left whose sending has no answer.
const UNCERTAIN: &str = "it is not certain that it arrived";

/// How an unsettled file fared.
#[derive(Clone, Debug)]
struct Tries {
    /// How often it was sent with unknown outcome.
    times: u8,
    key: String,
    /// How often it certainly did not arrive.
    failed: u8,
}

impl From<Tries> for Sending {
    fn from(Tries { times, key, failed }: Tries) -> Self {
        Self::Tried { times, key, failed }
    }
}

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

    /// Returns a reply with the texts in its words that could not be sent as files.
    ///
    /// # Errors
    ///
    /// If there is one that cannot be read, or is too long for messages.
    pub(super) async fn in_words(&self, view: &FinalView) -> Result<FinalView, SendError> {
        let mut text = view.text.clone();
        for (file, state) in view.files.iter().zip(&self.record.files) {
            if let Sending::Failed { .. } = state {
                text.push_str(&format!("\n\n{}", fenced(&words(file).await.map_err(SendError::Refused)?)));
            }
        }
        Ok(FinalView { text, ..view.clone() })
    }

    /// Sends what is not there yet.
    pub(super) async fn send_files(&mut self, files: &[OutFile]) -> Result<(), SendError> {
        for (n, file) in files.iter().enumerate() {
            match self.tries(n) {
                None => {}
                Some(Tries { times: TRIES.., .. }) => self.give_up(n, UNCERTAIN),
                Some(Tries { failed: FAILURES.., .. }) => self.give_up(n, "it could not be sent"),
                Some(tries) => self.send_patiently(n, file, tries).await?,
            }
            self.save().await?;
        }
        Ok(())
    }

    /// Sends a file once; when somebody waits, as often as a few seconds allow, and then no more.
    async fn send_patiently(&mut self, n: usize, file: &OutFile, mut tries: Tries) -> Result<(), SendError> {
        let (hurry, mut end) = (self.hurry.clone(), None);
        loop {
            let Some(sent) = overdue(&hurry, &mut end, self.send_file(n, file, &mut tries)).await else {
                tracing::warn!(file = file.name, "a file is given up: it takes too long, and somebody waits");
                self.give_up(n, "it could not be sent in time");
                return Ok(());
            };
            let Err(error) = sent else { return Ok(()) };
            let Some(end) = end else { return Err(error) };
            if tries.times >= TRIES {
                self.give_up(n, UNCERTAIN);
                return Ok(());
            }
            let pause = match error {
                SendError::Later { after } => after,
                _ => PAUSE,
            };
            if timeout_at(end, sleep(pause)).await.is_err() {
                tracing::warn!(file = file.name, %error, "a file is given up: somebody waits");
                self.give_up(n, "it could not be sent");
                return Ok(());
            }
        }
    }

    async fn send_file(&mut self, n: usize, file: &OutFile, tries: &mut Tries) -> Result<(), SendError> {
        let before = tries.clone();
        tries.times += 1;
        self.now_is(n, tries.clone().into());
        self.save().await?;
        let uploaded = match size::<M>(file).await {
            Ok(size) => self.messages.upload(&tries.key, file, size).await,
            Err(why) => Err(CallError::File(why)),
        };
        let state = match uploaded {
            Ok(id) => Sending::Sent { id: Id::Text(id) },
            Err(error @ (CallError::Refused(_) | CallError::File(_) | CallError::Gone)) => {
                tracing::warn!(%error, "a file was not sent");
                Sending::Failed { why: "it could not be sent".to_owned() }
            }
            Err(error) => {
                if !error.may_be_done() {
                    // That the platform asks to wait says nothing of the file.
                    let waits = matches!(error, CallError::Wait(_));
                    *tries = Tries { failed: before.failed + u8::from(!waits), ..before };
                    self.now_is(n, tries.clone().into());
                }
                return Err(error.into());
            }
        };
        self.now_is(n, state);
        Ok(())
    }

    /// Returns how an unsettled file fared; `None` for one that is there or given up.
    fn tries(&self, n: usize) -> Option<Tries> {
        match self.record.files.get(n) {
            None => Some(Tries { times: 0, key: fresh_key(), failed: 0 }),
            Some(Sending::Tried { times, key, failed }) => {
                Some(Tries { times: *times, key: key.clone(), failed: *failed })
            }
            Some(Sending::Sent { .. } | Sending::Failed { .. }) => None,
        }
    }

    fn give_up(&mut self, n: usize, why: &str) {
        self.now_is(n, Sending::Failed { why: why.to_owned() });
    }

    fn now_is(&mut self, n: usize, state: Sending) {
        let files = &mut self.record.files;
        let unknown = || Sending::Tried { times: 0, key: fresh_key(), failed: 0 };
        files.resize_with(files.len().max(n + 1), unknown);
        if let Some(file) = files.get_mut(n) {
            *file = state;
        }
        self.unsaved = true;
    }
}

/// Does some work; `None` when somebody waits and the grace is over. `end` is set when somebody waits.
async fn overdue<T>(
    hurry: &CancellationToken,
    end: &mut Option<Instant>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let late = async {
        hurry.cancelled().await;
        sleep_until(*end.get_or_insert_with(|| Instant::now() + GRACE)).await;
    };
    tokio::select! {
        biased;
        done = work => {
            if hurry.is_cancelled() {
                end.get_or_insert_with(|| Instant::now() + GRACE);
            }
            Some(done)
        }
        () = late => None,
    }
}

/// Returns a file's text, or why it cannot be said in messages.
async fn words(file: &OutFile) -> Result<String, String> {
    let length = tokio::fs::metadata(&file.path).await.map_err(|error| error.to_string())?.len();
    if length > LONGEST_WORDS {
        return Err(format!("{} can be sent neither as a file nor, so long, in messages", file.name));
    }
    tokio::fs::read_to_string(&file.path).await.map_err(|error| error.to_string())
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
