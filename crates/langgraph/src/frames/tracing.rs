//! Frames that trace the graph: tasks of its nodes, LangChain's events, checkpoints, and tasks and checkpoints again as
//! `debug`. A node's start is taken from the live run. Its end is taken from the log, so readers that join late also
//! get it.

use super::{
    super::{
        checkpoint::{self, Checkpoint},
        clock, message,
        protocol::EventChannel,
    },
    Frames, MODEL, TOOLS,
};
use pudu_base::{CallId, Message, Seq, ToolCall, digest};
use serde_json::{Value, json};

/// Name of the graph in LangChain's events.
const GRAPH: &str = "LangGraph";

/// Subject of a LangChain event. Each has an id and the ids of its parents.
pub(super) enum EventOf<'e> {
    /// The graph: the whole run.
    Graph,
    /// A node, with the id of its task.
    Node(&'static str, &'e str),
    /// A call to a model or tool: the calling node, its task, and the name of the model or tool.
    Call(&'static str, &'e str, &'e str),
}

impl Frames {
    pub(super) fn event(&mut self, name: &str, of: &EventOf<'_>, data: &Value) {
        if !self.modes.events {
            return;
        }
        let id = |part: &str| uuid(&format!("{} {part}", self.run));
        let (title, run, parents, metadata) = match of {
            EventOf::Graph => {
                let metadata =
                    json!({ "run_id": self.run, "thread_id": self.thread, "assistant_id": self.assistant });
                (GRAPH, self.run.to_string(), json!([]), metadata)
            }
            EventOf::Node(node, task) => (*node, id(task), json!([self.run]), self.place(node)),
            EventOf::Call(node, task, called) => {
                (*called, id(&format!("{task} call")), json!([self.run, id(task)]), self.place(node))
            }
        };
        let told = json!({
            "event": name, "name": title, "run_id": run, "data": data, "tags": [], "parent_ids": parents,
            "metadata": metadata,
        });
        self.frame("events", &told);
    }

    /// Sends the beginning of the graph, once per run.
    pub(super) fn graph_begins(&mut self) {
        let has_begun = self.graph_has_begun || self.first.is_some_and(|first| self.position.seq >= first);
        if self.modes.events && !has_begun {
            let data = json!({ "input": self.input });
            self.event("on_chain_start", &EventOf::Graph, &data);
            self.graph_has_begun = true;
        }
    }

    /// Sends the end of the graph with its values.
    pub(super) fn graph_ends(&mut self) {
        if !self.modes.events {
            return;
        }
        let output = self.written().and_then(|values| serde_json::from_str(values.get()).ok());
        let data = json!({ "input": self.input, "output": output.unwrap_or(Value::Null) });
        self.event("on_chain_end", &EventOf::Graph, &data);
    }

    /// Sends a piece of the model's answer.
    pub(super) fn model_says(&mut self, chunk: &Value) {
        let (model, task) = (self.model.clone(), self.model_task.clone().unwrap_or_else(|| self.next_task()));
        self.event("on_chat_model_stream", &EventOf::Call(MODEL, &task, &model), &json!({ "chunk": chunk }));
    }

    pub(super) fn model_begins(&mut self) {
        self.graph_begins();
        // After a failure, the model is called again within its task.
        if self.model_task.is_some() {
            return;
        }
        let (id, model) = (self.next_task(), self.model.clone());
        self.event("on_chain_start", &EventOf::Node(MODEL, &id), &json!({}));
        self.event("on_chat_model_start", &EventOf::Call(MODEL, &id, &model), &json!({}));
        if self.watches_tasks() {
            let input = self.written().and_then(|values| serde_json::from_str(values.get()).ok());
            self.task_begins(&id, MODEL, &input.unwrap_or(Value::Null));
        } else {
            self.task_event(None);
        }
        self.model_task = Some(id);
    }

    pub(super) fn model_ends(&mut self, reply: &Message) {
        let id = self.model_task.take().unwrap_or_else(|| self.next_task());
        self.node_ends(&id, MODEL, reply);
        if self.modes.events {
            let (output, model) = (message::to_json(reply, None), self.model.clone());
            let call = EventOf::Call(MODEL, &id, &model);
            self.event("on_chat_model_end", &call, &json!({ "output": output }));
            let node = EventOf::Node(MODEL, &id);
            self.event("on_chain_end", &node, &json!({ "output": { "messages": [output] } }));
        }
    }

