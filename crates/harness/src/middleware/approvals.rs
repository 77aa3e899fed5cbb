//! Actions that need approval: tools that require it, and commands that look dangerous.
//!
//! The sandbox is the boundary; this covers actions that are allowed inside but deserve a second look. Recognising a
//! dangerous command by its text helps careful users, but does not protect against an adversary.

mod line;

use super::{Gate, Middleware};
use crate::{RunState, Toolbox};
use pudu_base::{MAX_WHOLE_BYTES, ToolCall};
use pudu_shell::danger::{self, Danger};
use std::{collections::BTreeSet, sync::Arc};

/// Handling of a command that looks dangerous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangerous {
    /// The command runs.
    #[default]
    Allow,
    /// A user is asked.
    Ask,
    /// The command is rejected.
    Block,
}

/// Rules for actions that need approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalPolicy {
    /// Tools that need approval for every call.
    pub tools: BTreeSet<String>,
    /// Tools that need approval because their calls affect other users. The approval grants no additional rights.
    pub shared: BTreeSet<String>,
    /// Handling of commands that look dangerous.
    pub dangerous: Dangerous,
}

/// Asks for approval before calls, according to the policy.
pub struct ApprovalGate {
    policy: Arc<ApprovalPolicy>,
    tools: Toolbox,
}

impl ApprovalGate {
    /// Creates the gate of an agent with these tools.
    #[must_use]
    pub fn new(policy: Arc<ApprovalPolicy>, tools: Toolbox) -> Self {
        Self { policy, tools }
    }

    /// Returns the line that describes a call.
    fn line(&self, call: &ToolCall) -> String {
        let note = self.tools.get(&call.name).and_then(|tool| tool.note(&call.args));
        line::line(call, script(call), note.as_deref())
    }
}

impl Middleware for ApprovalGate {
    fn name(&self) -> &'static str {
        "approvals"
    }

    fn before_tool(&mut self, _turn: &RunState, call: &ToolCall) -> Gate {
        let ApprovalPolicy { tools, shared, .. } = &*self.policy;
        let needs_approval = tools.contains(&call.name) || shared.contains(&call.name);
        let needed = if needs_approval { Gate::Ask(self.line(call)) } else { Gate::Allow };
        let looks = self.policy.dangerous != Dangerous::Allow;
        let reason = script(call).filter(|_| looks).and_then(danger::find).map(Danger::describe);
        let gate = match (reason, self.policy.dangerous) {
            (None, _) | (_, Dangerous::Allow) => Gate::Allow,
            (Some(reason), Dangerous::Ask) => Gate::Ask(format!("{} ({reason})", self.line(call))),
            (Some(reason), Dangerous::Block) => {
                let text = format!("Error: this command is not allowed here: {reason}. Find a safer way.");
                Gate::Block(self.line(call), text)
            }
        };
        match gate.stricter(needed) {
            Gate::Ask(line) if whole(call).is_some_and(|whole| whole.len() > MAX_WHOLE_BYTES) => {
                let text = format!(
                    "Error: somebody has to read this call before it is made, and it is longer than {MAX_WHOLE_BYTES} \
                     bytes: make smaller calls."
                );
                Gate::Block(line, text)
            }
            gate => gate,
        }
    }
}

/// Returns the full call, if its line for users leaves something out.
pub(crate) fn whole(call: &ToolCall) -> Option<Arc<str>> {
    line::whole(call, script(call)).map(Into::into)
}

/// Returns the command that a call would run.
fn script(call: &ToolCall) -> Option<&str> {
    (call.name == "bash").then(|| call.args.get("command")?.as_str()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Replay, fixture::Bench};
    use pudu_base::ThreadState;
    use serde_json::{Value, json};

    fn judge(policy: &ApprovalPolicy, tool: &str, args: Value) -> Gate {
        let run_state =
            RunState::new("t".into(), "r".into(), 0, ThreadState::default(), Arc::new(Replay::default()));
        let call = ToolCall { id: "c".into(), name: tool.into(), args, garbled: None };
        let tools = Bench::new(Vec::new()).agent.tools;
        ApprovalGate::new(Arc::new(policy.clone()), tools).before_tool(&run_state, &call)
    }

    #[test]
    fn the_operator_chooses_which_calls_need_approval() {
        let wipe = || json!({"command": "rm -rf /mnt/user-data"});
        let policy = |dangerous| ApprovalPolicy { dangerous, ..ApprovalPolicy::default() };
        assert_eq!(judge(&policy(Dangerous::Allow), "bash", wipe()), Gate::Allow);
        let line = "`rm -rf /mnt/user-data` (it deletes whole folders)";
        assert_eq!(judge(&policy(Dangerous::Ask), "bash", wipe()), Gate::Ask(line.into()));
        assert!(matches!(judge(&policy(Dangerous::Block), "bash", wipe()), Gate::Block(..)));
        assert_eq!(judge(&policy(Dangerous::Block), "bash", json!({"command": "ls"})), Gate::Allow);
        let mail = || ["mail_send".to_owned()].into();
        let gate = Gate::Ask("`mail_send {\"to\":\"aˋb\"}`".into());
        for policy in [
            ApprovalPolicy { tools: mail(), dangerous: Dangerous::Block, ..ApprovalPolicy::default() },
            ApprovalPolicy { shared: mail(), ..ApprovalPolicy::default() },
        ] {
            assert_eq!(judge(&policy, "mail_send", json!({"to": "a`b"})), gate);
        }
    }

    #[test]
    fn a_call_too_long_to_read_is_blocked() {
        let policy = ApprovalPolicy { tools: ["write_file".to_owned()].into(), ..ApprovalPolicy::default() };
        let write = |bytes| judge(&policy, "write_file", json!({"content": "x".repeat(bytes)}));
        assert!(matches!(write(MAX_WHOLE_BYTES - 100), Gate::Ask(_)));
        let Gate::Block(line, text) = write(MAX_WHOLE_BYTES) else { panic!("the purpose is requested") };
        assert!(line.starts_with("`write_file") && text.contains("make smaller calls"), "{line} {text}");
        let open = ApprovalPolicy::default();
        assert_eq!(judge(&open, "write_file", json!({"content": "x".repeat(MAX_WHOLE_BYTES)})), Gate::Allow);
    }
}
