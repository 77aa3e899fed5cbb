//! Changes of a run: the thread's state, the updates that are not durable yet, and the events for its readers.

use crate::{
    Replay,
    task_end::{self, TASK, TaskEnding},
    task_log::TaskLog,
};
use pudu_base::{
    Assistant, BoxFuture, CallId, Finish, LogError, Message, MessageId, ModelCaller, Outcome, Reminder,
    Request, RunEvent, RunId, Seq, SpendingTally, StopReason, TaskEnd, TaskStage, TaskStatus, ThreadId,
    ThreadLog, ThreadState, ToolCall, ToolResult, Update, Usage,
};
use std::sync::Arc;

/// The state of one run. [`RunState::apply`] is the only way to change the thread.
pub struct RunState {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// Receives the run's events.
    pub replay: Arc<Replay>,
    /// Spending of this run on models.
    pub spending: SpendingTally,
    /// The limit that made a middleware end the run before its model was done.
    pub stop_reason: Option<StopReason>,
    /// Whether the thread keeps a failure as a message, for clients that read the thread later.
    pub keeps_failure: bool,
    /// Steps of its sub-agents.
    pub(crate) tasks: Arc<TaskLog>,
    state: ThreadState,
    seq: Seq,
    pending: Vec<Update>,
    writing: Option<Writing>,
    draft: Option<AnswerDraft>,
}

/// Updates that are being written to the log. If the future that waits for them is dropped, the write is not lost: the
/// next commit waits for it first.
struct Writing {
    updates: Arc<[Update]>,
    done: BoxFuture<'static, Result<Seq, LogError>>,
}

impl Writing {
    fn begin(log: Arc<dyn ThreadLog>, thread: ThreadId, run: RunId, at: Seq, updates: Vec<Update>) -> Self {
        let updates: Arc<[Update]> = updates.into();
        let rows = updates.clone();
        Self { updates, done: Box::pin(async move { log.append(&thread, &run, at, &rows).await }) }
    }
}

/// An answer that is being received.
struct AnswerDraft {
    id: MessageId,
    text: String,
    /// Whether its cost is already counted, because the attempt failed.
    is_counted: bool,
}

impl RunState {
    /// Starts from a thread's state at a position.
    #[must_use]
    pub fn new(thread: ThreadId, run: RunId, seq: Seq, state: ThreadState, replay: Arc<Replay>) -> Self {
        Self {
            thread,
            run,
            replay,
            spending: SpendingTally::default(),
            stop_reason: None,
            keeps_failure: false,
            tasks: Arc::default(),
            state,
            seq,
            pending: Vec::new(),
            writing: None,
            draft: None,
        }
    }

    /// Returns the thread's state with everything applied so far.
    #[must_use]
    pub fn state(&self) -> &ThreadState {
        &self.state
    }

    /// Returns the state and the position up to which it is durable; `None` if the state is ahead of the log.
    #[must_use]
    pub fn into_state(self) -> Option<(Seq, ThreadState)> {
        (self.pending.is_empty() && self.writing.is_none()).then_some((self.seq, self.state))
    }

    /// Applies an update to the thread. It is durable after the next [`RunState::commit`].
    pub fn apply(&mut self, update: Update) {
        self.state.apply(update.clone());
        self.pending.push(update);
    }

    /// Makes all changes durable.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next commit waits for the write in progress.
    ///
    /// # Errors
    /// If another writer changed the thread, or the store failed.
    pub async fn commit(&mut self, log: &Arc<dyn ThreadLog>) -> Result<(), LogError> {
        self.tasks.take().into_iter().for_each(|step| self.apply(step));
        loop {
            if self.writing.is_none() && !self.pending.is_empty() {
                let updates = std::mem::take(&mut self.pending);
                let (thread, run) = (self.thread.clone(), self.run.clone());
                self.writing = Some(Writing::begin(log.clone(), thread, run, self.seq, updates));
            }
            let Some(writing) = &mut self.writing else { return Ok(()) };
            let done = (&mut writing.done).await;
            let updates = self.writing.take().map(|writing| writing.updates).unwrap_or_default();
            if done.is_err() {
                self.pending.splice(..0, updates.iter().cloned());
            }
            self.seq = done?;
            self.publish(RunEvent::Committed { seq: self.seq, updates });
        }
    }

