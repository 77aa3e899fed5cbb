//! The servers of a configuration, the state of each, and the tools of the servers that have listed them.

use crate::{
    failure::{ServerFailure, Skipped},
    handle::KeeperHandle,
    listing::{ToolList, ToolNote},
    names::{self, TakenNames},
    prompt::McpPrompt,
    resource::{ResourceRequest, ResourceTool},
    server::McpServer,
    tool::McpTool,
};
use pudu_base::{NamedPrompt, Tool, ToolServerReport, ToolServerState};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The servers and their tools. Each change is announced.
pub(crate) struct ServerCatalogue {
    servers: Mutex<KnownServers>,
    changes: watch::Sender<u64>,
}

struct KnownServers {
    entries: Vec<KnownServer>,
    /// Number of servers so far, and so the id of the next one.
    started: u64,
    unusable: Vec<Skipped>,
    disabled: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
    prompts: Vec<Arc<dyn NamedPrompt>>,
    is_reserved: fn(&str) -> bool,
}

struct KnownServer {
    id: u64,
    server: Arc<McpServer>,
    line: KeeperHandle,
    state: KnownState,
}

enum KnownState {
    Starting,
    Ready { found: ToolList, took: Duration, names: Vec<String> },
    Away(ServerFailure),
}

/// The part of a configuration that no server is started for.
pub(crate) struct Unstarted {
    pub(crate) unusable: Vec<Skipped>,
    pub(crate) disabled: Vec<String>,
    pub(crate) is_reserved: fn(&str) -> bool,
}

impl ServerCatalogue {
    pub(crate) fn new() -> Self {
        let servers = KnownServers {
            entries: Vec::new(),
            started: 0,
            unusable: Vec::new(),
            disabled: Vec::new(),
            tools: Vec::new(),
            prompts: Vec::new(),
            is_reserved: |_| false,
        };
        Self { servers: Mutex::new(servers), changes: watch::Sender::new(0) }
    }

    /// Replaces the servers. `start` starts a server; one with an equal configuration is kept instead, unless `all` reconnect.
    pub(crate) fn replace(
        &self,
        servers: Vec<McpServer>,
        unstarted: Unstarted,
        all: bool,
        mut start: impl FnMut(u64, Arc<McpServer>) -> KeeperHandle,
    ) {
        let mut known = self.lock();
        let mut former = std::mem::take(&mut known.entries);
        for server in servers {
            let same = former.iter().position(|entry| !all && entry.server.is_same(&server));
            let entry = match same {
                Some(at) => former.swap_remove(at),
                None => {
                    let (id, server) = (known.started, Arc::new(server));
                    known.started += 1;
                    KnownServer { id, line: start(id, server.clone()), server, state: KnownState::Starting }
                }
            };
            known.entries.push(entry);
        }
        (known.unusable, known.disabled) = (unstarted.unusable, unstarted.disabled);
        known.is_reserved = unstarted.is_reserved;
        known.name_tools();
        drop(known);
        self.announce();
    }

