//! Converts users' messages to thread messages. Attachments are fetched from the platform into the thread's uploads,
//! and documents are converted.

use super::{
    account::{Account, AccountRules},
    basket::{Basket, FetchedFiles, TurnPlace, join},
    command::SlashCommand,
    pointed::{self, PointedReader},
    shared::Shared,
};
use crate::bus::InboxItem;
use pudu_base::{Human, MessageId, ThreadId};
use pudu_channels::{InboundKind, PointedAt};
use pudu_store::InboxItemId;
use tokio_util::sync::CancellationToken;

/// Name of the command whose message is also a goal.
pub(super) const GOAL: &str = "goal";

/// Returns the goal that a message sets.
pub(super) fn goal(arrival: &InboxItem) -> Option<String> {
    objective(SlashCommand::from_event(&arrival.inbound.kind)?)
}

/// Returns the goal that a text sets, if any.
pub fn goal_of(words: &str) -> Option<String> {
    objective(SlashCommand::parse(words)?)
}

fn objective(command: SlashCommand) -> Option<String> {
    let objective = command.argument.filter(|_| command.name == GOAL)?;
    Some(objective.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the id of an arrival's message in a thread. It is the same after a restart.
pub(super) fn message_id(arrival: &InboxItem) -> MessageId {
    format!("in-{}", arrival.id.0).into()
}

/// Returns the inbox id of a thread's message, if the message came from the inbox.
pub(super) fn item_id(id: &MessageId) -> Option<InboxItemId> {
    id.as_str().strip_prefix("in-")?.parse().ok().map(InboxItemId)
}

/// Returns an arrival's text as a message of the thread, with the content that the event itself contains.
pub(super) fn human(arrival: &InboxItem, text: &str, policy: &AccountRules) -> Human {
    let sender = &arrival.inbound.sender;
    let (name, id) = (sender.name.clone(), sender.id.clone());
    let (sender, person) = if arrival.inbound.private { (None, None) } else { (Some(name), Some(id)) };
    let pointed = arrival.inbound.pointed.iter().map(|piece| pointed::to_pointed(piece, policy)).collect();
    Human { sender, person, at: Some(policy.now()), pointed, ..Human::new(message_id(arrival), text) }
}

/// Returns whether an event contains all of its content, so that no file or message has to be fetched.
pub(super) fn is_complete(arrival: &InboxItem) -> bool {
    let complete = |piece: &PointedAt| piece.reference.is_none() && piece.attachments.is_empty();
    !has_attachments(arrival) && arrival.inbound.pointed.iter().all(complete)
}

/// Returns the people whose messages make them members of a room's thread; none in a private chat.
pub(super) fn members<'a>(said: impl IntoIterator<Item = &'a InboxItem>) -> Vec<String> {
    let in_room = said.into_iter().filter(|arrival| !arrival.inbound.private);
    in_room.map(|arrival| arrival.inbound.sender.id.clone()).collect()
}

/// Edits the text of a waiting message.
pub(super) async fn amend(shared: &Shared, waiting: &mut InboxItem, words: &str) {
    if let InboundKind::Message { text, .. } = &mut waiting.inbound.kind {
        words.clone_into(text);
    }
    let payload = serde_json::to_string(&waiting.inbound).unwrap_or_default();
    if let Err(error) = shared.db.amend(waiting.id, &payload).await {
        tracing::error!(%error, "failed to store edited message");
    }
}

/// Input of a turn: messages for its run, and notes for people about problems with files.
#[derive(Default)]
pub(super) struct Input {
    pub(super) messages: Vec<Human>,
    pub(super) notes: Vec<String>,
}

/// Returns whether an arrival has attachments, including those of content that it points at.
pub(super) fn has_attachments(arrival: &InboxItem) -> bool {
    let own = match &arrival.inbound.kind {
        InboundKind::Message { attachments, .. } | InboundKind::Submit { attachments, .. } => {
            !attachments.is_empty()
        }
        InboundKind::Edit { .. }
        | InboundKind::Recall
        | InboundKind::Press { .. }
        | InboundKind::Scheduled { .. } => false,
    };
    own || arrival.inbound.pointed.iter().any(|piece| !piece.attachments.is_empty())
}

/// Converts people's messages to messages of the thread, and fetches their attachments.
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
            InboundKind::Message { text, attachments, .. } | InboundKind::Submit { text, attachments } => {
                (text, attachments.as_slice())
            }
            InboundKind::Press { action: text } | InboundKind::Scheduled { text, .. } => {
                (text, [].as_slice())
            }
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

/// Returns whether the thread already has a message: a restart may have interrupted the turn after its files were
/// fetched.
async fn known(shared: &Shared, thread: &ThreadId, id: &MessageId) -> bool {
    shared.agent.state(thread).await.is_ok_and(|state| state.messages.contains_key(id))
}
