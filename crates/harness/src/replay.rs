//! Events of a run, kept for a while so that readers can join late, leave and return.
//!
//! The writer never waits. A reader that falls out of the ring gets a gap with the fold of all events so far and
//! continues from there; durable state is in the thread log.

use pudu_base::{CallId, Decision, MessageId, Outcome, RetryReason, RunEvent, TaskStage, Todo, Usage};
use serde::Serialize;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;

/// Maximum size of the text that is kept before the newest message, in bytes.
const MAX_EARLIER_BYTES: usize = 128 * 1024;

/// The fold of a run's events: the overview that a user needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The assistant's whole text, including the text before its tool calls. Only the end of a very long text is kept.
    pub text: String,
    /// The agent's current activity.
    pub activity: Activity,
    /// Files made for people: sandbox paths.
    pub artifacts: Vec<String>,
    /// The agent's to-do list, if this run wrote one.
    pub todos: Vec<Todo>,
    /// Tokens spent.
    pub usage: Usage,
    /// Calls that wait for approval, oldest first.
    pub asked: Vec<PendingCall>,
    /// Decisions, oldest first.
    pub decided: Vec<Decision>,
    /// Whether the earlier conversation was summarised.
    pub summarized: bool,
    /// The active sub-agents, oldest first.
    pub tasks: Vec<Working>,
    /// Outcome of the run, once it has ended.
    pub outcome: Option<Outcome>,
    message: Option<MessageId>,
    /// Offset in `text` at which the text of that message begins.
    begin: usize,
}

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// Id of the call. A sub-agent's call has the parent call's id as prefix.
    pub call: CallId,
    /// Identifies the approval request.
    pub key: String,
    /// One-line description of the requested action, for users.
    pub request: String,
    /// The full call, if the line is shortened.
    pub whole: Option<Arc<str>>,
}

/// An active sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Working {
    call: CallId,
    /// Short description of its task.
    pub about: String,
    /// The tools that it is using.
    pub doing: Vec<String>,
}

/// Current activity of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "doing", content = "what", rename_all = "snake_case")]
pub enum Activity {
    /// Not started or finished.
    #[default]
    Idle,
    /// The model was called and has not answered yet.
    Thinking,
    /// The model is answering.
    Talking,
    /// The conversation so far is being summarised.
    Summarizing,
    /// The model failed and is called again.
    Retrying {
        /// Short reason.
        reason: RetryReason,
        /// Time from the failure to the next try, in whole seconds, rounded up.
        seconds: u64,
    },
    /// Tools are running, oldest first.
    Tools(Vec<RunningTool>),
}

/// A running tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningTool {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The model's stated purpose of the call, for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its progress, as a number without words of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

impl RunningTool {
    /// Returns the call's purpose, or else the tool's name, and its progress.
    fn describe(&self) -> String {
        let what = self.description.as_ref().unwrap_or(&self.tool);
        match &self.progress {
            Some(progress) => format!("{what} ({progress})"),
            None => what.clone(),
        }
    }
}

/// Renders the progress of a tool: a share of the whole, or a count if the whole is unknown.
fn render_progress(done: f64, total: Option<f64>) -> Option<String> {
    match total.filter(|total| *total > 0.0) {
        _ if !done.is_finite() || done < 0.0 => None,
        Some(total) => Some(format!("{:.0} %", (done / total * 100.0).min(100.0))),
        None => Some(format!("{done:.0}")),
    }
}

impl Activity {
    /// Returns the running tools, each as its purpose or else its name, with its progress.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        match self {
            Self::Tools(tools) => tools.iter().map(RunningTool::describe).collect(),
            Self::Idle | Self::Thinking | Self::Talking | Self::Summarizing | Self::Retrying { .. } => {
                Vec::new()
            }
        }
    }
}

