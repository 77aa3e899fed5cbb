//! A conversation: an actor that runs one turn at a time and decides the effect of messages that arrive during it. It
//! never waits for a run or a platform itself, so commands are answered at once.

use super::{
    account::{Account, AgentSession},
    agent,
    command::SlashCommand,
    input,
    mailboxes::Mailboxes,
    reply,
    running::{RunningTurn, over},
    scope::ConversationScope,
    shared::Shared,
    turn::{self, Delivering, Interruption, ModelChoice, TurnEnd, TurnJob, TurnWork},
    view,
};
use crate::bus::{InboxItem, OutboxItem};
use pudu_base::{RunId, ThreadFolder, ThreadId};
use pudu_channels::{FinalView, Inbound, InboundKind, ReplyTarget};
use pudu_config::FollowUpMode;
use pudu_runs::Control;
use pudu_store::{ConversationRow, InboxItemId, NewTurn, TurnId};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// How long an actor lives without work.
const IDLE: Duration = Duration::from_secs(60);
/// How long to wait for further files, because files that are sent together arrive one by one.
const ALBUM: Duration = Duration::from_millis(600);

/// An event for a conversation.
pub(super) enum ConversationEvent {
    /// A message, or another event to answer.
    Say(Box<InboxItem>),
    /// A message was edited or deleted. The edit may turn it into a command.
    Change(Box<InboxItem>, Option<SlashCommand>),
    /// A command was given.
    Command(Box<InboxItem>, SlashCommand),
    /// Resumes a turn that a restart interrupted.
    Resume(Box<TurnJob>),
    /// Delivers a reply whose delivery a restart interrupted, before any other reply.
    Redeliver(Box<KnownReply>),
}

/// A finished reply, and its target.
pub(super) type KnownReply = (OutboxItem, ReplyTarget, FinalView);

/// State of a conversation while its actor lives. State that must survive is in the store.
pub(super) struct ConversationActor {
    pub(super) scope: ConversationScope,
    pub(super) waiting: VecDeque<InboxItem>,
    pub(super) running: Option<RunningTurn>,
    /// A request to answer the last question again, or to summarise, once the run is over.
    pub(super) again: Option<InboxItem>,
    /// Turns and replies of an earlier process that wait for their turn.
    later: VecDeque<ConversationEvent>,
    /// Whether the waiting messages arrived during a run.
    follow_up: bool,
}

/// Cause of the actor's next step.
enum Wake {
    Mail(Option<ConversationEvent>),
    Over(Option<TurnEnd>),
    Due,
    Idle,
}

impl ConversationActor {
    pub(super) fn new(shared: Arc<Shared>, account: Arc<Account>, key: String) -> Self {
        Self {
            scope: ConversationScope { shared, account, key: key.into() },
            waiting: VecDeque::new(),
            running: None,
            again: None,
            later: VecDeque::new(),
            follow_up: false,
        }
    }

    /// Runs until no work is left, or the daemon drains.
    pub(super) async fn live(
        mut self,
        mut mail: mpsc::Receiver<ConversationEvent>,
        mailboxes: Arc<Mailboxes<ConversationEvent>>,
    ) {
        let drain = self.scope.shared.drain.clone();
        loop {
            let starts = self.starts();
            let idle = self.running.is_none() && starts.is_none();
            let wake = tokio::select! {
                biased;
                () = drain.cancelled() => return,
                next = mail.recv() => Wake::Mail(next),
                end = over(&mut self.running) => Wake::Over(end),
                () = due(starts) => Wake::Due,
                () = tokio::time::sleep(IDLE), if idle => Wake::Idle,
            };
            match wake {
                Wake::Mail(Some(mail)) => self.take(mail).await,
                Wake::Mail(None) => return,
                Wake::Over(end) => self.ended(end).await,
                Wake::Due => self.begin().await,
                Wake::Idle if mailboxes.retire(&self.scope.key, &mail) => return,
                Wake::Idle => {}
            }
        }
    }

