//! Runs the calls of one reply concurrently. The log records the start of a call before its effect, and its result as
//! soon as it is available, so a restart repeats no finished tool.

use super::{
    Chain, commit,
    host::{HostUse, RunHost},
};
use crate::{
    Gate, RunAgent, RunState,
    coerce::coerce,
    lending,
    memory::CallSandbox,
    run_state,
    task_end::{self, LOST, TASK},
};
use futures_util::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use pudu_base::{
    ApprovalRequest, Decision, Finish, GuardedCall, GuardrailVerdict, MAX_ARTIFACTS, Message,
    PURPOSE_ARGUMENT, RunEvent, RunFailure, Tell, ToolCall, ToolCx, ToolError, ToolOutput, ToolResult,
    Update,
};
use serde_json::{Map, Value};
use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc};

/// Maximum number of concurrent calls of one reply; the others wait.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Maximum number of interruptions of a call by process exits. The call is then not retried.
const MAX_INTERRUPTIONS: u32 = 2;

/// Result of waiting for a call.
enum CallStep {
    /// A user decided whether the call is made.
    Decided(ToolCall, Decision),
    /// The call cannot be made: no user was asked, or the guardrails denied an approved call.
    Refused(ToolCall, Option<Decision>, String),
    /// The tool finished.
    Ended(ToolCall, Option<Decision>, Box<Result<ToolOutput, ToolError>>, HostUse),
}

/// Calls in progress.
type CallWork<'a> = FuturesUnordered<BoxFuture<'a, CallStep>>;

/// Calls that may be made, and the number of running ones.
#[derive(Default)]
struct CallQueue {
    waiting: VecDeque<(ToolCall, Option<Decision>)>,
    running: usize,
    /// Whether the running call has to run alone.
    alone: bool,
}

impl CallQueue {
    /// Takes the calls that may start now. A call that a restart interrupted runs alone: if the process exits again,
    /// the cause is known.
    fn start(&mut self, run_state: &RunState) -> Vec<(ToolCall, Option<Decision>)> {
        let mut started = Vec::new();
        while let Some((call, _)) = self.waiting.front() {
            let alone = run_state.state().interrupted.contains_key(&call.id);
            let limit = if alone || self.alone { 1 } else { MAX_CONCURRENT_CALLS };
            if self.running >= limit {
                break;
            }
            (self.running, self.alone) = (self.running + 1, alone);
            started.extend(self.waiting.pop_front());
        }
        started
    }

    fn ended(&mut self) {
        (self.running, self.alone) = (self.running.saturating_sub(1), false);
    }
}

/// Makes the calls, each as soon as possible, and records their results.
pub(super) async fn perform(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    calls: Vec<ToolCall>,
) -> Result<(), RunFailure> {
    let (work, mut queue) = (CallWork::new(), CallQueue::default());
    let calls: Vec<ToolCall> = calls.into_iter().map(|call| coerced(agent, call)).collect();
    for call in calls.iter().filter(|call| run_state.state().begun.contains(&call.id)).collect::<Vec<_>>() {
        run_state.apply(Update::Interrupt(call.id.clone()));
    }
    for call in calls.iter().filter(|call| task_end::has_steps(&call.name)) {
        if run_state.state().interrupted.contains_key(&call.id) {
            run_state.lose_task(call);
        }
    }
    let admitted = calls.into_iter().map(|call| {
        let gate = admit(agent, chain, run_state, &call);
        let asks = agent.guardrail.is_some() && matches!(gate, Gate::Allow | Gate::Ask(_));
        let guarded = asks.then(|| guarded_call(run_state, &call));
        (call, gate, guarded)
    });
    for (call, gate) in screened(agent, admitted.collect()).await {
        match gate {
            Gate::Allow => queue.waiting.push_back((call, None)),
            Gate::Ask(line) => work.push(ask(agent, run_state, call, line)),
            Gate::Block(line, text) => {
                agent.approver.refused(&request(run_state, &call, line)).await;
                run_state.refuse(&call, text);
            }
            Gate::Deny(text) => run_state.refuse(&call, text),
        }
    }
    commit(agent, run_state).await?;
    // Calls that run alone come first.
    queue
        .waiting
        .make_contiguous()
        .sort_by_key(|(call, _)| !run_state.state().interrupted.contains_key(&call.id));
    finish(agent, chain, run_state, work, queue).await
}

/// Returns a call with its arguments coerced to its tool's schema, for users, guardrails and the tool. The thread keeps
/// the model's arguments.
fn coerced(agent: &RunAgent, mut call: ToolCall) -> ToolCall {
    if let Some(tool) = agent.tools.get(&call.name).filter(|_| call.garbled.is_none()) {
        coerce(&mut call.args, &tool.spec().parameters);
    }
    call
}

