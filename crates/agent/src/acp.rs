//! `invoke_acp_agent`: gives a task to an agent of the operator by the Agent Client Protocol. Its work is shown and kept
//! like that of a sub-agent, and its requests for permission are approvals.

use crate::{Agent, audit::AuditLog};
use pudu_acp::{AcpAgent, AcpAnswer, AcpEvent, AcpFailure, AcpHost, PermissionRequest};
use pudu_base::{
    BoxFuture, Decision, EffectRequest, ResultOrigin, RunEvent, StepCall, StepKind, TaskEnd, TaskReport,
    TaskStage, TaskStatus, ThreadFolder, ToolCx, ToolError, ToolOutput, TypedTool, Usage, cut_task_text,
    foreign,
};
use pudu_harness::{ACP_TASK, subagent::StepLog};
use pudu_kit::blocking;
use pudu_mcp::PassedServers;
use pudu_sandbox::{ACP, Folders};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Returns the MCP servers of these names, for agents that connect to servers themselves. Blocks.
pub type McpSource = Arc<dyn Fn(&[String]) -> PassedServers + Send + Sync>;

/// Maximum length of the shown beginning of a prompt, in characters.
const MAX_ABOUT_CHARS: usize = 200;

/// The tool.
pub(crate) struct InvokeAcpAgent {
    agents: Arc<[AcpAgent]>,
    servers: Option<McpSource>,
    folders: Folders,
    folder: ThreadFolder,
    audit_log: AuditLog,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AcpTaskArgs {
    /// Name of the agent.
    agent: String,
    /// The whole task: the agent does not see this conversation and no file outside of its own workspace.
    prompt: String,
}

impl InvokeAcpAgent {
    pub(crate) fn new(
        agent: &Agent,
        agents: &Arc<[AcpAgent]>,
        folder: ThreadFolder,
        audit_log: AuditLog,
    ) -> Self {
        let servers = agent.0.mcp_servers.get().cloned();
        Self { agents: agents.clone(), servers, folders: agent.0.folders.clone(), folder, audit_log }
    }

    async fn workspace(&self) -> Result<PathBuf, ToolError> {
        let (folders, folder) = (self.folders.clone(), self.folder.clone());
        let created = blocking::run(move || folders.acp_workspace(&folder)).await;
        let created = created.map_err(|_| ToolError("the process is ending".to_owned()))?;
        created.map_err(|error| ToolError(format!("its workspace cannot be created: {}", error.kind())))
    }

    async fn servers(&self, agent: &AcpAgent) -> PassedServers {
        match (&self.servers, agent.mcp_servers.is_empty()) {
            (Some(servers), false) => {
                let (servers, names) = (servers.clone(), agent.mcp_servers.clone());
                blocking::run(move || servers(&names)).await.unwrap_or_default()
            }
            _ => PassedServers::default(),
        }
    }

    async fn work(&self, agent: &AcpAgent, prompt: &str, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let workspace = self.workspace().await?;
        let servers = self.servers(agent).await;
        let host = AcpWork::begin(agent, prompt, cx);
        let answer = agent.ask(&workspace, prompt, servers, &host).await;
        Ok(host.end(answer))
    }
}

impl TypedTool for InvokeAcpAgent {
    type Args = AcpTaskArgs;
    const NAME: &'static str = ACP_TASK;
    const DESCRIPTION: &'static str = "Gives a task to another agent and returns its answer.";
    const ORIGIN: ResultOrigin = ResultOrigin::Strangers;

    fn description(&self) -> String {
        let list: String =
            self.agents.iter().map(|agent| format!("\n- {}: {}", agent.name, agent.description)).collect();
        format!(
            "{} It works in a workspace of its own, which you can read at {ACP}; it sees neither this conversation nor \
             /mnt/user-data, so give it the whole task in words and do not name such paths. Each call is a new session \
             in the same workspace. Agents:{list}",
            Self::DESCRIPTION
        )
    }

    async fn run(
        &self,
        AcpTaskArgs { agent, prompt }: AcpTaskArgs,
        cx: &ToolCx,
    ) -> Result<ToolOutput, ToolError> {
        let Some(known) = self.agents.iter().find(|known| known.name == agent) else {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            let text = format!("Unknown agent '{agent}'. Available: {}", names.join(", "));
            return Err(ToolError(text));
        };
        let permissions = if known.auto_approve { " [auto_approve_permissions]" } else { "" };
        let detail = format!("{agent}{permissions}: {prompt}");
        self.audit_log.noted("acp", &detail, self.work(known, &prompt, cx)).await
    }
}

/// The work of an agent, as people see it. If it is dropped before the end, it is reported as cancelled.
struct AcpWork<'a> {
    agent: &'a AcpAgent,
    cx: &'a ToolCx,
    steps: Arc<StepLog>,
    decisions: Mutex<Vec<Decision>>,
    is_over: bool,
}

