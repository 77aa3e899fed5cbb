//! Messages for a thread, made of what people said: their words, and the files that came along, which are fetched from
//! the platform into the thread's uploads and read if they are documents.

use super::{
    account::{Account, AccountRules},
    command::SlashCommand,
    pointed::{self, PointedReader},
    shared::Shared,
    voice::{self, Heard},
};
use crate::{bus::InboxItem, config::Uploads};
use bytesize::ByteSize;
use pudu_channels::{Attachment, InboundKind, PointedAt, SendError};
use pudu_client::{
    base::{Human, MessageId, ReadOutcome, SharedFile, ThreadId, UnreadCause},
    store::InboxItemId,
};
use pudu_texts::Language;
use tokio_util::sync::CancellationToken;

/// The command by which a message is a goal as well.
pub(super) const GOAL: &str = "goal";

/// Returns the goal that a message sets.
pub(super) fn goal(arrival: &InboxItem) -> Option<String> {
    objective(SlashCommand::of(&arrival.inbound.kind)?)
}

/// Returns the goal that words set, if they do.
pub(crate) fn goal_of(words: &str) -> Option<String> {
    objective(SlashCommand::parse(words)?)
}

fn objective(command: SlashCommand) -> Option<String> {
    let objective = command.argument.filter(|_| command.name == GOAL)?;
    Some(objective.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The id under which an arrival enters a thread: the same again after a restart.
pub(super) fn message_id(arrival: &InboxItem) -> MessageId {
    format!("in-{}", arrival.id.0).into()
}

/// Returns the inbox's number of a message of a thread, if it came from there.
pub(super) fn item_id(id: &MessageId) -> Option<InboxItemId> {
    id.as_str().strip_prefix("in-")?.parse().ok().map(InboxItemId)
}

/// Returns an arrival's words as a message of the thread, with the content that the event itself brought.
pub(super) fn human(arrival: &InboxItem, text: &str, policy: &AccountRules) -> Human {
    let sender = &arrival.inbound.sender;
    let (name, id) = (sender.name.clone(), sender.id.clone());
    let (sender, person) = if arrival.inbound.private { (None, None) } else { (Some(name), Some(id)) };
    let pointed = arrival.inbound.pointed.iter().map(|piece| pointed::to_pointed(piece, policy)).collect();
    Human { sender, person, at: Some(policy.now()), pointed, ..Human::new(message_id(arrival), text) }
}

/// Returns whether the event of an arrival contains all of its content: no file and no message has to be fetched.
pub(super) fn is_complete(arrival: &InboxItem) -> bool {
    let complete = |piece: &PointedAt| piece.reference.is_none() && piece.attachments.is_empty();
    !has_attachments(arrival) && arrival.inbound.pointed.iter().all(complete)
}

/// Returns the people who become members of a room's thread by what they said; nobody in a private chat.
pub(super) fn members<'a>(said: impl IntoIterator<Item = &'a InboxItem>) -> Vec<String> {
    let in_room = said.into_iter().filter(|arrival| !arrival.inbound.private);
    in_room.map(|arrival| arrival.inbound.sender.id.clone()).collect()
}

/// Changes the words of a message that waits.
pub(super) async fn amend(shared: &Shared, waiting: &mut InboxItem, words: &str) {
    if let InboundKind::Message { text, .. } = &mut waiting.inbound.kind {
        words.clone_into(text);
    }
    let payload = serde_json::to_string(&waiting.inbound).unwrap_or_default();
    if let Err(error) = shared.db.amend(waiting.id, &payload).await {
        tracing::error!(%error, "failed to store edited message");
    }
}

/// Input of a turn: messages for its run, and notes for people about files that could not be fetched.
#[derive(Default)]
pub(super) struct Input {
    pub(super) messages: Vec<Human>,
    pub(super) notes: Vec<String>,
}

/// Returns whether an arrival has attachments, its own or those of content that it points at.
pub(super) fn has_attachments(arrival: &InboxItem) -> bool {
    let own =
        matches!(&arrival.inbound.kind, InboundKind::Message { attachments, .. } if !attachments.is_empty());
    own || arrival.inbound.pointed.iter().any(|piece| !piece.attachments.is_empty())
}

/// Where a turn takes place.
#[derive(Clone, Copy)]
pub(super) struct TurnPlace<'a> {
    pub(super) thread: &'a ThreadId,
    /// When the conversation was last talked in before, in milliseconds since 1970; `None` for a new one.
    pub(super) last_talk: Option<i64>,
    pub(super) language: Language,
}

