//! Events of LangGraph's protocol (version 2), one per frame: the name of the frame is the event's method, and its data
//! are the event's `params`. An event that the reader does not want keeps its place among the frames.
//!
//! Everything except pieces of messages and progress is taken from the log, so that an event comes once, whenever it is
//! read. Sub-agents have namespaces of their own, `tools:<call>`, which LangGraph's SDKs know.

use super::{
    super::{
        checkpoint, clock,
        failure::failure,
        frame::Frame,
        message::{self, MessageChunk},
        protocol::{EventChannel, EventFilter},
        task,
    },
    Frames, MODEL, TOOLS,
    blocks::{GrowingMessage, MessageBlockKind, OpenBlock, ProtocolEvents},
};
use pudu_base::{
    Assistant, CallId, Message, MessageId, Outcome, RunId, Seq, StepKind, TaskStage, TaskStatus, TaskStep,
    ThreadId,
};
use serde_json::{Value, json};

/// Where an event belongs.
#[derive(Clone, Copy)]
struct EventPlace<'p> {
    channel: EventChannel,
    /// Name of a custom event.
    name: Option<&'p str>,
    /// The namespace of a sub-agent; `None` for the run itself.
    subagent: Option<&'p str>,
    /// The node that caused it.
    node: Option<&'p str>,
}

impl EventPlace<'_> {
    fn of_run(channel: EventChannel) -> Self {
        Self { channel, name: None, subagent: None, node: None }
    }

    fn of_node(channel: EventChannel, node: &'static str) -> Self {
        Self { node: Some(node), ..Self::of_run(channel) }
    }
}

impl Frames {
    /// Creates the frames of a run as events of the protocol. Their data is that of the key `params`.
    #[must_use]
    pub fn of_protocol(thread: &ThreadId, run: &RunId, assistant: &str, filter: EventFilter) -> Self {
        let modes = filter.modes();
        let protocol = Some(ProtocolEvents::new(filter));
        Self { protocol, ..Self::new(thread, run, assistant, modes) }
    }

    /// Sets the time of the next events, in milliseconds since 1970; the current time if it is not known.
    pub fn set_time(&mut self, at: Option<i64>) {
        if let Some(events) = &mut self.protocol {
            events.at = at;
        }
    }

    /// Returns whether events of a channel are wanted.
    pub(super) fn wants(&self, channel: EventChannel) -> bool {
        self.protocol.as_ref().is_some_and(|events| events.filter.wants(channel))
    }

    /// Adds an event, or its place if it is not wanted.
    fn emit(&mut self, place: EventPlace<'_>, data: impl FnOnce(&mut Self) -> Value) {
        let Some(events) = &self.protocol else { return };
        let namespace = place.subagent.as_slice();
        if !events.filter.matches(place.channel, place.name, namespace) {
            return self.out.push(Frame::unwanted(self.position));
        }
        let mut params = json!({ "namespace": namespace, "timestamp": events.at.unwrap_or_else(clock::now) });
        if let Some(node) = place.node {
            params["node"] = node.into();
        }
        params["data"] = data(self);
        self.frame(place.channel.method(), &params);
    }

    /// Adds an event of the run's life. An event that comes once per run has an id that JavaScript's SDK reads the run
    /// from.
    fn lifecycle(&mut self, event: &str, comes_once: bool, error: Option<String>) {
        self.emit(EventPlace::of_run(EventChannel::Lifecycle), |frames| {
            let mut data = json!({ "event": event, "graph_name": frames.assistant });
            if let Some(error) = error {
                data["error"] = error.into();
            }
            data
        });
        let id = comes_once.then(|| format!("synth:{}:lc||{event}", self.run));
        if let Some(frame) = self.out.last_mut() {
            frame.event_id = id;
        }
    }

    pub(super) fn run_begins(&mut self) {
        self.lifecycle("running", true, None);
    }

    /// Adds the end of messages without an end, and that of the run.
    pub(super) fn run_ends(&mut self, outcome: &Outcome) {
        let left =
            self.protocol.as_mut().map(|events| std::mem::take(&mut events.growing)).unwrap_or_default();
        for _ in left {
            self.message_error("the run ended before the message");
        }
        let failed = failure(outcome).map(|(_, text)| text);
        let event = match outcome {
            Outcome::Success => "completed",
            Outcome::Stopped => "interrupted",
            Outcome::Limit | Outcome::Timeout | Outcome::Error(_) => "failed",
        };
        self.lifecycle(event, true, failed);
    }

    /// Adds the thread's state.
    pub(super) fn values_event(&mut self) {
        if self.state.is_none() {
            return;
        }
        self.emit(EventPlace::of_run(EventChannel::Values), |frames| {
            frames.written().and_then(|values| serde_json::from_str(values.get()).ok()).unwrap_or_default()
        });
    }

