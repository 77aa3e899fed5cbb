//! Executes one turn: from the users' messages to the visible reply.

use super::{
    account::{Account, AccountRules, AgentSession},
    approval,
    basket::TurnPlace,
    command::SlashCommand,
    input::{self, Input, item_id, message_id},
    reply,
    scheduled::{self, ScheduledChoice},
    secrets,
    shared::Shared,
    view, vision,
};
use crate::{
    bus::{InboxItem, OutboxItem, retry_until_stored},
    sent,
};
use futures_util::FutureExt;
use pudu_agent::{Asker, RunTask};
use pudu_base::{Human, MessageId, RunId, Thinking, ThreadId, UserId};
use pudu_channels::{BoxFuture, FinalView, Hurry, InboundKind, LiveReply, OutFile, ReplyTarget, SendError};
use pudu_kit::clock;
use pudu_net::scrub;
use pudu_runs::{Admission, Control, Run, RunEnd, ThreadPlace};
use pudu_store::{ConversationRow, Db, InboxItemId, TurnId};
use pudu_texts::Language;
use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// Delay before another attempt to show a question that the platform did not accept.
const PROMPT_RETRY_DELAY: Duration = Duration::from_secs(3);

/// Interruption of a turn. After a restart, one of its calls may need a tool that is not available yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// None.
    Never,
    /// The process ended unexpectedly.
    Death,
    /// The process shut down in an orderly way.
    Stop,
}

/// Work of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnWork {
    /// Answers the new messages.
    Answer,
    /// Answers the last question again, instead of the new messages.
    Again,
    /// Summarises the conversation so far, without an answer.
    Compact,
}

impl TurnWork {
    /// Returns the work of the turn that an event begins.
    pub(super) fn from_event(arrival: &InboxItem) -> Self {
        if matches!(arrival.inbound.kind, InboundKind::Edit { .. }) {
            return Self::Answer;
        }
        let command = SlashCommand::from_event(&arrival.inbound.kind);
        match command.as_ref().map(|command| command.name.as_str()) {
            Some("retry") => Self::Again,
            Some("compact") => Self::Compact,
            _ => Self::Answer,
        }
    }
}

/// People's choices about the model of a conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelChoice {
    model: Option<String>,
    /// The thinking effort.
    thinking: Option<Thinking>,
}

impl ModelChoice {
    pub(super) fn from_record(record: &ConversationRow) -> Self {
        let thinking = record.thinking.as_deref().and_then(Thinking::parse);
        Self { model: record.model.clone(), thinking }
    }
}

/// A turn to perform.
pub(super) struct TurnJob {
    /// The turn's record in the outbox.
    pub(super) item: OutboxItem,
    /// Target of the reply.
    pub(super) reply_target: ReplyTarget,
    /// The thread.
    pub(super) thread: ThreadId,
    /// The run, whose id is the same after a restart.
    pub(super) run: RunId,
    /// People's choices about the model.
    pub(super) choice: ModelChoice,
    /// The account's run settings for this person.
    pub(super) session: AgentSession,
    /// The people's messages.
    pub(super) said: Vec<InboxItem>,
    /// The kind of work.
    pub(super) work: TurnWork,
    /// When the conversation was last active before this turn, in milliseconds since 1970; `None` for a new one.
    pub(super) last_talk: Option<i64>,
    /// Its last interruption.
    pub(super) cut: Interruption,
    /// Handle to control the run.
    pub(super) control: Control,
    /// Its place in the thread's queue, if a restart interrupted it.
    pub(super) place: Option<ThreadPlace>,
}

impl TurnJob {
    /// Returns the messages that the thread may not have yet.
    fn new_messages(&self) -> &[InboxItem] {
        if self.work == TurnWork::Answer { &self.said } else { &[] }
    }

    fn brings_files(&self) -> bool {
        !self.new_messages().iter().all(input::is_complete)
    }

    /// Returns the person who is answered.
    fn asker(&self, policy: &AccountRules) -> Asker {
        let (account, person) = (self.reply_target.address.account.clone(), self.reply_target.sender.clone());
        let mut senders = self.said.iter().rev().map(|arrival| &arrival.inbound.sender);
        let name = senders.find(|sender| sender.id == person).map(|sender| sender.name.clone());
        let unheard = self.reply_target.private && policy.has_others_decide(&person);
        Asker { account, name: name.unwrap_or_else(|| person.clone()), person, cannot_approve: unheard }
    }