    /// Stores the run's failure, for clients that read the thread later.
    pub async fn keep_failure(&mut self, outcome: &Outcome, log: &Arc<dyn ThreadLog>) {
        if !self.keeps_failure || matches!(outcome, Outcome::Success | Outcome::Stopped) {
            return;
        }
        let failed = Assistant::failed(format!("failed-{}", self.run).into(), outcome.clone());
        self.apply(Update::Message(Arc::new(Message::Assistant(failed))));
        if let Err(error) = self.commit(log).await {
            tracing::error!(thread = %self.thread, %error, "failed to store the failure of a run");
        }
    }

    /// Sends an event to readers.
    pub fn publish(&self, event: RunEvent) {
        self.replay.publish(event);
    }

    /// Begins an answer.
    pub(crate) fn begin_draft(&mut self) -> MessageId {
        let id = MessageId::fresh();
        self.draft = Some(AnswerDraft { id: id.clone(), text: String::new(), is_counted: false });
        id
    }

    /// Appends text to the current answer and publishes it to readers.
    pub(crate) fn append_text(&mut self, delta: String) {
        if let Some(draft) = &mut self.draft {
            draft.text.push_str(&delta);
            let message = draft.id.clone();
            self.publish(RunEvent::Text { message, delta });
        }
    }

