//! One prompt for an agent: starts its process, opens a session, sends the prompt and collects the answer.

use crate::{
    AcpAgent, AcpAnswer, AcpEvent, AcpFailure, AcpHost, PermissionRequest,
    failure::not_installed,
    rpc::{
        AUTH_REQUIRED, INVALID_REQUEST, METHOD_NOT_FOUND, PROTOCOL_VERSION, RequestError, RpcError,
        RpcMessage, RpcPeer, RpcReader, connect,
    },
    update::Updates,
};
use futures_util::stream::{FuturesUnordered, StreamExt};
use pudu_mcp::{
    PassedServer, PassedServers, PassedTransport,
    child::{Process, ServerCommand, ServerLabel, start},
};
use pudu_net::scrub::SecretWords;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::{
    path::Path,
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::AsyncRead,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// Maximum time from the start of the process to the session. The first start of an adapter may download it.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// How long an agent may take to end its work after a cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of open requests for permission. Further ones are refused.
const MAX_PERMISSIONS: usize = 16;

impl AcpAgent {
    /// Gives the agent a prompt. It works in the folder, and ends with its answer.
    ///
    /// # Cancel safety
    /// Dropping the future kills the agent with all its processes.
    pub async fn ask(
        &self,
        folder: &Path,
        prompt: &str,
        servers: PassedServers,
        host: &dyn AcpHost,
    ) -> AcpAnswer {
        let label = ServerLabel::new(
            &self.name,
            SecretWords::of_program(self.given.iter().map(ExposeSecret::expose_secret)),
        );
        if !self.command.is_installed() {
            return AcpAnswer { failure: Some(not_installed(self)), ..AcpAnswer::default() };
        }
        let command = ServerCommand { folder: Some(folder.to_owned()), ..self.command.clone() };
        let (process, (stdout, stdin)) = match start(&command, &label) {
            Ok(started) => started,
            Err(why) => {
                return AcpAnswer { failure: Some(AcpFailure::Failed(why)), ..AcpAnswer::default() };
            }
        };
        let (peer, reader, writing) = connect(stdout, stdin);
        let writing = AbortOnDropHandle::new(writing);
        let session = PromptSession::new(self, &label, host, peer);
        let ended = session.run(reader, folder, prompt, servers).await;
        let mut answer = session.answer();
        // Everything that was sent is written, and then the child's input is closed.
        drop(session);
        match ended {
            Ok(()) => {
                timeout(CANCEL_TIMEOUT, writing).await.ok();
                process.close().await;
            }
            Err(failure) => answer.failure = Some(explain(failure, process).await),
        }
        answer
    }
}

/// Appends the last line of the agent's error output to a failure whose reason it may be.
async fn explain(failure: AcpFailure, process: Process) -> AcpFailure {
    let complaint = process.complaint().await;
    match failure {
        AcpFailure::Failed(why) if !complaint.is_empty() => {
            AcpFailure::Failed(format!("{why}; it complained: {complaint}"))
        }
        other => other,
    }
}

/// The session of one prompt.
struct PromptSession<'a> {
    agent: &'a AcpAgent,
    label: &'a ServerLabel,
    host: &'a dyn AcpHost,
    peer: RpcPeer,
    updates: Mutex<Updates>,
    notes: Mutex<Vec<String>>,
    /// Number of requests for permission that people have not decided.
    asking: watch::Sender<usize>,
}

impl<'a> PromptSession<'a> {
    fn new(agent: &'a AcpAgent, label: &'a ServerLabel, host: &'a dyn AcpHost, peer: RpcPeer) -> Self {
        let (updates, notes, asking) = (Mutex::default(), Mutex::default(), watch::Sender::new(0));
        Self { agent, label, host, peer, updates, notes, asking }
    }

    /// Works until the prompt is answered, the agent ends, or time is up.
    async fn run(
        &self,
        reader: RpcReader<impl AsyncRead + Unpin>,
        folder: &Path,
        prompt: &str,
        servers: PassedServers,
    ) -> Result<(), AcpFailure> {
        let work = async {
            let limit = START_TIMEOUT.min(self.agent.timeout);
            let session = timeout(limit, self.open(folder, servers)).await;
            let session = session.map_err(|_| AcpFailure::SlowStart(limit))??;
            let mut answered = pin!(self.prompt(&session, prompt));
            tokio::select! {
                answered = &mut answered => answered,
                () = self.out_of_time() => {
                    self.peer.notify("session/cancel", &json!({ "sessionId": session })).await.ok();
                    // The rest of its text may still come.
                    timeout(CANCEL_TIMEOUT, answered).await.ok();
                    let (agent, seconds) = (self.agent.name.clone(), self.agent.timeout.as_secs());
                    Err(AcpFailure::Late { agent, seconds })
                }
            }
        };
        let mut work = pin!(work);
        tokio::select! {
            ended = &mut work => ended,
            // The agent may have answered before it ended. If not, the request fails now.
            () = self.serve(reader) => work.await,
        }
    }

