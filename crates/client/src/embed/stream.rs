//! A run's stream for an embedding program, with the items of DeerFlow's client. They are derived from the gateway's
//! frames, so both have the same content.

use crate::Client;
use futures_util::StreamExt;
use pudu_base::RunId;
use pudu_langgraph::{frame::Frame, modes::Modes};
use pudu_runs::{FrameStream, StreamRequest};
use pudu_store::StoreError;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::collections::{HashSet, VecDeque};

/// An item of a run's stream. As JSON it is `{"type": …, "data": …}`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
pub enum StreamItem {
    /// The thread's current values: title, messages, artifacts, to-dos, goal.
    Values(Box<RawValue>),
    /// A piece of an answer, the answer's calls, or a call's result.
    MessagesTuple(StreamMessage),
    /// Progress of a sub-agent, a retry, a summary or an approval.
    Custom(Value),
    /// The run failed.
    Error(StreamFailure),
    /// The last item.
    End {
        /// Tokens of all answers, each counted once.
        usage: StreamUsage,
    },
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum StreamMessage {
    /// From the agent.
    Ai {
        /// The next piece of its text.
        content: String,
        /// Id of the answer, the same for all its pieces.
        id: String,
        /// Its tool calls, all in one item after its text.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Value>,
        /// Tokens of the answer, in its last piece.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage_metadata: Option<Value>,
    },
    /// From a tool.
    Tool {
        /// Its text.
        content: String,
        /// Its name.
        name: String,
        /// The call that it answers.
        tool_call_id: String,
        /// Its id.
        id: String,
    },
}

/// Failure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFailure {
    /// Its class.
    pub name: String,
    /// The reason, for people.
    pub message: String,
}

/// Total tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamUsage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input and output tokens together.
    pub total_tokens: u64,
}

/// A message, or a piece of one, in a frame.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum SentMessagePart {
    AIMessageChunk {
        content: String,
        id: String,
        tool_calls: Vec<Value>,
        usage_metadata: Option<Value>,
    },
    #[serde(rename = "tool")]
    Tool {
        content: String,
        name: String,
        tool_call_id: String,
        id: String,
    },
    #[serde(other)]
    Other,
}

/// The items of a run. Dropping the stream does not stop the run.
pub struct RunStream {
    /// The run.
    pub run: RunId,
    frames: FrameStream,
    ready: VecDeque<StreamItem>,
    usage: StreamUsage,
    /// Ids of the answers that are included in the usage.
    counted: HashSet<String>,
}

impl Client {
    /// Sends a message to a thread, which is created if it is new, and returns the items of the run that answers.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn stream(&self, thread: &str, text: &str) -> Result<RunStream, StoreError> {
        let run = self.say(thread, text).await?.id;
        let modes = Modes { values: true, tuples: true, custom: true, ..Modes::default() };
        let assistant = pudu_langgraph::run::assistant("").to_owned();
        let request = StreamRequest {
            thread: thread.into(),
            run: run.clone(),
            assistant,
            modes,
            after: None,
            lost: None,
        };
        let (ready, usage, counted) = Default::default();
        Ok(RunStream { run, frames: self.runs().follow(request), ready, usage, counted })
    }
}

