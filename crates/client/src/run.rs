//! One run, from the request to its end.

use crate::{
    Admission, Client, Control, RunTask,
    assemble::{self, AssembledAgent},
    conclude::{self, audit_log},
    memory, now, rewind,
    run_end::{EndNotes, MissingSecret, RunEnd, last_reply, replies, todos},
    run_registry::{LiveRun, ThreadSlot},
    secrets::LentSecrets,
    title::{self, TitledRun},
};
use futures_util::FutureExt;
use pudu_base::{
    FailureCause, Finish, Goal, Human, LogError, Message, MessageId, ModelCaller, Outcome, RunEvent, RunId,
    Skill, Spending, ThreadState, Update,
};
use pudu_harness::{CompactOutcome, Replay, RunState, SkillPolicy};
use pudu_store::{RunEnding, SpendingFilter};
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Reason given for a call that an earlier run left open and that is not made.
const EARLIER: &str = "an earlier run ended before it";

/// A run that works.
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The run's events.
    pub replay: Arc<Replay>,
    pub(crate) done: oneshot::Receiver<RunEnd>,
}

impl Run {
    /// Waits for the end. `None` when the process ends first; the run resumes after a restart.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn ended(&mut self) -> Option<RunEnd> {
        (&mut self.done).await.ok()
    }
}

/// Waits until a run may work on its thread; `None` if it is stopped before that. A resumed run waits even when
/// stopped: the end has to clean up its earlier work.
pub(crate) async fn wait(
    client: &Client,
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
            // The run that works on the thread may wait for this permit.
            drop(admission);
            let slot = match task.resumed {
                true => turn.await,
                false => cancel.run_until_cancelled(turn).await?,
            };
            (slot, None)
        }
    };
    match admission {
        None => Some((slot, client.admit(cancel).await)),
        admitted => Some((slot, admitted)),
    }
}

/// Runs a task, and puts the thread back.
pub(crate) async fn execute(
    client: &Client,
    mut task: RunTask,
    live: &LiveRun,
    admission: Option<Admission>,
) -> (RunEnd, RunEnding) {
    let mut turn = match open(client, &task, live).await {
        Ok(turn) => turn,
        Err(error) => {
            tracing::error!(thread = %task.thread, %error, "failed to read thread");
            return did_nothing(FailureCause::History.into(), live).await;
        }
    };
    let end = match task.compact {
        true => summarize(client, &task, &mut turn, &live.control).await,
        false => converse(client, &mut task, &mut turn, live).await,
    };
    drop(admission);
    let ending = conclude::ending(&task, &end, &turn);
    if let Some((seq, state)) = turn.into_state() {
        client.0.threads.put(task.thread, seq, state);
    }
    (end, ending)
}

