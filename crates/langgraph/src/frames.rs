//! Converts the events of a run to the frames of its stream. The reader feeds in events from the ring or rows of the
//! log, and gets the same frames for both.

mod blocks;
mod gap;
mod protocol;
mod tracing;

use super::{
    checkpoint::ValuesWriter,
    clock,
    failure::failure,
    frame::{Frame, Position},
    message::{self, MessageChunk},
    modes::Modes,
    protocol::EventChannel,
    sent_pieces::SentPieces,
    steps::Steps,
    task,
};
use blocks::ProtocolEvents;
use pudu_base::{
    Assistant, Message, MessageId, Outcome, RunEvent, RunId, Seq, ThreadId, ThreadState, Update,
};
use serde_json::{Value, json, value::RawValue};
use std::{collections::HashMap, sync::Arc};

/// The node that calls the model.
const MODEL: &str = "model";
/// The node that calls tools.
const TOOLS: &str = "tools";

/// Converts one run's events to frames.
pub struct Frames {
    thread: ThreadId,
    run: RunId,
    assistant: String,
    modes: Modes,
    /// The thread's state as the reader knows it; `None` until the state before the first change is set.
    state: Option<ThreadState>,
    title: Option<String>,
    values: ValuesWriter,
    position: Position,
    /// The sent parts of each unfinished message.
    sent: HashMap<MessageId, SentPieces>,
    /// The reader already has the frames up to this position. They are built again to restore the state, but not sent.
    known: Option<Position>,
    step: i64,
    /// The name of the run's model; empty until it is known.
    model: String,
    /// The model's current task, if its beginning was sent.
    model_task: Option<String>,
    /// The newest message whose metadata was sent.
    announced: Option<MessageId>,
    out: Vec<Frame>,
    /// The steps of the thread, for frames about checkpoints.
    steps: Steps,
    /// The run's first row, if it had one when the reader joined.
    first: Option<Seq>,
    /// The run's input as its client sent it.
    input: Value,
    /// Whether the beginning of the graph was sent.
    graph_has_begun: bool,
    /// The events of the protocol, if the frames are those.
    protocol: Option<ProtocolEvents>,
}

impl Frames {
    /// Creates the frames of a run for these modes.
    #[must_use]
    pub fn new(thread: &ThreadId, run: &RunId, assistant: &str, modes: Modes) -> Self {
        Self {
            thread: thread.clone(),
            run: run.clone(),
            assistant: assistant.to_owned(),
            modes,
            state: None,
            title: None,
            values: ValuesWriter::default(),
            position: Position::default(),
            sent: HashMap::new(),
            known: None,
            step: 0,
            model: String::new(),
            model_task: None,
            announced: None,
            out: Vec::new(),
            steps: Steps::default(),
            first: None,
            input: Value::Null,
            graph_has_begun: false,
            protocol: None,
        }
    }

    /// Returns the position of the reader.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Continues after the reader's position, `known`. To restore the state, the caller reads the events after `from`
    /// again.
    pub fn seek(&mut self, from: Position, known: Position) {
        self.go_on_at(from);
        self.known = Some(known);
    }

    /// Continues after a position; everything up to it was sent.
    pub fn go_on_at(&mut self, position: Position) {
        self.position = position;
    }

    /// Returns whether the state before the first change is needed.
    #[must_use]
    pub fn needs_state(&self) -> bool {
        self.state.is_none()
    }

    /// Returns whether the frames need the run's first row and input.
    #[must_use]
    pub fn needs_run(&self) -> bool {
        self.modes.events
    }

    /// Sets the run's first row, if it has one yet, and its input as the client sent it.
    pub fn set_run(&mut self, first: Option<Seq>, input: Value) {
        (self.first, self.input) = (first, input);
    }

    /// Sets the name of the run's model.
    pub fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// Returns whether the frames contain checkpoints.
    #[must_use]
    pub fn needs_steps(&self) -> bool {
        let modes = self.modes;
        let any = modes.checkpoints || modes.debug || modes.tasks || modes.events;
        any || self.wants(EventChannel::Checkpoints) || self.wants(EventChannel::Tasks)
    }

