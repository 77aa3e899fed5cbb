//! What the agent does not do unasked.

use super::reader::Section;
use pudu_client::harness::Dangerous;
use std::{collections::BTreeSet, time::Duration};

/// What the agent does not do unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approvals {
    /// What becomes of commands that look dangerous.
    pub(crate) dangerous: Dangerous,
    /// Tools that need somebody's approval for every call.
    pub(crate) tools: BTreeSet<String>,
    /// How long somebody can decide.
    pub(crate) timeout: Duration,
}

const DANGEROUS: &[(&str, Dangerous)] =
    &[("allow", Dangerous::Allow), ("ask", Dangerous::Ask), ("block", Dangerous::Block)];

/// Reads it. On the host's own shell nothing dangerous is let through unless somebody says so.
pub(super) fn approvals(top: &Section<'_>, host_shell: bool) -> Approvals {
    let section = top.section("approvals");
    let default = if host_shell { Dangerous::Block } else { Dangerous::Allow };
    let told = "allow; block with `sandbox.allow_host_bash`";
    Approvals {
        dangerous: section.choice("dangerous", DANGEROUS).or_told(default, told),
        tools: section.names("tools").or_told(Vec::new(), "none").into_iter().collect(),
        timeout: section.seconds("timeout_seconds", 1.0).or(Duration::from_secs(600)),
    }
}
