//! Handles presses of Approve and Deny.
//!
//! Only a press decides, never typed text, and only if the person who pressed is authorised: the one that the run works
//! for, or one of the approvers that the operator named for the account. In a chat without buttons, the channel offers
//! numbers and turns a number into the press that it represents. The decision applies to the stored question, not to
//! the content of the press.

use super::{account::Account, reply, shared::Shared};
use crate::bus::InboxItem;
use pudu_channels::InboundKind;
use pudu_store::{Approval, TurnId};
use pudu_texts::Language;
use std::sync::Arc;
use tokio::time::Instant;

const APPROVE: &str = "/approve ";
const DENY: &str = "/deny ";

/// Reason why a press has no effect, as a text in the person's language.
type Excuse = fn(Language) -> &'static str;

/// Returns the action of a button for a question.
pub(super) fn action(key: &str, approve: bool) -> String {
    format!("{}{key}", if approve { APPROVE } else { DENY })
}

/// Returns the turn that delivers the whole question if it does not fit into the message.
pub(super) fn reading(key: &str) -> TurnId {
    TurnId(format!("asked-{key}"))
}

/// Returns the key of the question that a press decides, and whether it approves.
pub(super) fn pressed(kind: &InboundKind) -> Option<(&str, bool)> {
    let InboundKind::Press { action } = kind else { return None };
    decided_by(action)
}

/// Returns the key of the question that a choice's action decides, and whether it approves.
pub fn decided_by(action: &str) -> Option<(&str, bool)> {
    let approve = action.strip_prefix(APPROVE).map(|key| (key.trim(), true));
    approve.or_else(|| Some((action.strip_prefix(DENY)?.trim(), false)))
}

impl Shared {
    /// Decides a question if the sender is allowed to. The message with the question shows the outcome; only a sender
    /// whose press has no effect gets an answer.
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
        let approvals = self.agent.approvals();
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
                "refused decision: the sender is not an approver"
            );
            return Err(Language::approval_not_yours);
        }
        // Until the whole text is delivered, the person has seen only the excerpt in the message.
        if approve && self.db.is_undelivered(&reading(key)).await.map_err(broken)? {
            tracing::info!(approval = key, "refused approval: the full request is not delivered yet");
            return Err(Language::approval_unread);
        }
        // Some platforms report no name with a press.
        let by = if asked.person == sender.id { &asked.name } else { &sender.name };
        let decided = approvals.decide(key, approve, by).await.map_err(broken)?;
        // A redelivered press finds its own decision.
        let decision = decided.and_then(|asked| asked.decision);
        match decision.is_some_and(|r| r.approved == approve && r.by.as_deref() == Some(by)) {
            true => Ok(()),
            false => Err(Language::approval_late),
        }
    }

    /// Answers a press that has no effect, at most once an hour for each person.
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

/// Returns whether the sender may decide. If approvers are named, only they may.
fn may_decide(account: &Account, arrival: &InboxItem, approval: &Approval) -> bool {
    let (address, sender) = (&arrival.inbound.address, &arrival.inbound.sender);
    let policy = account.policy();
    let is_approver = match policy.approvers.is_empty() {
        true => approval.person == sender.id,
        false => policy.approvers.contains(&sender.id),
    };
    is_approver && approval.account == address.account
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