    /// Sets the state of the thread before the next change, and its steps.
    pub fn set_state(&mut self, state: ThreadState, steps: Steps) {
        self.state = Some(state);
        self.steps = steps;
        self.update_step();
    }

    /// Derives the step from the state, so that it is the same for every reader.
    fn update_step(&mut self) {
        let Some(state) = &self.state else { return };
        self.step = i64::try_from(state.messages.len()).unwrap_or(i64::MAX);
    }

    /// Sets the title of the thread.
    pub fn set_title(&mut self, title: Option<String>) {
        self.title = title;
    }

    /// Takes the frames made so far.
    pub fn take(&mut self) -> Vec<Frame> {
        let mut frames = std::mem::take(&mut self.out);
        frames.retain(Frame::is_wanted);
        frames
    }

    /// Adds the first frame.
    pub fn begin(&mut self) {
        if self.protocol.is_some() {
            return self.run_begins();
        }
        let data = json!({ "run_id": self.run, "thread_id": self.thread });
        self.frame("metadata", &data);
    }

    /// Adds the frames of an event.
    pub fn push(&mut self, event: &RunEvent) {
        let before = self.position;
        // The state after a gap already includes it.
        if matches!(event, RunEvent::Committed { seq, .. } if *seq <= before.seq) {
            return;
        }
        let next = match event {
            RunEvent::Committed { seq, .. } => Position::after(*seq, 0),
            _ => Position { event: before.event + 1, ..before },
        };
        let first_frame = self.out.len();
        match event {
            RunEvent::Text { message, delta } => self.send_delta(message, delta),
            RunEvent::Reasoning { message, delta } => self.thoughts(message, delta),
            RunEvent::Retract { message } => {
                self.sent.remove(message);
                self.drop_message(message, "the model is called again");
            }
            RunEvent::Retry { attempt, wait, reason } => self.custom(&json!({
                "type": "llm_retry",
                "attempt": attempt,
                "wait_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                "reason": reason,
                "message": reason.to_string(),
            })),
            RunEvent::SubagentProgress { call, stage } => {
                if let Some(told) = task::custom(call, stage) {
                    self.custom(&told);
                }
            }
            RunEvent::Committed { seq, updates } => self.commit(*seq, updates),
            RunEvent::ToolStarted { call, tool, .. } => self.tool_begins(call, tool),
            RunEvent::ToolProgress { call, done, total } => self.custom(&json!({
                "type": "tool_progress", "call_id": call, "progress": done, "total": total,
            })),
            RunEvent::Thinking => self.model_begins(),
            RunEvent::Summarizing => self.custom(&json!({ "type": "summarizing" })),
            RunEvent::Summarized { before, after } => {
                self.custom(&json!({ "type": "summarized", "tokens_before": before, "tokens_after": after }));
            }
            RunEvent::ApprovalRequested { call, key, request, whole, deadline } => self.custom(&json!({
                "type": "approval_requested", "key": key, "call_id": call, "request": request, "whole": whole,
                "deadline": clock::iso(*deadline),
            })),
            RunEvent::ApprovalDecided { call, decision } if !decision.not_asked => self.custom(&json!({
                "type": "approval_decided", "call_id": call, "request": decision.request,
                "approved": decision.approved, "by": decision.by,
            })),
            // These are also in the log, or sent at the end, or decide a question that this stream did not show.
            RunEvent::ApprovalDecided { .. }
            | RunEvent::ToolEnded { .. }
            | RunEvent::Todos { .. }
            | RunEvent::Artifacts { .. }
            | RunEvent::Usage { .. }
            | RunEvent::Ended { .. } => {}
        }
        self.position = next;
        self.stamp(first_frame, next);
    }

    /// Adds the last frames: the values again if the run changed the title, and the failure, if there is one.
    pub fn end(&mut self, outcome: &Outcome, title: Option<String>) {
        let first_frame = self.out.len();
        if title != self.title {
            self.title = title;
            self.send_values();
        }
        if *outcome == Outcome::Success {
            self.graph_ends();
        }
        if self.protocol.is_some() {
            self.run_ends(outcome);
        } else if let Some((name, text)) = failure(outcome) {
            let data = json!({ "error": name, "message": text, "name": name });
            self.frame("error", &data);
        }
        self.stamp(first_frame, Position::end(self.position.seq));
        self.out.push(Frame::end());
    }

