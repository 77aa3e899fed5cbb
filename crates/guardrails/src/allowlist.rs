//! Allows tools by name, like DeerFlow's built-in provider.

use crate::{
    GuardrailDecision, GuardrailError, GuardrailProvider, GuardrailRequest, decision::TOOL_NOT_ALLOWED,
};
use pudu_base::BoxFuture;
use std::collections::BTreeSet;

/// Allows tools by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist {
    /// Allowed tools. `None` allows all tools, and an empty list none.
    pub allowed: Option<BTreeSet<String>>,
    /// Denied tools.
    pub denied: BTreeSet<String>,
}

impl Allowlist {
    fn allows(&self, tool: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(tool)) && !self.denied.contains(tool)
    }
}

impl GuardrailProvider for Allowlist {
    fn name(&self) -> &'static str {
        "allowlist"
    }

    fn evaluate<'a>(
        &'a self,
        request: &'a GuardrailRequest,
    ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>> {
        let decision = match self.allows(&request.tool_name) {
            true => GuardrailDecision::allowed(),
            false => GuardrailDecision::denied(TOOL_NOT_ALLOWED, "the operator does not allow this tool"),
        };
        Box::pin(std::future::ready(Ok(decision)))
    }

    fn check(&self) -> BoxFuture<'_, Result<String, String>> {
        let names =
            |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let allowed = match &self.allowed {
            None => "all tools are allowed".to_owned(),
            Some(none) if none.is_empty() => "no tool is allowed".to_owned(),
            Some(some) => format!("allowed: {}", names(some)),
        };
        let denied =
            if self.denied.is_empty() { String::new() } else { format!("; denied: {}", names(&self.denied)) };
        Box::pin(std::future::ready(Ok(format!("{allowed}{denied}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_only_its_tools_and_an_empty_list_none() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let check = |allowed: Option<&[&str]>, denied: &[&str], expect: &[&str]| {
            let list = Allowlist { allowed: allowed.map(set), denied: set(denied) };
            let through: Vec<&str> = ["ls", "bash"].into_iter().filter(|tool| list.allows(tool)).collect();
            assert_eq!(through, expect, "{list:?}");
        };
        check(None, &[], &["ls", "bash"]);
        check(None, &["bash"], &["ls"]);
        check(Some(&["ls"]), &[], &["ls"]);
        check(Some(&["ls", "bash"]), &["bash"], &["ls"]);
        check(Some(&[]), &[], &[]);
        check(Some(&["LS", "bash "]), &[], &[]);
    }
}
