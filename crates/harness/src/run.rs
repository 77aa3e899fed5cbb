//! The agent loop: calls the model, runs its tool calls, and repeats until the model answers.

mod calls;
mod host;

use crate::{AnswerCheck, Middleware, RunAgent, RunState, Steering, drawn, goal, tool_names::repair_names};
use futures_util::StreamExt;
use pudu_base::{
    Assistant, Delta, FailureCause, Finish, Human, LogError, Message, ModelCaller, ModelError, Outcome,
    Request, RunEvent, RunFailure, ToolCall, Update,
};
use std::{collections::HashSet, sync::Arc};
use tokio_util::sync::CancellationToken;

pub(super) type Chain = [Box<dyn Middleware>];

/// Maximum length of an answer, in bytes: a model in a loop must not flood a chat.
const MAX_ANSWER_BYTES: usize = 128 * 1024;

/// Maximum length of a model's thoughts about one answer, in bytes.
const MAX_THOUGHT_BYTES: usize = 4 * 1024 * 1024;

/// Runs the agent on a thread until it answers, for a new question or to resume a run that a crash interrupted. However
/// the run ends, everything said and done is in the log before the last event.
pub async fn run(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    steering: &Steering,
    cancel: &CancellationToken,
) -> Outcome {
    let tasks = run_state.tasks.clone();
    let cut = {
        // The calls are dropped with the loop, after the cause is known.
        let mut work = std::pin::pin!(run_loop(agent, chain, run_state, steering));
        let cut = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Outcome::Stopped),
            ended = tokio::time::timeout(agent.bounds.time, &mut work) => match ended {
                Ok(Ok(outcome)) => Ok(outcome),
                Ok(Err(failure)) => Ok(Outcome::Error(failure)),
                Err(_) => Err(Outcome::Timeout),
            },
        };
        cut.inspect_err(|cut| tasks.cut(cut))
    };
    // If the answer was complete in time and only its goal check was interrupted, the run still succeeds.
    let outcome = cut.unwrap_or_else(|cut| answered_here(run_state).unwrap_or(cut));
    if outcome != Outcome::Success {
        run_state.keep_partial(agent.model.name(), unfinished_reason(&outcome), &outcome);
    }
    for middleware in chain.iter_mut().rev() {
        middleware.after_run(run_state).await;
    }
    if steering.is_goal_dropped() && run_state.state().goal.is_some() {
        run_state.apply(Update::Goal(None));
    }
    let outcome = match run_state.commit(&agent.log).await {
        Ok(()) => outcome,
        Err(error) => Outcome::Error(log_failure(&error)),
    };
    run_state.keep_failure(&outcome, &agent.log).await;
    run_state.publish(RunEvent::Ended { outcome: outcome.clone(), finish: finish(run_state) });
    outcome
}

fn unfinished_reason(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Stopped => "the run was stopped",
        Outcome::Timeout => "the run took too long",
        _ => "the run ended early",
    }
}

