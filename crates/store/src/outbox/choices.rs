//! Choices offered below a delivered reply. Each is made once, by one event.

use crate::{
    Db, InboxItemId, Result, TurnId, crash,
    engines::{Tx, from_row, query},
    error::SETTLED,
};

/// A reply that offers or offered a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its turn.
    pub turn: TurnId,
    /// The conversation's key.
    pub conversation: String,
    /// The reply's target, JSON.
    pub reply_target: String,
    /// The channel's record of the reply on the platform, JSON.
    pub handle: Option<String>,
    /// The reply, JSON, while a choice is possible.
    pub final_view: Option<String>,
    /// The event that made the choice.
    pub chosen: Option<InboxItemId>,
}

/// Result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceOutcome {
    /// The choice counts. The reply had been delivered and has to be rendered again.
    Reopened,
    /// The choice counts. The pending delivery renders the reply, or already did.
    Noted,
    /// Another event made the choice before.
    Late,
}

from_row!(Offered { turn: "id", conversation, reply_target: "placement", handle, final_view, chosen });

impl Db {
    /// Returns the reply to which one of our messages belongs.
    pub async fn offered(&self, account: &str, chat: &str, message: &str) -> Result<Option<Offered>> {
        let sql = "SELECT turns.id, turns.conversation, turns.placement, turns.handle, turns.final_view, turns.chosen
            FROM messages JOIN turns ON turns.id = messages.turn
            WHERE messages.account = $1 AND messages.chat = $2 AND messages.message = $3";
        self.find(query(sql).bind_all([account, chat, message])).await
    }

    /// Returns whether no later run began in the conversation of a turn's run, and the conversation still has its thread.
    pub async fn is_newest_run(&self, turn: &TurnId) -> Result<bool> {
        let sql = "SELECT turns.id FROM turns JOIN conversations ON key = conversation
            WHERE turns.id = $1 AND turns.thread = conversations.thread AND NOT EXISTS (
                SELECT 1 FROM turns AS later WHERE later.conversation = turns.conversation
                AND later.run IS NOT NULL AND later.id <> turns.id AND later.created >= turns.created)";
        let found: Option<(String,)> = self.find(query(sql).bind(&turn.0)).await?;
        Ok(found.is_some())
    }

    /// Records the choice that an event made below a reply, and the changed reply.
    pub async fn choose_below(
        &self,
        turn: &TurnId,
        by: InboxItemId,
        final_view: &str,
        now: i64,
    ) -> Result<ChoiceOutcome> {
        let (turn, view) = (turn.clone(), final_view.to_owned());
        self.write(&crash::CHOOSE, move |tx| choose(tx, &turn, by, &view, now)).await
    }
}

fn choose(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    by: InboxItemId,
    final_view: &str,
    now: i64,
) -> Result<ChoiceOutcome> {
    let sql = "SELECT chosen, delivered, parked FROM turns WHERE id = $1";
    type ChoiceColumns = (Option<i64>, Option<i64>, Option<i64>);
    let found: Option<ChoiceColumns> = query(sql).bind(&turn.0).fetch_optional(tx)?;
    let (chosen, delivered, parked) = found.ok_or(SETTLED)?;
    match chosen {
        Some(chosen) if chosen == by.0 => return Ok(ChoiceOutcome::Noted),
        Some(_) => return Ok(ChoiceOutcome::Late),
        None => {}
    }
    // Resets the turn's age, so that its reply is not reported as late.
    let sql = "UPDATE turns SET chosen = $1, final_view = $2, delivered = NULL, parked = NULL, attempts = 0,
        next_at = $3, created = $3 WHERE id = $4";
    let update = query(sql).bind(by.0).bind(final_view).bind(now).bind(&turn.0);
    update.execute(tx)?;
    let is_settled = delivered.is_some() || parked.is_some();
    Ok(if is_settled { ChoiceOutcome::Reopened } else { ChoiceOutcome::Noted })
}
