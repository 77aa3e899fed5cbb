//! Prepares, for the model, the content that a message points at: reads missing content from the platform, fetches its
//! files like the message's own, and shortens answers that the thread already has.

use super::{
    account::{Account, AccountRules},
    basket::{Basket, FetchedFiles, TurnPlace, join},
    shared::Shared,
};
use crate::bus::InboxItem;
use pudu_base::{Human, Message, Pointed, ThreadState};
use pudu_channels::{Inbound, InboundKind, PointedAt, PointedKind, RecentMessages, SendError};
use pudu_kit::clock;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum number of pieces read from the platform for one message.
const MAX_LOOK_UPS: usize = 8;
/// Maximum time for reading one piece from the platform.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum length of an answer that is already in the thread, in characters: enough for the model to identify it.
const EXCERPT_CHARS: usize = 200;
/// Number of letters and digits compared to recognise an answer from the thread.
const RECOGNISED_CHARS: usize = 80;

/// Returns a piece in the form that the model reads. Its files are added once they are fetched.
pub(super) fn to_pointed(piece: &PointedAt, policy: &AccountRules) -> Pointed {
    Pointed {
        kind: piece.kind.name().to_owned(),
        author: piece.author.clone(),
        own: piece.own,
        at: piece.at.map(|at| clock::for_model(at, &policy.timezone)),
        origin: piece.origin.clone(),
        text: piece.text.clone(),
        files: Vec::new(),
        notes: piece.problem.iter().map(|problem| format!("⚠️ {problem}")).collect(),
    }
}

/// Reads the content that the messages of one turn point at.
pub(super) struct PointedReader<'a> {
    pub(super) shared: &'a Shared,
    pub(super) account: &'a Account,
    pub(super) place: TurnPlace<'a>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) policy: &'a AccountRules,
}

