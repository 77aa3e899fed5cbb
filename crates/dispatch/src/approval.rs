//! Presses of Approve or Deny.
//!
//! Only a press decides, never a typed text, and only of people who may: the person that the run works for, or those
//! that the operator named for the account. Where a chat shows no buttons its channel offers numbers, and passes on the
//! press that an offered number represents. The decision concerns the stored question, not the content of the press.

use super::{account::Account, reply, shared::Shared};
use crate::bus::InboxItem;
use pudu_channels::InboundKind;
use pudu_client::store::{Approval, TurnId};
use pudu_texts::Language;
use std::sync::Arc;
use tokio::time::Instant;

const APPROVE: &str = "/approve ";
const DENY: &str = "/deny ";

/// Why a press decides nothing: its text in the person's language.
type Excuse = fn(Language) -> &'static str;

/// Returns the action of a button for a question.
pub(super) fn action(key: &str, approve: bool) -> String {
    format!("{}{key}", if approve { APPROVE } else { DENY })
}

/// Returns the turn that delivers the whole question, if that is too long for the message.
pub(super) fn reading(key: &str) -> TurnId {
    TurnId(format!("asked-{key}"))
}

/// Returns the question that a button decides, and how.
pub(super) fn pressed(kind: &InboundKind) -> Option<(&str, bool)> {
    let InboundKind::Press { action } = kind else { return None };
    decided_by(action)
}

/// Returns the question that the action of a choice decides, and how.
pub fn decided_by(action: &str) -> Option<(&str, bool)> {
    let approve = action.strip_prefix(APPROVE).map(|key| (key.trim(), true));
    approve.or_else(|| Some((action.strip_prefix(DENY)?.trim(), false)))
}

impl Shared {
    /// Decides a question, if this person may. The message with the question shows the outcome; only a person who may
    /// not, or comes too late, gets an answer.
    pub(super) async fn decide(
        self: &Arc<Self>,
        account: &Arc<Account>,
        arrival: InboxItem,
        key: &str,
        approve: bool,
    ) {
        match self.ruled(account, &arrival, key, approve).await {
            Ok(()) => self.ignore(&arrival),
            Err(why) => {
                let text = why(account.policy().language(&arrival.inbound));
                self.excuse(account, arrival, key, text);
            }
        }
    }

    async fn ruled(
        &self,
        account: &Account,
        arrival: &InboxItem,
        key: &str,
        approve: bool,
    ) -> Result<(), Excuse> {
        let sender = &arrival.inbound.sender;
        let approvals = self.client.approvals();
        let broken = |error| {
            tracing::error!(%error, "failed to store approval");
            Language::approval_unstored as Excuse
        };
        let Some(asked) = approvals.get(key).await.map_err(broken)? else {
            return Err(Language::approval_over);
        };
        if !may_decide(account, arrival, &asked) {
            tracing::info!(
                approval = key,
                person = sender.id,
                "refused decision of somebody who may not decide"
            );
            return Err(Language::approval_not_yours);
        }
        // Without the whole text, the person would decide on the part that the question shows.
        if approve && self.db.is_undelivered(&reading(key)).await.map_err(broken)? {
            tracing::info!(approval = key, "refused an approval of what has not been delivered whole");
            return Err(Language::approval_unread);
        }
        // Some platforms report no name with a press.
        let by = if asked.person == sender.id { &asked.name } else { &sender.name };
        let decided = approvals.decide(key, approve, by).await.map_err(broken)?;
        // A press that a platform delivers again finds its own decision.
        let decision = decided.and_then(|asked| asked.decision);
        match decision.is_some_and(|r| r.approved == approve && r.by.as_deref() == Some(by)) {
            true => Ok(()),
            false => Err(Language::approval_late),
        }
    }

    /// Answers a press that decides nothing, once an hour for each person.
    fn excuse(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem, key: &str, why: &str) {
        let inbound = &arrival.inbound;
        let who = format!("approval:{key}:{}", inbound.sender.id);
        if !self.refusals.due(&inbound.address.account, &who, Instant::now()) {
            self.ignore(&arrival);
            return;
        }
        reply::say(self, account, arrival, why);
    }
}

/// Returns whether the sender may decide: if approvers are named, only they.
fn may_decide(account: &Account, arrival: &InboxItem, asked: &Approval) -> bool {
    let (address, sender) = (&arrival.inbound.address, &arrival.inbound.sender);
    let policy = account.policy();
    let named = match policy.approvers.is_empty() {
        true => asked.person == sender.id,
        false => policy.approvers.contains(&sender.id),
    };
    named && asked.account == address.account
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_button_decides() {
        let press = |action: &str| InboundKind::Press { action: action.into() };
        assert_eq!(pressed(&press(&action("k", true))), Some(("k", true)));
        assert_eq!(pressed(&press(&action("k", false))), Some(("k", false)));
        assert_eq!(pressed(&press("/stop")), None);
        let typed = InboundKind::Message { text: action("k", true), attachments: Vec::new(), album: None };
        assert_eq!(pressed(&typed), None);
    }
}
