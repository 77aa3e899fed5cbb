//! Combines all guardrails of an agent. The strictest decision wins.

use crate::{
    GuardrailProvider, GuardrailRequest,
    decision::{ALLOWED, EVALUATOR_ERROR},
};
use pudu_base::GuardrailVerdict;
use std::sync::Arc;

/// The providers that check each call, and the policy for when one fails.
#[derive(Clone)]
pub struct Guards {
    providers: Arc<[Arc<dyn GuardrailProvider>]>,
    fail_closed: bool,
    agent_id: Option<String>,
}

/// Joint decision of all providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: GuardrailVerdict,
    /// The code of the decision.
    pub code: String,
    /// The applied policy, if the provider names one.
    pub policy: Option<String>,
    /// Short descriptions of provider failures.
    pub errors: Vec<String>,
}

impl Guards {
    /// Combines providers, which should be ordered from cheap to expensive. If a provider fails, `fail_closed` denies
    /// the call; otherwise the other providers decide.
    #[must_use]
    pub fn new(
        providers: Vec<Arc<dyn GuardrailProvider>>,
        fail_closed: bool,
        agent_id: Option<String>,
    ) -> Self {
        Self { providers: providers.into(), fail_closed, agent_id }
    }

    /// Returns the name of the passport for requests.
    #[must_use]
    pub fn agent_id(&self) -> Option<&str> {
        self.agent_id.as_deref()
    }

    /// Returns the providers.
    #[must_use]
    pub fn providers(&self) -> &[Arc<dyn GuardrailProvider>] {
        &self.providers
    }

    /// Describes the providers and the policy for when one fails.
    #[must_use]
    pub fn describe(&self) -> String {
        let names: Vec<&str> = self.providers.iter().map(|provider| provider.name()).collect();
        let failure = if self.fail_closed { "fails closed" } else { "fails open" };
        format!("{} ({failure})", names.join(", "))
    }

    /// Calls one provider after another until one denies the call.
    pub async fn judge(&self, request: &GuardrailRequest) -> Judgement {
        let mut errors = Vec::new();
        let (mut code, mut policy) = (ALLOWED.to_owned(), None);
        for provider in self.providers.iter() {
            let decision = match provider.evaluate(request).await {
                Ok(decision) => decision,
                Err(error) => {
                    let failure = format!("{}: {error}", provider.name());
                    tracing::warn!(tool = request.tool_name, failure, "failed to evaluate guardrail");
                    errors.push(failure);
                    if !self.fail_closed {
                        continue;
                    }
                    let (code, reason) =
                        (EVALUATOR_ERROR.to_owned(), "the guardrail could not decide".to_owned());
                    let verdict = GuardrailVerdict::Deny { code: code.clone(), reason };
                    return Judgement { verdict, code, policy: None, errors };
                }
            };
            (code, policy) = (decision.code(), decision.policy_id.clone().or(policy));
            if !decision.allow {
                let verdict = GuardrailVerdict::Deny { code: code.clone(), reason: decision.reason() };
                return Judgement { verdict, code, policy, errors };
            }
        }
        Judgement { verdict: GuardrailVerdict::Allow, code, policy, errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allowlist, GuardrailDecision, GuardrailError};
    use pudu_base::BoxFuture;

    /// A provider that always fails.
    struct Broken;

    impl GuardrailProvider for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }

        fn evaluate<'a>(
            &'a self,
            _: &'a GuardrailRequest,
        ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>> {
            Box::pin(std::future::ready(Err(GuardrailError::Status(502))))
        }

        fn check(&self) -> BoxFuture<'_, Result<String, String>> {
            Box::pin(std::future::ready(Err("HTTP 502".to_owned())))
        }
    }

    #[tokio::test]
    async fn the_strictest_decision_wins_and_the_operator_chooses_the_failure_policy() {
        let list = |tool: &str| {
            let allowed = Some([tool.to_owned()].into());
            Arc::new(Allowlist { allowed, ..Allowlist::default() }) as Arc<dyn GuardrailProvider>
        };
        let broken = || Arc::new(Broken) as Arc<dyn GuardrailProvider>;
        let check =
            async |providers: Vec<Arc<dyn GuardrailProvider>>, closed, expect: &str, errors: usize| {
                let guards = Guards::new(providers, closed, None);
                let request = GuardrailRequest { tool_name: "ls".into(), ..GuardrailRequest::default() };
                let judged = guards.judge(&request).await;
                assert_eq!((judged.code.as_str(), judged.errors.len()), (expect, errors));
                assert_eq!(judged.verdict == GuardrailVerdict::Allow, expect == ALLOWED);
            };
        check(vec![list("ls"), list("ls")], true, ALLOWED, 0).await;
        check(vec![list("ls"), list("bash")], true, "oap.tool_not_allowed", 0).await;
        check(vec![list("bash"), list("ls")], false, "oap.tool_not_allowed", 0).await;
        check(vec![broken(), list("ls")], true, EVALUATOR_ERROR, 1).await;
        check(vec![broken(), list("ls")], false, ALLOWED, 1).await;
        check(vec![broken(), list("bash")], false, "oap.tool_not_allowed", 1).await;
        check(vec![list("bash"), broken()], true, "oap.tool_not_allowed", 0).await;
    }
}