    /// Opens the session and returns its id.
    async fn open(&self, folder: &Path, servers: PassedServers) -> Result<String, AcpFailure> {
        let begin = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": { "name": "pudu", "title": "pudu", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        });
        let about = self.request("initialize", &begin, &Value::Null).await?;
        if let Some(version) =
            about.get("protocolVersion").filter(|version| **version != json!(PROTOCOL_VERSION))
        {
            let why =
                format!("it speaks version {version} of the protocol, and pudu version {PROTOCOL_VERSION}");
            return Err(AcpFailure::Failed(why));
        }
        let mut params = json!({ "cwd": folder, "mcpServers": self.usable(servers, &about) });
        if let Some(model) = &self.agent.model {
            // As DeerFlow does.
            params["_meta"] = json!({ "model": model });
        }
        let opened = self.request("session/new", &params, &about).await?;
        let session = opened.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        let session = session.ok_or_else(|| AcpFailure::Failed("it opened no session".to_owned()))?;
        if let Some(model) = &self.agent.model {
            self.choose_model(&session, model, &opened).await?;
        }
        Ok(session)
    }

    /// Chooses the configured model, where the agent offers models.
    async fn choose_model(&self, session: &str, model: &str, opened: &Value) -> Result<(), AcpFailure> {
        let options = opened.get("configOptions").and_then(Value::as_array).into_iter().flatten();
        let is_model = |option: &&Value| option.get("category").and_then(Value::as_str) == Some("model");
        let option = options.into_iter().find(is_model).and_then(|option| option.get("id"));
        let (method, params) = match (option, opened.get("models").filter(|models| !models.is_null())) {
            (Some(id), _) => {
                ("session/set_config_option", json!({ "sessionId": session, "configId": id, "value": model }))
            }
            (None, Some(_)) => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
            (None, None) => {
                self.note(format!("the agent offers no models, so it may not use {model}"));
                return Ok(());
            }
        };
        self.request(method, &params, opened).await.map(drop)
    }

    /// Sends the prompt and waits for the end of the work.
    async fn prompt(&self, session: &str, prompt: &str) -> Result<(), AcpFailure> {
        let request = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": prompt }] });
        let ended = self.request("session/prompt", &request, &Value::Null).await?;
        match ended.get("stopReason").and_then(Value::as_str).unwrap_or("end_turn") {
            "end_turn" => {}
            "max_tokens" => self.note("the agent reached its limit of tokens".to_owned()),
            "max_turn_requests" => self.note("the agent reached its limit of model calls".to_owned()),
            "refusal" => self.note("the agent refused to continue".to_owned()),
            "cancelled" => self.note("the agent's work was cancelled".to_owned()),
            other => self.note(format!("the agent stopped: {}", self.label.hide_and_cut(other))),
        }
        Ok(())
    }

    async fn request(
        &self,
        method: &str,
        params: &impl serde::Serialize,
        about: &Value,
    ) -> Result<Value, AcpFailure> {
        self.peer.request(method, params).await.map_err(|error| match error {
            RequestError::Refused(error) if error.code == AUTH_REQUIRED => self.sign_in(about),
            RequestError::Refused(error) => {
                let details = error.data.as_ref().map(|data| format!(" ({data})")).unwrap_or_default();
                let why = self.label.hide_and_cut(&format!("{}{details}", error.message));
                AcpFailure::Failed(format!("it refused {method}: {why}"))
            }
            RequestError::Closed => {
                let why = match method {
                    "initialize" => "it ended before it was ready",
                    _ => "it ended in the middle of its work",
                };
                AcpFailure::Failed(why.to_owned())
            }
        })
    }

    fn sign_in(&self, about: &Value) -> AcpFailure {
        let methods = about.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<&str> = methods.filter_map(|method| method.get("name")?.as_str()).collect();
        let by = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let why = format!(
            "it needs a sign-in{by}. Operator: sign in with its own program in a terminal as the user of pudu, or set \
             its key in acp_agents.{}.env",
            self.agent.name
        );
        AcpFailure::SignIn(self.label.hide_and_cut(&why))
    }

    /// Returns the servers that the agent can reach.
    fn usable(&self, servers: PassedServers, about: &Value) -> Vec<Value> {
        let http = about.pointer("/agentCapabilities/mcpCapabilities/http").and_then(Value::as_bool);
        let mut usable = Vec::new();
        for PassedServer { name, transport } in servers.servers {
            match transport {
                PassedTransport::Stdio { program, args, env } => {
                    let args: Vec<&str> = args.iter().map(ExposeSecret::expose_secret).collect();
                    usable
                        .push(json!({ "name": name, "command": program, "args": args, "env": pairs(&env) }));
                }
                PassedTransport::Http { url, headers } if http == Some(true) => {
                    let url = url.expose_secret();
                    usable.push(
                        json!({ "type": "http", "name": name, "url": url, "headers": pairs(&headers) }),
                    );
                }
                PassedTransport::Http { .. } => {
                    let why = "the agent starts servers only, and does not call them over HTTP";
                    self.note(format!("MCP server {name} is not available: {why}"));
                }
            }
        }
        servers.omitted.into_iter().for_each(|omitted| self.note(omitted));
        usable
    }

