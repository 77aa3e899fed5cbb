//! Sessions, and the prompts in them.

use super::{
    failure::failed,
    frames::{RunNews, news},
    prompt::PromptContent,
};
use crate::cli::chat::{
    api::{Api, ApiFailure, backoff},
    thread::RECURSION_LIMIT,
};
use futures_util::stream::{FuturesUnordered, StreamExt};
use pudu_acp::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError, RpcPeer};
use pudu_base::MessageId;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Metadata key of a session's first thread for the thread on which it continues.
pub(super) const THREAD_KEY: &str = "acp_thread";
/// Stream modes of a run.
const MODES: &str = "messages-tuple&stream_mode=updates&stream_mode=custom";
/// Maximum number of consecutive failures to reach the daemon during a run.
const MAX_FAILURES: u32 = 12;
/// How long a stopped run may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The open sessions, by their ids.
#[derive(Default)]
pub(super) struct SessionTable(Mutex<HashMap<String, Arc<SessionState>>>);

impl SessionTable {
    /// Opens a session that continues on a thread. One that is open already keeps its state.
    pub(super) fn open(&self, id: &str, thread: &str) {
        let state = || Arc::new(SessionState(Mutex::new(SessionFacts::new(thread))));
        lock(&self.0).entry(id.to_owned()).or_insert_with(state);
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<SessionState>> {
        lock(&self.0).get(id).cloned()
    }

    /// Stops the runs of a session. An unknown session has none.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(state) = self.get(id) {
            state.cancel();
        }
    }

    /// Stops all runs.
    pub(super) fn cancel_all(&self) {
        lock(&self.0).values().for_each(|state| state.cancel());
    }
}

/// State of a session.
pub(super) struct SessionState(Mutex<SessionFacts>);

struct SessionFacts {
    /// Thread on which the session continues. A slash command may begin another one.
    thread: String,
    /// Name of the chosen model.
    model: Option<String>,
    /// Cancelled to stop the current prompts.
    stop: CancellationToken,
}

impl SessionFacts {
    fn new(thread: &str) -> Self {
        Self { thread: thread.to_owned(), model: None, stop: CancellationToken::new() }
    }
}

impl SessionState {
    pub(super) fn model(&self) -> Option<String> {
        lock(&self.0).model.clone()
    }

    pub(super) fn choose_model(&self, model: String) {
        lock(&self.0).model = Some(model);
    }

    fn cancel(&self) {
        let mut facts = lock(&self.0);
        // Later prompts are not affected.
        std::mem::take(&mut facts.stop).cancel();
    }

    fn thread(&self) -> String {
        lock(&self.0).thread.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session during a request.
pub(super) struct AcpSession {
    pub(super) id: String,
    pub(super) state: Arc<SessionState>,
    pub(super) api: Api,
    pub(super) agent: Option<String>,
    pub(super) peer: RpcPeer,
}

impl AcpSession {
    /// Answers a prompt: returns when its run has ended.
    pub(super) async fn prompt(&self, blocks: &Value) -> Result<Value, RpcError> {
        let stop = lock(&self.state.0).stop.clone();
        let prompt = PromptContent::read(blocks);
        if prompt.text.trim().is_empty() && prompt.images.is_empty() {
            return Err(RpcError::new(INVALID_PARAMS, "the prompt is empty"));
        }
        let run = match prompt.text.starts_with('/') {
            true => self.command(&prompt).await?,
            false => Some(self.begin(&prompt).await?),
        };
        let reason = match run {
            Some(run) => self.follow(&run, &stop).await?,
            None => "end_turn",
        };
        Ok(json!({ "stopReason": reason }))
    }

    /// Runs a slash command. Returns the run that it began, if it began one.
    async fn command(&self, prompt: &PromptContent) -> Result<Option<String>, RpcError> {
        let path = format!("threads/{}/slash-commands", self.state.thread());
        let body = json!({ "text": prompt.text.trim(), "context": { "approvals": "ask" } });
        let answer = self.api.command(&path, &body).await.map_err(failed)?;
        if answer["is_message"] == true {
            return self.begin(prompt).await.map(Some);
        }
        if let Some(thread) = answer["thread_id"].as_str().filter(|thread| !thread.is_empty()) {
            self.move_to(thread).await?;
        }
        let mut text = answer["text"].as_str().unwrap_or_default().to_owned();
        for file in answer["files"].as_array().into_iter().flatten() {
            let part = |key: &str| file[key].as_str().unwrap_or_default();
            text.push_str(&format!("\n\n{}\n{}", part("name"), part("content")));
        }
        if !text.is_empty() {
            let content = json!({ "type": "text", "text": text });
            self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": content })).await;
        }
        Ok(answer["run_id"].as_str().map(str::to_owned))
    }

    /// Continues the session on another thread, also after it is loaded again.
    async fn move_to(&self, thread: &str) -> Result<(), RpcError> {
        if self.state.thread() == thread {
            return Ok(());
        }
        let new = json!({ "thread_id": thread, "if_exists": "do_nothing" });
        self.api.post("threads", &new).await.map_err(failed)?;
        let moved = json!({ "metadata": { THREAD_KEY: thread } });
        self.api.patch(&format!("threads/{}", self.id), &moved).await.map_err(failed)?;
        lock(&self.state.0).thread = thread.to_owned();
        Ok(())
    }

    /// Begins a run and returns its id.
    async fn begin(&self, prompt: &PromptContent) -> Result<String, RpcError> {
        let mut context = json!({ "approvals": "ask" });
        if let Some(model) = self.state.model() {
            context["model_name"] = json!(model);
        }
        let body = json!({
            "assistant_id": self.agent.as_deref().unwrap_or("lead_agent"),
            "input": { "messages": [{ "type": "human", "id": MessageId::fresh(), "content": prompt.content() }] },
            "multitask_strategy": "enqueue",
            "on_disconnect": "continue",
            "config": { "recursion_limit": RECURSION_LIMIT },
            "context": context,
            "if_not_exists": "create",
        });
        let run =
            self.api.post(&format!("threads/{}/runs", self.state.thread()), &body).await.map_err(failed)?;
        let id = run["run_id"].as_str().map(str::to_owned);
        id.ok_or_else(|| RpcError::new(INTERNAL_ERROR, "the daemon began no run"))
    }

    /// Passes a run on to the editor until it ends. Returns why it ended.
    async fn follow(&self, run: &str, stop: &CancellationToken) -> Result<&'static str, RpcError> {
        let thread = self.state.thread();
        let mut passing = std::pin::pin!(self.pass_on(&thread, run));
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ended = &mut passing => Some(ended),
        };
        match ended {
            None => {
                let path = format!("threads/{thread}/runs/{run}/cancel");
                if let Err(error) = self.api.post(&path, &Value::Null).await {
                    eprintln!("warning: the run was not stopped: {}", failed(error));
                }
                // The protocol wants this answer even if the stop failed.
                timeout(STOP_TIMEOUT, passing).await.ok();
                Ok("cancelled")
            }
            Some(Ok(())) => Ok("end_turn"),
            Some(Err(RunFailed { name, .. })) if name == "GraphRecursionError" => Ok("max_turn_requests"),
            Some(Err(RunFailed { text, .. })) => Err(RpcError::new(INTERNAL_ERROR, text)),
        }
    }