    /// Adds the checkpoint of the state that follows.
    pub(super) fn checkpoint_event(&mut self, seq: Seq) {
        self.emit(EventPlace::of_run(EventChannel::Checkpoints), |frames| {
            let step = frames.state.as_ref().map(checkpoint::step);
            let seq = frames.steps.newest().unwrap_or(seq);
            let mut told = json!({ "id": checkpoint::id(seq), "step": step, "source": "loop" });
            if step.is_some_and(|step| step <= 0) {
                told["source"] = "input".into();
            }
            if let Some(parent) = frames.steps.parent() {
                told["parent_id"] = checkpoint::id(parent).into();
            }
            told
        });
    }

    pub(super) fn update_event(&mut self, node: &'static str, update: Value) {
        self.emit(EventPlace::of_node(EventChannel::Updates, node), |_| update);
    }

    /// Adds a beginning or an end of a node, given whether it was rendered for the reader.
    pub(super) fn task_event(&mut self, payload: Option<&Value>) {
        self.emit(EventPlace::of_run(EventChannel::Tasks), |_| payload.cloned().unwrap_or_default());
    }

    /// Adds progress of a run. A call that waits for an approval is an interrupt: clients then stop reading, until the
    /// run continues.
    pub(super) fn custom_event(&mut self, data: &Value) {
        if self.protocol.is_none() {
            return;
        }
        let name = data["type"].as_str();
        let place = EventPlace { name, ..EventPlace::of_run(EventChannel::Custom) };
        self.emit(place, |_| json!({ "name": name, "payload": data }));
        match name {
            Some("approval_requested") => {
                self.emit(EventPlace::of_run(EventChannel::Input), |_| {
                    // Python's SDK reads `value`, JavaScript's reads `payload`, as the protocol has it.
                    json!({ "interrupt_id": data["key"], "payload": data, "value": data })
                });
                self.lifecycle("interrupted", false, None);
            }
            Some("approval_decided") => self.lifecycle("running", false, None),
            _ => {}
        }
    }

    /// Adds the result of a call.
    pub(super) fn result_event(&mut self, result: &Message) {
        let Message::Tool(told) = result else { return };
        self.emit(EventPlace::of_node(EventChannel::Tools, TOOLS), |_| match told.error {
            true => json!({
                "event": "tool-error", "tool_call_id": told.call, "tool_name": told.tool,
                "message": pudu_base::tool_frame::unframed(&told.text),
            }),
            false => json!({
                "event": "tool-finished", "tool_call_id": told.call, "tool_name": told.tool,
                "output": message::to_json(result, None),
            }),
        });
    }

    /// Adds more of a message, or its end.
    pub(super) fn message_grows(&mut self, id: &MessageId, chunk: &MessageChunk<'_>) {
        let Some(events) = &mut self.protocol else { return };
        let is_new = !events.growing.iter().any(|(known, _)| known == id);
        if is_new {
            events.growing.push((id.clone(), GrowingMessage::default()));
            self.message_begins(id);
        }
        // The thoughts of a message that is read whole from the log are only in the message.
        let full = chunk.last.filter(|_| is_new).and_then(|reply| reply.reasoning.as_deref());
        if let Some(thoughts) = chunk.reasoning.or(full).filter(|thoughts| !thoughts.is_empty()) {
            self.block_grows(id, MessageBlockKind::Reasoning, thoughts);
        }
        if !chunk.text.is_empty() {
            self.block_grows(id, MessageBlockKind::Text, chunk.text);
        }
        if let Some(reply) = chunk.last {
            self.message_ends(id, reply);
        }
    }

    /// Drops a message that has begun and will not end.
    pub(super) fn drop_message(&mut self, id: &MessageId, why: &str) {
        if self.take_growing(id).is_some() {
            self.message_error(why);
        }
    }

    fn message_begins(&mut self, id: &MessageId) {
        self.message_event(|frames| {
            let mut metadata = json!({
                "run_id": frames.run, "thread_id": frames.thread, "model_type": "chat", "langgraph_node": MODEL,
            });
            if !frames.model.is_empty() {
                metadata["model"] = frames.model.as_str().into();
            }
            json!({ "event": "message-start", "role": "ai", "id": id, "metadata": metadata })
        });
    }

    fn message_event(&mut self, data: impl FnOnce(&mut Self) -> Value) {
        self.emit(EventPlace::of_node(EventChannel::Messages, MODEL), data);
    }

    fn message_error(&mut self, why: &str) {
        self.message_event(|_| json!({ "event": "error", "message": why }));
    }

    fn growing(&mut self, id: &MessageId) -> Option<&mut GrowingMessage> {
        let growing = &mut self.protocol.as_mut()?.growing;
        growing.iter_mut().find(|(known, _)| known == id).map(|(_, message)| message)
    }

    fn take_growing(&mut self, id: &MessageId) -> Option<GrowingMessage> {
        let growing = &mut self.protocol.as_mut()?.growing;
        let at = growing.iter().position(|(known, _)| known == id)?;
        Some(growing.remove(at).1)
    }

