//! Recovery after a restart: turns of the last process go on where they were, and unhandled events are
//! handled now.

use super::{
    Dispatcher,
    absent::Absent,
    account::Account,
    agent,
    conversation::ConversationEvent,
    reply,
    turn::{Interruption, ModelChoice, TurnJob, TurnWork},
};
use crate::bus::{InboxItem, OutboxItem, retry_until_stored};
use pudu_channels::{FinalView, Hurry, ReplyTarget};
use pudu_client::{
    Control,
    store::{StoreError, TurnRow},
};
use pudu_texts::Language;
use std::{collections::HashMap, sync::Arc};

/// Number of resumes after which a turn is taken to be the reason for being cut.
const RESUMES: i64 = 12;

/// Returns the answer that replaces a reply which is so old that it would surprise.
fn too_late(language: Language) -> FinalView {
    FinalView { text: language.end_too_late().to_owned(), failed: true, ..FinalView::default() }
}

/// Returns the answer that replaces another try.
fn given_up(language: Language) -> FinalView {
    FinalView { text: language.end_given_up(RESUMES), failed: true, ..FinalView::default() }
}

impl Dispatcher {
    /// Resumes the work that was left. Called once, before anything new is taken.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let turns = self.shared().db.open_turns().await?;
        let mut fresh = Vec::new();
        let mut claimed: HashMap<String, Vec<InboxItem>> = HashMap::new();
        for (arrival, turn) in self.shared().inbox.recover().await {
            match turn.filter(|turn| turns.iter().any(|row| row.id.0 == *turn)) {
                Some(turn) => claimed.entry(turn).or_default().push(arrival),
                None => fresh.push(arrival),
            }
        }
        if !turns.is_empty() || !fresh.is_empty() {
            tracing::info!(
                turns = turns.len(),
                messages = fresh.len(),
                "resuming turns and messages of an earlier start"
            );
        }
        for row in turns {
            let said = claimed.remove(&row.id.0).unwrap_or_default();
            self.take_up(row, said).await;
        }
        for arrival in fresh {
            self.receive(arrival).await;
        }
        Ok(())
    }

    /// Resumes the work that waited for an account that is there now.
    pub async fn welcome_back(&self, name: &str) {
        let Absent { turns, events } = self.absent().take(name);
        for (row, said) in turns {
            self.take_up(row, said).await;
        }
        for arrival in events {
            self.receive(arrival).await;
        }
    }

    async fn take_up(&self, row: TurnRow, said: Vec<InboxItem>) {
        let shared = self.shared();
        let Some(account) = shared.accounts.get(&row.account) else {
            tracing::warn!(account = row.account, turn = row.id.0, "holding reply until its account is back");
            self.absent().turns.push((row, said));
            return;
        };
        let account = &account;
        let item = |chat: String| OutboxItem {
            turn: row.id.clone(),
            conversation: row.conversation.clone(),
            account: row.account.clone(),
            chat,
            created: row.created,
            not_before: row.next_at,
        };
        let Some(reply_target) = reply::stored_target(&row) else {
            shared.outbox.park(&item(String::new()), "its record cannot be read").await;
            return;
        };
        let item = item(reply_target.address.chat.clone());
        let view = row.final_view.as_deref().and_then(|text| serde_json::from_str::<FinalView>(text).ok());
        let late = shared.outbox.too_old(&item);
        // A notice in its place would count as the whole reply.
        if late && view.as_ref().is_some_and(|view| view.whole) {
            shared.outbox.park(&item, "too old to be sent").await;
            return;
        }
        let view = match late {
            true => Some(too_late(reply_target.language)),
            false if view.is_none() && row.resumed >= RESUMES => Some(given_up(reply_target.language)),
            false => view,
        };
        match (view, &row.run) {
            (Some(view), None) => self.redeliver(account, item, reply_target, view),
            (Some(view), Some(_)) => {
                let key = row.conversation.clone();
                self.post(account, &key, ConversationEvent::Redeliver(Box::new((item, reply_target, view))));
            }
            (None, _) => self.resume(account, row, item, reply_target, said).await,
        }
    }

    /// A command's answer is delivered beside whatever its conversation does.
    fn redeliver(
        &self,
        account: &Arc<Account>,
        item: OutboxItem,
        reply_target: ReplyTarget,
        view: FinalView,
    ) {
        let (shared, account) = (self.shared().clone(), account.clone());
        let hurry = if view.whole { Hurry::waiting() } else { Hurry::default() };
        shared.clone().tasks.spawn(async move {
            reply::deliver(&shared, &account, &item, reply_target, &view, &hurry).await;
        });
    }

    async fn resume(
        &self,
        account: &Arc<Account>,
        row: TurnRow,
        item: OutboxItem,
        reply_target: ReplyTarget,
        said: Vec<InboxItem>,
    ) {
        let shared = self.shared();
        let (Some(thread), Some(run)) = (row.thread, row.run) else {
            shared.outbox.park(&item, "its record is not whole").await;
            return;
        };
        retry_until_stored("failed to record resumption of turn", || shared.db.resume(&row.id)).await;
        let read = || shared.db.conversation(&row.conversation);
        let known = retry_until_stored("failed to read conversation", read).await.flatten();
        let chosen = known.as_ref().and_then(|known| known.agent.as_deref());
        let session = agent::settle(shared, account, &row.conversation, chosen, &reply_target).await;
        let control = Control::default();
        if row.goal_dropped {
            control.steering.drop_goal();
        }
        let read = || shared.db.run(&run);
        let begun = retry_until_stored("failed to read run of turn", read).await.flatten();
        // A client stopped it, and a death came before its end.
        if let Some(action) = begun.and_then(|begun| begun.cancelled) {
            control.stop(action);
        }
        let job = TurnJob {
            place: Some(shared.client.place(&thread)),
            item,
            reply_target,
            thread,
            run,
            choice: known.as_ref().map(ModelChoice::of).unwrap_or_default(),
            session,
            work: said.first().map_or(TurnWork::Answer, TurnWork::of),
            said,
            last_talk: None,
            cut: if row.suspended { Interruption::Stop } else { Interruption::Death },
            control,
        };
        self.post(account, &row.conversation, ConversationEvent::Resume(Box::new(job)));
    }
}
