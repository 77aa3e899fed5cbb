//! One run, from the request to its end.

use crate::{
    Control,
    admission::{Admission, Admissions},
    conclude::{self, audit_log},
    rewind,
    run_end::{EndNotes, MissingSecret, RunEnd, last_reply, replies, todos},
    run_registry::{LiveRun, ThreadSlot},
};
use futures_util::FutureExt;
use pudu_agent::{
    Agent, LentSecrets, RunTask,
    assemble::{self, AssembledAgent},
    memory,
    title::{self, TitledRun},
};
use pudu_base::{
    FailureCause, Finish, Goal, Human, LogError, Message, MessageId, ModelCaller, Outcome, RunEvent, RunId,
    Skill, Spending, ThreadState, Update,
};
use pudu_harness::{CompactOutcome, Replay, RunState, SkillPolicy};
use pudu_store::{RunEnding, SpendingFilter, now};
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Reason given for not making a call that an earlier run left open.
const EARLIER: &str = "an earlier run ended before it";

/// A started run.
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The run's events.
    pub replay: Arc<Replay>,
    pub(crate) done: oneshot::Receiver<RunEnd>,
}

impl Run {
    /// Waits for the end. Returns `None` if the process shuts down first; the run then resumes after a restart.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn ended(&mut self) -> Option<RunEnd> {
        (&mut self.done).await.ok()
    }
}

/// Waits until a run may execute on its thread; `None` if it is stopped before that. A resumed run waits even if it is
/// stopped, because its end has to clean up its earlier work.
pub(crate) async fn wait(
    admissions: &Admissions,
    task: &RunTask,
    cancel: &CancellationToken,
    admission: Option<Admission>,
    turn: impl Future<Output = ThreadSlot>,
) -> Option<(ThreadSlot, Option<Admission>)> {
    let mut turn = pin!(turn);
    let (slot, admission) = match turn.as_mut().now_or_never() {
        Some(_) if task.by_client && !task.resumed && cancel.is_cancelled() => return None,
        Some(slot) => (slot, admission),
        None => {
            // The active run of the thread may be waiting for this permit.
            drop(admission);
            let slot = match task.resumed {
                true => turn.await,
                false => cancel.run_until_cancelled(turn).await?,
            };
            (slot, None)
        }
    };
    match admission {
        None => Some((slot, admissions.admit(cancel).await)),
        admitted => Some((slot, admitted)),
    }
}

/// Executes a task, and puts the thread back into the cache.
pub(crate) async fn execute(
    agent: &Agent,
    mut task: RunTask,
    live: &LiveRun,
    admission: Option<Admission>,
) -> (RunEnd, RunEnding) {
    let mut turn = match open(agent, &task, live).await {
        Ok(turn) => turn,
        Err(error) => {
            tracing::error!(thread = %task.thread, %error, "failed to read thread");
            return did_nothing(FailureCause::History.into(), live).await;
        }
    };
    let end = match task.compact {
        true => summarize(agent, &task, &mut turn, &live.control).await,
        false => converse(agent, &mut task, &mut turn, live).await,
    };
    drop(admission);
    let ending = conclude::ending(&task, &end, &turn);
    if let Some((seq, state)) = turn.into_state() {
        agent.threads().put(task.thread, seq, state);
    }
    (end, ending)
}

/// Ends a run that panicked. The thread's log may already have rows of this run.
pub(crate) async fn broke_down(agent: &Agent, live: &LiveRun, keeps_failure: bool) -> (RunEnd, RunEnding) {
    let outcome = Outcome::from(FailureCause::Broken);
    if let Ok((seq, state)) = agent.threads().take(&live.thread).await {
        let (thread, run, replay) = (live.thread.clone(), live.run.clone(), live.replay.clone());
        let mut turn = RunState::new(thread, run, seq, state, replay);
        turn.keeps_failure = keeps_failure;
        turn.keep_failure(&outcome, &agent.threads().log()).await;
        if let Some((seq, state)) = turn.into_state() {
            agent.threads().put(live.thread.clone(), seq, state);
        }
    }
    did_nothing(outcome, live).await
}