    /// Waits until the first start of each server has ended.
    pub(crate) async fn settled(&self) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let is_starting = |entry: &KnownServer| matches!(entry.state, KnownState::Starting);
            if !self.lock().entries.iter().any(is_starting) || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns a receiver that is notified of each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.lock().tools.clone()
    }

    pub(crate) fn prompts(&self) -> Vec<Arc<dyn NamedPrompt>> {
        self.lock().prompts.clone()
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let known = self.lock();
        let away = known.entries.iter().filter_map(|entry| match &entry.state {
            KnownState::Away(failure) => {
                Some(Skipped { server: entry.server.name().to_owned(), failure: failure.clone() })
            }
            _ => None,
        });
        known.unusable.iter().cloned().chain(away).collect()
    }

    pub(crate) fn notes(&self) -> Vec<ToolNote> {
        let known = self.lock();
        let lists = known.entries.iter().filter_map(|entry| match &entry.state {
            KnownState::Ready { found, .. } => Some(&found.notes),
            _ => None,
        });
        lists.flatten().cloned().collect()
    }

    /// Returns the state of each server.
    pub(crate) fn reports(&self) -> Vec<ToolServerReport> {
        let known = self.lock();
        let started = known.entries.iter().map(KnownServer::report);
        let unusable = known.unusable.iter().map(|skipped| away(&skipped.server, &skipped.failure));
        let disabled =
            known.disabled.iter().map(|name| ToolServerReport::new(name, ToolServerState::Disabled));
        started.chain(unusable).chain(disabled).collect()
    }

    fn report(&self, id: u64, state: KnownState) {
        let mut known = self.lock();
        // A server that is no longer in the configuration may still serve the runs that use it.
        let Some(entry) = known.entries.iter_mut().find(|entry| entry.id == id) else { return };
        log(entry.server.name(), &entry.state, &state);
        entry.state = state;
        known.name_tools();
        drop(known);
        self.announce();
    }

    fn announce(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, KnownServers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownServer {
    fn report(&self) -> ToolServerReport {
        let name = self.server.name();
        match &self.state {
            KnownState::Starting => ToolServerReport::new(name, ToolServerState::Starting),
            KnownState::Away(failure) => away(name, failure),
            KnownState::Ready { found, took, names } => ToolServerReport {
                tools: names.clone(),
                disabled_tools: found.off.clone(),
                seconds: Some((took.as_secs_f64() * 1000.0).round() / 1000.0),
                notes: found.notes.iter().map(ToString::to_string).collect(),
                ..ToolServerReport::new(name, ToolServerState::Ready)
            },
        }
    }
}

fn away(server: &str, failure: &ServerFailure) -> ToolServerReport {
    ToolServerReport {
        problem: Some(failure.to_string()),
        fix: Some(failure.fix().to_owned()),
        ..ToolServerReport::new(server, ToolServerState::Away)
    }
}

impl KnownServers {
    /// Names the tools of all servers, in the order of the configuration: the names do not depend on which server
    /// answered first.
    fn name_tools(&mut self) {
        let (mut taken, mut taken_prompts) = (TakenNames::new(self.is_reserved), TakenNames::new(|_| false));
        self.tools.clear();
        self.prompts.clear();
        for entry in &mut self.entries {
            let KnownState::Ready { found, names, .. } = &mut entry.state else { continue };
            let server = &entry.server;
            let mut remotes: Vec<&str> = found.tools.iter().map(|tool| tool.remote.as_str()).collect();
            let requests = ResourceRequest::ALL.into_iter();
            let is_offered =
                |request: &ResourceRequest| found.has_resources && !server.off.contains(request.remote());
            let requests: Vec<ResourceRequest> = requests.filter(is_offered).collect();
            remotes.extend(requests.iter().map(|request| request.remote()));
            *names = names::assign(server.name(), server.prefix, &remotes, &mut taken);
            let remotes: Vec<&str> = found.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
            let prompt_names = names::assign(server.name(), true, &remotes, &mut taken_prompts);
            for (name, prompt) in prompt_names.into_iter().zip(&found.prompts) {
                let line = entry.line.clone();
                self.prompts.push(Arc::new(McpPrompt::new(server.clone(), line, name, prompt.clone())));
            }
            for (name, tool) in names.iter().zip(&found.tools) {
                let (line, name) = (entry.line.clone(), name.clone());
                self.tools.push(Arc::new(McpTool::new(server.clone(), line, name, tool.clone())));
            }
            for (name, request) in names.iter().skip(found.tools.len()).zip(requests) {
                let (line, name) = (entry.line.clone(), name.clone());
                self.tools.push(Arc::new(ResourceTool::new(server.clone(), line, name, request)));
            }
        }
    }
}

/// Logs a change of a server's state. A failure that repeats itself is logged once.
fn log(server: &str, former: &KnownState, new: &KnownState) {
    match (former, new) {
        (KnownState::Away(former), KnownState::Away(failure)) if former == failure => {
            tracing::debug!(server, "MCP server is still away: {failure}");
        }
        (_, KnownState::Away(failure)) => {
            tracing::warn!(server, "skipped MCP server: {failure}");
        }
        (KnownState::Ready { .. }, KnownState::Ready { found, .. }) => {
            tracing::info!(server, tools = found.tools.len(), "listed tools of MCP server again");
        }
        (_, KnownState::Ready { found, .. }) => {
            tracing::info!(server, tools = found.tools.len(), "connected MCP server");
        }
        (_, KnownState::Starting) => {}
    }
}

/// Reports the state of one server.
pub(crate) struct Reporter {
    catalogue: Weak<ServerCatalogue>,
    id: u64,
    begun: Instant,
}

impl Reporter {
    pub(crate) fn new(catalogue: &Arc<ServerCatalogue>, id: u64) -> Self {
        Self { catalogue: Arc::downgrade(catalogue), id, begun: Instant::now() }
    }

    /// Records that a start begins.
    pub(crate) fn begins(&mut self) {
        self.begun = Instant::now();
    }

    pub(crate) fn ready(&self, found: ToolList) {
        self.report(KnownState::Ready { found, took: self.begun.elapsed(), names: Vec::new() });
    }

    pub(crate) fn away(&self, failure: ServerFailure) {
        self.report(KnownState::Away(failure));
    }

    fn report(&self, state: KnownState) {
        if let Some(catalogue) = self.catalogue.upgrade() {
            catalogue.report(self.id, state);
        }
    }
}