    pub(super) fn tool_begins(&mut self, id: &CallId, tool: &str) {
        if !(self.modes.events || self.watches_tasks()) {
            return self.task_event(None);
        }
        let call = self.call(id).map(message::tool_call);
        let args = call.as_ref().map_or(Value::Null, |call| call["args"].clone());
        let node = EventOf::Node(TOOLS, id.as_str());
        self.event("on_chain_start", &node, &json!({ "input": { "tool_call": call } }));
        let called = EventOf::Call(TOOLS, id.as_str(), tool);
        self.event("on_tool_start", &called, &json!({ "input": args, "tool_call_id": id }));
        self.task_begins(id.as_str(), TOOLS, &json!({ "tool_call": call }));
    }

    pub(super) fn tool_ends(&mut self, result: &Message) {
        let Message::Tool(told) = result else { return };
        self.node_ends(told.call.as_str(), TOOLS, result);
        if self.modes.events {
            let (output, task) = (message::to_json(result, None), told.call.as_str());
            let call = EventOf::Call(TOOLS, task, &told.tool);
            self.event("on_tool_end", &call, &json!({ "output": output, "tool_call_id": told.call }));
            let node = EventOf::Node(TOOLS, task);
            self.event("on_chain_end", &node, &json!({ "output": { "messages": [output] } }));
        }
    }

    pub(super) fn checkpoint(&mut self, seq: Seq) {
        if !(self.modes.checkpoints || self.modes.debug) {
            return;
        }
        let (Some(values), Some(state)) = (self.written(), &self.state) else { return };
        let (thread, run) = (self.thread.clone(), self.run.to_string());
        let (at, step) = (clock::now(), checkpoint::step(state));
        // Uses the same checkpoints as the history, which ignores rows that calls and sub-agents add later.
        let (seq, parent) = (self.steps.newest().unwrap_or(seq), self.steps.parent());
        let next = checkpoint::next(state);
        let checkpoint =
            Checkpoint { thread: &thread, seq, parent, at, run: &run, step, written: false, next };
        let mut told = Value::Object(checkpoint.state(&values));
        for (name, seq) in [("config", Some(seq)), ("parent_config", parent)] {
            told[name] = seq.map_or(Value::Null, |seq| {
                json!({ "configurable": { "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint::id(seq) } })
            });
        }
        if self.modes.checkpoints {
            self.frame("checkpoints", &told);
        }
        self.debug("checkpoint", step, &told);
    }

    fn watches_tasks(&self) -> bool {
        self.modes.tasks || self.modes.debug || self.wants(EventChannel::Tasks)
    }

    /// Returns the id of the model's next task. The newest checkpoint contains the same id.
    fn next_task(&self) -> String {
        checkpoint::task(self.steps.newest().unwrap_or(self.position.seq), MODEL)
    }

    /// Finds a call in the newest reply.
    fn call(&self, id: &CallId) -> Option<&ToolCall> {
        let messages = self.state.as_ref()?.messages.values().rev();
        messages.map(AsRef::as_ref).find_map(|message| match message {
            Message::Assistant(reply) => Some(reply.calls.iter().find(|call| call.id == *id)),
            Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => None,
        })?
    }

    fn task_begins(&mut self, id: &str, node: &str, input: &Value) {
        let triggers = [format!("branch:to:{node}")];
        let told = json!({
            "id": id, "name": node, "input": input, "triggers": triggers, "interrupts": [], "metadata": {},
        });
        self.task("task", &told);
    }

    fn node_ends(&mut self, id: &str, node: &str, message: &Message) {
        if self.watches_tasks() {
            let result = json!({ "messages": [message::to_json(message, None)] });
            let told = json!({ "id": id, "name": node, "error": null, "result": result, "interrupts": [] });
            self.task("task_result", &told);
        } else {
            self.task_event(None);
        }
    }

    fn task(&mut self, kind: &str, payload: &Value) {
        self.task_event(Some(payload));
        if self.modes.tasks {
            self.frame("tasks", payload);
        }
        self.debug(kind, self.step, payload);
    }

    fn debug(&mut self, kind: &str, step: i64, payload: &Value) {
        if self.modes.debug {
            let told = json!({ "step": step, "timestamp": clock::iso(clock::now()), "type": kind, "payload": payload });
            self.frame("debug", &told);
        }
    }
}

/// Returns a UUID derived from a text.
fn uuid(text: &str) -> String {
    let digits = digest(text);
    let part = |from, to| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}