    /// Passes the frames of a run on until it ends, and reconnects when necessary.
    async fn pass_on(&self, thread: &str, run: &str) -> Result<(), RunFailed> {
        let (mut last, mut failures, mut failure) = (None::<String>, 0, None);
        let mut approvals = FuturesUnordered::new();
        loop {
            sleep(backoff(failures)).await;
            let mut frames = match self.api.frames(thread, run, MODES, last.as_deref()).await {
                Ok(frames) => frames,
                Err(ApiFailure::Later { .. }) if failures < MAX_FAILURES => {
                    failures += 1;
                    continue;
                }
                Err(error) => {
                    return Err(RunFailed { name: String::new(), text: failed(error).to_string() });
                }
            };
            loop {
                let frame = tokio::select! {
                    frame = frames.next() => frame,
                    Some(()) = approvals.next() => continue,
                };
                let Some(frame) = frame else { break };
                failures = 0;
                let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
                for news in news(&frame.event, &data) {
                    match news {
                        RunNews::Update(update) => self.update(update).await,
                        RunNews::Approval(asked) => approvals.push(self.approve(thread, asked)),
                        RunNews::Failed(name, text) => failure = Some(RunFailed { name, text }),
                        RunNews::Ended => return failure.map_or(Ok(()), Err),
                    }
                }
                last = frame.id.or(last);
            }
            failures += 1;
        }
    }

    /// Asks the user of the editor about a call, and passes the decision on. Without a decision the call is denied.
    async fn approve(&self, thread: &str, asked: Value) {
        let mut call =
            json!({ "toolCallId": asked["call_id"], "title": asked["request"], "status": "pending" });
        if let Some(whole) = asked["whole"].as_str() {
            call["content"] = json!([{ "type": "content", "content": { "type": "text", "text": whole } }]);
        }
        let params = json!({
            "sessionId": self.id,
            "toolCall": call,
            "options": [
                { "optionId": "allow", "name": "Allow", "kind": "allow_once" },
                { "optionId": "deny", "name": "Deny", "kind": "reject_once" },
            ],
        });
        let answer = self.peer.request("session/request_permission", &params).await.unwrap_or_default();
        let approved = answer["outcome"]["outcome"] == "selected" && answer["outcome"]["optionId"] == "allow";
        let path = format!("threads/{thread}/approvals/{}", asked["key"].as_str().unwrap_or_default());
        // It may have been decided elsewhere, or the run may have been stopped.
        self.api.post(&path, &json!({ "approved": approved })).await.ok();
    }

    async fn update(&self, update: Value) {
        let params = json!({ "sessionId": self.id, "update": update });
        self.peer.notify("session/update", &params).await.ok();
    }
}

/// Failure of a run: the name and the text of its error.
struct RunFailed {
    name: String,
    text: String,
}