/// Makes messages for the thread of what people said, and fetches the files that came along.
pub(super) async fn read(
    shared: &Shared,
    account: &Account,
    said: &[InboxItem],
    place: TurnPlace<'_>,
    cancel: &CancellationToken,
) -> Input {
    let TurnPlace { thread, language, .. } = place;
    let (mut input, policy) = (Input::default(), account.policy());
    let points = PointedReader { shared, account, place, cancel, policy: &policy };
    let mut recent = points.recent(said).await;
    let mut basket = Basket::new(shared, account, thread, cancel);
    for arrival in said {
        let (text, attachments) = match &arrival.inbound.kind {
            InboundKind::Message { text, attachments, .. } => (text, attachments.as_slice()),
            InboundKind::Press { action } => (action, [].as_slice()),
            InboundKind::Edit { .. } | InboundKind::Recall => continue,
        };
        let goal = goal(arrival);
        let mut human = human(arrival, goal.as_deref().unwrap_or(text), &policy);
        if !is_complete(arrival) && known(shared, thread, &human.id).await {
            continue;
        }
        let FetchedFiles { files, problems, words } =
            basket.fetch_all(attachments, language, &mut input.notes).await;
        human.files = files;
        human.notes.extend(problems);
        human.text = join(&human.text, &words);
        points.read(arrival, &mut basket, &mut human, &mut input.notes).await;
        human.pointed.splice(0..0, std::mem::take(&mut recent));
        input.messages.push(human);
    }
    input
}

/// Returns the note on a document that could not be read.
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

/// Why a file was not fetched; the words are for the model.
#[derive(Debug, thiserror::Error)]
enum FetchProblem {
    #[error("too many files came together")]
    TooMany,
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Channel(#[from] SendError),
    #[error("it could not be kept: {0}")]
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
            Self::Channel(SendError::Unreachable(_) | SendError::Later { .. }) => {
                language.fetch_unreachable(name)
            }
            Self::Channel(SendError::File(_) | SendError::ReplyStore(_)) | Self::Unkept(_) => {
                language.fetch_broken(name)
            }
        }
    }
}

/// Returns whether the thread has a message already: a restart cut the turn after its files were fetched.
async fn known(shared: &Shared, thread: &ThreadId, id: &MessageId) -> bool {
    shared.client.state(thread).await.is_ok_and(|state| state.messages.contains_key(id))
}

/// Files that were fetched, and the problems of the others in words for the model.
#[derive(Default)]
pub(super) struct FetchedFiles {
    pub(super) files: Vec<SharedFile>,
    pub(super) problems: Vec<String>,
    /// The spoken words of recordings.
    pub(super) words: Vec<String>,
}

impl FetchedFiles {
    /// Notes the outcome of a transcription.
    fn note(&mut self, heard: Option<Heard>, language: Language, name: &str, notes: &mut Vec<String>) {
        match heard {
            Some(Heard::Words(words)) => {
                self.problems.push(format!("the recording `{name}` was transcribed: its words are below"));
                self.words.push(words);
            }
            Some(Heard::Deaf) => {
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

/// Joins words and transcriptions.
pub(super) fn join(words: &str, recorded: &[String]) -> String {
    let all = std::iter::once(words).chain(recorded.iter().map(String::as_str));
    all.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The files that come with one turn, and how much of them is still taken.
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
    fn new(
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
                Ok((file, heard)) => {
                    notes.extend(unread(language, &file));
                    fetched.note(heard, language, &file.name, notes);
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

    /// Fetches a file into the thread's uploads and reads it if it is a document, or says why it cannot be
    /// had.
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
        let mut heard = None;
        let kept = match fetched {
            None => Err(FetchProblem::Stopped),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(size)) => {
                self.bytes = self.bytes.saturating_sub(size);
                if voice::is_recording(&attachment.name) {
                    let rules = self.shared.rules();
                    let listen = voice::listen(rules.transcription.as_ref(), &part, &attachment.name);
                    heard = self.cancel.run_until_cancelled(listen).await;
                }
                let adopt = self.shared.client.adopt(self.thread, &part, &attachment.name);
                adopt.await.map_err(|error| unkept(&error))
            }
        };
        // It was moved if all went well.
        tokio::fs::remove_file(&part).await.ok();
        let mut file = kept?;
        if self.read {
            let read = self.shared.client.read_document(self.thread, &mut file);
            // Who stops the turn does not want to wait for it.
            self.cancel.run_until_cancelled(read).await;
        }
        Ok((file, heard))
    }
}