    /// Adds a frame with the current position as its id.
    fn frame(&mut self, name: &'static str, data: &Value) {
        self.out.push(Frame::redacted(name, data, self.position));
    }

    /// Sets the ids of an event's frames, and removes those that the reader already has. The log may yield fewer frames
    /// for a step than the reader lacks. If so, the reader gets a gap.
    fn stamp(&mut self, created: usize, now: Position) {
        let mut frames = self.out.split_off(created);
        for (left, frame) in frames.iter_mut().rev().enumerate() {
            frame.id = Some(Position { left: (left > 0).then_some(left), ..now });
        }
        let Some(known) = self.known.filter(|known| now.order() <= known.order()) else {
            return self.out.append(&mut frames);
        };
        let lacking = known.left.filter(|_| now.order() == known.order()).unwrap_or(0);
        let has = frames.len().checked_sub(lacking);
        if has.is_none()
            && now.event == 0
            && let Some(state) = self.state.clone()
        {
            let steps = self.steps.clone();
            return self.gap(known, now.seq, state, steps);
        }
        self.out.extend(frames.drain(has.unwrap_or(0)..));
    }

    fn custom(&mut self, data: &Value) {
        self.custom_event(data);
        if self.modes.custom {
            self.frame("custom", data);
        }
    }

    fn send_delta(&mut self, id: &MessageId, delta: &str) {
        // A resumed run sends its earlier text again, which the client already has.
        if self.state.as_ref().is_some_and(|state| state.messages.contains_key(id)) {
            return;
        }
        self.end_thoughts(id);
        let told = self.sent.entry(id.clone()).or_default().push(delta);
        self.send_text(id, &told, None);
    }

    fn thoughts(&mut self, id: &MessageId, delta: &str) {
        let told = self.sent.entry(id.clone()).or_default().thoughts.push(delta);
        self.tell_thoughts(id, &told);
    }

    fn end_thoughts(&mut self, id: &MessageId) {
        let told = self.sent.get_mut(id).map(|sent| sent.thoughts.finish()).unwrap_or_default();
        self.tell_thoughts(id, &told);
    }

    fn tell_thoughts(&mut self, id: &MessageId, told: &str) {
        if !told.is_empty() {
            self.piece(id, &MessageChunk { reasoning: Some(told), ..MessageChunk::default() });
        }
    }

    /// Sends text of a message. `last` is the whole reply if this text ends it.
    fn send_text(&mut self, id: &MessageId, told: &str, last: Option<&Assistant>) {
        if !told.is_empty() || last.is_some() {
            self.piece(id, &MessageChunk { text: told, last, reasoning: None });
        }
    }

    fn piece(&mut self, id: &MessageId, chunk: &MessageChunk<'_>) {
        self.message_grows(id, chunk);
        if !(self.modes.tuples || self.modes.messages || self.modes.events) {
            return;
        }
        let value = chunk.value(id);
        if self.modes.events {
            self.model_says(&value);
        }
        if self.modes.tuples {
            let data = json!([value, self.place(MODEL)]);
            self.frame("messages", &data);
        }
        if self.modes.messages {
            // Each frame contains the message so far.
            let so_far = self.sent.get(id).map(|sent| sent.text.clone()).unwrap_or_default();
            if self.announced.as_ref() != Some(id) {
                self.announced = Some(id.clone());
                let data = json!({ id.as_str(): { "metadata": self.place(MODEL) } });
                self.frame("messages/metadata", &data);
            }
            let data = json!([MessageChunk { text: &so_far, ..*chunk }.value(id)]);
            self.frame("messages/partial", &data);
        }
    }

    /// Returns the metadata of a node in the graph.
    fn place(&self, node: &str) -> Value {
        json!({
            "run_id": self.run,
            "thread_id": self.thread,
            "assistant_id": self.assistant,
            "agent_name": self.assistant,
            "model_name": self.model,
            "langgraph_node": node,
            "langgraph_step": self.step,
            "langgraph_triggers": [format!("branch:to:{node}")],
            "langgraph_path": ["__pregel_pull", node],
            "langgraph_checkpoint_ns": "",
            "checkpoint_ns": "",
            "ls_model_type": "chat",
            "ls_model_name": self.model,
        })
    }

