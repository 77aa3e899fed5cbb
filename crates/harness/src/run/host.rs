//! Lets a tool call ask the run's users and model while it is running.

use crate::{RunAgent, RunState, prompt::ASK, replay::below, side_call};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, CallHost, Decision, EffectRequest, MAX_WHOLE_BYTES, Message,
    MessageId, Model, ModelCaller, Request, RunEvent, RunId, SamplePrompt, SampledText, SpendingTally, Tell,
    ThreadId, ToolCall,
};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// People and model of a run, for one call.
pub(super) struct RunHost {
    thread: ThreadId,
    run: RunId,
    call: Arc<ToolCall>,
    can_ask: bool,
    newest_message: Option<Arc<Message>>,
    workspace: Option<PathBuf>,
    approver: Arc<dyn Approver>,
    model: Arc<dyn Model>,
    caller: ModelCaller,
    tell: Tell,
    used: Mutex<HostUse>,
}

/// Use of a host by its call.
#[derive(Default)]
pub(super) struct HostUse {
    pub(super) spending: SpendingTally,
    pub(super) decisions: Vec<Decision>,
    asked: usize,
}

impl RunHost {
    pub(super) fn new(agent: &RunAgent, run_state: &RunState, call: Arc<ToolCall>, tell: Tell) -> Self {
        let mut messages = run_state.state().messages.values().rev();
        let newest = messages.find(|message| matches!(&***message, Message::Human(_)));
        Self {
            thread: run_state.thread.clone(),
            run: run_state.run.clone(),
            call,
            can_ask: agent.tools.get(ASK).is_some(),
            newest_message: newest.cloned(),
            workspace: agent.workspace.clone(),
            approver: agent.approver.clone(),
            model: agent.model.clone(),
            caller: agent.caller,
            tell,
            used: Mutex::default(),
        }
    }

    /// Returns the use so far, and begins to count again.
    pub(super) fn take_use(&self) -> HostUse {
        std::mem::take(&mut *self.used())
    }

    fn used(&self) -> MutexGuard<'_, HostUse> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request for an effect. Its call has an id of its own, because an approval belongs to one call.
    fn effect(&self, EffectRequest { line, whole }: EffectRequest) -> ApprovalRequest {
        let number = {
            let mut used = self.used();
            used.asked += 1;
            used.asked
        };
        let args = json!({ "call": self.call.args, "effect": whole.as_deref().unwrap_or(&line) });
        let call = format!("{}{number}", below(&self.call.id)).into();
        let (thread, run, tool) = (self.thread.clone(), self.run.clone(), self.call.name.clone());
        ApprovalRequest { thread, run, call, tool, args, line, whole }
    }
}

impl CallHost for RunHost {
    fn can_ask(&self) -> bool {
        self.can_ask
    }

    fn newest_message(&self) -> Option<(MessageId, Arc<str>)> {
        match self.newest_message.as_deref()? {
            Message::Human(human) => Some((human.id.clone(), human.text.as_str().into())),
            _ => None,
        }
    }

    fn approve(&self, request: EffectRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            let request = self.effect(request);
            let decision = if request.whole.as_ref().is_some_and(|whole| whole.len() > MAX_WHOLE_BYTES) {
                // No person reads a longer text before deciding.
                self.approver.refused(&request).await;
                Decision { request: request.line.clone(), approved: false, by: None, not_asked: true }
            } else {
                self.approver.decide(&request, &self.tell).await
            };
            (self.tell)(RunEvent::ApprovalDecided { call: request.call, decision: decision.clone() });
            self.used().decisions.push(decision.clone());
            decision
        })
    }

    fn sample(&self, prompt: SamplePrompt) -> BoxFuture<'_, Result<SampledText, String>> {
        Box::pin(async move {
            let SamplePrompt { system, messages, max_tokens: most } = prompt;
            let request = Request { system, messages, most, ..Request::default() };
            let mut spending = SpendingTally::default();
            let tell = |event| (self.tell)(event);
            let answer = side_call(&*self.model, request, self.caller, &mut spending, tell).await;
            spending.parts().iter().for_each(|part| self.used().spending.add(part.clone()));
            let text = answer.map_err(|error| error.to_string())?;
            Ok(SampledText { text, model: self.model.name().to_owned() })
        })
    }

    fn workspace(&self) -> Option<PathBuf> {
        self.workspace.clone()
    }
}