/// Ends a run that did nothing.
pub(crate) async fn did_nothing(outcome: Outcome, live: &LiveRun) -> (RunEnd, RunEnding) {
    live.replay.publish(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    let ending = RunEnding::from(&outcome);
    (RunEnd::silent(outcome, &live.control.steering).await, ending)
}

/// Takes a run's thread out of the cache, and resets it to the position where the run begins.
async fn open(agent: &Agent, task: &RunTask, live: &LiveRun) -> Result<RunState, LogError> {
    let (seq, state) = agent.threads().take(&task.thread).await?;
    if task.by_client {
        // Readers of the run's stream then need not read the thread.
        live.start.set((seq, state.clone())).ok();
    }
    let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, live.replay.clone());
    turn.keeps_failure = task.by_client;
    if let Some(from) = task.from.filter(|_| !task.resumed) {
        let before = rewind::go_back(agent, &mut turn, from).await;
        before.map_err(|error| LogError::Store(error.to_string()))?;
    }
    Ok(turn)
}

/// Stores the input in the thread and lets the agent answer it, unless that was done before a restart.
async fn converse(agent: &Agent, task: &mut RunTask, turn: &mut RunState, live: &LiveRun) -> RunEnd {
    let control = &live.control;
    let (outcome, notes, heard) = match ended_before(agent, task, turn.state()).await {
        Some(outcome) => (publish_outcome(turn, outcome), EndNotes::default(), true),
        None => respond(agent, task, turn, live).await,
    };
    let (usage, silent) = (turn.spending.usage(), RunEnd::silent(outcome, &control.steering).await);
    let end = RunEnd { usage, notes, ..silent };
    let rolls_back = control.roll_back.load(Ordering::Relaxed) && end.outcome == Outcome::Stopped;
    if rolls_back && rewind::roll_back(agent, task, turn).await {
        return end;
    }
    // Clients read the title with the thread.
    let title = if task.by_client { None } else { title::thread_title(agent, &task.thread).await };
    RunEnd { heard, title, ..end.with_words_of(turn.state(), &turn.run) }
}

/// Stores the input in the thread and lets the agent answer it. Also returns whether the input was stored.
async fn respond(
    agent: &Agent,
    task: &mut RunTask,
    turn: &mut RunState,
    live: &LiveRun,
) -> (Outcome, EndNotes, bool) {
    if task.suspended {
        suspended(turn);
    }
    memory::recall::add_recalled(agent, task, turn.state()).await;
    let resumed = add_input(turn, task);
    tell_before(turn);
    // Stored before assembling the agent, which can fail: a retry asks the last stored question again.
    if let Err(error) = begin(agent, turn, resumed).await {
        tracing::error!(thread = %task.thread, %error, "failed to store messages of thread");
        return (publish_outcome(turn, FailureCause::Unheard.into()), EndNotes::default(), false);
    }
    let (outcome, notes) = answer(agent, task, turn, resumed, live).await;
    (outcome, notes, true)
}

/// Lets the agent answer the stored input.
async fn answer(
    agent: &Agent,
    task: &RunTask,
    turn: &mut RunState,
    resumed: bool,
    live: &LiveRun,
) -> (Outcome, EndNotes) {
    let Control { steering, cancel, .. } = &live.control;
    let assembled = match assemble::assemble(agent, task).await {
        Ok(assembled) => assembled,
        Err(cause) => {
            let outcome = Outcome::from(cause);
            turn.keep_failure(&outcome, &agent.threads().log()).await;
            return (publish_outcome(turn, outcome), EndNotes::default());
        }
    };
    let policy = SkillPolicy::new(assembled.skills.clone(), task.first.clone());
    let mut chain = assembled.chain(policy.clone());
    let AssembledAgent { agent: run_agent, place, secrets, meter, .. } = assembled;
    let title = title::first(agent.setup().titles.as_ref(), turn.state());
    // Set first, so that readers of the stream do not wait for the record below.
    live.model.set(run_agent.model.name().to_owned()).ok();
    let started =
        agent.db().run_started(&task.run, &task.thread, run_agent.model.name(), title.as_deref(), now());
    // The model does not wait for the record. If a crash prevents the record, the run starts from the beginning.
    let noted = async { audit_log(started.await) };
    let answered = pudu_harness::run(&run_agent, &mut chain, turn, steering, cancel);
    let ((), outcome) = tokio::join!(noted, answered);
    place.give_back(resumed).await;
    let budgets = meter.notices(outcome.used_budget()).await;
    if outcome == Outcome::Success {
        memory::learn::keep(agent, task, turn.state()).await;
        let titled =
            TitledRun { thread: task.thread.clone(), run: task.run.clone(), spender: task.spender() };
        title::improve(agent, turn.state(), last_reply(turn.state()), titled);
    }
    let missing_secrets = missing_secrets(agent, task, &policy.with_secrets(turn), &secrets).await;
    (outcome, EndNotes { budgets, missing_secrets })
}