/// Ends a run that panicked. The thread may have rows of this run.
pub(crate) async fn broke_down(client: &Client, live: &LiveRun, keeps_failure: bool) -> (RunEnd, RunEnding) {
    let outcome = Outcome::from(FailureCause::Broken);
    if let Ok((seq, state)) = client.0.threads.take(&live.thread).await {
        let (thread, run, replay) = (live.thread.clone(), live.run.clone(), live.replay.clone());
        let mut turn = RunState::new(thread, run, seq, state, replay);
        turn.keeps_failure = keeps_failure;
        turn.keep_failure(&outcome, &client.0.threads.log()).await;
        if let Some((seq, state)) = turn.into_state() {
            client.0.threads.put(live.thread.clone(), seq, state);
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

/// Takes a run's thread out, and brings it to the position where the run begins.
async fn open(client: &Client, task: &RunTask, live: &LiveRun) -> Result<RunState, LogError> {
    let (seq, state) = client.0.threads.take(&task.thread).await?;
    if task.by_client {
        // A reader of the run's stream need not read the thread for it.
        live.start.set((seq, state.clone())).ok();
    }
    let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, live.replay.clone());
    turn.keeps_failure = task.by_client;
    if let Some(from) = task.from.filter(|_| !task.resumed) {
        let before = rewind::go_back(client, &mut turn, from).await;
        before.map_err(|error| LogError::Store(error.to_string()))?;
    }
    Ok(turn)
}

/// Stores the input in the thread and has it answered, unless that was done before a restart.
async fn converse(client: &Client, task: &mut RunTask, turn: &mut RunState, live: &LiveRun) -> RunEnd {
    let control = &live.control;
    let (outcome, notes, heard) = match ended_before(client, task, turn.state()).await {
        Some(outcome) => (publish_outcome(turn, outcome), EndNotes::default(), true),
        None => respond(client, task, turn, live).await,
    };
    let (usage, silent) = (turn.spending.usage(), RunEnd::silent(outcome, &control.steering).await);
    let end = RunEnd { usage, notes, ..silent };
    let rolls_back = control.roll_back.load(Ordering::Relaxed) && end.outcome == Outcome::Stopped;
    if rolls_back && rewind::roll_back(client, task, turn).await {
        return end;
    }
    // Clients read it with the thread.
    let title = if task.by_client { None } else { title::thread_title(client, &task.thread).await };
    RunEnd { heard, title, ..end.with_words_of(turn.state(), &turn.run) }
}

/// Stores the input in the thread and has the agent answer it. Returns also whether the input was stored.
async fn respond(
    client: &Client,
    task: &mut RunTask,
    turn: &mut RunState,
    live: &LiveRun,
) -> (Outcome, EndNotes, bool) {
    if task.suspended {
        suspended(turn);
    }
    memory::recall::add_recalled(client, task, turn.state()).await;
    let goes_on = add_input(turn, task);
    tell_before(turn);
    // Before assembling the agent can fail: a retry asks the last stored question again.
    if let Err(error) = begin(client, turn, goes_on).await {
        tracing::error!(thread = %task.thread, %error, "failed to store messages of thread");
        return (publish_outcome(turn, FailureCause::Unheard.into()), EndNotes::default(), false);
    }
    let (outcome, notes) = answer(client, task, turn, goes_on, live).await;
    (outcome, notes, true)
}

/// Has the agent answer the stored input.
async fn answer(
    client: &Client,
    task: &RunTask,
    turn: &mut RunState,
    goes_on: bool,
    live: &LiveRun,
) -> (Outcome, EndNotes) {
    let Control { steering, cancel, .. } = &live.control;
    let assembled = match assemble::assemble(client, task).await {
        Ok(assembled) => assembled,
        Err(cause) => {
            let outcome = Outcome::from(cause);
            turn.keep_failure(&outcome, &client.0.threads.log()).await;
            return (publish_outcome(turn, outcome), EndNotes::default());
        }
    };
    let policy = SkillPolicy::new(assembled.skills.clone(), task.first.clone());
    let mut chain = assembled.chain(policy.clone());
    let AssembledAgent { agent, place, secrets, meter, .. } = assembled;
    let title = title::first(client.setup().titles.as_ref(), turn.state());
    // Readers of its stream do not wait for the note below.
    live.model.set(agent.model.name().to_owned()).ok();
    let started =
        client.0.db.run_started(&task.run, &task.thread, agent.model.name(), title.as_deref(), now());
    // The model does not wait for the note. A run whose note a crash prevented starts again from the beginning.
    let noted = async { audit_log(started.await) };
    let answered = pudu_harness::run(&agent, &mut chain, turn, steering, cancel);
    let ((), outcome) = tokio::join!(noted, answered);
    place.give_back(goes_on).await;
    let budgets = meter.notices(outcome.used_budget()).await;
    if outcome == Outcome::Success {
        memory::learn::keep(client, task, turn.state()).await;
        let titled =
            TitledRun { thread: task.thread.clone(), run: task.run.clone(), spender: task.spender() };
        title::improve(client, turn.state(), last_reply(turn.state()), titled);
    }
    let missing_secrets = missing_secrets(client, task, &policy.with_secrets(turn), &secrets).await;
    (outcome, EndNotes { budgets, missing_secrets })
}

/// Returns the secrets that skills needed and no user has given, if they were never asked for. A room gets no secrets,
/// and its missing ones are returned once.
async fn missing_secrets(
    client: &Client,
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
    let (store, user) = (client.secrets(), task.room.as_ref().unwrap_or(&task.secrets_of).clone());
    match pudu_kit::blocking::run(move || store.ask(&user, &seen)).await {
        Ok(Ok(new)) => missing.retain(|missing| new.contains(&missing.secret.name)),
        Ok(Err(error)) => tracing::error!(%error, "failed to note which secrets are asked for"),
        Err(error) => tracing::error!(%error, "failed to note which secrets are asked for"),
    }
    missing
}

/// Summarises the thread, if that was not done before a restart, and answers no message.
async fn summarize(
    client: &Client,
    task: &RunTask,
    turn: &mut RunState,
    Control { steering, cancel, .. }: &Control,
) -> RunEnd {
    let made = turn.state().context.compaction.clone().filter(|made| made.run == task.run);
    let (outcome, compaction) = match made {
        Some(made) => {
            let done = CompactOutcome::Done { before: made.before, after: made.after };
            (publish_outcome(turn, Outcome::Success), Some(done))
        }
        None => match assemble::assemble(client, task).await {
            Err(cause) => (publish_outcome(turn, cause.into()), None),
            Ok(assembled) => {
                let mut chain = assembled.chain(SkillPolicy::new(assembled.skills.clone(), None));
                let AssembledAgent { agent, place, .. } = assembled;
                let started =
                    client.0.db.run_started(&task.run, &task.thread, agent.model.name(), None, now());
                let noted = async { audit_log(started.await) };
                let compacted = pudu_harness::compact(&agent, &mut chain, turn, cancel);
                let ((), ended) = tokio::join!(noted, compacted);
                place.give_back(false).await;
                ended
            }
        },
    };
    RunEnd { compaction, usage: turn.spending.usage(), ..RunEnd::silent(outcome, steering).await }
}

/// Sends the outcome of a run that could not start.
fn publish_outcome(turn: &RunState, outcome: Outcome) -> Outcome {
    turn.publish(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    outcome
}

/// Returns the outcome of a run whose process crashed between its end and its reply, so that nothing is done twice. A
/// message that the thread does not have yet makes the run work once more.
async fn ended_before(client: &Client, task: &RunTask, state: &ThreadState) -> Option<Outcome> {
    let mut due = task.input.iter().map(|human| &human.id).chain(&task.again);
    if !due.all(|id| state.messages.contains_key(id)) {
        return None;
    }
    client.0.db.run_outcome(&task.run).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read runs");
        None
    })
}

/// Adds the input to the thread, each message once. Calls that an earlier run left open are not made by this one; those
/// of the same run, before a restart, are made. Returns whether the run is resumed.
fn add_input(turn: &mut RunState, task: &RunTask) -> bool {
    let mut own = task.input.iter().map(|human| &human.id).chain(&task.again).chain(&task.first);
    // Clients choose the ids of their messages, and may send one again.
    let goes_on =
        if task.by_client { task.resumed } else { own.any(|id| turn.state().messages.contains_key(id)) };
    if let Some(id) = task.again.as_ref().filter(|id| !turn.state().messages.contains_key(*id)) {
        ask_again(turn, id, task.at.clone());
    }
    if goes_on || task.input.is_empty() {
        take_back_failure(turn);
    }
    if !goes_on {
        turn.give_up_calls(EARLIER);
    }
    if let Some(objective) = task.goal.clone().filter(|_| !goes_on) {
        turn.apply(Update::Goal(Some(Goal::new(objective, now()))));
    }
    for (at, human) in task.input.iter().enumerate() {
        match turn.state().messages.get(&human.id).map(|known| is_same(known, human)) {
            Some(_) if goes_on => continue,
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
    goes_on
}

/// Removes the failure at the end of the thread. A client tries again, or the run resumes after a crash between the
/// note of its failure and its end.
fn take_back_failure(turn: &mut RunState) {
    if let Some(failed) = turn.state().last().filter(|message| message.is_failure()) {
        let id = failed.id().clone();
        turn.apply(Update::Remove(id));
    }
}

/// Returns whether a message is sent again unchanged.
fn is_same(known: &Message, human: &Human) -> bool {
    matches!(known, Message::Human(known) if (&known.text, &known.files) == (&human.text, &human.files))
}

/// Stores the input. A resumed run also loads its earlier spending.
async fn begin(client: &Client, turn: &mut RunState, goes_on: bool) -> Result<(), LogError> {
    if goes_on {
        spent_before(client, turn).await?;
    }
    turn.commit(&client.0.threads.log()).await
}

/// Counts the run's spending before a restart. Without that, its token budget would start again from zero.
async fn spent_before(client: &Client, turn: &mut RunState) -> Result<(), LogError> {
    let spent = client.0.db.spending(&SpendingFilter::Run(turn.run.clone())).await;
    for sum in spent.map_err(|error| LogError::Store(error.to_string()))? {
        let (caller, model, usage) =
            (ModelCaller::parse(&sum.caller).unwrap_or_default(), sum.model, sum.usage);
        let [calls, unreported] = [sum.calls, sum.unreported].map(i64::unsigned_abs);
        turn.spending.add(Spending { caller, model, usage, calls, unreported });
    }
    Ok(())
}

/// Marks the calls in progress as cut by an orderly stop.
fn suspended(turn: &mut RunState) {
    for call in turn.state().begun.clone() {
        turn.apply(Update::Suspend(call));
    }
}

/// Removes the messages after the last question, and asks it under a new id.
fn ask_again(turn: &mut RunState, id: &MessageId, now: Option<String>) {
    let messages = &turn.state().messages;
    let Some(at) = messages.values().rposition(|message| matches!(**message, Message::Human(_))) else {
        return;
    };
    let taken: Vec<MessageId> = messages.keys().skip(at).cloned().collect();
    let Some(Message::Human(human)) = messages.get_index(at).map(|(_, message)| (**message).clone()) else {
        return;
    };
    // A removed answer has not reached a goal.
    if let Some(goal) = turn.state().goal.clone()
        && goal.verdict.as_ref().is_some_and(|verdict| taken.contains(&verdict.answer))
    {
        turn.apply(Update::Goal(Some(Goal { verdict: None, ..goal })));
    }
    for message in taken {
        turn.apply(Update::Remove(message));
    }
    turn.give_up_calls(EARLIER);
    let at = now.or_else(|| human.at.clone());
    turn.apply(Update::Message(Arc::new(Message::Human(Human { id: id.clone(), at, ..human }))));
}

/// Sends the replies from before a restart, which new ones follow, and the list of todos.
fn tell_before(turn: &RunState) {
    let said: Vec<_> = replies(turn.state()).filter(|reply| !reply.text.trim().is_empty()).collect();
    for reply in said.into_iter().rev() {
        turn.publish(RunEvent::Text { message: reply.id.clone(), delta: reply.text.clone() });
    }
    if !todos(turn.state()).is_empty() {
        turn.publish(RunEvent::Todos { todos: todos(turn.state()).to_vec() });
    }
}

#[cfg(test)]
mod tests;