async fn finish<'a>(
    agent: &'a RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    mut work: CallWork<'a>,
    mut queue: CallQueue,
) -> Result<(), RunFailure> {
    let tasks = run_state.tasks.clone();
    loop {
        let started = queue.start(run_state);
        begin(agent, run_state, &started).await?;
        work.extend(
            started.into_iter().map(|(call, decision)| invoke(agent, chain, run_state, call, decision)),
        );
        let step = tokio::select! {
            biased;
            step = work.next() => step,
            () = tasks.wait_for_updates() => {
                commit(agent, run_state).await?;
                continue;
            }
        };
        match step {
            None => return Ok(()),
            Some(step) => handle_step(agent, chain, run_state, step, &mut queue).await?,
        }
    }
}

/// Handles the result of a step.
async fn handle_step(
    agent: &RunAgent,
    chain: &mut Chain,
    run_state: &mut RunState,
    step: CallStep,
    queue: &mut CallQueue,
) -> Result<(), RunFailure> {
    match step {
        CallStep::Decided(call, decision) if decision.approved => {
            tell_decision(run_state, &call, &decision);
            queue.waiting.push_back((call, Some(decision)));
            Ok(())
        }
        CallStep::Refused(call, decision, text) => {
            if let Some(decision) = &decision {
                tell_decision(run_state, &call, decision);
            }
            let result = run_state::result(&call, text);
            run_state.answer(ToolResult { error: true, decision, ..result });
            commit(agent, run_state).await
        }
        CallStep::Decided(call, decision) => {
            tell_decision(run_state, &call, &decision);
            run_state.answer(denied(agent, &call, decision));
            commit(agent, run_state).await
        }
        CallStep::Ended(call, decision, mut result, used) => {
            queue.ended();
            used.spending.parts().iter().for_each(|part| run_state.spending.add(part.clone()));
            if let Ok(output) = &mut *result {
                output.decisions.extend(used.decisions);
            }
            for middleware in chain.iter_mut().rev() {
                middleware.after_tool(run_state, &call, &mut result);
            }
            record(run_state, &call, decision, *result);
            commit(agent, run_state).await
        }
    }
}

/// Evaluates the guardrails for all calls that are not already refused, with the same concurrency as calls.
async fn screened(
    agent: &RunAgent,
    calls: Vec<(ToolCall, Gate, Option<GuardedCall>)>,
) -> Vec<(ToolCall, Gate)> {
    let ask = async |(call, gate, guarded): (ToolCall, Gate, Option<GuardedCall>)| {
        let refused = match &guarded {
            Some(guarded) => refused(agent, guarded).await,
            None => None,
        };
        (call, refused.map_or(gate, Gate::Deny))
    };
    stream::iter(calls.into_iter().map(ask)).buffered(MAX_CONCURRENT_CALLS).collect().await
}

fn guarded_call(run_state: &RunState, call: &ToolCall) -> GuardedCall {
    GuardedCall {
        thread: run_state.thread.clone(),
        run: run_state.run.clone(),
        call: call.id.clone(),
        tool: call.name.clone(),
        args: call.args.clone(),
        is_subagent: false,
    }
}

/// Returns the text for the model if the guardrails deny a call.
async fn refused(agent: &RunAgent, call: &GuardedCall) -> Option<String> {
    match agent.guardrail.as_ref()?.evaluate(call).await {
        GuardrailVerdict::Allow => None,
        GuardrailVerdict::Deny { code, reason } => Some(format!(
            "Error: a guardrail does not allow this call of {} ({code}): {reason}. Do not try to bypass it; use \
             another way that is allowed, or describe what you would have done.",
            call.tool
        )),
    }
}

/// Decides whether a call is made.
fn admit(agent: &RunAgent, chain: &mut Chain, run_state: &RunState, call: &ToolCall) -> Gate {
    if call.garbled.is_some() && run_state.newest_finish() == Finish::Length {
        let text = "Error: the output limit truncated your reply before this call was complete, so it was not made. Repeat it with less content; write a long file in parts, and append the later ones.";
        return Gate::Deny(text.to_owned());
    }
    if let Some(raw) = &call.garbled {
        let raw: String = raw.chars().take(500).collect();
        return Gate::Deny(format!("Error: the arguments are not a JSON object: {raw}"));
    }
    let tool = agent.tools.get(&call.name);
    if interruptions(agent, run_state, call) >= MAX_INTERRUPTIONS {
        tracing::warn!(tool = call.name, "refused tool call: the process exited during earlier attempts");
        let text = "Error: the process exited during each attempt at this call, so it is not made again. Use another way, or say that it cannot be done.";
        return Gate::Deny(text.to_owned());
    }
    // Checked first, because a tool that has since been removed may also have had its effect.
    if run_state.state().interrupted.contains_key(&call.id) && tool.is_none_or(|tool| !tool.spec().idempotent)
    {
        if call.name == TASK {
            return Gate::Deny(task_end::failed(LOST));
        }
        let text = "Error: a restart interrupted this call. It may or may not have had its effect: check before you repeat it.";
        return Gate::Deny(text.to_owned());
    }
    if tool.is_none() {
        let available = agent.tools.only(|name| !agent.deferred.has(name)).names();
        let text = format!("Error: there is no tool {}. There are: {available}.", call.name);
        return Gate::Deny(text);
    }
    let gates = chain.iter_mut().map(|middleware| middleware.before_tool(run_state, call));
    gates.fold(Gate::Allow, Gate::stricter)
}