impl<'a> AcpWork<'a> {
    fn begin(agent: &'a AcpAgent, prompt: &str, cx: &'a ToolCx) -> Self {
        let steps = StepLog::new(cx.call.clone(), cx.events.clone());
        let work = Self { agent, cx, steps, decisions: Mutex::default(), is_over: false };
        let about = foreign::line(prompt, MAX_ABOUT_CHARS);
        work.publish(TaskStage::Started { about, agent: agent.name.clone(), model: work.model() });
        work
    }

    fn model(&self) -> String {
        self.agent.model.clone().unwrap_or_default()
    }

    fn publish(&self, stage: TaskStage) {
        (self.cx.events)(RunEvent::SubagentProgress { call: self.cx.call.clone(), stage });
    }

    /// Returns the result of the call.
    fn end(mut self, AcpAnswer { text, mut notes, failure }: AcpAnswer) -> ToolOutput {
        let decisions = std::mem::take(self.decisions.get_mut().unwrap_or_else(PoisonError::into_inner));
        notes.extend(denials(&decisions));
        let name = &self.agent.name;
        let (status, mut words) = match &failure {
            None if text.is_empty() => (TaskStatus::Completed, "(no response)".to_owned()),
            None => (TaskStatus::Completed, text.clone()),
            Some(failure @ AcpFailure::Late { .. }) => {
                (TaskStatus::TimedOut, format!("Error: ACP agent '{name}' {failure}"))
            }
            Some(failure) => (TaskStatus::Failed, format!("Error invoking ACP agent '{name}': {failure}")),
        };
        if failure.is_some() && !text.is_empty() {
            words.push_str(&format!("\n\nIts text so far:\n{text}"));
        }
        for note in notes {
            words.push_str(&format!("\n\n[{note}]"));
        }
        self.finish(status, &words);
        let report = TaskReport { model: self.model(), ..TaskReport::new(status, &words) };
        ToolOutput { text: words, task: Some(Box::new(report)), ..ToolOutput::default() }
    }

    fn finish(&mut self, status: TaskStatus, words: &str) {
        self.is_over = true;
        let (text, truncated) = cut_task_text(words);
        let (model, usage, omitted) = (self.model(), Usage::default(), self.steps.omitted());
        self.publish(TaskStage::Ended(TaskEnd {
            status,
            stop_reason: None,
            model,
            usage,
            text,
            truncated,
            omitted,
        }));
    }
}

impl Drop for AcpWork<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.finish(TaskStatus::Cancelled, "");
        }
    }
}

impl AcpHost for AcpWork<'_> {
    fn on_event(&self, event: AcpEvent) {
        match event {
            AcpEvent::Does(doing) => self.publish(TaskStage::Running { doing, usage: Usage::default() }),
            AcpEvent::Calls { text, title, input } => {
                self.steps.add(StepKind::Reply { calls: vec![StepCall::new(&title, &input)] }, &text);
            }
            AcpEvent::Called { title, failed, text } => {
                self.steps.add(StepKind::Result { tool: title, error: failed }, &text);
            }
        }
    }

    fn permit<'a>(&'a self, asked: &'a PermissionRequest) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let what = foreign::in_code(&format!("{}: {}", self.agent.name, asked.title));
            let line = match &asked.lasting {
                Some(option) => format!("`{what}` (“{option}”: this and later actions)"),
                None => format!("`{what}`"),
            };
            let whole = asked.whole.as_deref().map(Into::into);
            let decision = self.cx.host.approve(EffectRequest { line, whole }).await;
            let approved = decision.approved;
            self.decisions.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
            approved
        })
    }
}

/// Returns sentences for the model about actions that people denied.
fn denials(decisions: &[Decision]) -> Vec<String> {
    let denied = decisions.iter().filter(|decision| !decision.approved);
    let line = |Decision { request, by, not_asked, .. }: &Decision| match by {
        Some(by) => format!("{by} did not allow {request}"),
        None if *not_asked => format!("{request} was not allowed, because no person could be asked"),
        None => format!("nobody approved {request} in time"),
    };
    denied.map(line).collect()
}