    /// Returns the length of the current answer, in bytes.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.draft.as_ref().map_or(0, |draft| draft.text.len())
    }

    /// Discards the current answer because the call is made again. The next answer gets a new id, because some readers
    /// join texts with the same id.
    pub(crate) fn retract(&mut self) -> MessageId {
        if let Some(AnswerDraft { id: message, .. }) = self.draft.take() {
            self.publish(RunEvent::Retract { message });
        }
        self.begin_draft()
    }

    /// Counts the cost of a failed attempt at the current answer, unless it is free.
    pub(crate) fn count_failed(&mut self, model: &str, usage: Option<Usage>, is_free: bool) {
        if !is_free {
            self.spending.add_call(ModelCaller::Lead, model, usage);
        }
        if let Some(draft) = &mut self.draft {
            draft.is_counted = true;
        }
    }

    /// Takes the text of the complete answer.
    pub(crate) fn end_draft(&mut self) -> String {
        self.draft.take().map(|draft| draft.text).unwrap_or_default()
    }

    /// Records the state of a run that ends early: the text so far as a partial answer, and a result for each call that
    /// has none.
    pub(crate) fn keep_partial(&mut self, model: &str, why: &str, outcome: &Outcome) {
        if self.draft.as_ref().is_some_and(|draft| !draft.is_counted) {
            self.spending.add_call(ModelCaller::Lead, model, None);
        }
        if let Some(AnswerDraft { id, text, .. }) =
            self.draft.take().filter(|draft| !draft.text.trim().is_empty())
        {
            self.apply(Update::Message(Arc::new(Message::Assistant(Assistant {
                id,
                text,
                reasoning: None,
                provider_parts: None,
                calls: Vec::new(),
                finish: Finish::Partial,
                model: Some(model.to_owned()),
                usage: None,
                failure: None,
            }))));
        }
        for call in self.open_calls() {
            match call.name == TASK && !self.is_lost(&call) {
                true => self.cut_task(&call, outcome),
                false => self.give_up(&call, why),
            }
        }
    }

    /// Answers the call of a task that the run does not wait for.
    fn cut_task(&mut self, call: &ToolCall, outcome: &Outcome) {
        let (ending, (model, usage)) = (TaskEnding::cut(Some(outcome)), self.tasks.spent(&call.id));
        let task = Some(ending.report(model, usage));
        self.answer(ToolResult { error: true, task, ..result(call, ending.text()) });
    }

    /// Answers each call that has no result, since it will not be made.
    pub fn give_up_calls(&mut self, why: &str) {
        for call in self.open_calls() {
            self.give_up(&call, why);
        }
    }

    fn give_up(&mut self, call: &ToolCall, why: &str) {
        if self.is_lost(call) {
            self.lose_task(call);
            self.refuse(call, task_end::failed(task_end::LOST));
        } else {
            self.refuse(call, format!("Not finished: {why}."));
        }
    }

    /// Returns whether a call is a sub-agent's task left unfinished by an earlier process.
    fn is_lost(&self, call: &ToolCall) -> bool {
        let had_begun = self.state.begun.contains(&call.id) || self.state.interrupted.contains_key(&call.id);
        task_end::has_steps(&call.name) && had_begun && !self.tasks.began(&call.id)
    }

    /// Records the end of a sub-agent's task left unfinished by an earlier process.
    pub(crate) fn lose_task(&mut self, call: &ToolCall) {
        let end = TaskEnd {
            status: TaskStatus::Failed,
            stop_reason: None,
            model: String::new(),
            usage: Usage::default(),
            text: task_end::LOST.to_owned(),
            truncated: false,
            omitted: 0,
        };
        self.apply(Update::Task { call: call.id.clone(), stage: TaskStage::Ended(end) });
    }

    /// Returns the calls of the newest assistant message that have no result, in order.
    #[must_use]
    pub fn open_calls(&self) -> Vec<ToolCall> {
        let mut answered: Vec<&CallId> = Vec::new();
        for message in self.state.messages.values().rev() {
            match &**message {
                Message::Tool(result) => answered.push(&result.call),
                Message::Assistant(failed) if failed.failure.is_some() => {}
                Message::Assistant(assistant) => {
                    return assistant
                        .calls
                        .iter()
                        .filter(|call| !answered.contains(&&call.id))
                        .cloned()
                        .collect();
                }
                Message::Human(_) | Message::Reminder(_) => {}
            }
        }
        Vec::new()
    }

    /// Returns the newest assistant message.
    fn newest_reply(&self) -> Option<&Assistant> {
        self.state.messages.values().rev().find_map(|message| message.reply())
    }

    /// Returns the calls of the newest assistant message.
    pub(crate) fn newest_calls(&self) -> &[ToolCall] {
        self.newest_reply().map(|reply| reply.calls.as_slice()).unwrap_or_default()
    }

    /// Returns why the newest assistant message ended.
    pub(crate) fn newest_finish(&self) -> Finish {
        self.newest_reply().map(|reply| reply.finish).unwrap_or_default()
    }

    /// Returns the messages since the last user message, newest first.
    pub fn since_asked(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.state.messages.values().rev().take_while(|message| !matches!(***message, Message::Human(_)))
    }

    /// Returns whether a reminder with this prefix was added since the last user message.
    #[must_use]
    pub fn was_reminded(&self, beginning: &str) -> bool {
        self.since_asked().any(
            |message| matches!(&**message, Message::Reminder(reminder) if reminder.text.starts_with(beginning)),
        )
    }

    /// Adds a reminder for the model: at the end of the current request, and in the thread, so that its position stays
    /// the same.
    pub fn remind(&mut self, request: &mut Request, text: String) {
        request.messages.push(self.note(text));
    }

    /// Adds a reminder to the model's next request.
    pub(crate) fn note(&mut self, text: String) -> Arc<Message> {
        let reminder = Arc::new(Message::Reminder(Reminder { id: MessageId::fresh(), text }));
        self.apply(Update::Message(reminder.clone()));
        reminder
    }

    /// Answers a call that is not made.
    pub(crate) fn refuse(&mut self, call: &ToolCall, text: String) {
        self.answer(ToolResult { error: true, ..result(call, text) });
    }

    /// Answers a call.
    pub(crate) fn answer(&mut self, result: ToolResult) {
        self.apply(Update::Message(Arc::new(Message::Tool(result))));
    }
}

/// Returns a plain result of a call.
pub(crate) fn result(call: &ToolCall, text: String) -> ToolResult {
    ToolResult {
        id: MessageId::fresh(),
        call: call.id.clone(),
        tool: call.name.clone(),
        text,
        error: false,
        question: None,
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: None,
    }
}