    async fn take(&mut self, mail: ConversationEvent) {
        match mail {
            ConversationEvent::Say(arrival) => self.on_message(*arrival).await,
            ConversationEvent::Change(arrival, command) => self.change(*arrival, command).await,
            ConversationEvent::Command(arrival, command) => self.perform(*arrival, command).await,
            ConversationEvent::Resume(job) => self.start(*job),
            ConversationEvent::Redeliver(reply) => self.redeliver(*reply),
        }
    }

    /// Accepts a message, unless it requests a skill that the agent here does not have.
    async fn on_message(&mut self, arrival: InboxItem) {
        if let InboundKind::Message { text, .. } = &arrival.inbound.kind
            && text.starts_with('/')
        {
            let session = self.scope.session(&arrival.inbound).await;
            let language = self.scope.language(&arrival.inbound);
            let user = self.scope.shared.owner_of(&arrival.inbound);
            if let Some(refusal) = agent::withheld(&self.scope.shared, &session, language, &user, text).await
            {
                self.answer(arrival, refusal);
                return;
            }
        }
        self.say(arrival).await;
    }

    /// Accepts a message: it starts a turn, waits, steers or interrupts.
    pub(super) async fn say(&mut self, arrival: InboxItem) {
        if self.running.is_none() {
            self.waiting.push_back(arrival);
            return;
        }
        if reply::is_scheduled(&arrival.inbound) {
            return self.wait(arrival);
        }
        self.follow_up = true;
        let inbound = arrival.inbound.clone();
        match self.scope.mode().await {
            FollowUpMode::Queue => self.wait(arrival),
            FollowUpMode::Steer => self.steer(arrival).await,
            FollowUpMode::Interrupt => {
                if let Some(running) = &self.running {
                    running.control.cancel.cancel();
                }
                self.wait(arrival);
            }
        }
        // Only now, because it says that the message is taken.
        self.acknowledge(inbound);
    }

    /// Queues a message until the current turn ends.
    fn wait(&mut self, arrival: InboxItem) {
        self.waiting.push_back(arrival);
        if let Some(running) = &self.running {
            running.hurry();
        }
    }

    /// Steers the run with a message. The message waits if the run does not take it, if it sets a goal or has files, or
    /// if it needs another agent or other settings. It is recorded before the run gets it, so that after a crash the
    /// resumed turn answers it, too.
    async fn steer(&mut self, arrival: InboxItem) {
        let (session, people) =
            (Some(self.scope.session(&arrival.inbound).await), input::members([&arrival]));
        if let InboundKind::Message { text, .. } = &arrival.inbound.kind
            && input::is_complete(&arrival)
            && input::goal(&arrival).is_none()
            && let Some(running) = self.running.as_mut().filter(|running| running.session == session)
            && let Some(slot) = running.control.steering.reserve()
            && self.scope.shared.db.join_turn(&running.turn, &[arrival.id], people).await.is_ok()
        {
            slot.fill(input::human(&arrival, text, &self.scope.account.policy()));
            running.steered.push(arrival);
            return;
        }
        self.wait(arrival);
    }

    /// Edits or drops a waiting message; one that has become a command no longer waits. A message that is already being
    /// answered stays unchanged.
    async fn change(&mut self, change: InboxItem, command: Option<SlashCommand>) {
        let at = self.waiting.iter().position(|waiting| waiting.inbound.message == change.inbound.message);
        let mut done = vec![change.id];
        match (&change.inbound.kind, at, command) {
            (InboundKind::Edit { text }, Some(at), Some(command)) => {
                if let Some(mut arrival) = self.waiting.remove(at) {
                    input::amend(&self.scope.shared, &mut arrival, text).await;
                    self.perform(arrival, command).await;
                }
            }
            (InboundKind::Edit { text }, Some(at), None) => {
                if let Some(waiting) = self.waiting.get_mut(at) {
                    input::amend(&self.scope.shared, waiting, text).await;
                }
            }
            (InboundKind::Recall, Some(at), _) => {
                done.extend(self.waiting.remove(at).map(|taken| taken.id));
            }
            (InboundKind::Edit { text }, None, _) if !text.trim().is_empty() => {
                let view = view::late_edit(self.scope.language(&change.inbound), text.trim());
                return self.answer_with(change, view, Vec::new());
            }
            _ => {}
        }
        self.scope.shared.inbox.finish(&done).await;
    }

