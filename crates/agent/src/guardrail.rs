//! The guardrails of one run, evaluated for its requester and recorded in the audit log.
//!
//! Each refusal and each failure of a provider is an audit entry. To limit their number, an allowed call is recorded
//! only if no other entry covers it: an action in a sandbox or on an agent has its own entry.

use crate::audit::AuditLog;
use jiff::Timestamp;
use pudu_base::{BoxFuture, GuardedCall, Guardrail, GuardrailVerdict, UserId, foreign};
use pudu_guardrails::{GuardrailRequest, Guards, Judgement};

/// Tools whose effects have their own entries.
const RECORDED: [&str; 5] = ["bash", "write_file", "str_replace", "setup_agent", "update_agent"];
/// Maximum length of a call in an audit entry, in characters.
const MAX_CALL_CHARS: usize = 300;

/// Evaluates the guardrails on behalf of a run's requester.
pub(crate) struct RunGuardrail {
    pub(crate) guards: Guards,
    pub(crate) audit_log: AuditLog,
    pub(crate) user: UserId,
}

impl Guardrail for RunGuardrail {
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict> {
        Box::pin(async move {
            let judged = self.guards.judge(&self.request(call)).await;
            self.record(call, &judged).await;
            judged.verdict
        })
    }
}

impl RunGuardrail {
    fn request(&self, call: &GuardedCall) -> GuardrailRequest {
        let asker = &self.audit_log.asker;
        let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        GuardrailRequest {
            tool_name: call.tool.clone(),
            tool_input: call.args.clone(),
            agent_id: self.guards.agent_id().map(str::to_owned),
            thread_id: call.thread.to_string(),
            is_subagent: call.is_subagent,
            timestamp: Timestamp::now().to_string(),
            user_id: self.user.to_string(),
            run_id: call.run.to_string(),
            tool_call_id: call.call.to_string(),
            channel_user_id: said(&asker.person),
            account: said(&asker.account),
            is_internal: asker.person.is_empty(),
            ..GuardrailRequest::default()
        }
    }

    async fn record(&self, call: &GuardedCall, judged: &Judgement) {
        let detail = || foreign::line(&format!("{} {}", call.tool, call.args), MAX_CALL_CHARS);
        let is_allowed = judged.verdict == GuardrailVerdict::Allow;
        let by = judged
            .policy
            .as_ref()
            .map(|policy| format!(", {}", foreign::line(policy, 100)))
            .unwrap_or_default();
        for error in &judged.errors {
            let then = if is_allowed { "not asked" } else { "denied" };
            self.audit_log.note("guardrail", &detail(), format!("{then}: {error}")).await;
        }
        match is_allowed {
            false if judged.errors.is_empty() => {
                self.audit_log.note("guardrail", &detail(), format!("denied: {}{by}", judged.code)).await;
            }
            true if !RECORDED.contains(&call.tool.as_str()) => {
                self.audit_log.note("guardrail", &detail(), format!("allowed: {}{by}", judged.code)).await;
            }
            _ => {}
        }
    }
}