    /// Returns the run's task. People's choice of a model takes precedence over the account's session.
    fn task(&self, policy: &AccountRules, input: Vec<Human>, again: Option<MessageId>) -> RunTask {
        let session = self.session.clone();
        let AgentSession { agent, agents_of, model, thinking, steps, features, own_secrets, authoring, user } =
            session;
        let ModelChoice { model: chosen, thinking: level } = self.choice.clone();
        let scheduled = ScheduledChoice::of_turn(policy, &self.reply_target.sender, &self.said);
        let ScheduledChoice { agent: own_agent, model: own_model, budget } = scheduled;
        let (model, thinking) = (own_model.or(chosen).or(model), level.or(thinking));
        let finds_own_agents = agents_of.is_some() || own_agent.is_some();
        let agent = own_agent.or(agent);
        let asker = Some(self.asker(policy));
        let first = self.said.first().map(message_id);
        let at = Some(policy.now());
        let clock = Some(policy.clock());
        let suspended = self.cut == Interruption::Stop;
        let address = &self.reply_target.address;
        let room = (!self.reply_target.private).then(|| UserId::room(&address.account, &address.chat));
        RunTask {
            input,
            first,
            suspended,
            again,
            goal: self.said.iter().rev().find_map(input::goal),
            compact: self.work == TurnWork::Compact,
            at,
            clock,
            model,
            agent,
            finds_own_agents,
            budget,
            authoring,
            asker,
            steps,
            features,
            own_secrets,
            thinking,
            secrets_of: user.clone(),
            user,
            room,
            ..RunTask::new(self.thread.clone(), self.run.clone())
        }
    }
}

/// State that a conversation and its turn share while the reply is delivered.
#[derive(Debug, Default)]
pub(super) struct Delivering {
    /// Set when the run is over and only the delivery remains.
    begun: AtomicBool,
    /// Signals to the reply that something waits for its end.
    pub(super) hurry: Hurry,
}