    /// Stops the run. Its text so far is kept and shown. Returns whether there was a run.
    pub(super) fn stop_run(&self) -> bool {
        self.running.as_ref().inspect(|running| running.stop()).is_some_and(RunningTurn::works)
    }

    /// Stops files that are being sent. Returns whether a reply is being delivered.
    pub(super) fn stop_files(&self) -> bool {
        let delivering = self.running.as_ref().filter(|running| !running.works());
        let stopped = delivering.map(|running| running.delivering.hurry.stop()).is_some();
        self.scope.shared.outbox.stop_files(&self.scope.key) || stopped
    }

    pub(super) fn acknowledge(&self, inbound: Inbound) {
        let account = self.scope.account.clone();
        self.scope.shared.tasks.spawn(async move {
            if let Err(error) = account.channel().acknowledge(&inbound.address, &inbound.message).await {
                tracing::debug!(%error, "failed to acknowledge message");
            }
        });
    }

    /// Returns when to answer the waiting messages: at once, unless more are likely to follow.
    fn starts(&self) -> Option<Instant> {
        if self.running.is_some() {
            return None;
        }
        let Some(newest) = self.waiting.back() else {
            return self.again.as_ref().map(|again| again.came);
        };
        let album =
            |arrival: &InboxItem| matches!(arrival.inbound.kind, InboundKind::Message { album: Some(_), .. });
        let window = if self.waiting.iter().any(album) {
            ALBUM
        } else if self.follow_up {
            self.scope.shared.rules().follow_up_window
        } else {
            Duration::ZERO
        };
        Some(newest.came + window)
    }

    /// Answers the waiting messages in one turn, up to the first one with another agent or other settings. A request to
    /// answer the last question again, or to summarise, comes after them.
    async fn begin(&mut self) {
        if self.waiting.is_empty() {
            match self.again.take() {
                Some(again) if compacts(&again) => self.compact(again).await,
                Some(again) => self.retry(again).await,
                None => {}
            }
            return;
        }
        self.follow_up = false;
        let record = self.scope.record().await;
        let said = self.together(record.as_ref()).await;
        self.open(said, record, TurnWork::Answer).await;
    }

    /// Takes the first message and those that follow, up to one with another agent or other settings. Without this
    /// limit, a person who writes at the same time could get another person's agent.
    async fn together(&mut self, record: Option<&ConversationRow>) -> Vec<InboxItem> {
        let chosen = record.and_then(|record| record.agent.as_deref());
        let settle = async |arrival: &InboxItem| {
            agent::settle(&self.scope.shared, &self.scope.account, &self.scope.key, chosen, &arrival.inbound)
                .await
        };
        let Some(first) = self.waiting.front() else { return Vec::new() };
        let (session, mut count) = (settle(first).await, 1);
        for arrival in self.waiting.iter().skip(1) {
            // A scheduled task has a turn to itself.
            if [first, arrival].iter().any(|one| reply::is_scheduled(&one.inbound)) {
                break;
            }
            let same = arrival.inbound.sender.id == first.inbound.sender.id;
            if !same && settle(arrival).await != session {
                break;
            }
            count += 1;
        }
        self.waiting.drain(..count).collect()
    }

    /// Opens a turn for messages and starts it.
    pub(super) async fn open(
        &mut self,
        said: Vec<InboxItem>,
        record: Option<ConversationRow>,
        work: TurnWork,
    ) {
        let Some(newest) = said.last() else { return };
        let reply_target = reply::target(&self.scope.account, &newest.inbound);
        let item = reply::outbox_item(&self.scope.key, &reply_target);
        let choice = record.as_ref().map(ModelChoice::from_record).unwrap_or_default();
        let (thread, chosen, last_talk) = match record {
            Some(known) => (known.thread, known.agent, Some(known.updated)),
            None => (self.scope.bind(&newest.inbound, ThreadId::fresh()).await.thread, None, None),
        };
        let (run, control) = (RunId::fresh(), Control::default());
        let items: Vec<InboxItemId> = said.iter().map(|arrival| arrival.id).collect();
        let turn = NewTurn {
            folder: Some(ThreadFolder { owner: self.scope.owner(&newest.inbound), thread: thread.clone() }),
            run: Some(run.clone()),
            people: if work == TurnWork::Answer { input::members(&said) } else { Vec::new() },
            ..reply::new_turn(&item, &reply_target, items.clone(), None)
        };
        if !self.scope.shared.outbox.open(&turn).await {
            // Some of the events are done. The inbox dispatches the others again.
            return self.scope.shared.inbox.release(&items);
        }
        let (shared, account) = (&self.scope.shared, &self.scope.account);
        let session = agent::settle(shared, account, &self.scope.key, chosen.as_deref(), &reply_target).await;
        self.start(TurnJob {
            item,
            reply_target,
            thread,
            run,
            choice,
            session,
            said,
            work,
            last_talk,
            cut: Interruption::Never,
            control,
            place: None,
        });
    }