/// Returns how often a restart interrupted this call, or another call of the same tool with the same arguments.
fn interruptions(agent: &RunAgent, run_state: &RunState, call: &ToolCall) -> u32 {
    let state = run_state.state();
    if state.interrupted.is_empty() {
        return 0;
    }
    let past_calls = state.messages.values().filter_map(|message| match &**message {
        Message::Assistant(reply) => Some(&reply.calls),
        Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => None,
    });
    let is_same = |other: &&ToolCall| {
        other.id == call.id
            || other.name == call.name && same_args(&coerced(agent, (*other).clone()).args, &call.args)
    };
    let same = past_calls.flatten().filter(is_same);
    same.filter_map(|other| state.interrupted.get(&other.id)).sum()
}

/// Returns whether two sets of arguments are the same apart from the stated purpose.
fn same_args(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let telling = |args: &Map<String, Value>| args.keys().filter(|key| *key != PURPOSE_ARGUMENT).count();
    let same = |(key, value): (&String, &Value)| key == PURPOSE_ARGUMENT || other.get(key) == Some(value);
    telling(one) == telling(other) && one.iter().all(same)
}

/// Records that calls begin.
async fn begin(
    agent: &RunAgent,
    run_state: &mut RunState,
    calls: &[(ToolCall, Option<Decision>)],
) -> Result<(), RunFailure> {
    for (call, _) in calls {
        run_state.apply(Update::Begin(call.id.clone()));
    }
    commit(agent, run_state).await
}

/// Waits for a user's decision, after the tool has confirmed that the call can be made.
fn ask<'a>(
    agent: &'a RunAgent,
    run_state: &RunState,
    call: ToolCall,
    line: String,
) -> BoxFuture<'a, CallStep> {
    let (mut request, tell) = (request(run_state, &call, line), event_callback(run_state));
    let guarded = guarded_call(run_state, &call);
    Box::pin(async move {
        let examined = match agent.tools.get(&call.name) {
            Some(tool) => AssertUnwindSafe(tool.examine(&call.args)).catch_unwind().await,
            None => Ok(Ok(None)),
        };
        match examined {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(more))) => {
                let full = request.whole.as_deref().map(|full| format!("{}\n\n", full.trim_end()));
                request.whole = Some(format!("{}{more}", full.unwrap_or_default()).into());
            }
            Ok(Err(ToolError(why))) => return CallStep::Refused(call, None, format!("Error: {why}")),
            Err(_) => {
                tracing::error!(tool = call.name, "aborted check of tool call after panic");
                let why = format!("Error: {} failed with an internal error", call.name);
                return CallStep::Refused(call, None, why);
            }
        }
        let decision = agent.approver.decide(&request, &tell).await;
        // A decision may take long, so the guardrails are evaluated again.
        match decision.approved {
            true => match refused(agent, &guarded).await {
                Some(text) => CallStep::Refused(call, Some(decision), text),
                None => CallStep::Decided(call, decision),
            },
            false => CallStep::Decided(call, decision),
        }
    })
}

fn request(run_state: &RunState, call: &ToolCall, line: String) -> ApprovalRequest {
    ApprovalRequest {
        thread: run_state.thread.clone(),
        run: run_state.run.clone(),
        call: call.id.clone(),
        tool: call.name.clone(),
        args: call.args.clone(),
        whole: crate::middleware::whole(call),
        line,
    }
}