    fn block_grows(&mut self, id: &MessageId, kind: MessageBlockKind, more: &str) {
        let Some(message) = self.growing(id) else { return };
        let finished = message.open.take_if(|open| open.kind != kind);
        let (is_new, before) = (message.open.is_none(), message.ended);
        message.ended += usize::from(finished.is_some());
        let index = message.ended;
        let open = message.open.get_or_insert_with(|| OpenBlock { kind, content: String::new() });
        open.content.push_str(more);
        if let Some(block) = finished {
            self.block_ends(before, &block.kind.block(&block.content));
        }
        if is_new {
            self.block_begins(index, &kind.block(""));
        }
        self.message_event(
            |_| json!({ "event": "content-block-delta", "index": index, "delta": kind.delta(more) }),
        );
    }

    fn block_begins(&mut self, index: usize, content: &Value) {
        self.message_event(|_| json!({ "event": "content-block-start", "index": index, "content": content }));
    }

    fn block_ends(&mut self, index: usize, content: &Value) {
        self.message_event(
            |_| json!({ "event": "content-block-finish", "index": index, "content": content }),
        );
    }

    /// Ends a message with its calls, which begin at once.
    fn message_ends(&mut self, id: &MessageId, reply: &Assistant) {
        let Some(message) = self.take_growing(id) else { return };
        let mut index = message.ended;
        if let Some(block) = message.open {
            self.block_ends(index, &block.kind.block(&block.content));
            index += 1;
        }
        for (at, call) in reply.calls.iter().enumerate() {
            let begin = json!({ "type": "tool_call", "id": call.id, "name": call.name, "args": {} });
            self.block_begins(index + at, &begin);
            self.block_ends(index + at, &message::any_call(call));
        }
        self.message_event(|_| {
            let mut end = json!({ "event": "message-finish", "metadata": message::response(reply) });
            if let Some(usage) = &reply.usage {
                end["usage"] = message::usage(usage);
            }
            end
        });
        for call in reply.calls.iter().filter(|call| call.garbled.is_none()) {
            self.emit(EventPlace::of_node(EventChannel::Tools, TOOLS), |_| {
                json!({
                    "event": "tool-started", "tool_call_id": call.id, "tool_name": call.name, "input": call.args,
                })
            });
        }
    }

    /// Adds a stage of a sub-agent.
    pub(super) fn subagent_event(&mut self, call: &CallId, stage: &TaskStage) {
        if self.protocol.is_none() {
            return;
        }
        let namespace = format!("tools:{call}");
        let place = EventPlace { subagent: Some(&namespace), ..EventPlace::of_run(EventChannel::Lifecycle) };
        match stage {
            TaskStage::Running { .. } => {}
            TaskStage::Started { agent, .. } => self.emit(place, |_| {
                let cause = json!({ "type": "toolCall", "tool_call_id": call });
                json!({ "event": "started", "graph_name": agent, "cause": cause })
            }),
            TaskStage::Step(step) => self.subagent_step(call, &namespace, step),
            TaskStage::Ended(end) => self.emit(place, |_| match end.status {
                TaskStatus::Completed => json!({ "event": "completed" }),
                TaskStatus::Cancelled => json!({ "event": "interrupted" }),
                TaskStatus::Failed | TaskStatus::TimedOut => json!({ "event": "failed", "error": end.text }),
            }),
        }
    }

    /// Adds a reply of a sub-agent. Results of its calls are only in the stored steps.
    fn subagent_step(&mut self, call: &CallId, namespace: &str, step: &TaskStep) {
        let StepKind::Reply { calls } = &step.kind else { return };
        let place = EventPlace { subagent: Some(namespace), ..EventPlace::of_run(EventChannel::Messages) };
        let mut blocks: Vec<(Value, Value)> = Vec::new();
        if !step.text.is_empty() {
            blocks.push((MessageBlockKind::Text.block(""), MessageBlockKind::Text.block(&step.text)));
        }
        for called in task::calls(call, step.index, calls) {
            let mut begin = called.clone();
            begin["args"] = json!({});
            blocks.push((begin, called));
        }
        let id = format!("{call}-{}", step.index);
        self.emit(place, |_| json!({ "event": "message-start", "role": "ai", "id": id }));
        for (index, (begin, end)) in blocks.into_iter().enumerate() {
            self.emit(place, |_| json!({ "event": "content-block-start", "index": index, "content": begin }));
            if end["type"] == "text" {
                let delta = MessageBlockKind::Text.delta(&step.text);
                self.emit(
                    place,
                    |_| json!({ "event": "content-block-delta", "index": index, "delta": delta }),
                );
            }
            self.emit(place, |_| json!({ "event": "content-block-finish", "index": index, "content": end }));
        }
        self.emit(place, |_| json!({ "event": "message-finish" }));
    }
}
