//! One run, from the wish to its end.

use crate::{
    Admission, BudgetNotice, Client, Control, RunTask,
    assemble::{self, AssembledAgent},
    conclude::{audit_log, conclude},
    memory, now, rewind,
    run_registry::ThreadSlot,
    secrets::LentSecrets,
    title::{self, TitledRun},
};
use futures_util::FutureExt;
use pudu_base::{
    Assistant, Decision, FailureCause, Finish, Goal, Human, LogError, Message, MessageId, ModelCaller,
    Outcome, Question, RequiredSecret, RunEvent, RunId, Skill, Spending, ThreadState, Todo, Update, Usage,
};
use pudu_harness::{CompactOutcome, Replay, RunState, SkillPolicy, Steering};
use pudu_store::SpendingFilter;
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Why a call is not made that an earlier run left open.
const EARLIER: &str = "an earlier run ended before it";

/// No more of the assistant's words are shown, in bytes, besides its last reply.
const MAX_EARLIER_BYTES: usize = 128 * 1024;

/// A run that works.
pub struct Run {
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

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// How.
    pub outcome: Outcome,
    /// The assistant's words since somebody spoke to it, whole or partial; empty if it said nothing.
    pub text: String,
    /// Why its last words end where they do.
    pub finish: Finish,
    /// Question to people, if it waits for their answer.
    pub question: Option<Question>,
    /// Decisions of people about its calls, in order.
    pub decisions: Vec<Decision>,
    /// Files that it made for people: sandbox paths.
    pub artifacts: Vec<String>,
    /// The agent's list of what is to be done, if it wrote one.
    pub todos: Vec<Todo>,
    /// The goal of the thread, as its last words left it; none if they were not judged by one.
    pub goal: Option<Goal>,
    /// The title of the thread, if it may be new.
    pub title: Option<String>,
    /// Its usage.
    pub usage: Usage,
    /// Messages that were to steer it and came too late.
    pub unused: Vec<Human>,
    /// Whether the thread has what people said: only that can be asked again.
    pub heard: bool,
    /// Whether it summarised the conversation so far, to make room.
    pub summarized: bool,
    /// Things that people are told once.
    pub notes: EndNotes,
    /// Outcome of the summary that was asked for, if nothing else was.
    pub compaction: Option<CompactOutcome>,
}

/// Things that people are told once, below the answer of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndNotes {
    /// Budgets of which little is left, if people were not told that yet.
    pub budgets: Vec<BudgetNotice>,
    /// Secrets that its skills need and nobody has given, each asked for once.
    pub missing_secrets: Vec<MissingSecret>,
}

/// A secret that a skill needs and nobody has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSecret {
    /// The skill's name.
    pub skill: String,
    /// The secret.
    pub secret: RequiredSecret,
}