    fn commit(&mut self, seq: Seq, updates: &[Update]) {
        let (mut said, mut replies, mut results, mut has_more) = (Vec::new(), Vec::new(), Vec::new(), false);
        for update in updates {
            match update {
                Update::Message(message) => match &**message {
                    Message::Assistant(reply) => {
                        self.graph_begins();
                        self.reply(reply);
                        replies.push(message.clone());
                    }
                    Message::Tool(_) => results.push(message.clone()),
                    Message::Human(_) => said.push(message.clone()),
                    Message::Reminder(_) => {}
                },
                Update::Todos(_) | Update::Artifacts { .. } => has_more = true,
                Update::Task { call, stage } => self.subagent_event(call, stage),
                _ => {}
            }
            if let Some(state) = &mut self.state {
                state.apply(update.clone());
            }
        }
        let is_shown = updates.iter().any(is_shown);
        self.graph_begins();
        for result in &results {
            self.result(result);
        }
        self.steps.commit(&self.run, seq, updates);
        self.update_step();
        for human in &said {
            self.complete(human);
        }
        self.node(MODEL, &replies, false);
        self.node(TOOLS, &results, has_more);
        if is_shown {
            self.checkpoint_event(seq);
            self.send_values();
            self.checkpoint(seq);
        }
    }

    /// Sends the remaining part of a reply, and its end.
    fn reply(&mut self, reply: &Assistant) {
        self.end_thoughts(&reply.id);
        let told = self.sent.entry(reply.id.clone()).or_default().end(&reply.text);
        self.send_text(&reply.id, &told, Some(reply));
        self.sent.remove(&reply.id);
        let message = Arc::new(Message::Assistant(reply.clone()));
        self.model_ends(&message);
        self.complete(&message);
    }

    fn result(&mut self, result: &Arc<Message>) {
        self.result_event(result);
        if self.modes.tuples
            && let Some(whole) = message::to_json(result, None)
        {
            let data = json!([whole, self.place(TOOLS)]);
            self.frame("messages", &data);
        }
        self.tool_ends(result);
        self.complete(result);
    }

    /// Sends a complete message.
    fn complete(&mut self, message: &Message) {
        if !self.modes.messages {
            return;
        }
        let sent = self.state.as_ref().and_then(|state| state.client_fields.get(message.id()));
        if let Some(whole) = message::to_json(message, sent.map(AsRef::as_ref)) {
            self.frame("messages/complete", &json!([whole]));
        }
    }

    fn node(&mut self, node: &'static str, messages: &[Arc<Message>], has_more: bool) {
        let is_wanted = self.modes.updates || self.protocol.is_some();
        if !is_wanted || (messages.is_empty() && !has_more) {
            return;
        }
        if self.protocol.is_some() && !self.wants(EventChannel::Updates) {
            return self.update_event(node, Value::Null);
        }
        let told: Vec<Value> =
            messages.iter().filter_map(|message| message::to_json(message, None)).collect();
        let mut update = json!({ "messages": told });
        if let Some(state) = self.state.as_ref().filter(|_| has_more) {
            update["todos"] = json!(state.todos);
            update["artifacts"] = state.artifacts.keys().map(String::as_str).collect();
        }
        match self.protocol {
            Some(_) => self.update_event(node, update),
            None => self.frame("updates", &json!({ node: update })),
        }
    }

    fn send_values(&mut self) {
        if self.protocol.is_some() {
            return self.values_event();
        }
        if self.modes.values
            && let Some(values) = self.written()
        {
            self.out.push(Frame::of_values(values, self.position));
        }
    }

    fn written(&mut self) -> Option<Box<RawValue>> {
        Some(self.values.write(self.state.as_ref()?, self.title.as_deref()))
    }
}

/// Returns whether a change is visible in the values of a thread.
fn is_shown(update: &Update) -> bool {
    match update {
        Update::Message(message) => !matches!(**message, Message::Reminder(_)),
        Update::Remove(_)
        | Update::Todos(_)
        | Update::Artifacts { .. }
        | Update::Goal(_)
        | Update::Restore(_) => true,
        _ => false,
    }
}
