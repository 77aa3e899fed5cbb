//! The log of a sub-agent's thread. That thread is never read again: the parent's readers and the parent's log get each
//! reply and each result, within limits.

use pudu_base::{
    BoxFuture, CallId, LogError, Message, RunEvent, RunId, Seq, StepCall, StepKind, TaskStage, TaskStep,
    Tell, ThreadId, ThreadLog, ThreadState, Update, cut_task_text,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};

/// Maximum number of steps of one task that are kept.
const MAX_STEPS: u32 = 1_000;
/// Maximum size of the texts and arguments of the kept steps, in bytes.
const MAX_STEP_BYTES: usize = 1 << 20;

/// Steps of one task, within limits.
pub struct StepLog {
    task: CallId,
    tell: Tell,
    steps: AtomicU32,
    bytes: AtomicUsize,
    omitted: AtomicU32,
}

impl StepLog {
    /// Creates the log of a call. Its steps go to the readers of the run and to the log of the thread.
    #[must_use]
    pub fn new(task: CallId, tell: Tell) -> Arc<Self> {
        let (steps, omitted) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { task, tell, steps, bytes: AtomicUsize::new(0), omitted })
    }

    /// Returns the number of steps that were omitted.
    pub fn omitted(&self) -> u32 {
        self.omitted.load(Ordering::Relaxed)
    }

    fn note(&self, message: &Message) {
        let (kind, text) = match message {
            Message::Assistant(reply) => {
                let calls = reply.calls.iter().map(|call| StepCall::new(&call.name, &call.args)).collect();
                (StepKind::Reply { calls }, &reply.text)
            }
            Message::Tool(result) => {
                (StepKind::Result { tool: result.tool.clone(), error: result.error }, &result.text)
            }
            Message::Human(_) | Message::Reminder(_) => return,
        };
        self.add(kind, text);
    }

    /// Adds a step.
    pub fn add(&self, kind: StepKind, text: &str) {
        let index = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let (text, truncated) = cut_task_text(text);
        let bytes = self.bytes.fetch_add(size(&kind) + text.len(), Ordering::Relaxed);
        if index > MAX_STEPS || bytes > MAX_STEP_BYTES {
            self.omitted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let stage = TaskStage::Step(TaskStep { index, kind, text, truncated });
        (self.tell)(RunEvent::SubagentProgress { call: self.task.clone(), stage });
    }
}

fn size(kind: &StepKind) -> usize {
    match kind {
        StepKind::Reply { calls } => {
            calls.iter().map(|call| call.name.len() + call.args.to_string().len()).sum()
        }
        StepKind::Result { tool, .. } => tool.len(),
    }
}

impl ThreadLog for StepLog {
    fn load<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        Box::pin(std::future::ready(Ok((0, ThreadState::default()))))
    }

    fn append<'a>(
        &'a self,
        _: &'a ThreadId,
        _: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>> {
        for update in updates {
            if let Update::Message(message) = update {
                self.note(message);
            }
        }
        Box::pin(std::future::ready(Ok(at + updates.len() as Seq)))
    }
}