/// Runs the loop. The thread's state determines the next step, so an interrupted run continues where it was.
async fn run_loop(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    steering: &Steering,
) -> Result<Outcome, RunFailure> {
    for middleware in chain.iter_mut() {
        middleware.before_run(run_state).await?;
    }
    for left in (0..agent.bounds.steps).rev() {
        let calls = run_state.open_calls();
        if !calls.is_empty() {
            calls::perform(agent, chain, run_state, calls).await?;
        }
        // The run is over if the last step asked the user a question, or if it was answered before a crash. Steering
        // then comes too late.
        if let Some(outcome) = ended(agent, run_state, steering, true).await? {
            return Ok(outcome);
        }
        for human in steering.drain() {
            run_state.apply(Update::Message(Arc::new(Message::Human(human))));
        }
        commit(agent, run_state).await?;
        let answer = ask(agent, chain, run_state).await?;
        settle(chain, run_state, answer)?;
        commit(agent, run_state).await?;
        if let Some(outcome) = ended(agent, run_state, steering, left > 0).await? {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Limit)
}

/// Adds a reply to the thread. If a middleware does not accept the answer, it fails the run, or its instruction for the
/// model is added after the reply or in its place.
fn settle(
    chain: &mut Chain,
    run_state: &mut RunState,
    ModelReply { reply, stopped, images }: ModelReply,
) -> Result<(), RunFailure> {
    if reply.finish == Finish::Length && reply.calls.is_empty() && reply.text.trim().is_empty() {
        return Err(FailureCause::OnlyThought.into());
    }
    let mut checks = chain.iter_mut().map(|middleware| match reply.calls.is_empty() && !stopped {
        true => middleware.check_answer(run_state, &reply),
        false => AnswerCheck::Accept,
    });
    let check = checks.find(|check| *check != AnswerCheck::Accept).unwrap_or(AnswerCheck::Accept);
    drop(checks);
    if let AnswerCheck::Fail(cause) = check {
        return Err(cause.into());
    }
    if !images.is_empty() {
        run_state.publish(RunEvent::Artifacts { paths: images.clone() });
        run_state.apply(Update::Artifacts { run: run_state.run.clone(), paths: images });
    }
    if !matches!(check, AnswerCheck::Replace(_)) {
        run_state.apply(Update::Message(Arc::new(Message::Assistant(reply))));
    }
    if let AnswerCheck::AskAgain(text) | AnswerCheck::Replace(text) = check {
        run_state.note(text);
    }
    Ok(())
}

/// Returns the outcome if the run has already ended, unless the thread's goal requires more and a step is left.
async fn ended(
    agent: &RunAgent,
    run_state: &mut RunState,
    steering: &Steering,
    may_continue: bool,
) -> Result<Option<Outcome>, RunFailure> {
    let outcome = answered(run_state);
    if outcome == Some(Outcome::Success) && may_continue && !steering.is_goal_dropped() {
        let continues = goal::should_continue(agent, run_state).await;
        commit(agent, run_state).await?;
        return Ok(outcome.filter(|_| !continues));
    }
    Ok(outcome)
}

/// Returns success if the newest message is a complete answer to the request.
fn answered_here(run_state: &RunState) -> Option<Outcome> {
    match run_state.state().last().map(AsRef::as_ref) {
        Some(Message::Assistant(_)) => answered(run_state).filter(|outcome| *outcome == Outcome::Success),
        _ => None,
    }
}

/// Returns the outcome if the newest message is an answer without calls, or if one of the newest results asks users a
/// question.
fn answered(run_state: &RunState) -> Option<Outcome> {
    match run_state.state().last().map(AsRef::as_ref) {
        Some(Message::Assistant(reply)) if reply.failure.is_some() => None,
        Some(Message::Assistant(reply)) => match reply.finish {
            Finish::Partial => Some(Outcome::Stopped),
            // The model continues when the reply is sent back.
            Finish::Paused => None,
            Finish::Complete | Finish::Length | Finish::Filtered => {
                reply.calls.is_empty().then_some(Outcome::Success)
            }
        },
        Some(Message::Tool(_)) => run_state.state().question().map(|_| Outcome::Success),
        Some(Message::Human(_) | Message::Reminder(_)) => None,
        None => Some(Outcome::Success),
    }
}

pub(super) async fn commit(agent: &RunAgent, run_state: &mut RunState) -> Result<(), RunFailure> {
    run_state.commit(&agent.log).await.map_err(|error| log_failure(&error))
}

fn log_failure(error: &LogError) -> RunFailure {
    tracing::error!(%error, "failed to write thread");
    FailureCause::Unstored.into()
}

/// Returns why the model's newest reply since the last user message ended.
fn finish(run_state: &RunState) -> Finish {
    let mut replies = run_state.since_asked().filter_map(|message| message.reply());
    replies.next().map(|reply| reply.finish).unwrap_or_default()
}

/// A complete reply.
struct ModelReply {
    reply: Assistant,
    /// Whether a middleware removed all its calls, which ends the run.
    stopped: bool,
    /// Paths of the images that the model made, for users in the chat.
    images: Vec<String>,
}

/// Calls the model and returns its complete reply. A request that was too long is shortened once.
async fn ask(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
) -> Result<ModelReply, RunFailure> {
    loop {
        let request = prepare(agent, chain, run_state).await?;
        let error = match call(agent, chain, run_state, request).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        tracing::warn!(model = agent.model.name(), %error, "failed to call model");
        if matches!(error, ModelError::TooLong(_)) && chain.iter_mut().any(|one| one.too_long(run_state)) {
            run_state.retract();
            continue;
        }
        let described = chain.iter_mut().find_map(|middleware| middleware.model_failed(run_state, &error));
        return Err(described.unwrap_or_else(|| FailureCause::from(&error).into()));
    }
}

/// Returns the thread's messages for models.
pub(super) fn messages(agent: &RunAgent, run_state: &RunState) -> Vec<Arc<Message>> {
    let read = run_state.state().messages.values().filter(|message| !message.is_failure());
    read.map(|message| own_memory(agent, message)).collect()
}

/// Returns a message without the recalled memory of another user.
fn own_memory(agent: &RunAgent, message: &Arc<Message>) -> Arc<Message> {
    match &**message {
        Message::Human(human)
            if human.recalled.as_ref().is_some_and(|recalled| recalled.user != agent.remembers) =>
        {
            Arc::new(Message::Human(Human { recalled: None, ..human.clone() }))
        }
        _ => message.clone(),
    }
}

/// Prepares the next request. Its omissions are logged before the request is sent.
async fn prepare(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
) -> Result<Request, RunFailure> {
    let mut request = Request {
        system: agent.system.to_string(),
        messages: messages(agent, run_state),
        tools: agent.tools.specs().clone(),
        images: Vec::new(),
        thinking: agent.thinking,
        sampling: agent.sampling,
        most: None,
        caller: agent.caller,
    };
    for middleware in chain.iter_mut() {
        middleware.before_model(run_state, &mut request).await?;
    }
    commit(agent, run_state).await?;
    Ok(request)
}

/// Calls the model once.
async fn call(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    request: Request,
) -> Result<ModelReply, ModelError> {
    run_state.publish(RunEvent::Thinking);
    let mut reply = Assistant {
        id: run_state.begin_draft(),
        text: String::new(),
        reasoning: None,
        provider_parts: None,
        calls: Vec::new(),
        finish: Finish::Complete,
        model: Some(agent.model.name().to_owned()),
        usage: None,
        failure: None,
    };
    let (mut deltas, mut images) = (agent.model.stream(request), Vec::new());
    while let Some(delta) = deltas.next().await {
        let thoughts = reply.reasoning.as_ref().map_or(0, String::len);
        if run_state.answer_bytes() > MAX_ANSWER_BYTES || thoughts > MAX_THOUGHT_BYTES {
            // Dropping the stream stops the model.
            reply.finish = Finish::Length;
            break;
        }
        match delta {
            Ok(Delta::Image(bytes)) => images.push(bytes),
            Ok(delta) => {
                if matches!(delta, Delta::Again { .. }) {
                    images.clear();
                }
                apply_delta(delta, run_state, &mut reply);
            }
            Err(error) => {
                let is_free = run_state.answer_bytes() == 0 && error.is_free();
                count_failed(run_state, &mut reply, is_free);
                return Err(error);
            }
        }
    }
    let images = drawn::keep(agent, run_state, images).await;
    reply.text = run_state.end_draft();
    run_state.spending.add_call(ModelCaller::Lead, reply.model.as_deref().unwrap_or_default(), reply.usage);
    if reply.finish == Finish::Filtered {
        // The filter may have cut the calls.
        reply.calls.clear();
        reply.provider_parts = None;
    }
    repair_names(&mut reply.calls, &agent.tools);
    make_unique(&mut reply.calls, run_state);
    let requested = reply.calls.len();
    for middleware in chain.iter_mut().rev() {
        middleware.after_model(run_state, &mut reply);
    }
    if reply.calls.len() < requested {
        // The parts name calls that were removed.
        reply.provider_parts = None;
    }
    Ok(ModelReply { stopped: requested > 0 && reply.calls.is_empty(), reply, images })
}

fn apply_delta(delta: Delta, run_state: &mut RunState, reply: &mut Assistant) {
    match delta {
        Delta::Text(text) => run_state.append_text(text),
        Delta::Retract => reply.id = run_state.retract(),
        Delta::Reasoning(thought) => {
            reply.reasoning.get_or_insert_default().push_str(&thought);
            run_state.publish(RunEvent::Reasoning { message: reply.id.clone(), delta: thought });
        }
        Delta::Model(name) => reply.model = Some(name),
        Delta::ProviderParts(parts) => reply.provider_parts = Some(parts),
        Delta::Call(call) => reply.calls.push(call),
        // The caller stores images.
        Delta::Image(_) => {}
        Delta::Usage(usage) => {
            reply.usage = Some(usage);
            run_state.publish(RunEvent::Usage { usage });
        }
        Delta::Finish(finish) => reply.finish = finish,
        Delta::Again { attempt, wait, reason, .. } => {
            let is_free = run_state.answer_bytes() == 0 && reply.reasoning.is_none();
            count_failed(run_state, reply, is_free);
            reply.id = run_state.retract();
            reply.calls.clear();
            reply.reasoning = None;
            reply.provider_parts = None;
            run_state.publish(RunEvent::Retry { attempt, wait, reason });
        }
    }
}

/// Adds a failed attempt, with its usage if known, to the spending on the model that was called. A free attempt without
/// usage is not added.
fn count_failed(run_state: &mut RunState, reply: &mut Assistant, is_free: bool) {
    let usage = reply.usage.take();
    run_state.count_failed(reply.model.as_deref().unwrap_or_default(), usage, usage.is_none() && is_free);
}

/// Makes call ids unique in the thread: some providers restart their numbering in every reply.
fn make_unique(calls: &mut [ToolCall], run_state: &RunState) {
    if calls.is_empty() {
        return;
    }
    let mut seen: HashSet<_> = HashSet::new();
    for message in run_state.state().messages.values() {
        if let Message::Assistant(assistant) = &**message {
            seen.extend(assistant.calls.iter().map(|call| call.id.clone()));
        }
    }
    for call in calls {
        if !seen.insert(call.id.clone()) {
            call.id = pudu_base::CallId::fresh();
            seen.insert(call.id.clone());
        }
    }
}

#[cfg(test)]
mod examine_tests;
#[cfg(test)]
mod tests;
