//! A call of a tool over a session: with its progress and the requests that the server makes meanwhile, repeated with the
//! answers that the server asks for, and cancelled on the server when it is dropped.

use crate::{
    asks::{AskKind, AwaitedAnswer, CallWatch, ServerAsk},
    client::McpClient,
};
use futures_util::future::BoxFuture;
use pudu_base::{CallId, Tell};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
        InputRequest, RequestId, ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::mpsc;

/// Maximum number of times that a server may ask for more input.
const MAX_ROUNDS: usize = 8;

/// A connection to a server, which is cheap to clone. Requests fail once its session has ended.
#[derive(Clone)]
pub(crate) struct McpWire {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) client: McpClient,
}

/// The next step of a call.
pub(crate) enum ServerStep {
    /// The result.
    Complete(CallToolResult),
    /// The server asks people, the model or for folders, and continues with the answer.
    Asks(ServerAsk),
    /// The server began a task, or asked for input too often.
    Unsupported,
}

/// A call that has begun. Dropping it cancels the call on the server.
pub(crate) struct OngoingCall {
    wire: McpWire,
    params: CallToolRequestParams,
    call: CallId,
    events: Tell,
    sent: Option<SentCall>,
    /// The input that the server wants before it continues, and the one that is being answered.
    wanted: VecDeque<(String, InputRequest)>,
    awaited: Option<(String, AwaitedAnswer)>,
    answers: BTreeMap<String, Value>,
    rounds: usize,
}

/// A request whose response is awaited.
struct SentCall {
    response: BoxFuture<'static, Result<ServerResult, ServiceError>>,
    asks: mpsc::Receiver<ServerAsk>,
    guard: CancelOnDrop,
    _watch: CallWatch,
}

impl McpWire {
    /// Begins a call.
    pub(crate) fn begin(&self, params: CallToolRequestParams, call: &CallId, events: &Tell) -> OngoingCall {
        OngoingCall {
            wire: self.clone(),
            params,
            call: call.clone(),
            events: events.clone(),
            sent: None,
            wanted: VecDeque::new(),
            awaited: None,
            answers: BTreeMap::new(),
            rounds: 0,
        }
    }
}

impl OngoingCall {
    /// Continues until the server asks something or has a result.
    pub(crate) async fn next(&mut self) -> Result<ServerStep, ServiceError> {
        loop {
            if let Some((_, answer)) = &mut self.awaited {
                let answer = answer.get().await;
                if let Some((key, _)) = self.awaited.take() {
                    // There is no other way to refuse a request in this form.
                    let declined = || serde_json::json!({ "action": "decline" });
                    self.answers.insert(key, answer.unwrap_or_else(|_| declined()));
                }
            }
            if let Some((key, request)) = self.wanted.pop_front() {
                let Some((ask, answer)) = input(&request) else { return Ok(ServerStep::Unsupported) };
                self.awaited = Some((key, answer));
                return Ok(ServerStep::Asks(ask));
            }
            let mut sent = match self.sent.take() {
                Some(sent) => sent,
                None if self.rounds >= MAX_ROUNDS => return Ok(ServerStep::Unsupported),
                None => self.send().await?,
            };
            let response = tokio::select! {
                biased;
                Some(ask) = sent.asks.recv() => {
                    self.sent = Some(sent);
                    return Ok(ServerStep::Asks(ask));
                }
                response = &mut sent.response => response,
            };
            sent.guard.id = None;
            match response? {
                ServerResult::CallToolResult(result) => return Ok(ServerStep::Complete(result)),
                ServerResult::InputRequiredResult(result) => {
                    self.wanted = result.input_requests.unwrap_or_default().into_iter().collect();
                    self.params.request_state = result.request_state;
                }
                ServerResult::CreateTaskResult(_) => return Ok(ServerStep::Unsupported),
                _ => return Err(ServiceError::UnexpectedResponse),
            }
        }
    }

    async fn send(&mut self) -> Result<SentCall, ServiceError> {
        self.rounds += 1;
        let mut params = self.params.clone();
        if self.rounds > 1 {
            params.input_responses = Some(std::mem::take(&mut self.answers));
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.wire.peer.clone();
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let calls = &self.wire.client.calls;
        let (watch, asks) = calls.watch(&handle.progress_token, &handle.id, &self.call, &self.events);
        let guard = CancelOnDrop { peer, id: Some(handle.id.clone()) };
        Ok(SentCall { response: Box::pin(handle.await_response()), asks, guard, _watch: watch })
    }
}

fn input(request: &InputRequest) -> Option<(ServerAsk, AwaitedAnswer)> {
    let (kind, params) = match request {
        InputRequest::Elicitation(request) => (AskKind::Elicitation, serde_json::json!(request.params)),
        InputRequest::CreateMessage(request) => (AskKind::Sampling, serde_json::json!(request.params)),
        InputRequest::ListRoots(_) => (AskKind::Roots, Value::Null),
        _ => return None,
    };
    Some(ServerAsk::new(kind, params))
}

/// Cancels an unfinished request on the server.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) {
            let peer = self.peer.clone();
            let reason = "the caller stopped waiting".to_owned();
            let cancelled = CancelledNotificationParam::new(Some(id), Some(reason));
            runtime.spawn(async move { peer.notify_cancelled(cancelled).await });
        }
    }
}