/// Returns the secrets that skills needed and the user has not provided, unless they were asked for before. Group chats
/// get no secrets; for them, each missing secret is returned once.
async fn missing_secrets(
    agent: &Agent,
    task: &RunTask,
    skills: &[&Skill],
    given: &LentSecrets,
) -> Vec<MissingSecret> {
    let of_skill = |skill: &&Skill| {
        let name = skill.name.clone();
        let required = skill.secrets.required.clone().into_iter();
        required.map(move |secret| MissingSecret { skill: name.clone(), secret })
    };
    let mut missing: Vec<MissingSecret> = skills.iter().flat_map(of_skill).collect();
    let mut seen = BTreeSet::new();
    missing.retain(|missing| !given.has(&missing.secret.name) && seen.insert(missing.secret.name.clone()));
    if missing.is_empty() {
        return missing;
    }
    let (store, user) = (agent.secrets(), task.room.as_ref().unwrap_or(&task.secrets_of).clone());
    match pudu_kit::blocking::run(move || store.ask(&user, &seen)).await {
        Ok(Ok(new)) => missing.retain(|missing| new.contains(&missing.secret.name)),
        Ok(Err(error)) => tracing::error!(%error, "failed to record requested secrets"),
        Err(error) => tracing::error!(%error, "failed to record requested secrets"),
    }
    missing
}

/// Summarises the thread, unless that was done before a restart. Answers no message.
async fn summarize(
    agent: &Agent,
    task: &RunTask,
    turn: &mut RunState,
    Control { steering, cancel, .. }: &Control,
) -> RunEnd {
    let existing = turn.state().context.compaction.clone().filter(|existing| existing.run == task.run);
    let (outcome, compaction) = match existing {
        Some(existing) => {
            let done = CompactOutcome::Done { before: existing.before, after: existing.after };
            (publish_outcome(turn, Outcome::Success), Some(done))
        }
        None => match assemble::assemble(agent, task).await {
            Err(cause) => (publish_outcome(turn, cause.into()), None),
            Ok(assembled) => {
                let mut chain = assembled.chain(SkillPolicy::new(assembled.skills.clone(), None));
                let AssembledAgent { agent: run_agent, place, .. } = assembled;
                let started =
                    agent.db().run_started(&task.run, &task.thread, run_agent.model.name(), None, now());
                let noted = async { audit_log(started.await) };
                let compacted = pudu_harness::compact(&run_agent, &mut chain, turn, cancel);
                let ((), ended) = tokio::join!(noted, compacted);
                place.give_back(false).await;
                ended
            }
        },
    };
    RunEnd { compaction, usage: turn.spending.usage(), ..RunEnd::silent(outcome, steering).await }
}

/// Publishes the outcome of a run that makes no model call.
fn publish_outcome(turn: &RunState, outcome: Outcome) -> Outcome {
    turn.publish(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    outcome
}

/// Returns the outcome of a run that had ended before the process crashed, so that nothing is done twice. `None` if it
/// had not ended, or the thread lacks a message of the input.
async fn ended_before(agent: &Agent, task: &RunTask, state: &ThreadState) -> Option<Outcome> {
    let mut due = task.input.iter().map(|human| &human.id).chain(&task.again);
    if !due.all(|id| state.messages.contains_key(id)) {
        return None;
    }
    agent.db().run_outcome(&task.run).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read runs");
        None
    })
}

