//! Choices below a reply that people see: each is made by one event, once.

use crate::{
    Db, InboxItemId, Result, TurnId, crash,
    engines::{Tx, from_row, query},
    error::SETTLED,
};

/// A reply below which something can be chosen, or could.
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
    /// The reply, JSON, as long as something can be chosen.
    pub final_view: Option<String>,
    /// The event that made the choice.
    pub chosen: Option<InboxItemId>,
}

/// Result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceOutcome {
    /// It counts. The reply was delivered and has to be rendered again.
    Reopened,
    /// It counts. The reply's delivery renders it again, or did.
    Noted,
    /// Another event chose before.
    Late,
}

from_row!(Offered { turn: "id", conversation, reply_target: "placement", handle, final_view, chosen });

impl Db {
    /// Returns the reply that a message of ours shows.
    pub async fn offered(&self, account: &str, chat: &str, message: &str) -> Result<Option<Offered>> {
        let sql = "SELECT turns.id, turns.conversation, turns.placement, turns.handle, turns.final_view, turns.chosen
            FROM messages JOIN turns ON turns.id = messages.turn
            WHERE messages.account = $1 AND messages.chat = $2 AND messages.message = $3";
        self.find(query(sql).bind_all([account, chat, message])).await
    }

    /// Notes that an event chose something below a reply, which reads so from now on.
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
    // The turn's age starts again, so that its reply is not reported as late.
    let sql = "UPDATE turns SET chosen = $1, final_view = $2, delivered = NULL, parked = NULL, attempts = 0,
        next_at = $3, created = $3 WHERE id = $4";
    let update = query(sql).bind(by.0).bind(final_view).bind(now).bind(&turn.0);
    update.execute(tx)?;
    let is_settled = delivered.is_some() || parked.is_some();
    Ok(if is_settled { ChoiceOutcome::Reopened } else { ChoiceOutcome::Noted })
}