impl Delivering {
    /// Records that only the delivery remains.
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Returns whether only the delivery remains.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

/// Result of a turn, for the conversation.
#[derive(Default)]
pub(super) struct TurnEnd {
    /// Messages that came too late to steer the run.
    pub(super) unused: Vec<MessageId>,
}

/// Performs a turn until people see its reply. Begins `delivering` when only the delivery remains. A turn that panics
/// ends with a notice.
pub(super) async fn perform(
    shared: Arc<Shared>,
    account: Arc<Account>,
    mut job: TurnJob,
    delivering: Arc<Delivering>,
) -> TurnEnd {
    let place = job.place.take();
    let end = AssertUnwindSafe(work(&shared, &account, &job, place, &delivering)).catch_unwind().await;
    match end {
        Ok(end) => end,
        Err(_) => {
            tracing::error!(turn = job.item.turn.0, "aborted turn after panic");
            let text = format!("⚠️ {}", job.reply_target.language.failed_broken());
            let view = FinalView { text, failed: true, ..FinalView::default() };
            let view = shared.outbox.conclude(&job.item, view).await;
            let reply_target = find_shown(&shared.db, &job.item.turn, job.reply_target).await;
            reply::deliver(&shared, &account, &job.item, reply_target, &view, &delivering.hurry).await;
            TurnEnd::default()
        }
    }
}

/// Returns the target of a turn's reply, with the part already sent, which the notice of the failure then replaces.
async fn find_shown(db: &Db, turn: &TurnId, reply_target: ReplyTarget) -> ReplyTarget {
    let turns = retry_until_stored("failed to read open turns", || db.open_turns()).await;
    let row = turns.unwrap_or_default().into_iter().find(|row| row.id == *turn);
    row.and_then(|row| reply::stored_target(&row)).unwrap_or(reply_target)
}

async fn work(
    shared: &Arc<Shared>,
    account: &Arc<Account>,
    job: &TurnJob,
    place: Option<ThreadPlace>,
    delivering: &Delivering,
) -> TurnEnd {
    let reply_store = shared.outbox.reply_store(&job.item);
    let reply = account.channel().open_reply(job.reply_target.clone(), reply_store);
    let mut reply = shared.outbox.in_order(&job.item, reply);
    if job.cut != Interruption::Never && !extended(shared, job).await {
        return TurnEnd::default();
    }
    let language = job.reply_target.language;
    let admission = match job.brings_files() {
        true => admit(shared, job, &mut *reply).await,
        false => None,
    };
    let place_of_turn = TurnPlace { thread: &job.thread, last_talk: job.last_talk, language };
    let Input { messages, mut notes } =
        input::read(shared, account, job.new_messages(), place_of_turn, &job.control.cancel).await;
    let again = (job.work == TurnWork::Again).then(|| job.said.first().map(message_id)).flatten();
    let policy = account.policy();
    let others = policy.has_others_decide(&job.reply_target.sender);
    let mut task = job.task(&policy, messages, again);
    task.secrets_of = shared.secrets_of(&job.reply_target.address.account, &job.reply_target.sender);
    task.schedule = scheduled::place(account, &policy, &job.said);
    notes.extend(vision::note_blind(shared, language, &job.said, &mut task).await);
    let mut run = shared.runs.start_admitted(task, job.control.clone(), admission, place);
    let hand_over = |key: &str, whole: &str| hand_over(shared, account, job, key, whole);
    let heading = scheduled::heading(&job.said);
    let head = |text: &mut String| *text = format!("{heading}{text}");
    let shown = show(&mut run, &mut *reply, language, others, head, hand_over).await;
    let Some(ended) = shown else { return TurnEnd::default() };
    notes.extend(secrets::note_missing(language, job.reply_target.private, &ended.notes.missing_secrets));
    let asker = (!job.reply_target.private).then(|| job.asker(&policy).name);
    let limits = account.channel().limits();
    let mut view = view::finished(shared, limits, language, &job.thread, &ended, asker.as_deref()).await;
    if !notes.is_empty() {
        view.text = format!("{}\n\n{}", view.text, notes.join("\n"));
    }
    head(&mut view.text);
    let unused: Vec<MessageId> = ended.unused.into_iter().map(|human| human.id).collect();
    let late: Vec<InboxItemId> = unused.iter().filter_map(item_id).collect();
    shared.outbox.give_back(&job.item.turn, &late).await;
    delivering.begin();
    let view = shared.outbox.conclude(&job.item, view).await;
    shared.outbox.deliver(&job.item, reply, &view, &delivering.hurry).await;
    TurnEnd { unused }
}

/// Waits until the run may execute. Fetching and converting its files is part of the run, so the limit of concurrent
/// runs applies to that, too. The reply shows the wait.
async fn admit(shared: &Shared, job: &TurnJob, reply: &mut dyn LiveReply) -> Option<Admission> {
    let mut admit = pin!(shared.runs.admit(&job.control.cancel));
    match (&mut admit).now_or_never() {
        Some(admission) => admission,
        None => loop {
            if let Err(error) = reply.update(&view::waiting(job.reply_target.language)).await {
                tracing::debug!(%error, "failed to show that a turn waits");
            }
            tokio::select! {
                biased;
                admission = &mut admit => break admission,
                () = reply.next_refresh() => {}
            }
        },
    }
}

/// Waits for the tools of extensions. Returns whether the turn continues: the daemon may shut down first.
async fn extended(shared: &Shared, job: &TurnJob) -> bool {
    tokio::select! {
        biased;
        () = shared.extended.cancelled() => true,
        () = job.control.cancel.cancelled() => true,
        () = shared.drain.cancelled() => false,
    }
}

/// Shows a run's progress until it ends: always the newest view, whenever the platform accepts one. A question that is
/// too long for the reply is sent as a file, once.
async fn show<'a>(
    run: &mut Run,
    reply: &mut dyn LiveReply,
    language: Language,
    others: bool,
    head: impl Fn(&mut String),
    hand_over: impl Fn(&str, &str) -> BoxFuture<'a, ()>,
) -> Option<RunEnd> {
    let (mut ticks, mut handed) = (run.replay.ticks(), None);
    let mut shown = view::waiting(language);
    head(&mut shown.text);
    let mut fate = fate_of(reply.update(&shown).await);
    loop {
        // A question that could not be shown is tried again: no event would trigger that before the decision.
        let (updates_over, again) =
            (fate == UpdateOutcome::NoMoreUpdates, shown.prompt.is_some().then(|| fate.again()).flatten());
        let due = tokio::select! {
            biased;
            ended = run.ended() => return ended,
            due = next(&mut ticks, reply), if !updates_over => due,
            () = sleep(again.unwrap_or_default()), if again.is_some() => Due::Again,
        };
        if due == Due::Never {
            fate = UpdateOutcome::NoMoreUpdates;
        }
        let progress = run.replay.progress();
        if let Some((key, whole)) = view::file_to_read(&progress)
            && handed.as_deref() != Some(key)
        {
            hand_over(key, whole).await;
            handed = Some(key.to_owned());
        }
        let mut view = view::live(&progress, language, others);
        head(&mut view.text);
        // After the last event, only the final view is worth a call.
        if fate != UpdateOutcome::NoMoreUpdates
            && progress.outcome.is_none()
            && (view != shown || due == Due::Again)
        {
            fate = fate_of(reply.update(&view).await);
            shown = view;
        }
    }
}

