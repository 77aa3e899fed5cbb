//! Starts the work of scheduled tasks: runs on threads, and events in the inbox of a bot.

use super::target::ScheduledTarget;
use crate::{account::Account, bus::OutboxItem, joining::JoinRoute, reply, shared::Shared};
use pudu_agent::{Asker, RunFeatures, RunTask};
use pudu_base::{BoxFuture, Human, MessageId, RunId, ThreadId};
use pudu_channels::{FinalView, Hurry, ReplyTarget};
use pudu_harness::WallClock;
use pudu_kit::clock;
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_runs::{ClientRun, Multitask, SubmitError};
use pudu_schedules::{Launcher, TaskStart, find_zone};
use pudu_store::{
    NewClientRun, NewInboxItem, ScheduledChat, ScheduledClaim, ScheduledStart, ScheduledTask, ScheduledWork,
    StoreError,
};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Name of the default assistant.
const LEAD_AGENT: &str = "lead_agent";

/// Starts the work of scheduled tasks.
pub struct ScheduleLauncher(Arc<Shared>);

impl ScheduleLauncher {
    /// Creates a launcher.
    #[must_use]
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Starts due tasks until `stop`.
    pub async fn plan(&self, stop: CancellationToken) {
        self.0.schedules.plan(self, stop).await;
    }

    /// Starts a run on a thread. The run and the start are stored in one transaction.
    async fn launch_on_thread(
        &self,
        task: &ScheduledTask,
        start: TaskStart,
    ) -> Result<ScheduledStart, StoreError> {
        let (run, needs_thread) = (client_run(task, &start), task.thread.is_some());
        let id = task.id.clone();
        let claim = move |run: NewClientRun| {
            let work = ScheduledWork::Thread { run: Box::new(run), needs_thread };
            claim(&id, start, work)
        };
        match self.0.runs.submit_scheduled(run, claim).await {
            Ok(started) => Ok(started),
            Err(SubmitError::Busy(_) | SubmitError::Full) => Ok(ScheduledStart::Full),
            Err(SubmitError::Store(error)) => Err(error),
        }
    }

    /// Puts an event into the inbox of a bot.
    async fn launch_in_chat(
        &self,
        task: &ScheduledTask,
        chat: &ScheduledChat,
        start: TaskStart,
    ) -> Result<ScheduledStart, StoreError> {
        let work = match self.event(task, chat, &start) {
            Ok(event) => ScheduledWork::Chat(Box::new(event)),
            Err(reason) => ScheduledWork::Impossible(reason),
        };
        let started = self.0.db.claim_scheduled(claim(&task.id, start, work)).await?;
        if let ScheduledStart::Started(Some(item)) = &started {
            self.0.inbox.dispatch_stored(*item).await;
        }
        Ok(started)
    }

    fn event(
        &self,
        task: &ScheduledTask,
        chat: &ScheduledChat,
        start: &TaskStart,
    ) -> Result<NewInboxItem, String> {
        if self.0.accounts.get(&chat.account).is_none() {
            return Err(format!("the bot `{}` is not configured", chat.account));
        }
        let target = ScheduledTarget::read(chat).ok_or("the chat of the task cannot be read")?;
        let event = target.event(task, &start.id, start.now);
        Ok(NewInboxItem {
            account: chat.account.clone(),
            event_key: start.id.clone(),
            chat: chat.chat.clone(),
            message: None,
            payload: serde_json::to_string(&event).map_err(|error| error.to_string())?,
            at: start.now,
            position: None,
        })
    }

    /// Returns the chat that gets notices about a task: its own, or one in which the owner was linked.
    async fn notice_target(&self, task: &ScheduledTask) -> Option<NoticeTarget> {
        if let Some(chat) = &task.chat {
            let account = self.0.accounts.get(&chat.account)?;
            let target = ScheduledTarget::read(chat)?.notice(&account, task);
            return Some(NoticeTarget { conversation: target.address.key(), account, target });
        }
        let (account, route) = self.0.db.notice_route(&task.user).await.ok()??;
        let (account, route) =
            (self.0.accounts.get(&account)?, serde_json::from_str::<JoinRoute>(&route).ok()?);
        let target = account.channel().second_target(&route.target);
        Some(NoticeTarget { conversation: route.conversation, account, target })
    }
}

