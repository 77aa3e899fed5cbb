//! Recovery after a restart: resumes turns of the previous process, and handles events that it left unhandled.

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
use pudu_base::RunId;
use pudu_channels::{FinalView, Hurry, ReplyTarget};
use pudu_runs::{Control, MAX_RESUMES, ThreadPlace, UnfinishedRun};
use pudu_store::{RunRow, StoreError, TurnRow};
use pudu_texts::Language;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Returns the notice that replaces a reply which is too old to be sent.
fn too_late(language: Language) -> FinalView {
    FinalView { text: language.end_too_late().to_owned(), failed: true, ..FinalView::default() }
}

/// Returns the notice that replaces a turn which was resumed too often.
fn given_up(language: Language) -> FinalView {
    FinalView { text: language.end_given_up(MAX_RESUMES), failed: true, ..FinalView::default() }
}

/// A turn that was interrupted by the end of a process.
struct CutTurn {
    row: TurnRow,
    /// The record of its run.
    record: Option<RunRow>,
    /// The run's place in the queue of its thread.
    place: Option<ThreadPlace>,
    item: OutboxItem,
    reply_target: ReplyTarget,
    said: Vec<InboxItem>,
}

impl Dispatcher {
    /// Resumes the work of the previous process, including its unfinished runs of chats. Called once, before any new
    /// event is accepted.
    pub async fn recover(&self, unfinished: Vec<UnfinishedRun>) -> Result<(), StoreError> {
        let mut unfinished: BTreeMap<RunId, UnfinishedRun> =
            unfinished.into_iter().map(|run| (run.row.id.clone(), run)).collect();
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
                "resuming turns and messages of the previous process"
            );
        }
        for row in turns {
            let said = claimed.remove(&row.id.0).unwrap_or_default();
            let run = row.run.as_ref().and_then(|run| unfinished.remove(run));
            self.resume_turn(row, said, run).await;
        }
        for arrival in fresh {
            self.receive(arrival).await;
        }
        // The turns of the remaining runs were given up.
        for run in unfinished.into_values() {
            self.shared().runs.give_up_run(&run.row.id).await?;
        }
        Ok(())
    }

    /// Resumes the work that waited for an account, once the account is available.
    pub async fn welcome_back(&self, name: &str) {
        let Absent { turns, events } = self.absent().take(name);
        for (row, said) in turns {
            self.resume_turn(row, said, None).await;
        }
        for arrival in events {
            self.receive(arrival).await;
        }
    }

    /// Resumes a turn. `unfinished` is its run, if this process has just taken it over.
    async fn resume_turn(&self, row: TurnRow, said: Vec<InboxItem>, mut unfinished: Option<UnfinishedRun>) {
        let shared = self.shared();
        let Some(account) = shared.accounts.get(&row.account) else {
            tracing::warn!(
                account = row.account,
                turn = row.id.0,
                "holding reply until its bot is available again"
            );
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
        // A notice instead of the question would mark the whole question as delivered.
        if late && view.as_ref().is_some_and(|view| view.whole) {
            shared.outbox.park(&item, "too old to be sent").await;
            return;
        }
        let record = match &unfinished {
            Some(run) => Some(run.row.clone()),
            None => self.record(&row).await,
        };
        let resumed = record.as_ref().map_or(0, |record| record.resumed);
        let view = match late {
            true => Some(too_late(reply_target.language)),
            false if view.is_none() && resumed >= MAX_RESUMES => Some(given_up(reply_target.language)),
            false => view,
        };
        if let Some(run) = unfinished.take_if(|_| view.is_some()) {
            retry_until_stored("failed to end run", || shared.runs.give_up_run(&run.row.id)).await;
        }
        match (view, &row.run) {
            (Some(view), None) => self.redeliver(account, item, reply_target, view),
            (Some(view), Some(_)) => {
                let key = row.conversation.clone();
                self.post(account, &key, ConversationEvent::Redeliver(Box::new((item, reply_target, view))));
            }
            (None, _) => {
                let place = unfinished.map(|run| run.place);
                self.resume(account, CutTurn { row, record, place, item, reply_target, said }).await;
            }
        }
    }

    /// Delivers a reply again. A command's answer is delivered independently of its conversation.
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

    /// Returns the record of a turn's run.
    async fn record(&self, row: &TurnRow) -> Option<RunRow> {
        let run = row.run.as_ref()?;
        retry_until_stored("failed to read run of turn", || self.shared().db.run(run)).await.flatten()
    }

    async fn resume(&self, account: &Arc<Account>, cut: CutTurn) {
        let (shared, CutTurn { row, record, place, item, reply_target, said }) = (self.shared(), cut);
        let (Some(thread), Some(run)) = (row.thread, row.run) else {
            shared.outbox.park(&item, "its record is incomplete").await;
            return;
        };
        retry_until_stored("failed to record resumption of turn", || shared.db.resume_run(&run)).await;
        let read = || shared.db.conversation(&row.conversation);
        let known = retry_until_stored("failed to read conversation", read).await.flatten();
        let chosen = known.as_ref().and_then(|known| known.agent.as_deref());
        let session = agent::settle(shared, account, &row.conversation, chosen, &reply_target).await;
        let control = Control::default();
        if record.as_ref().is_some_and(|record| record.goal_dropped) {
            control.steering.drop_goal();
        }
        // A client stopped it, and the process crashed before the run ended.
        if let Some(action) = record.as_ref().and_then(|record| record.cancelled) {
            control.stop(action);
        }
        let is_suspended = record.is_some_and(|record| record.suspended);
        let job = TurnJob {
            place: Some(place.unwrap_or_else(|| shared.runs.place(&thread))),
            item,
            reply_target,
            thread,
            run,
            choice: known.as_ref().map(ModelChoice::from_record).unwrap_or_default(),
            session,
            work: said.first().map_or(TurnWork::Answer, TurnWork::from_event),
            said,
            last_talk: None,
            cut: if is_suspended { Interruption::Stop } else { Interruption::Death },
            control,
        };
        self.post(account, &row.conversation, ConversationEvent::Resume(Box::new(job)));
    }
}