/// Sends the whole question as a file, separately from the reply. It has its own turn, identified by the question, so
/// it is sent only once even if restarts repeat the question. Approvals are refused before it is delivered.
fn hand_over<'a>(
    shared: &'a Arc<Shared>,
    account: &'a Arc<Account>,
    job: &'a TurnJob,
    key: &str,
    full_text: &str,
) -> BoxFuture<'a, ()> {
    let (turn, full_text) = (approval::reading(key), scrub::hide_in_talk(full_text).into_owned());
    Box::pin(async move {
        let copy = sent::keep_text(&shared.home, &full_text).await;
        if let Err(error) = &copy {
            tracing::error!(%error, "failed to write the request to a file, so it cannot be approved");
        }
        // Without its file, the reply is refused, and so are approvals.
        let path = copy.unwrap_or_default();
        let link = shared.links.to_kept(&job.thread, &path, clock::now());
        let language = job.reply_target.language;
        let link = link.map(|link| language.asked_whole_link(link)).unwrap_or_default();
        let text = language.paragraph(&[language.asked_whole(), &link]);
        let files = vec![OutFile { name: sent::ASKED.to_owned(), path }];
        let view = FinalView { text, files, whole: true, ..FinalView::default() };
        let item = OutboxItem { turn, created: clock::now(), not_before: 0, ..job.item.clone() };
        let reply_target = account.channel().second_target(&job.reply_target);
        let row = reply::new_turn(&item, &reply_target, Vec::new(), serde_json::to_string(&view).ok());
        if !shared.outbox.open(&row).await {
            return;
        }
        let (shared, account) = (shared.clone(), account.clone());
        shared.tasks.clone().spawn(async move {
            // Approvers wait for it: a text that cannot be sent as a file is sent as messages.
            reply::deliver(&shared, &account, &item, reply_target, &view, &Hurry::waiting()).await
        });
    })
}

/// Result of sending an unfinished view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpdateOutcome {
    Shown,
    /// Another attempt can be made after this time.
    Late(Duration),
    /// No further unfinished view is worth sending. The final one is attempted in any case.
    NoMoreUpdates,
}

impl UpdateOutcome {
    fn again(self) -> Option<Duration> {
        match self {
            Self::Late(pause) => Some(pause),
            Self::Shown | Self::NoMoreUpdates => None,
        }
    }
}

/// Reason to show a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Something happened.
    News,
    /// The same view must be sent again.
    Again,
    /// Nothing further will happen.
    Never,
}

/// Waits until there is something to show and the platform accepts an update.
async fn next(ticks: &mut tokio::sync::watch::Receiver<u64>, reply: &mut dyn LiveReply) -> Due {
    let due = tokio::select! {
        biased;
        changed = ticks.changed() => if changed.is_ok() { Due::News } else { return Due::Never },
        () = reply.next_refresh() => Due::Again,
    };
    reply.ready().await;
    ticks.borrow_and_update();
    due
}

fn fate_of(result: Result<(), SendError>) -> UpdateOutcome {
    match result {
        Ok(()) => UpdateOutcome::Shown,
        Err(SendError::Later { after }) => UpdateOutcome::Late(after),
        Err(error) => {
            tracing::debug!(%error, "failed to show unfinished view");
            if matches!(error, SendError::Refused(_)) {
                UpdateOutcome::NoMoreUpdates
            } else {
                UpdateOutcome::Late(PROMPT_RETRY_DELAY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_channels::{Address, ReplyHandle};
    use pudu_store::{DbLocation, NewTurn, ShownReply};

    #[tokio::test]
    async fn reply_shown_before_a_panic_is_found_again() {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Sqlite(home.path().join("pudu.db"))).await.unwrap();
        let reply_target = ReplyTarget {
            address: Address { account: "a".into(), chat: "1".into(), topic: None },
            private: true,
            reply_to: Some("7".into()),
            sender: "5".into(),
            language: Language::English,
            hint: None,
            saved: None,
        };
        let turn = NewTurn {
            id: TurnId("t".into()),
            conversation: "c".into(),
            account: "a".into(),
            folder: None,
            run: None,
            reply_target: serde_json::to_string(&reply_target).unwrap(),
            items: Vec::new(),
            people: Vec::new(),
            final_view: None,
            now: 1,
        };
        db.open_turn(&turn).await.unwrap();
        assert_eq!(find_shown(&db, &turn.id, reply_target.clone()).await, reply_target);
        let handle = ReplyHandle { state: serde_json::json!({"id": 8}), messages: vec!["8".into()] };
        let shown_reply = ShownReply {
            handle: serde_json::to_string(&handle).unwrap(),
            conversation: "c".into(),
            account: "a".into(),
            chat: "1".into(),
            messages: handle.messages.clone(),
        };
        db.save_handle(&turn.id, &shown_reply, 2).await.unwrap();
        let expect = ReplyTarget { saved: Some(handle), ..reply_target.clone() };
        assert_eq!(find_shown(&db, &turn.id, reply_target).await, expect);
    }
}