impl Progress {
    fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Thinking => self.activity = Activity::Thinking,
            RunEvent::Text { message, delta } => {
                if self.message.as_ref() != Some(message) {
                    self.next(message);
                }
                self.text.push_str(delta);
                self.activity = Activity::Talking;
            }
            RunEvent::Retract { message } => {
                if self.message.as_ref() == Some(message) {
                    self.text.truncate(self.begin);
                }
            }
            RunEvent::Retry { reason, wait, .. } => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                self.activity = Activity::Retrying { reason: *reason, seconds };
            }
            RunEvent::ToolStarted { call, tool, description } => {
                let (call, tool, description) = (call.clone(), tool.clone(), description.clone());
                let started = RunningTool { call, tool, description, progress: None };
                match &mut self.activity {
                    Activity::Tools(tools) => tools.push(started),
                    other => *other = Activity::Tools(vec![started]),
                }
            }
            RunEvent::ToolProgress { call, done, total } => {
                if let Activity::Tools(tools) = &mut self.activity
                    && let Some(tool) = tools.iter_mut().find(|tool| tool.call == *call)
                {
                    tool.progress = render_progress(*done, *total);
                }
            }
            RunEvent::ToolEnded { call, .. } => {
                if let Activity::Tools(tools) = &mut self.activity {
                    tools.retain(|tool| tool.call != *call);
                }
            }
            RunEvent::Artifacts { paths } => {
                for path in paths {
                    if !self.artifacts.contains(path) {
                        self.artifacts.push(path.clone());
                    }
                }
            }
            RunEvent::ApprovalRequested { call, key, request, whole, deadline: _ } => {
                self.asked.retain(|asked| asked.call != *call);
                let (call, key, request) = (call.clone(), key.clone(), request.clone());
                self.asked.push(PendingCall { call, key, request, whole: whole.clone() });
            }
            RunEvent::ApprovalDecided { call, decision } => {
                self.asked.retain(|asked| asked.call != *call);
                self.decided.push(decision.clone());
            }
            RunEvent::Todos { todos } => self.todos.clone_from(todos),
            RunEvent::SubagentProgress { call, stage } => self.task(call, stage),
            RunEvent::Usage { usage } => self.usage += *usage,
            RunEvent::Summarizing => self.activity = Activity::Summarizing,
            RunEvent::Summarized { .. } => self.summarized = true,
            RunEvent::Reasoning { .. } | RunEvent::Committed { .. } => {}
            RunEvent::Ended { outcome, .. } => {
                self.activity = Activity::Idle;
                self.outcome = Some(outcome.clone());
            }
        }
    }
}

impl Progress {
    /// Begins another message below the existing text.
    fn next(&mut self, message: &MessageId) {
        self.message = Some(message.clone());
        self.text.truncate(self.text.trim_end().len());
        if self.text.len() > MAX_EARLIER_BYTES {
            let at = (self.text.len() - MAX_EARLIER_BYTES..).find(|at| self.text.is_char_boundary(*at));
            self.text.replace_range(..at.unwrap_or(self.text.len()), "…");
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.begin = self.text.len();
    }

    fn task(&mut self, call: &CallId, stage: &TaskStage) {
        match stage {
            TaskStage::Started { about, .. } => {
                self.tasks.push(Working { call: call.clone(), about: about.clone(), doing: Vec::new() });
            }
            TaskStage::Running { doing, .. } => {
                if let Some(task) = self.tasks.iter_mut().find(|task| task.call == *call) {
                    task.doing.clone_from(doing);
                }
            }
            TaskStage::Step(_) => {}
            TaskStage::Ended(_) => {
                self.tasks.retain(|task| task.call != *call);
                // Approvals of its calls are no longer awaited.
                let below = below(call);
                self.asked.retain(|asked| !asked.call.as_str().starts_with(&below));
            }
        }
    }
}

/// Number of events that are kept for late readers.
const MAX_EVENTS: usize = 4096;

/// The replay ring of one run.
#[derive(Debug)]
pub struct Replay {
    ring: Mutex<Ring>,
    tick: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Arc<RunEvent>>,
    /// The id of the next event; the first event's id is 0.
    next: u64,
    progress: Progress,
}

impl Default for Replay {
    fn default() -> Self {
        Self { ring: Mutex::default(), tick: watch::Sender::new(0) }
    }
}

impl Replay {
    /// Sends an event to all readers.
    pub fn publish(&self, event: RunEvent) {
        let next = {
            let mut ring = self.lock();
            ring.progress.apply(&event);
            if ring.events.len() == MAX_EVENTS {
                ring.events.pop_front();
            }
            ring.events.push_back(Arc::new(event));
            ring.next += 1;
            ring.next
        };
        self.tick.send_replace(next);
    }

    /// Returns the fold of everything so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.lock().progress.clone()
    }

    /// Returns whether the last event has been sent.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.lock().progress.outcome.is_some()
    }

    /// Returns a counter that changes with every event, for readers of only the newest [`Progress`].
    #[must_use]
    pub fn ticks(&self) -> watch::Receiver<u64> {
        self.tick.subscribe()
    }

    /// Returns the id of the newest kept event that satisfies a predicate.
    pub fn newest(&self, is_wanted: impl Fn(&RunEvent) -> bool) -> Option<u64> {
        let ring = self.lock();
        let at = ring.events.iter().rposition(|event| is_wanted(event))?;
        Some(ring.next - (ring.events.len() - at) as u64)
    }

    /// Returns the id range of the kept events: the oldest id and the next one.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        let ring = self.lock();
        (ring.next - ring.events.len() as u64, ring.next)
    }

    /// Returns a reader that starts at the event with this id.
    #[must_use]
    pub fn read(self: &Arc<Self>, from: u64) -> ReplayReader {
        ReplayReader { replay: self.clone(), tick: self.tick.subscribe(), next: from, over: false }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Item that a reader receives.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayItem {
    /// An event with its id.
    Event(u64, Arc<RunEvent>),
    /// Events are missing.
    Gap(Gap),
}

/// Gap in a reader's events, and where it continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// Id of the first missing event.
    pub missed: u64,
    /// Id of the next event; everything before it is in `progress`.
    pub next: u64,
    /// The fold of everything before `next`.
    pub progress: Box<Progress>,
}

