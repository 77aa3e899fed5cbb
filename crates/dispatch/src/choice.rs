//! Presses of the choices below a finished reply, and submitted forms.
//!
//! The message then shows the choice and the name of the person who made it, without the other choices, and further
//! presses have no effect. If the message cannot be edited, it stays unchanged, and a new message below it states the
//! choice. A number typed in a chat without buttons also arrives as a press. The record comes before the effect: if a
//! crash interrupts the handling of a press, the same press is handled again, finds its own record and continues.
//! Deliberately absent: questions of a waiting run (`approval.rs`).

use super::{account::Account, reply, shared::Shared};
use crate::bus::{InboxItem, OutboxItem, retry_until_stored};
use pudu_base::foreign;
use pudu_channels::{Address, FinalView, Hurry, Inbound, InboundKind, ReplyTarget};
use pudu_kit::clock;
use pudu_store::{ChoiceOutcome, Offered};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Maximum number of lookups of the message above a press.
const MAX_LOOKUPS: u32 = 20;
/// Interval between two lookups.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum length of a shown name or label, in characters.
const MAX_SHOWN_CHARS: usize = 100;

impl Shared {
    /// Records the choice, if the press is one. Returns whether the press counts: it does not if another choice was
    /// already made below the reply.
    pub(super) async fn choose(self: &Arc<Self>, account: &Arc<Account>, arrival: &InboxItem) -> bool {
        if !matches!(arrival.inbound.kind, InboundKind::Press { .. } | InboundKind::Submit { .. }) {
            return true;
        }
        let address = &arrival.inbound.address;
        let Some(offered) = self.offered(address, &arrival.inbound.message).await else { return true };
        if let Some(by) = offered.chosen {
            return by == arrival.id;
        }
        let Some((view, kept)) = chosen(&offered, &arrival.inbound) else { return true };
        let now = clock::now();
        let choose = || self.db.choose_below(&offered.turn, arrival.id, &kept, now);
        match retry_until_stored("failed to store a choice", choose).await {
            Some(ChoiceOutcome::Reopened) => self.show_choice(account, &offered, &address.chat, view, now),
            Some(ChoiceOutcome::Noted) | None => {}
            Some(ChoiceOutcome::Late) => return false,
        }
        true
    }

    /// Returns the reply that a message shows. A press may arrive before the store knows the message: while a reply is
    /// being sent to the chat, the lookup is repeated.
    pub(super) async fn offered(&self, address: &Address, message: &str) -> Option<Offered> {
        let read = || self.db.offered(&address.account, &address.chat, message);
        let look = async || retry_until_stored("failed to read the choices of a press", read).await.flatten();
        let mut found = look().await;
        for _ in 0..MAX_LOOKUPS {
            if found.is_some() {
                break;
            }
            // Checked before the next lookup, because a reply that was being sent may be known by then.
            let settled = self.knows(address, message).await || !self.delivers_into(address).await;
            found = look().await;
            if settled {
                break;
            }
            sleep(LOOK_INTERVAL).await;
        }
        found
    }

    /// Returns whether the store knows a message.
    async fn knows(&self, address: &Address, message: &str) -> bool {
        let read = || self.db.conversation_of(&address.account, &address.chat, message);
        let found = retry_until_stored("failed to read a message's conversation", read).await;
        found.flatten().is_some()
    }

    /// Returns whether a finished reply is being sent to a chat.
    async fn delivers_into(&self, address: &Address) -> bool {
        let turns = retry_until_stored("failed to read the open turns", || self.db.open_turns()).await;
        turns.unwrap_or_default().iter().any(|turn| {
            let chat = reply::stored_target(turn).is_some_and(|target| target.address.chat == address.chat);
            turn.final_view.is_some() && turn.account == address.account && chat
        })
    }

    /// Shows the choice in the message, in the background.
    fn show_choice(
        self: &Arc<Self>,
        account: &Arc<Account>,
        offered: &Offered,
        chat: &str,
        view: FinalView,
        now: i64,
    ) {
        let Ok(reply_target) = serde_json::from_str::<ReplyTarget>(&offered.reply_target) else { return };
        let saved = offered.handle.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let item = OutboxItem {
            turn: offered.turn.clone(),
            conversation: offered.conversation.clone(),
            account: reply_target.address.account.clone(),
            chat: chat.to_owned(),
            created: now,
            not_before: 0,
        };
        let (shared, account) = (self.clone(), account.clone());
        self.tasks.spawn(async move {
            let reply_target = ReplyTarget { saved, ..reply_target };
            reply::deliver(&shared, &account, &item, reply_target, &view, &Hurry::default()).await;
        });
    }
}

/// Returns a reply that shows the choice made instead of the offered ones, and its stored form; `None` if the event
/// makes no choice.
fn chosen(offered: &Offered, inbound: &Inbound) -> Option<(FinalView, String)> {
    let view: FinalView = serde_json::from_str(offered.final_view.as_deref()?).ok()?;
    let language = serde_json::from_str(&offered.reply_target).map(|target: ReplyTarget| target.language);
    let (language, name) =
        (language.unwrap_or_default(), foreign::line(&inbound.sender.name, MAX_SHOWN_CHARS));
    let note = match &inbound.kind {
        InboundKind::Press { action } => {
            let choice = view.choices.iter().find(|choice| choice.action == *action)?;
            language.choice_made(foreign::line(&choice.label, MAX_SHOWN_CHARS), name)
        }
        InboundKind::Submit { .. } if view.form.is_some() => language.form_answered(name),
        _ => return None,
    };
    let text = format!("{}\n\n{note}", view.text).trim_start().to_owned();
    let view = FinalView { text, choices: Vec::new(), form: None, note: Some(note), ..view };
    let json = serde_json::to_string(&view).ok()?;
    Some((view, json))
}
