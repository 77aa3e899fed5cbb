//! Replies that need no run: a command's answer, a refusal, a reply that a restart interrupted. Each is stored before
//! it is sent, with the events that it answers.

use super::{account::Account, shared::Shared};
use crate::bus::{InboxItem, OutboxItem};
use pudu_base::MessageId;
use pudu_channels::{FinalView, Hurry, Inbound, InboundKind, ReplyTarget};
use pudu_kit::clock;
use pudu_store::{InboxItemId, NewTurn, TurnId, TurnRow};
use std::sync::Arc;

/// Stores a view as the answer to an arrival and delivers it independently of the current turn. The events in `items`
/// are done together with the arrival. `key` identifies the conversation.
#[allow(clippy::needless_pass_by_value, reason = "an event has one answer: it is used up")]
pub(super) fn answer(
    shared: &Arc<Shared>,
    account: &Arc<Account>,
    key: &str,
    arrival: InboxItem,
    view: FinalView,
    mut items: Vec<InboxItemId>,
) {
    let target = target(account, &arrival.inbound);
    let item = outbox_item(key, &target);
    items.push(arrival.id);
    let row = new_turn(&item, &target, items, serde_json::to_string(&view).ok());
    let (shared, account) = (shared.clone(), account.clone());
    shared.clone().tasks.spawn(async move {
        if shared.outbox.open(&row).await {
            deliver(&shared, &account, &item, target, &view, &Hurry::default()).await;
        } else {
            // Some of the events are done. The inbox dispatches the others again.
            shared.inbox.release(&row.items);
        }
    });
}

/// Sends a text to the sender of an arrival, in the conversation of its address.
pub(super) fn say(shared: &Arc<Shared>, account: &Arc<Account>, arrival: InboxItem, text: impl Into<String>) {
    let key = arrival.inbound.address.key();
    answer(
        shared,
        account,
        &key,
        arrival,
        FinalView { text: text.into(), ..FinalView::default() },
        Vec::new(),
    );
}

/// Delivers a view as a stored reply.
pub(super) async fn deliver(
    shared: &Shared,
    account: &Account,
    item: &OutboxItem,
    target: ReplyTarget,
    view: &FinalView,
    hurry: &Hurry,
) {
    let reply = account.channel().open_reply(target, shared.outbox.reply_store(item));
    shared.outbox.deliver(item, reply, view, hurry).await;
}

/// Returns the target of the answer to an event.
pub(super) fn target(account: &Account, inbound: &Inbound) -> ReplyTarget {
    ReplyTarget {
        address: inbound.address.clone(),
        private: inbound.private,
        reply_to: (!is_scheduled(inbound)).then(|| inbound.message.clone()),
        sender: inbound.sender.id.clone(),
        language: account.policy().language(inbound),
        hint: inbound.hint.clone(),
        saved: None,
    }
}

/// Returns whether an event is a scheduled task, which answers no message.
pub(super) fn is_scheduled(inbound: &Inbound) -> bool {
    matches!(inbound.kind, InboundKind::Scheduled { .. })
}

/// Returns the target of a stored turn's reply, including the state of the part already sent.
pub(super) fn stored_target(row: &TurnRow) -> Option<ReplyTarget> {
    let target: ReplyTarget = serde_json::from_str(&row.reply_target).ok()?;
    let saved = row.handle.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Some(ReplyTarget { saved, ..target })
}

/// Returns a new reply for a conversation.
pub(super) fn outbox_item(key: &str, target: &ReplyTarget) -> OutboxItem {
    OutboxItem {
        turn: TurnId(MessageId::fresh().to_string()),
        conversation: key.to_owned(),
        account: target.address.account.clone(),
        chat: target.address.chat.clone(),
        created: clock::now(),
        not_before: 0,
    }
}

/// Returns a turn's row.
pub(super) fn new_turn(
    item: &OutboxItem,
    target: &ReplyTarget,
    items: Vec<InboxItemId>,
    final_view: Option<String>,
) -> NewTurn {
    NewTurn {
        id: item.turn.clone(),
        conversation: item.conversation.clone(),
        account: item.account.clone(),
        folder: None,
        run: None,
        reply_target: serde_json::to_string(target).unwrap_or_default(),
        items,
        people: Vec::new(),
        final_view,
        now: item.created,
    }
}