/// Waits for its turn, works, and puts the thread back.
pub(crate) async fn work(
    client: Client,
    mut task: RunTask,
    replay: Arc<Replay>,
    Control { steering, cancel, roll_back }: Control,
    mut admission: Option<Admission>,
    turn: impl Future<Output = ThreadSlot>,
) -> RunEnd {
    let mut turn = pin!(turn);
    let slot = match turn.as_mut().now_or_never() {
        Some(slot) => Some(slot),
        None => {
            // Whoever works on the thread may wait for this very permit.
            admission = None;
            cancel.run_until_cancelled(turn).await
        }
    };
    if slot.is_none() || (task.by_client && cancel.is_cancelled() && !task.resumed) {
        return unbegun(&client, &task, &replay, &steering).await;
    }
    let admission = match admission {
        None => client.admit(&cancel).await,
        admitted => admitted,
    };
    let (seq, state) = match client.0.threads.take(&task.thread).await {
        Ok(thread) => thread,
        Err(error) => {
            tracing::error!(thread = %task.thread, %error, "failed to read thread");
            return failed(FailureCause::History, &replay, &steering).await;
        }
    };
    let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, replay);
    if task.compact {
        let ended = summarize(&client, &task, &mut turn, &steering, &cancel).await;
        drop(admission);
        if let Some((seq, state)) = turn.into_state() {
            client.0.threads.put(task.thread, seq, state);
        }
        return ended;
    }
    if let Some(from) = task.from
        && let Err(error) = rewind::go_back(&client, &task, &mut turn, from).await
    {
        tracing::error!(thread = %task.thread, %error, "failed to bring thread back to its checkpoint");
        return failed(FailureCause::History, &turn.replay, &steering).await;
    }
    let ((outcome, notes), heard) = match ended_before(&client, &task, turn.state()).await {
        Some(outcome) => ((tell(&turn, outcome), EndNotes::default()), true),
        None => {
            if task.suspended {
                suspended(&mut turn);
            }
            memory::recall::tell(&client, &mut task, turn.state()).await;
            let goes_on = hear(&mut turn, &task);
            tell_before(&turn);
            // Before anything can go wrong with who answers: what can be asked again is what was asked last.
            match begin(&client, &mut turn, goes_on).await {
                Ok(()) => (answer(&client, &task, &mut turn, &steering, &cancel).await, true),
                Err(error) => {
                    tracing::error!(thread = %task.thread, %error, "failed to store messages of thread");
                    ((tell(&turn, FailureCause::Unheard.into()), EndNotes::default()), false)
                }
            }
        }
    };
    drop(admission);
    if roll_back.load(Ordering::Relaxed) && outcome == Outcome::Stopped {
        rewind::roll_back(&client, &task, &mut turn).await;
    }
    let ended = RunEnd {
        text: words(turn.state()),
        finish: last_reply(turn.state()).map(|reply| reply.finish).unwrap_or_default(),
        question: turn.state().question().cloned(),
        decisions: decisions(turn.state()),
        artifacts: artifacts(turn.state(), &task.run),
        todos: todos(turn.state()).to_vec(),
        goal: judged_goal(turn.state()),
        title: title::shown(&client, &task.thread).await,
        usage: turn.spending.usage(),
        unused: steering.close().await,
        outcome,
        heard,
        summarized: turn.state().context.summaries_of(&task.run) > 0,
        notes,
        compaction: None,
    };
    conclude(&client, &task, &ended, (turn.state(), turn.stop_reason)).await;
    if let Some((seq, state)) = turn.into_state() {
        client.0.threads.put(task.thread, seq, state);
    }
    ended
}

/// Ends a run that was stopped before it began.
async fn unbegun(client: &Client, task: &RunTask, replay: &Replay, steering: &Steering) -> RunEnd {
    replay.publish(RunEvent::Ended { outcome: Outcome::Stopped, finish: Finish::default() });
    if task.by_client {
        audit_log(client.0.db.run_ended(&task.run, &Outcome::Stopped, now()).await);
    }
    RunEnd { outcome: Outcome::Stopped, ..nothing(steering).await }
}

/// Lets who is asked answer what the thread has heard.
async fn answer(
    client: &Client,
    task: &RunTask,
    turn: &mut RunState,
    steering: &Steering,
    cancel: &CancellationToken,
) -> (Outcome, EndNotes) {
    let assembled = match assemble::assemble(client, task).await {
        Ok(assembled) => assembled,
        Err(cause) => return (tell(turn, cause.into()), EndNotes::default()),
    };
    let policy = SkillPolicy::new(assembled.skills.clone(), task.first.clone());
    let mut chain = assembled.chain(policy.clone());
    let AssembledAgent { agent, place, secrets, meter, .. } = assembled;
    let title = title::first(client.setup().titles.as_ref(), turn.state());
    let started =
        client.0.db.run_started(&task.run, &task.thread, agent.model.name(), title.as_deref(), now());
    audit_log(started.await);
    let outcome = pudu_harness::run(&agent, &mut chain, turn, steering, cancel).await;
    place.give_back().await;
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

/// Returns the secrets that skills needed and nobody has given, if they were never asked for. A room gets none, and is
/// told so once.
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
    match tokio::task::spawn_blocking(move || store.ask(&user, &seen)).await {
        Ok(Ok(new)) => missing.retain(|missing| new.contains(&missing.secret.name)),
        Ok(Err(error)) => tracing::error!(%error, "failed to note which secrets are asked for"),
        Err(error) => tracing::error!(%error, "failed to note which secrets are asked for"),
    }
    missing
}

