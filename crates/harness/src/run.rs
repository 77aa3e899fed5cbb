//! The loop.

mod calls;

use crate::{Agent, Middleware, RunState, Steering};
use futures_util::StreamExt;
use pudu_base::{
    Assistant, Delta, FailureClass, Finish, LogError, Message, Outcome, Request, RunEvent, RunFailure,
    ToolCall, Update,
};
use std::{collections::HashSet, sync::Arc};
use tokio_util::sync::CancellationToken;

pub(super) type Chain = [Box<dyn Middleware>];

/// An answer is cut at so many bytes: a model that talks in circles must not flood a chat.
const LONGEST_ANSWER: usize = 128 * 1024;

/// Takes a thread from where it stands to an answer: a question waits for one, or a crash cut the run
/// that was at work on it. However it ends, what was said and done is in the log before the last event.
pub async fn run(
    agent: &Agent,
    chain: &mut Chain,
    turn: &mut RunState,
    steering: &Steering,
    cancel: &CancellationToken,
) -> Outcome {
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Outcome::Stopped,
        ended = tokio::time::timeout(agent.bounds.time, work(agent, chain, turn, steering)) => match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(failure)) => Outcome::Error(failure),
            Err(_) => Outcome::Timeout,
        },
    };
    if outcome != Outcome::Success {
        turn.keep_partial(agent.model.name(), why(&outcome));
    }
    for middleware in chain.iter_mut().rev() {
        middleware.after_run(turn).await;
    }
    let outcome = match turn.commit(&agent.log).await {
        Ok(()) => outcome,
        Err(error) => Outcome::Error(log_failure(&error)),
    };
    turn.tell(RunEvent::Ended { outcome: outcome.clone() });
    outcome
}

fn why(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Stopped => "the run was stopped",
        Outcome::Timeout => "the run took too long",
        _ => "the run ended early",
    }
}

/// Runs the loop. The thread's state decides the next step, so a run that a crash cut goes on by itself.
async fn work(
    agent: &Agent,
    chain: &mut Chain,
    turn: &mut RunState,
    steering: &Steering,
) -> Result<Outcome, RunFailure> {
    for middleware in chain.iter_mut() {
        middleware.before_run(turn).await?;
    }
    for _ in 0..agent.bounds.steps {
        let calls = turn.open_calls();
        if !calls.is_empty() {
            calls::perform(agent, chain, turn, calls).await?;
        }
        // A question ends a run, and so does an answer before a crash: what steers comes too late for it.
        if let Some(outcome) = answered(turn) {
            return Ok(outcome);
        }
        for human in steering.drain() {
            turn.apply(Update::Message(Arc::new(Message::Human(human))));
        }
        commit(agent, turn).await?;
        let reply = ask(agent, chain, turn).await?;
        turn.apply(Update::Message(Arc::new(Message::Assistant(reply))));
        commit(agent, turn).await?;
        if let Some(outcome) = answered(turn) {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Limit)
}

/// Returns how the run has ended already, if the newest message is an answer that wants no tools, or if one of
/// the newest results asks people something.
fn answered(turn: &RunState) -> Option<Outcome> {
    match turn.state().last().map(AsRef::as_ref) {
        Some(Message::Assistant(reply)) if reply.finish == Finish::Partial => Some(Outcome::Stopped),
        Some(Message::Assistant(reply)) => reply.calls.is_empty().then_some(Outcome::Success),
        Some(Message::Tool(_)) => turn.state().question().map(|_| Outcome::Success),
        Some(Message::Human(_)) => None,
        None => Some(Outcome::Success),
    }
}

pub(super) async fn commit(agent: &Agent, turn: &mut RunState) -> Result<(), RunFailure> {
    turn.commit(&agent.log).await.map_err(|error| log_failure(&error))
}

fn log_failure(error: &LogError) -> RunFailure {
    tracing::error!(%error, "a thread could not be written");
    let hint = "What was said could not be stored. Whoever runs this bot finds the reason in its log.";
    RunFailure { class: FailureClass::Internal, hint: hint.to_owned() }
}

/// Asks the model once and returns its whole reply.
async fn ask(agent: &Agent, chain: &mut Chain, turn: &mut RunState) -> Result<Assistant, RunFailure> {
    let mut request = Request {
        system: agent.system.to_string(),
        messages: turn.state().messages.values().cloned().collect(),
        tools: agent.tools.specs().clone(),
        images: Vec::new(),
    };
    for middleware in chain.iter_mut() {
        middleware.before_model(turn, &mut request).await?;
    }
    turn.tell(RunEvent::Thinking);
    let mut reply = Assistant {
        id: turn.begin_draft(),
        text: String::new(),
        reasoning: None,
        calls: Vec::new(),
        finish: Finish::Complete,
        model: Some(agent.model.name().to_owned()),
        usage: None,
    };
    let mut deltas = agent.model.stream(request);
    while let Some(delta) = deltas.next().await {
        if turn.said() > LONGEST_ANSWER {
            // Dropping the stream stops the model.
            reply.finish = Finish::Length;
            break;
        }
        match delta {
            Ok(delta) => take(delta, turn, &mut reply),
            Err(error) => {
                tracing::warn!(model = agent.model.name(), %error, "a model call failed");
                let said = chain.iter_mut().find_map(|middleware| middleware.model_failed(turn, &error));
                return Err(said.unwrap_or_else(|| crate::middleware::failure(&error)));
            }
        }
    }
    reply.text = turn.end_draft();
    if reply.finish == Finish::Filtered {
        // What a filter cut is not what the model meant to ask for.
        reply.calls.clear();
    }
    make_unique(&mut reply.calls, turn);
    for middleware in chain.iter_mut().rev() {
        middleware.after_model(turn, &mut reply);
    }
    Ok(reply)
}

fn take(delta: Delta, turn: &mut RunState, reply: &mut Assistant) {
    match delta {
        Delta::Text(text) => turn.say(text),
        Delta::Reasoning(thought) => reply.reasoning.get_or_insert_default().push_str(&thought),
        Delta::Call(call) => reply.calls.push(call),
        Delta::Usage(usage) => {
            reply.usage = Some(usage);
            turn.usage += usage;
            turn.tell(RunEvent::Usage { usage });
        }
        Delta::Finish(finish) => reply.finish = finish,
        Delta::Again { attempt, wait, reason } => {
            turn.retract();
            reply.calls.clear();
            reply.reasoning = None;
            turn.tell(RunEvent::Retry { attempt, wait, reason });
        }
    }
}

/// Some providers number calls anew in every reply; in the thread each id stands for one call.
fn make_unique(calls: &mut [ToolCall], turn: &RunState) {
    if calls.is_empty() {
        return;
    }
    let mut taken: HashSet<_> = HashSet::new();
    for message in turn.state().messages.values() {
        if let Message::Assistant(assistant) = &**message {
            taken.extend(assistant.calls.iter().map(|call| call.id.clone()));
        }
    }
    for call in calls {
        if !taken.insert(call.id.clone()) {
            call.id = pudu_base::CallId::fresh();
            taken.insert(call.id.clone());
        }
    }
}

#[cfg(test)]
mod tests;