impl RunStream {
    /// Waits for the next item; `None` after the end.
    ///
    /// # Errors
    /// If the store fails. The run may continue.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the same item is returned next time.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, StoreError> {
        while self.ready.is_empty() {
            let Some(frames) = self.frames.next().await else { return Ok(None) };
            for frame in frames? {
                self.take(frame);
            }
        }
        Ok(self.ready.pop_front())
    }

    fn take(&mut self, frame: Frame) {
        let Frame { name, data, .. } = frame;
        let item = match name {
            "values" => RawValue::from_string(data).map(StreamItem::Values),
            "custom" => serde_json::from_str(&data).map(StreamItem::Custom),
            "error" => serde_json::from_str(&data).map(StreamItem::Error),
            "end" => Ok(StreamItem::End { usage: self.usage }),
            "messages" => {
                let part = serde_json::from_str(&data).map(|(part, _): (_, IgnoredAny)| part);
                return self.take_part(part.unwrap_or(SentMessagePart::Other));
            }
            _ => return,
        };
        self.ready.extend(item.ok());
    }

    fn take_part(&mut self, part: SentMessagePart) {
        match part {
            SentMessagePart::AIMessageChunk { content, id, tool_calls, usage_metadata } => {
                let usage_metadata = usage_metadata.filter(|_| self.counted.insert(id.clone()));
                if let Some(usage) = &usage_metadata {
                    self.count(StreamUsage::deserialize(usage).unwrap_or_default());
                }
                let ai = |content, tool_calls, usage_metadata| {
                    let id = id.clone();
                    StreamItem::MessagesTuple(StreamMessage::Ai { content, id, tool_calls, usage_metadata })
                };
                if !content.is_empty() || usage_metadata.is_some() {
                    self.ready.push_back(ai(content, Vec::new(), usage_metadata));
                }
                if !tool_calls.is_empty() {
                    self.ready.push_back(ai(String::new(), tool_calls, None));
                }
            }
            SentMessagePart::Tool { content, name, tool_call_id, id } => {
                let message = StreamMessage::Tool { content, name, tool_call_id, id };
                self.ready.push_back(StreamItem::MessagesTuple(message));
            }
            SentMessagePart::Other => {}
        }
    }

    fn count(&mut self, usage: StreamUsage) {
        self.usage.input_tokens += usage.input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        self.usage.total_tokens += usage.total_tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Model;
    use pudu_model::Offline;
    use serde_json::json;
    use std::sync::Arc;

    async fn client(home: &std::path::Path) -> Client {
        Client::open(home, [Arc::new(Offline) as Arc<dyn Model>]).await.unwrap()
    }

    #[tokio::test]
    async fn items_have_the_form_of_deerflows_client() {
        let home = tempfile::tempdir().unwrap();
        let client = client(home.path()).await;
        let mut stream = client.stream("trip", r#"/tool ls {"path": "/mnt/user-data"}"#).await.unwrap();
        let (mut seen, mut text, mut items) = (Vec::new(), String::new(), Vec::new());
        while let Some(item) = stream.next().await.unwrap() {
            let item = json!(item);
            let kind = match item["data"]["type"].as_str() {
                Some("ai") if item["data"]["tool_calls"].is_array() => "calls",
                Some("ai") => {
                    text.push_str(item["data"]["content"].as_str().unwrap());
                    "ai"
                }
                Some(kind) => kind,
                None => item["type"].as_str().unwrap(),
            };
            if seen.last().map(String::as_str) != Some(kind) {
                seen.push(kind.to_owned());
            }
            items.push(item);
        }
        assert_eq!(seen, ["values", "ai", "calls", "values", "tool", "values", "ai", "values", "end"]);
        let state = client.agent().state(&"trip".into()).await.unwrap();
        let (_, answer) = state.messages.last().unwrap();
        assert_eq!(text, answer.text(), "each word is sent once");
        let of = |kind: &'static str| items.iter().filter(move |item| item["data"]["type"] == kind);
        let usages: Vec<&Value> =
            of("ai").map(|item| &item["data"]["usage_metadata"]).filter(|usage| usage.is_object()).collect();
        let sum = |key: &str| usages.iter().map(|usage| usage[key].as_u64().unwrap()).sum::<u64>();
        let total = ["input_tokens", "output_tokens", "total_tokens"].map(sum);
        assert_eq!(usages.len(), 2, "the tokens of an answer are counted once: {items:#?}");
        let expect = json!({ "type": "end", "data": { "usage": {
            "input_tokens": total[0], "output_tokens": total[1], "total_tokens": total[2],
        } } });
        assert_eq!(items.last(), Some(&expect));
        let result = of("tool").next().unwrap();
        assert_eq!(
            (&result["data"]["name"], &result["data"]["tool_call_id"]),
            (&json!("ls"), &json!("offline-1"))
        );
        let values = items.iter().rev().find(|item| item["type"] == "values").unwrap();
        assert_eq!(values["data"]["messages"].as_array().unwrap().len(), 4);
        assert!(values["data"]["title"].is_string() && values["data"]["artifacts"].is_array(), "{values}");
    }

    #[tokio::test]
    async fn a_run_continues_when_its_stream_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let client = client(home.path()).await;
        let stream = client.stream("trip", "hello").await.unwrap();
        let live = client.runs().live_run(&stream.run).unwrap();
        drop(stream);
        live.closed.cancelled().await;
        assert_eq!(live.replay.progress().outcome, Some(pudu_base::Outcome::Success));
        assert_eq!(client.agent().state(&"trip".into()).await.unwrap().messages.len(), 2);
    }
}