/// Summarises the thread, if that was not done before a restart, and answers nobody.
async fn summarize(
    client: &Client,
    task: &RunTask,
    turn: &mut RunState,
    steering: &Steering,
    cancel: &CancellationToken,
) -> RunEnd {
    let made = turn.state().context.compaction.clone().filter(|made| made.run == task.run);
    let (outcome, compaction) = match made {
        Some(made) => {
            let done = CompactOutcome::Done { before: made.before, after: made.after };
            (tell(turn, Outcome::Success), Some(done))
        }
        None => match assemble::assemble(client, task).await {
            Err(cause) => (tell(turn, cause.into()), None),
            Ok(assembled) => {
                let mut chain = assembled.chain(SkillPolicy::new(assembled.skills.clone(), None));
                let AssembledAgent { agent, place, .. } = assembled;
                let started =
                    client.0.db.run_started(&task.run, &task.thread, agent.model.name(), None, now());
                audit_log(started.await);
                let ended = pudu_harness::compact(&agent, &mut chain, turn, cancel).await;
                place.give_back().await;
                ended
            }
        },
    };
    let end = RunEnd { outcome, compaction, usage: turn.spending.usage(), ..nothing(steering).await };
    conclude(client, task, &end, (turn.state(), turn.stop_reason)).await;
    end
}