/// Target of a notice about a task.
struct NoticeTarget {
    conversation: String,
    account: Arc<Account>,
    target: ReplyTarget,
}

impl Launcher for ScheduleLauncher {
    fn launch<'a>(
        &'a self,
        task: &'a ScheduledTask,
        start: TaskStart,
    ) -> BoxFuture<'a, Result<ScheduledStart, StoreError>> {
        Box::pin(async move {
            if let Some(problem) = start.problem.clone() {
                let work = ScheduledWork::Impossible(problem);
                return self.0.db.claim_scheduled(claim(&task.id, start, work)).await;
            }
            match &task.chat {
                None => self.launch_on_thread(task, start).await,
                Some(chat) => self.launch_in_chat(task, chat, start).await,
            }
        })
    }

    fn give_up<'a>(
        &'a self,
        task: &'a ScheduledTask,
        max_failures: u32,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (shared, failures) = (&self.0, i64::from(max_failures));
            let Some(NoticeTarget { conversation, account, target }) = self.notice_target(task).await else {
                return shared.db.pause_failing(&task.id, failures, None).await.map(drop);
            };
            let error = task.last_error.clone().unwrap_or_default();
            let text = target.language.schedule_failing(error, task.failures, &task.title);
            let view = FinalView { text, failed: true, ..FinalView::default() };
            let item: OutboxItem = reply::outbox_item(&conversation, &target);
            let row = reply::new_turn(&item, &target, Vec::new(), serde_json::to_string(&view).ok());
            if shared.db.pause_failing(&task.id, failures, Some(row)).await? {
                let shared = shared.clone();
                shared.tasks.clone().spawn(async move {
                    reply::deliver(&shared, &account, &item, target, &view, &Hurry::default()).await;
                });
            }
            Ok(())
        })
    }
}

fn claim(task: &str, start: TaskStart, work: ScheduledWork) -> ScheduledClaim {
    let TaskStart { id, cause, scheduled_for, next, max_active, now, .. } = start;
    let max_active = i64::from(max_active);
    ScheduledClaim { task: task.to_owned(), id, cause, scheduled_for, next, work, max_active, now }
}

/// Returns the run of a task on a thread. It asks no questions, and its calls get no approvals.
fn client_run(scheduled: &ScheduledTask, start: &TaskStart) -> ClientRun {
    let user = scheduled.user.clone();
    let zone = find_zone(&scheduled.zone).unwrap_or(jiff::tz::TimeZone::UTC);
    let at = Some(clock::for_model(start.now, &zone));
    let human = Human { at: at.clone(), ..Human::new(MessageId::fresh(), scheduled.prompt.as_str()) };
    let thread = scheduled.thread.clone().unwrap_or_else(ThreadId::fresh);
    let asker = Asker {
        account: API_ACCOUNT.to_owned(),
        person: user.to_string(),
        name: user.to_string(),
        cannot_approve: true,
    };
    let task = RunTask {
        first: Some(human.id.clone()),
        input: vec![human],
        finds_own_agents: true,
        agent: scheduled.agent.clone(),
        model: scheduled.model.clone(),
        budget: scheduled.budget.map(i64::unsigned_abs),
        at,
        clock: Some(WallClock::new(move || clock::for_model(clock::now(), &zone))),
        asker: Some(asker),
        features: RunFeatures { non_interactive: Some(true), ..RunFeatures::default() },
        secrets_of: user.clone(),
        user,
        ..RunTask::new(thread, RunId::fresh())
    };
    let request =
        json!({ "kwargs": { "input": { "messages": [{ "role": "user", "content": scheduled.prompt }] } } });
    let metadata = json!({
        "scheduled_task_id": scheduled.id, "scheduled_task_run_id": start.id,
        "scheduled_trigger": start.cause.as_str(),
    });
    ClientRun {
        assistant: scheduled.agent.clone().unwrap_or_else(|| LEAD_AGENT.to_owned()),
        request: request.as_object().cloned().unwrap_or_default(),
        metadata: metadata.to_string(),
        // A person may use the thread just now.
        multitask: Multitask::Enqueue,
        ..ClientRun::new(task)
    }
}
