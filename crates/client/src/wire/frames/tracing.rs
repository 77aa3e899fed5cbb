//! Frames by which programs watch the graph itself: tasks of its nodes, LangChain's events, checkpoints, and all of these as
//! `debug`. A node's beginning is told by the run, its end by the log, so that it is there for those who come late.

use super::{
    super::{
        checkpoint::{self, Checkpoint},
        clock, message,
    },
    Frames, MODEL, TOOLS,
};
use crate::base::{CallId, Message, Seq, ToolCall};
use serde_json::{Value, json};

impl Frames {
    pub(super) fn event(&mut self, name: &str, of: &str, data: &Value) {
        if self.modes.events {
            let node = if name.contains("tool") || of == TOOLS { TOOLS } else { MODEL };
            let told = json!({
                "event": name, "name": of, "run_id": self.run, "data": data, "tags": [], "parent_ids": [],
                "metadata": self.place(node),
            });
            self.frame("events", &told);
        }
    }

    pub(super) fn model_begins(&mut self) {
        // A model that failed is asked again within its task.
        if self.model_task.is_some() {
            return;
        }
        self.event("on_chain_start", MODEL, &json!({}));
        self.event("on_chat_model_start", &self.model.clone(), &json!({}));
        let id = self.next_task();
        if self.watches_tasks() {
            let input = self.written().and_then(|values| serde_json::from_str(values.get()).ok());
            self.task_begins(&id, MODEL, &input.unwrap_or(Value::Null));
        }
        self.model_task = Some(id);
    }

    pub(super) fn model_ends(&mut self, reply: &Message) {
        let id = self.model_task.take().unwrap_or_else(|| self.next_task());
        self.node_ends(&id, MODEL, reply);
        if self.modes.events {
            let output = message::whole(reply, None);
            self.event("on_chat_model_end", &self.model.clone(), &json!({ "output": output }));
            self.event("on_chain_end", MODEL, &json!({ "output": { "messages": [output] } }));
        }
    }

    pub(super) fn tool_begins(&mut self, id: &CallId, tool: &str) {
        if !(self.modes.events || self.watches_tasks()) {
            return;
        }
        let call = self.call(id).map(message::tool_call);
        let args = call.as_ref().map_or(Value::Null, |call| call["args"].clone());
        self.event("on_chain_start", TOOLS, &json!({ "input": { "tool_call": call } }));
        self.event("on_tool_start", tool, &json!({ "input": args, "tool_call_id": id }));
        self.task_begins(id.as_str(), TOOLS, &json!({ "tool_call": call }));
    }

    pub(super) fn tool_ends(&mut self, result: &Message) {
        let Message::Tool(told) = result else { return };
        self.node_ends(told.call.as_str(), TOOLS, result);
        if self.modes.events {
            let output = message::whole(result, None);
            self.event("on_tool_end", &told.tool, &json!({ "output": output, "tool_call_id": told.call }));
            self.event("on_chain_end", TOOLS, &json!({ "output": { "messages": [output] } }));
        }
    }

    pub(super) fn checkpoint(&mut self, seq: Seq, parent: Option<Seq>) {
        if !(self.modes.checkpoints || self.modes.debug) {
            return;
        }
        let (Some(values), Some(state)) = (self.written(), &self.state) else { return };
        let (thread, run) = (self.thread.clone(), self.run.to_string());
        let (at, step) = (clock::now(), checkpoint::step(state));
        let next = checkpoint::next(state);
        let made = Checkpoint { thread: &thread, seq, parent, at, run: &run, step, written: false, next };
        let mut told = Value::Object(made.state(&values));
        told["config"] = json!({ "configurable": { "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint::id(seq) } });
        if self.modes.checkpoints {
            self.frame("checkpoints", &told);
        }
        self.debug("checkpoint", step, &told);
    }

    fn watches_tasks(&self) -> bool {
        self.modes.tasks || self.modes.debug
    }

    /// Returns the id of the model's task behind the newest checkpoint, which names it as well.
    fn next_task(&self) -> String {
        checkpoint::task(self.position.seq, MODEL)
    }

    /// Finds a call of the newest reply.
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
            let result = json!({ "messages": [message::whole(message, None)] });
            let told = json!({ "id": id, "name": node, "error": null, "result": result, "interrupts": [] });
            self.task("task_result", &told);
        }
    }

    fn task(&mut self, kind: &str, payload: &Value) {
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