/// Sends the outcome of a run that could not start.
fn tell(turn: &RunState, outcome: Outcome) -> Outcome {
    turn.tell(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    outcome
}

/// How the run ended, if a crash came between its end and its reply: nothing is done twice. A message that
/// the thread has not heard yet is a reason to run once more.
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

/// Puts what people said into the thread, each message once. Calls that an earlier run left open are not made by
/// this one; those of the same run, before a restart, are. Returns whether it is one that goes on so.
fn hear(turn: &mut RunState, task: &RunTask) -> bool {
    let mut own = task.input.iter().map(|human| &human.id).chain(&task.again).chain(&task.first);
    let goes_on = own.any(|id| turn.state().messages.contains_key(id));
    if let Some(id) = task.again.as_ref().filter(|id| !turn.state().messages.contains_key(*id)) {
        ask_again(turn, id, task.at.clone());
    }
    if !goes_on {
        turn.give_up_calls(EARLIER);
    }
    if let Some(objective) = task.goal.clone().filter(|_| !goes_on) {
        turn.apply(Update::Goal(Some(Goal::new(objective, now()))));
    }
    for human in &task.input {
        if !turn.state().messages.contains_key(&human.id) {
            turn.apply(Update::Message(Arc::new(Message::Human(human.clone()))));
        }
    }
    for (message, fields) in &task.client_fields {
        if turn.state().client_fields.get(message) != Some(fields) {
            turn.apply(Update::ClientFields { message: message.clone(), fields: fields.clone() });
        }
    }
    goes_on
}

/// Stores what the thread has heard. Of a run that goes on it is known from here on what it spent.
async fn begin(client: &Client, turn: &mut RunState, goes_on: bool) -> Result<(), LogError> {
    if goes_on {
        spent_before(client, turn).await?;
    }
    turn.commit(&client.0.threads.log()).await
}

/// Counts what the run spent before a restart. Without that its token budget would begin anew.
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

/// Notes of the calls that were at work that a stop in order cut them.
fn suspended(turn: &mut RunState) {
    for call in turn.state().begun.clone() {
        turn.apply(Update::Suspend(call));
    }
}

/// Takes back what followed the last question, and asks it under a new id.
fn ask_again(turn: &mut RunState, id: &MessageId, now: Option<String>) {
    let messages = &turn.state().messages;
    let Some(at) = messages.values().rposition(|message| matches!(**message, Message::Human(_))) else {
        return;
    };
    let taken: Vec<MessageId> = messages.keys().skip(at).cloned().collect();
    let Some(Message::Human(human)) = messages.get_index(at).map(|(_, message)| (**message).clone()) else {
        return;
    };
    // An answer that is taken back has reached nothing.
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

/// Returns the assistant's replies since somebody spoke to it, newest first.
fn replies(state: &ThreadState) -> impl Iterator<Item = &Assistant> {
    let since = state.messages.values().rev().take_while(|message| !matches!(***message, Message::Human(_)));
    since.filter_map(|message| match &**message {
        Message::Assistant(reply) => Some(reply),
        Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => None,
    })
}

/// Returns the agent's list of what is to be done, if it wrote one since somebody spoke to it.
fn todos(state: &ThreadState) -> &[Todo] {
    match replies(state).any(|reply| reply.calls.iter().any(|call| call.name == "write_todos")) {
        true => &state.todos,
        false => &[],
    }
}

fn last_reply(state: &ThreadState) -> Option<&Assistant> {
    replies(state).next()
}

/// Returns the assistant's words since somebody spoke to it, those before its tool calls too; of very many the
/// last.
fn words(state: &ThreadState) -> String {
    let mut room = MAX_EARLIER_BYTES;
    let mut kept = Vec::new();
    for words in replies(state).map(|reply| reply.text.trim()).filter(|words| !words.is_empty()) {
        let Some(left) = room.checked_sub(words.len()).or(kept.is_empty().then_some(0)) else {
            kept.push("…");
            break;
        };
        room = left;
        kept.push(words);
    }
    kept.reverse();
    kept.join("\n\n")
}

/// Sends the replies from before a restart, below which new ones stand, and the list of what is to be done.
fn tell_before(turn: &RunState) {
    let said: Vec<_> = replies(turn.state()).filter(|reply| !reply.text.trim().is_empty()).collect();
    for reply in said.into_iter().rev() {
        turn.tell(RunEvent::Text { message: reply.id.clone(), delta: reply.text.clone() });
    }
    if !todos(turn.state()).is_empty() {
        turn.tell(RunEvent::Todos { todos: todos(turn.state()).to_vec() });
    }
}

/// Returns what people decided since somebody spoke last, about calls and those that these made themselves.
fn decisions(state: &ThreadState) -> Vec<Decision> {
    let spoke = state.messages.values().rposition(|message| matches!(**message, Message::Human(_)));
    let since = state.messages.values().skip(spoke.unwrap_or(0));
    let results = since.filter_map(|message| match &**message {
        Message::Tool(result) => Some(result.decision.iter().chain(&result.decisions)),
        Message::Human(_) | Message::Assistant(_) | Message::Reminder(_) => None,
    });
    results.flatten().cloned().collect()
}

/// Returns the goal of a thread, if its last reply was judged by it.
fn judged_goal(state: &ThreadState) -> Option<Goal> {
    let goal = state.goal.as_ref()?;
    let reply = last_reply(state)?;
    goal.verdict.as_ref().is_some_and(|verdict| verdict.answer == reply.id).then(|| goal.clone())
}

fn artifacts(state: &ThreadState, run: &RunId) -> Vec<String> {
    state.artifacts.iter().filter(|(_, by)| *by == run).map(|(path, _)| path.clone()).collect()
}

pub(crate) async fn failed(cause: FailureCause, replay: &Replay, steering: &Steering) -> RunEnd {
    let outcome = Outcome::from(cause);
    replay.publish(RunEvent::Ended { outcome: outcome.clone(), finish: Finish::default() });
    RunEnd { outcome, ..nothing(steering).await }
}

/// Returns the end of a run that said nothing.
async fn nothing(steering: &Steering) -> RunEnd {
    RunEnd {
        outcome: Outcome::Success,
        text: String::new(),
        finish: Finish::default(),
        question: None,
        decisions: Vec::new(),
        artifacts: Vec::new(),
        todos: Vec::new(),
        goal: None,
        title: None,
        usage: Usage::default(),
        unused: steering.close().await,
        heard: false,
        summarized: false,
        notes: EndNotes::default(),
        compaction: None,
    }
}

#[cfg(test)]
mod tests;