    /// Completes after the agent has worked for its time. Time in which people decide does not count.
    async fn out_of_time(&self) {
        let (mut left, mut asking) = (self.agent.timeout, self.asking.subscribe());
        loop {
            // The sender lives as long as the session.
            asking.wait_for(|count| *count == 0).await.ok();
            let start = Instant::now();
            if timeout(left, asking.wait_for(|count| *count > 0)).await.is_err() {
                return;
            }
            left = left.saturating_sub(start.elapsed());
        }
    }

    /// Takes the agent's messages until it ends.
    async fn serve(&self, mut reader: RpcReader<impl AsyncRead + Unpin>) {
        let mut permissions = FuturesUnordered::new();
        loop {
            let message = tokio::select! {
                message = reader.next() => message,
                Some(()) = permissions.next() => continue,
            };
            match message {
                None => return,
                Some(RpcMessage::Request { id, method, params })
                    if method == "session/request_permission" =>
                {
                    if permissions.len() < MAX_PERMISSIONS {
                        permissions.push(self.permit(id, params));
                    } else {
                        let error =
                            RpcError::new(INVALID_REQUEST, "too many requests for permission are open");
                        self.peer.respond::<Value>(&id, Err(error)).await.ok();
                    }
                }
                Some(RpcMessage::Request { id, method, .. }) => {
                    let error = match method.as_str() {
                        "" => RpcError::new(INVALID_REQUEST, "the message is too long"),
                        method => RpcError::new(METHOD_NOT_FOUND, format!("pudu has no {method}")),
                    };
                    self.peer.respond::<Value>(&id, Err(error)).await.ok();
                }
                Some(RpcMessage::Notification { method, params }) => self.on_notification(&method, &params),
                Some(RpcMessage::Noise(line)) => {
                    let text = self.label.hide_and_cut(&String::from_utf8_lossy(&line));
                    tracing::debug!(agent = self.label.name(), "passed over line of ACP agent: {text}");
                }
            }
        }
    }

    fn on_notification(&self, method: &str, params: &Value) {
        if method != "session/update" {
            return;
        }
        let events = lock(&self.updates).take(params.get("update").unwrap_or(&Value::Null));
        for event in events {
            self.host.on_event(self.without_values(event));
        }
    }

    /// Answers a request for permission.
    async fn permit(&self, id: Value, params: Value) {
        let request = PermissionRequest::read(&params);
        let approved =
            request.can_be_approved() && (self.agent.auto_approve || self.ask_people(&request).await);
        self.peer.respond(&id, Ok(request.outcome(approved))).await.ok();
    }

    async fn ask_people(&self, request: &PermissionRequest) -> bool {
        let _asks = OpenQuestion::new(&self.asking);
        self.host.permit(request).await
    }

    /// Returns an event without values of the agent's configuration.
    fn without_values(&self, event: AcpEvent) -> AcpEvent {
        let hide = |text: &str| self.label.hide_in_tool_error(text);
        match event {
            AcpEvent::Calls { text, title, input } => {
                AcpEvent::Calls { text: hide(&text), title: hide(&title), input }
            }
            AcpEvent::Called { title, failed, text } => {
                AcpEvent::Called { title: hide(&title), failed, text: hide(&text) }
            }
            AcpEvent::Does(titles) => AcpEvent::Does(titles.iter().map(|title| hide(title)).collect()),
        }
    }

    fn note(&self, note: String) {
        lock(&self.notes).push(note);
    }

    /// Returns the agent's text, with notes on its omitted parts.
    fn answer(&self) -> AcpAnswer {
        let updates = std::mem::take(&mut *lock(&self.updates));
        let mut notes = std::mem::take(&mut *lock(&self.notes));
        if updates.is_cut {
            notes.push("the agent's text is longer than 1 MiB; the rest is left out".to_owned());
        }
        if updates.other_contents > 0 {
            notes.push(format!("{} parts of the agent's answer are not text", updates.other_contents));
        }
        if updates.unusable > 0 {
            tracing::info!(
                agent = self.label.name(),
                updates = updates.unusable,
                "passed over updates of ACP agent"
            );
        }
        AcpAnswer { text: self.label.hide(updates.text.trim()), notes, failure: None }
    }
}

/// Renders variables or headers.
fn pairs(pairs: &[(String, SecretString)]) -> Vec<Value> {
    pairs.iter().map(|(name, value)| json!({ "name": name, "value": value.expose_secret() })).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request for permission while people decide.
struct OpenQuestion<'a>(&'a watch::Sender<usize>);

impl<'a> OpenQuestion<'a> {
    fn new(asking: &'a watch::Sender<usize>) -> Self {
        asking.send_modify(|count| *count += 1);
        Self(asking)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