impl PointedReader<'_> {
    /// Reads the content that one message points at, and puts it and its files into `human`.
    pub(super) async fn read(
        &self,
        arrival: &InboxItem,
        basket: &mut Basket<'_>,
        human: &mut Human,
        notes: &mut Vec<String>,
    ) {
        if arrival.inbound.pointed.is_empty() {
            return;
        }
        let language = self.place.language;
        let state = self.shared.agent.state(self.place.thread).await.unwrap_or_default();
        human.pointed.clear();
        for piece in self.complete(arrival, &state).await {
            let mut pointed = to_pointed(&piece, self.policy);
            if piece.own && piece.kind == PointedKind::Reply && is_in(&state, &piece.text) {
                pointed.text = excerpt(&piece.text);
            }
            let FetchedFiles { files, problems, words } =
                basket.fetch_all(&piece.attachments, language, notes).await;
            pointed.text = join(&pointed.text, &words);
            pointed.files = files.iter().map(|file| file.name.clone()).collect();
            pointed.notes.extend(problems);
            human.files.extend(files);
            human.pointed.push(pointed);
        }
    }

    /// Reads the messages posted in the turn's group since the conversation was last active. Their files are named but
    /// not fetched.
    pub(super) async fn recent(&self, said: &[InboxItem]) -> Vec<Pointed> {
        let is_message = |arrival: &&InboxItem| matches!(arrival.inbound.kind, InboundKind::Message { .. });
        let is_wanted = self.policy.context.messages > 0;
        let Some(first) = said.iter().find(is_message).filter(|first| !first.inbound.private && is_wanted)
        else {
            return Vec::new();
        };
        let look = timeout(LOOK_UP_TIMEOUT, self.history(first, said));
        match self.cancel.run_until_cancelled(look).await {
            Some(Ok(Ok(pieces))) => self.admitted(&first.inbound, &unanswered(pieces, said)),
            Some(Ok(Err(error))) => {
                tracing::warn!(%error, "failed to read recent messages of a group");
                vec![recent_note(format!("⚠️ {}", unread(&error)))]
            }
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// Returns the messages that precede a turn in its group, from the platform or from the buffer.
    async fn history(&self, first: &InboxItem, said: &[InboxItem]) -> Result<Vec<PointedAt>, SendError> {
        let context = self.policy.context;
        if context.is_buffered() {
            let newest = said.last().unwrap_or(first);
            let buffered = self.shared.take_buffered(context, first, &newest.inbound).await;
            return buffered.map_err(|error| SendError::Refused(error.to_string()));
        }
        let oldest = context.oldest(clock::now());
        let since = self.place.last_talk.map_or(oldest, |last| last.max(oldest));
        let except: Vec<String> = said.iter().map(|arrival| arrival.inbound.message.clone()).collect();
        let query = RecentMessages { max: context.messages, since, except: &except };
        self.account.channel().recent(&first.inbound, query).await
    }

    /// Returns the recent messages of the bot and of people that the account admits. Other people's messages are left
    /// out, even if a person who is admitted asks in the same group.
    fn admitted(&self, inbound: &Inbound, pieces: &[PointedAt]) -> Vec<Pointed> {
        let (access, account) = (&self.policy.access, &inbound.address.account);
        // A buffered row without content belongs to an author who was not admitted at that time.
        let admits = |piece: &&PointedAt| {
            piece.own
                || (!piece.is_empty() && self.shared.admits(access, account, piece.author_id.as_deref()))
        };
        let (admitted, others): (Vec<&PointedAt>, Vec<&PointedAt>) = pieces.iter().partition(admits);
        let mut pointed: Vec<Pointed> = admitted.into_iter().map(|piece| self.named(piece)).collect();
        if !others.is_empty() {
            let left_out = others.len();
            pointed.push(recent_note(format!(
                "{left_out} messages from apps, or from people without access to this bot, are left out"
            )));
        }
        pointed
    }

    /// Returns a piece that only names its files.
    fn named(&self, piece: &PointedAt) -> Pointed {
        let files = piece.attachments.iter().map(|file| file.name.clone()).collect();
        Pointed { files, ..to_pointed(piece, self.policy) }
    }

    /// Returns all pieces of a message, including those read from the platform.
    async fn complete(&self, arrival: &InboxItem, state: &ThreadState) -> Vec<PointedAt> {
        let (mut pieces, mut left) = (Vec::new(), MAX_LOOK_UPS);
        for piece in &arrival.inbound.pointed {
            // The opening message is added only to the thread's first message.
            if piece.kind == PointedKind::Opening && !state.messages.is_empty() {
                continue;
            }
            if piece.reference.is_none() {
                pieces.push(piece.clone());
            } else if let Some(rest) = left.checked_sub(1) {
                left = rest;
                pieces.extend(self.look_up(arrival, piece).await);
            } else {
                let problem =
                    Some(format!("at most {MAX_LOOK_UPS} referenced messages are read per message"));
                pieces.push(PointedAt { problem, reference: None, ..piece.clone() });
            }
        }
        pieces
    }

    async fn look_up(&self, arrival: &InboxItem, piece: &PointedAt) -> Vec<PointedAt> {
        let channel = self.account.channel();
        let look = channel.look_up(&arrival.inbound, piece);
        let looked = self.cancel.run_until_cancelled(timeout(LOOK_UP_TIMEOUT, look)).await;
        let problem = match looked {
            Some(Ok(Ok(pieces))) => return pieces,
            Some(Ok(Err(error))) => unread(&error),
            Some(Err(_)) => "it could not be read: the platform did not answer in time".to_owned(),
            None => "not read: the run was stopped".to_owned(),
        };
        tracing::warn!(problem, kind = piece.kind.name(), "failed to read content that a message points at");
        vec![PointedAt { problem: Some(problem), reference: None, ..piece.clone() }]
    }
}

/// Removes recent messages that the turn's messages reply to, because those are included in full, with their files.
fn unanswered(mut pieces: Vec<PointedAt>, said: &[InboxItem]) -> Vec<PointedAt> {
    let names =
        |piece: &PointedAt| piece.attachments.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    let is_same = |a: &PointedAt, b: &PointedAt| {
        a.at.is_some() && a.at == b.at && a.author == b.author && a.text == b.text && names(a) == names(b)
    };
    let pointed: Vec<&PointedAt> = said.iter().flat_map(|arrival| &arrival.inbound.pointed).collect();
    let answers = |piece: &PointedAt| {
        pointed.iter().any(|other| other.kind == PointedKind::Reply && is_same(other, piece))
    };
    pieces.retain(|piece| !answers(piece));
    pieces
}

fn recent_note(note: String) -> Pointed {
    Pointed { kind: PointedKind::Recent.name().to_owned(), notes: vec![note], ..Pointed::default() }
}

fn unread(error: &SendError) -> String {
    match error {
        SendError::Refused(why) => format!("it could not be read: {why}"),
        SendError::Later { .. } => "it could not be read: the platform asks to wait".to_owned(),
        other => format!("it could not be read: {other}"),
    }
}

/// Returns whether the thread has an answer with this text. Platforms show answers without Markdown's characters, so
/// only letters and digits are compared.
fn is_in(state: &ThreadState, text: &str) -> bool {
    let beginning = letters(text).take(RECOGNISED_CHARS).collect::<String>();
    let has = |message: &Message| match message {
        Message::Assistant(reply) => letters(&reply.text).collect::<String>().contains(&beginning),
        Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => false,
    };
    !beginning.is_empty() && state.messages.values().any(|message| has(message))
}

fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric())
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((at, _)) => format!("{}…", text.split_at(at).0),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Assistant, Finish, Update};
    use std::sync::Arc;

    #[test]
    fn an_answer_of_the_thread_is_recognised_without_its_markdown() {
        let mut state = ThreadState::default();
        let reply = Assistant {
            id: "a".into(),
            text: "Your flight **LH123** leaves at `18:00`.\n\n- gate B7".into(),
            reasoning: None,
            provider_parts: None,
            calls: Vec::new(),
            finish: Finish::Complete,
            model: None,
            usage: None,
            failure: None,
        };
        state.apply(Update::Message(Arc::new(Message::Assistant(reply))));
        let check = |text: &str, known: bool| assert_eq!(is_in(&state, text), known, "{text}");
        check("Your flight LH123 leaves at 18:00.\n• gate B7", true);
        check("leaves at 18:00", true);
        check("The code of the door is 4711", false);
        check("", false);
        check("—", false);
        assert_eq!(excerpt(&"é".repeat(300)).chars().count(), EXCERPT_CHARS + 1);
        assert_eq!(excerpt("short"), "short");
    }
}
