//! Handles the files that come with one turn: fetches them from the platform into the thread's uploads within the
//! turn's limits, converts documents, and transcribes recordings.

use super::{
    account::Account,
    shared::Shared,
    voice::{self, Heard},
};
use bytesize::ByteSize;
use pudu_base::{MessageId, ReadOutcome, SharedFile, ThreadId, UnreadCause};
use pudu_channels::{Attachment, SendError};
use pudu_config::Uploads;
use pudu_texts::Language;
use tokio_util::sync::CancellationToken;

/// The conversation that a turn belongs to.
#[derive(Clone, Copy)]
pub(super) struct TurnPlace<'a> {
    pub(super) thread: &'a ThreadId,
    /// When the conversation was last active before this turn, in milliseconds since 1970; `None` for a new one.
    pub(super) last_talk: Option<i64>,
    pub(super) language: Language,
}

/// Fetched files, and notes for the model about problems and transcripts.
#[derive(Default)]
pub(super) struct FetchedFiles {
    pub(super) files: Vec<SharedFile>,
    pub(super) problems: Vec<String>,
    /// Transcripts of recordings.
    pub(super) words: Vec<String>,
}

impl FetchedFiles {
    /// Notes the outcome of a transcription.
    fn note(
        &mut self,
        transcription: Option<Heard>,
        language: Language,
        name: &str,
        notes: &mut Vec<String>,
    ) {
        match transcription {
            Some(Heard::Words(words)) => {
                self.problems
                    .push(format!("the recording `{name}` was transcribed: the transcript is below"));
                self.words.push(words);
            }
            Some(Heard::NoServer) => {
                self.problems.push(format!("⚠️ `{name}` is a recording, and you cannot listen to it"));
                notes.push(language.voice_deaf(name));
            }
            Some(Heard::Failed(why)) => {
                self.problems.push(format!("⚠️ the recording `{name}` could not be transcribed: {why}"));
                notes.push(language.voice_failed(name, why));
            }
            None => {}
        }
    }
}

/// Joins a text and transcripts.
pub(super) fn join(words: &str, recorded: &[String]) -> String {
    let all = std::iter::once(words).chain(recorded.iter().map(String::as_str));
    all.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Fetches the files of one turn, within the remaining limits.
pub(super) struct Basket<'a> {
    shared: &'a Shared,
    account: &'a Account,
    thread: &'a ThreadId,
    cancel: &'a CancellationToken,
    files: u32,
    bytes: u64,
    largest: u64,
    read: bool,
}

impl<'a> Basket<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        account: &'a Account,
        thread: &'a ThreadId,
        cancel: &'a CancellationToken,
    ) -> Self {
        let Uploads { max_files, max_file_size, max_total_size, auto_convert_documents } =
            shared.rules().uploads.clone();
        let (files, bytes, largest, read) =
            (max_files, max_total_size, max_file_size, auto_convert_documents);
        Self { shared, account, thread, cancel, files, bytes, largest, read }
    }

    /// Fetches files. Problems are added to `notes` for people, and to the result for the model.
    pub(super) async fn fetch_all(
        &mut self,
        attachments: &[Attachment],
        language: Language,
        notes: &mut Vec<String>,
    ) -> FetchedFiles {
        let mut fetched = FetchedFiles::default();
        for attachment in attachments {
            match self.fetch(attachment).await {
                Ok((file, transcription)) => {
                    notes.extend(unread(language, &file));
                    fetched.note(transcription, language, &file.name, notes);
                    fetched.files.push(file);
                }
                Err(problem) => {
                    let name = &attachment.name;
                    tracing::warn!(name, %problem, "failed to fetch a file");
                    fetched.problems.push(format!("⚠️ `{name}` could not be fetched: {problem}"));
                    notes.push(problem.note(language, name));
                }
            }
        }
        fetched
    }

    /// Fetches a file into the thread's uploads and converts it if it is a document, or returns the problem.
    async fn fetch(&mut self, attachment: &Attachment) -> Result<(SharedFile, Option<Heard>), FetchProblem> {
        self.files = self.files.checked_sub(1).ok_or(FetchProblem::TooMany)?;
        let channel = self.account.channel();
        let limit = channel.limits().download.min(self.largest).min(self.bytes);
        let folder = self.shared.home.join("tmp");
        let unkept = |error: &dyn std::error::Error| FetchProblem::Unkept(error.to_string());
        tokio::fs::create_dir_all(&folder).await.map_err(|error| unkept(&error))?;
        let part = folder.join(format!("{}.part", MessageId::fresh()));
        let fetch = channel.download(attachment, &part, limit);
        let fetched = self.cancel.run_until_cancelled(fetch).await;
        let mut transcription = None;
        let stored = match fetched {
            None => Err(FetchProblem::Stopped),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(size)) => {
                self.bytes = self.bytes.saturating_sub(size);
                if voice::is_recording(&attachment.name) {
                    let rules = self.shared.rules();
                    let listen = voice::listen(rules.transcription.as_ref(), &part, &attachment.name);
                    transcription = self.cancel.run_until_cancelled(listen).await;
                }
                let adopt = self.shared.agent.adopt(self.thread, &part, &attachment.name);
                adopt.await.map_err(|error| unkept(&error))
            }
        };
        // After success, the file has already been moved.
        tokio::fs::remove_file(&part).await.ok();
        let mut file = stored?;
        if self.read {
            let read = self.shared.agent.read_document(self.thread, &mut file);
            // Stopping the turn also stops the conversion.
            self.cancel.run_until_cancelled(read).await;
        }
        Ok((file, transcription))
    }
}

/// Returns the note to people on a document that could not be read.
fn unread(language: Language, file: &SharedFile) -> Option<String> {
    let Some(ReadOutcome::Failed { cause, .. }) = &file.reading else { return None };
    let name = &file.name;
    Some(match cause {
        None | Some(UnreadCause::Kind) => language.unread_kind(name),
        Some(UnreadCause::Protected) => language.unread_protected(name),
        Some(UnreadCause::TooLarge) => language.unread_large(name),
        Some(UnreadCause::Damaged) => language.unread_damaged(name),
        Some(UnreadCause::Empty) => language.unread_empty(name),
        Some(UnreadCause::TooSlow) => language.unread_slow(name),
        Some(UnreadCause::Broken) => language.unread_broken(name),
        Some(UnreadCause::Unavailable) => language.unread_unavailable(name),
    })
}

/// Reason why a file was not fetched, worded for the model.
#[derive(Debug, thiserror::Error)]
enum FetchProblem {
    #[error("too many files at once")]
    TooMany,
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Channel(#[from] SendError),
    #[error("it could not be stored: {0}")]
    Unkept(String),
}

impl FetchProblem {
    /// Returns the note for people.
    fn note(&self, language: Language, name: &str) -> String {
        match self {
            Self::TooMany => language.fetch_too_many(name),
            Self::Stopped => language.fetch_stopped(name),
            Self::Channel(SendError::TooLarge { limit }) => language.fetch_too_large(ByteSize(*limit), name),
            Self::Channel(SendError::Refused(why)) => language.fetch_refused(name, why),
            Self::Channel(SendError::Unreachable(_) | SendError::Later { .. } | SendError::Untidy { .. }) => {
                language.fetch_unreachable(name)
            }
            Self::Channel(SendError::File(_) | SendError::ReplyStore(_)) | Self::Unkept(_) => {
                language.fetch_broken(name)
            }
        }
    }
}