/// Calls a tool.
fn invoke<'a>(
    agent: &'a RunAgent,
    chain: &Chain,
    run_state: &RunState,
    call: ToolCall,
    decision: Option<Decision>,
) -> BoxFuture<'a, CallStep> {
    let description = agent.tools.get(&call.name).and_then(|tool| tool.purpose(&call.args));
    run_state.publish(RunEvent::ToolStarted { call: call.id.clone(), tool: call.name.clone(), description });
    let secrets: Vec<String> =
        chain.iter().flat_map(|middleware| middleware.secret_names(run_state)).collect();
    let variables = lending::variables_for_call(agent, &call.name, &secrets);
    let tell = event_callback(run_state);
    let call = Arc::new(call);
    let host = Arc::new(RunHost::new(agent, run_state, call.clone(), tell.clone()));
    let cx = ToolCx {
        thread: run_state.thread.clone(),
        run: run_state.run.clone(),
        call: call.id.clone(),
        sandbox: Arc::new(CallSandbox::new(agent.sandbox.clone(), variables, agent.memory.clone())),
        marks: run_state.state().marks.clone(),
        events: tell,
        host: host.clone(),
        allowed_tools: chain.iter().find_map(|middleware| middleware.allowed_tools(run_state)),
    };
    Box::pin(async move {
        let result = match agent.tools.get(&call.name) {
            Some(tool) => AssertUnwindSafe(tool.call(call.args.clone(), &cx)).catch_unwind().await,
            None => Ok(Err(ToolError("the tool no longer exists".to_owned()))),
        };
        let result = result.unwrap_or_else(|_| {
            tracing::error!(tool = call.name, "aborted tool call after panic");
            Err(ToolError(format!("{} failed with an internal error", call.name)))
        });
        let result = match lending::hide(agent, result) {
            Ok(output) => {
                let (window, sees) = (agent.model.context_window(), agent.model.supports_vision());
                let output = agent.results.fit(&call.name, output, &agent.tools, window).await;
                Ok(agent.results.keep_images(&call.name, output, sees).await)
            }
            failed => failed,
        };
        let used = host.take_use();
        drop((cx, host));
        CallStep::Ended(Arc::unwrap_or_clone(call), decision, Box::new(result), used)
    })
}

/// Returns a callback for the run's readers that outlives a borrow of the run state.
fn event_callback(run_state: &RunState) -> Tell {
    let (replay, tasks) = (run_state.replay.clone(), run_state.tasks.clone());
    Arc::new(move |event| {
        let event = tasks.for_publishing(event);
        tasks.note(&event);
        replay.publish(event);
    })
}

fn tell_decision(run_state: &RunState, call: &ToolCall, decision: &Decision) {
    run_state.publish(RunEvent::ApprovalDecided { call: call.id.clone(), decision: decision.clone() });
}

fn denied(agent: &RunAgent, call: &ToolCall, decision: Decision) -> ToolResult {
    let text = match &decision.by {
        Some(by) => {
            format!("Error: {by} denied this call. Do not try another way; ask what to do instead.")
        }
        None if decision.not_asked => agent.approver.not_asked().to_owned(),
        None => "Error: this call was not approved in time. Describe what you would have done, and continue without it."
            .to_owned(),
    };
    ToolResult { error: true, decision: Some(decision), ..run_state::result(call, text) }
}

/// Returns the names of the run's files for users that exceed the limit of its answer.
fn left_out(run_state: &RunState) -> Option<String> {
    let own = run_state.state().artifacts.iter().filter(|(_, run)| **run == run_state.run);
    let names: Vec<&str> =
        own.skip(MAX_ARTIFACTS).map(|(path, _)| path.rsplit('/').next().unwrap_or(path)).collect();
    let more = names.len().saturating_sub(MAX_ARTIFACTS);
    let listed = names.iter().take(MAX_ARTIFACTS).copied().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(listed),
        (false, more) => Some(format!("{listed} and {more} more")),
    }
}

fn record(
    run_state: &mut RunState,
    call: &ToolCall,
    decision: Option<Decision>,
    result: Result<ToolOutput, ToolError>,
) {
    let error = result.is_err();
    let mut output = result.unwrap_or_else(|ToolError(text)| text.into());
    let presents = output.updates.iter().any(|update| matches!(update, Update::Artifacts { .. }));
    for update in std::mem::take(&mut output.updates) {
        if let Update::Artifacts { paths, .. } = &update {
            run_state.publish(RunEvent::Artifacts { paths: paths.clone() });
        }
        if let Update::Todos(todos) = &update {
            run_state.publish(RunEvent::Todos { todos: todos.clone() });
        }
        run_state.apply(update);
    }
    if let Some(names) = presents.then(|| left_out(run_state)).flatten() {
        output.text.push_str(&format!(
            " Not sent, because an answer can have at most {MAX_ARTIFACTS} files: {names}. Say so: people may ask for them in their next message."
        ));
    }
    let usage = output.spending.usage();
    if usage != pudu_base::Usage::default() {
        run_state.publish(RunEvent::Usage { usage });
    }
    output.spending.parts().iter().for_each(|part| run_state.spending.add(part.clone()));
    let ToolOutput { question, images, decisions, text, task, .. } = output;
    run_state.answer(ToolResult {
        error,
        question,
        images,
        decision,
        decisions,
        task,
        ..run_state::result(call, text)
    });
    run_state.publish(RunEvent::ToolEnded { call: call.id.clone(), tool: call.name.clone(), error });
}

#[cfg(test)]
mod tests;