/// Adds the input to the thread, each message once. Open calls of an earlier run are given up; open calls of this run,
/// from before a restart, are made. Returns whether the run is resumed.
fn add_input(turn: &mut RunState, task: &RunTask) -> bool {
    let mut own = task.input.iter().map(|human| &human.id).chain(&task.again).chain(&task.first);
    // Clients choose the ids of their messages, and may resend a message.
    let resumed =
        if task.by_client { task.resumed } else { own.any(|id| turn.state().messages.contains_key(id)) };
    if let Some(id) = task.again.as_ref().filter(|id| !turn.state().messages.contains_key(*id)) {
        ask_again(turn, id, task.at.clone());
    }
    if resumed || task.input.is_empty() {
        take_back_failure(turn);
    }
    if !resumed {
        turn.give_up_calls(EARLIER);
    }
    if let Some(objective) = task.goal.clone().filter(|_| !resumed) {
        turn.apply(Update::Goal(Some(Goal::new(objective, now()))));
    }
    for (at, human) in task.input.iter().enumerate() {
        match turn.state().messages.get(&human.id).map(|known| is_same(known, human)) {
            Some(_) if resumed => continue,
            // The last input message is moved to the end of the thread.
            Some(_) if at + 1 == task.input.len() => turn.apply(Update::Remove(human.id.clone())),
            Some(true) => continue,
            Some(false) | None => {}
        }
        turn.apply(Update::Message(Arc::new(Message::Human(human.clone()))));
    }
    for (message, fields) in &task.client_fields {
        if turn.state().client_fields.get(message) != Some(fields) {
            turn.apply(Update::ClientFields { message: message.clone(), fields: fields.clone() });
        }
    }
    resumed
}

/// Removes the failure at the end of the thread: a client retries, or the run resumes after a crash between storing
/// its failure and its end.
fn take_back_failure(turn: &mut RunState) {
    if let Some(failed) = turn.state().last().filter(|message| message.is_failure()) {
        let id = failed.id().clone();
        turn.apply(Update::Remove(id));
    }
}

/// Returns whether a message was resent unchanged.
fn is_same(known: &Message, human: &Human) -> bool {
    matches!(known, Message::Human(known) if (&known.text, &known.files) == (&human.text, &human.files))
}

/// Stores the input. A resumed run also loads its earlier spending.
async fn begin(agent: &Agent, turn: &mut RunState, resumed: bool) -> Result<(), LogError> {
    if resumed {
        spent_before(agent, turn).await?;
    }
    turn.commit(&agent.threads().log()).await
}

/// Adds the run's spending before a restart. Otherwise its token budget would restart from zero.
async fn spent_before(agent: &Agent, turn: &mut RunState) -> Result<(), LogError> {
    let spent = agent.db().spending(&SpendingFilter::Run(turn.run.clone())).await;
    for sum in spent.map_err(|error| LogError::Store(error.to_string()))? {
        let (caller, model, usage) =
            (ModelCaller::parse(&sum.caller).unwrap_or_default(), sum.model, sum.usage);
        let [calls, unreported] = [sum.calls, sum.unreported].map(i64::unsigned_abs);
        turn.spending.add(Spending { caller, model, usage, calls, unreported });
    }
    Ok(())
}

/// Marks the calls in progress as interrupted by an orderly shutdown.
fn suspended(turn: &mut RunState) {
    for call in turn.state().begun.clone() {
        turn.apply(Update::Suspend(call));
    }
}

/// Removes the last question and everything after it, and asks the question again under a new id.
fn ask_again(turn: &mut RunState, id: &MessageId, now: Option<String>) {
    let messages = &turn.state().messages;
    let Some(at) = messages.values().rposition(|message| matches!(**message, Message::Human(_))) else {
        return;
    };
    let removed: Vec<MessageId> = messages.keys().skip(at).cloned().collect();
    let Some(Message::Human(human)) = messages.get_index(at).map(|(_, message)| (**message).clone()) else {
        return;
    };
    // A removed answer no longer counts as reaching the goal.
    if let Some(goal) = turn.state().goal.clone()
        && goal.verdict.as_ref().is_some_and(|verdict| removed.contains(&verdict.answer))
    {
        turn.apply(Update::Goal(Some(Goal { verdict: None, ..goal })));
    }
    for message in removed {
        turn.apply(Update::Remove(message));
    }
    turn.give_up_calls(EARLIER);
    let at = now.or_else(|| human.at.clone());
    turn.apply(Update::Message(Arc::new(Message::Human(Human { id: id.clone(), at, ..human }))));
}

/// Publishes the replies from before a restart, and the to-do list.
fn tell_before(turn: &RunState) {
    let answers: Vec<_> = replies(turn.state()).filter(|reply| !reply.text.trim().is_empty()).collect();
    for reply in answers.into_iter().rev() {
        turn.publish(RunEvent::Text { message: reply.id.clone(), delta: reply.text.clone() });
    }
    if !todos(turn.state()).is_empty() {
        turn.publish(RunEvent::Todos { todos: todos(turn.state()).to_vec() });
    }
}

#[cfg(test)]
mod tests;