/// Reads one run's events in order.
pub struct ReplayReader {
    replay: Arc<Replay>,
    tick: watch::Receiver<u64>,
    next: u64,
    over: bool,
}

impl ReplayReader {
    /// Waits for the next item; `None` after the run's last event.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the same item is returned next time.
    pub async fn next(&mut self) -> Option<ReplayItem> {
        while !self.over {
            self.tick.borrow_and_update();
            if let Some(item) = self.take() {
                return Some(item);
            }
            if self.over {
                return None;
            }
            self.tick.changed().await.ok()?;
        }
        None
    }

    fn take(&mut self) -> Option<ReplayItem> {
        let ring = self.replay.lock();
        let oldest = ring.next - ring.events.len() as u64;
        if self.next < oldest {
            let gap = Gap { missed: self.next, next: ring.next, progress: Box::new(ring.progress.clone()) };
            self.next = ring.next;
            self.over = gap.progress.outcome.is_some();
            return Some(ReplayItem::Gap(gap));
        }
        if self.next >= ring.next && ring.progress.outcome.is_some() {
            self.over = true;
            return None;
        }
        let event = ring.events.get(usize::try_from(self.next - oldest).ok()?)?.clone();
        drop(ring);
        self.over = matches!(*event, RunEvent::Ended { .. });
        let id = self.next;
        self.next += 1;
        Some(ReplayItem::Event(id, event))
    }
}

/// Returns the prefix of the call ids that belong to a task.
pub(crate) fn below(task: &CallId) -> String {
    format!("{task}/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Finish;

    fn text(delta: &str) -> RunEvent {
        RunEvent::Text { message: "m".into(), delta: delta.into() }
    }

    #[tokio::test]
    async fn a_reader_gets_every_event_in_order_and_then_the_end() {
        let replay = Arc::new(Replay::default());
        let mut reader = replay.read(0);
        replay.publish(text("a"));
        let over = || RunEvent::Ended { outcome: Outcome::Success, finish: Finish::Complete };
        replay.publish(over());
        let mut late = replay.read(1);
        assert_eq!(reader.next().await, Some(ReplayItem::Event(0, Arc::new(text("a")))));
        let end = ReplayItem::Event(1, Arc::new(over()));
        assert_eq!(reader.next().await, Some(end.clone()));
        assert_eq!(reader.next().await, None);
        assert_eq!(late.next().await, Some(end));
        assert_eq!(late.next().await, None);
        assert_eq!(replay.read(2).next().await, None, "a reader at the end does not wait");
    }

    #[tokio::test]
    async fn a_slow_reader_gets_a_gap_with_the_fold_and_the_writer_never_waits() {
        let replay = Arc::new(Replay::default());
        let mut reader = replay.read(0);
        for _ in 0..MAX_EVENTS + 10 {
            replay.publish(text("x"));
        }
        let Some(ReplayItem::Gap(gap)) = reader.next().await else { panic!("no gap") };
        assert_eq!((gap.missed, gap.next), (0, MAX_EVENTS as u64 + 10));
        assert_eq!(gap.progress.text, "x".repeat(MAX_EVENTS + 10));
        replay.publish(text("y"));
        assert_eq!(reader.next().await, Some(ReplayItem::Event(MAX_EVENTS as u64 + 10, Arc::new(text("y")))));
    }

    #[test]
    fn the_fold_shows_the_newest_text_and_the_current_activity() {
        let replay = Replay::default();
        let why = || Some("Counting the lines".to_owned());
        let tool =
            |call: &str| RunEvent::ToolStarted { call: call.into(), tool: "bash".into(), description: why() };
        replay.publish(text("Let me look."));
        replay.publish(tool("1"));
        replay.publish(tool("2"));
        replay.publish(RunEvent::ToolEnded { call: "1".into(), tool: "bash".into(), error: false });
        let seen = replay.progress();
        assert_eq!(seen.text, "Let me look.");
        let at_work =
            RunningTool { call: "2".into(), tool: "bash".into(), description: why(), progress: None };
        assert_eq!(seen.activity, Activity::Tools(vec![at_work]));
        assert_eq!(seen.activity.tools(), ["Counting the lines"]);
        let check_progress = |done: f64, total: Option<f64>, expect: &str| {
            replay.publish(RunEvent::ToolProgress { call: "2".into(), done, total });
            assert_eq!(replay.progress().activity.tools(), [expect], "{done} of {total:?}");
        };
        check_progress(3.0, Some(8.0), "Counting the lines (38 %)");
        check_progress(9.0, Some(8.0), "Counting the lines (100 %)");
        check_progress(12.4, None, "Counting the lines (12)");
        check_progress(f64::NAN, Some(8.0), "Counting the lines");
        replay.publish(RunEvent::Text { message: "n".into(), delta: "42".into() });
        replay.publish(RunEvent::Retract { message: "n".into() });
        assert_eq!(replay.progress().text, "Let me look.\n\n");
        replay.publish(RunEvent::Text { message: "n".into(), delta: "43".into() });
        assert_eq!(replay.progress().text, "Let me look.\n\n43");
    }
}