    /// Performs a turn, now or after the current one.
    fn start(&mut self, job: TurnJob) {
        if self.running.is_some() {
            self.later.push_back(ConversationEvent::Resume(Box::new(job)));
            return;
        }
        let (turn, control, session) =
            (job.item.turn.clone(), job.control.clone(), Some(job.session.clone()));
        let sets_goal = job.said.iter().any(|arrival| input::goal(arrival).is_some());
        let (shared, account) = (self.scope.shared.clone(), self.scope.account.clone());
        self.run(turn, control, session, |delivering| turn::perform(shared, account, job, delivering));
        self.running.iter_mut().for_each(|running| running.sets_goal = sets_goal);
    }

    /// Delivers a reply, now or after the current turn.
    fn redeliver(&mut self, reply: KnownReply) {
        if self.running.is_some() {
            self.later.push_back(ConversationEvent::Redeliver(Box::new(reply)));
            return;
        }
        let (item, reply_target, view) = reply;
        let (shared, account) = (self.scope.shared.clone(), self.scope.account.clone());
        self.run(item.turn.clone(), Control::default(), None, |delivering| async move {
            delivering.begin();
            reply::deliver(&shared, &account, &item, reply_target, &view, &delivering.hurry).await;
            TurnEnd::default()
        });
    }

    /// Runs a turn in a task of its own. The actor is notified of its end.
    fn run<F>(
        &mut self,
        turn: TurnId,
        control: Control,
        session: Option<AgentSession>,
        work: impl FnOnce(Arc<Delivering>) -> F,
    ) where
        F: Future<Output = TurnEnd> + Send + 'static,
    {
        let (ended_sender, over) = oneshot::channel();
        let delivering = Arc::new(Delivering::default());
        let work = work(delivering.clone());
        let (since, steered, sets_goal) = (Instant::now(), Vec::new(), false);
        self.running =
            Some(RunningTurn { turn, control, since, sets_goal, session, steered, delivering, over });
        self.scope.shared.tasks.spawn(async move {
            // The conversation may have ended by then.
            ended_sender.send(work.await).ok();
        });
    }

    /// Handles the end of a turn. Messages that came too late to steer it wait for the next one.
    async fn ended(&mut self, end: Option<TurnEnd>) {
        let Some(running) = self.running.take() else { return };
        // The goals of messages that the run saw are cleared already.
        let dropped = running.control.steering.is_goal_dropped();
        if let Some(record) = if dropped { self.scope.record().await } else { None } {
            drop(self.scope.shared.runs.clear_goal(&record.thread));
        }
        let unused = end.map(|end| end.unused).unwrap_or_default();
        let late = running.steered.into_iter().filter(|arrival| unused.contains(&input::message_id(arrival)));
        for arrival in late.collect::<Vec<_>>().into_iter().rev() {
            self.waiting.push_front(arrival);
        }
        self.follow_up &= !self.waiting.is_empty();
        match self.later.pop_front() {
            Some(ConversationEvent::Resume(job)) => self.start(*job),
            Some(ConversationEvent::Redeliver(reply)) => self.redeliver(*reply),
            _ => {}
        }
    }
}

/// Returns whether an event requests a summary.
pub(super) fn compacts(arrival: &InboxItem) -> bool {
    SlashCommand::from_event(&arrival.inbound.kind).is_some_and(|command| command.name == "compact")
}

/// Waits until a time; for ever if there is none.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
