//! Presses of the choices below a finished reply.
//!
//! The choice is noted in the message, with the name of the person who pressed, the other choices go, and no further
//! press below it starts anything. A message that takes no change stays unchanged, and the choice is said below it,
//! alone. A number that is typed where nothing can be pressed comes here as a press, too. First the record, then the
//! effect: a press that a crash cut finds its own record and continues. Deliberately absent: questions of a run that
//! waits (`approval.rs`).

use super::{account::Account, reply, shared::Shared};
use crate::bus::{InboxItem, OutboxItem, retry_until_stored};
use pudu_channels::{Address, FinalView, Hurry, InboundKind, ReplyTarget};
use pudu_client::{
    base::foreign,
    store::{ChoiceOutcome, Offered},
};
use pudu_kit::clock;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Maximum number of times that the message above a press is looked for.
const LOOKS: u32 = 20;
/// Interval between two lookups.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum length of a shown name or label, in characters.
const MAX_SHOWN_CHARS: usize = 100;

impl Shared {
    /// Records the choice, if the press is one of a choice. Returns whether the press counts: one below a reply that
    /// was answered already does not.
    pub(super) async fn choose(self: &Arc<Self>, account: &Arc<Account>, arrival: &InboxItem) -> bool {
        let InboundKind::Press { action } = &arrival.inbound.kind else { return true };
        let address = &arrival.inbound.address;
        let Some(offered) = self.offered(address, &arrival.inbound.message).await else { return true };
        if let Some(by) = offered.chosen {
            return by == arrival.id;
        }
        let Some((view, kept)) = chosen(&offered, action, &arrival.inbound.sender.name) else { return true };
        let now = clock::now();
        let choose = || self.db.choose_below(&offered.turn, arrival.id, &kept, now);
        match retry_until_stored("failed to note a choice", choose).await {
            Some(ChoiceOutcome::Reopened) => self.show_choice(account, &offered, &address.chat, view, now),
            Some(ChoiceOutcome::Noted) | None => {}
            Some(ChoiceOutcome::Late) => return false,
        }
        true
    }

    /// Returns the reply that a message shows. A person may press before the store knows the message: while a reply is
    /// on its way into the chat, it is looked for again.
    async fn offered(&self, address: &Address, message: &str) -> Option<Offered> {
        let read = || self.db.offered(&address.account, &address.chat, message);
        let look =
            async || retry_until_stored("failed to read what a press chooses from", read).await.flatten();
        let mut found = look().await;
        for _ in 0..LOOKS {
            if found.is_some() {
                break;
            }
            // Checked before the next lookup: a reply that was on its way then may be known by now.
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

    /// Returns whether a finished reply is on its way into a chat.
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

/// Returns a reply with the choice in the place of the choices, also in its stored form; `None` if no choice has the
/// action.
fn chosen(offered: &Offered, action: &str, name: &str) -> Option<(FinalView, String)> {
    let view: FinalView = serde_json::from_str(offered.final_view.as_deref()?).ok()?;
    let choice = view.choices.iter().find(|choice| choice.action == action)?;
    let (name, label) = (foreign::line(name, MAX_SHOWN_CHARS), foreign::line(&choice.label, MAX_SHOWN_CHARS));
    let language = serde_json::from_str(&offered.reply_target).map(|target: ReplyTarget| target.language);
    let note = language.unwrap_or_default().choice_made(label, name);
    let text = format!("{}\n\n{note}", view.text).trim_start().to_owned();
    let view = FinalView { text, choices: Vec::new(), note: Some(note), ..view };
    let kept = serde_json::to_string(&view).ok()?;
    Some((view, kept))
}
