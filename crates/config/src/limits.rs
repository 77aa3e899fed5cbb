//! How much of everything there may be.

use super::{quantity::NumberUnit, reader::Section};
use pudu_client::harness::{RestRules, RetryRules};
use std::time::Duration;

/// Reads whether tokens are counted. They are in any case: limits and `/usage` need the numbers.
pub(super) fn token_usage(top: &Section<'_>) {
    let section = top.section("token_usage");
    if !section.flag("enabled").or(true) {
        let what = "tokens are counted in any case";
        section.warn("enabled", what, "remove it: nobody sees the numbers who does not ask with /usage");
    }
}

/// Files that people send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploads {
    /// How many at once.
    pub max_files: u32,
    /// How large each may be, in bytes.
    pub max_file_size: u64,
    /// How large all of one message may be together, in bytes.
    pub max_total_size: u64,
    /// Whether documents are made into Markdown.
    pub auto_convert_documents: bool,
}

/// One run of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Default number of steps of a run.
    pub recursion_limit: u32,
    /// Maximum number of steps that may be requested.
    pub max_recursion_limit: u32,
    /// Time limit of a run.
    pub timeout: Duration,
    /// Maximum number of sub-agents of a run.
    pub subagents: u32,
    /// Number of sub-agents that one reply may start.
    pub at_once: u32,
}

const GIB: u64 = 1024 * 1024 * 1024;

pub(super) fn uploads(top: &Section<'_>) -> Uploads {
    let section = top.section("uploads");
    section.note_unused(&["pdf_converter"]);
    let uploads = Uploads {
        max_files: section.number("max_files", 0..=1000).or(10),
        max_file_size: section.amount("max_file_size", NumberUnit::Bytes, 1..=4 * GIB).or(50 * 1024 * 1024),
        max_total_size: section
            .amount("max_total_size", NumberUnit::Bytes, 1..=16 * GIB)
            .or(100 * 1024 * 1024),
        auto_convert_documents: section.flag("auto_convert_documents").or(true),
    };
    if uploads.max_file_size > uploads.max_total_size {
        let what = "one file may be larger than all together";
        section.warn("max_file_size", what, "the smaller of the two counts");
    }
    uploads
}

pub(super) fn runs(top: &Section<'_>) -> Runs {
    let max_recursion_limit = top.number("max_recursion_limit", 1..=100_000).or(1000);
    let recursion_limit = top.number("recursion_limit", 1..=100_000).or(100);
    Runs {
        recursion_limit: recursion_limit.min(max_recursion_limit),
        max_recursion_limit,
        timeout: top.seconds("run_timeout_seconds", 1.0).or(Duration::from_secs(3600)),
        subagents: top.section("subagents").number("max_total_per_run", 1..=50).or(6),
        at_once: top.section("subagents").number("max_concurrent_subagents", 1..=4).or(3),
    }
}

/// Calls of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCalls {
    /// Retries of failed calls: their number and their delays.
    pub retries: RetryRules,
    /// When a provider that keeps failing is left alone.
    pub rest: RestRules,
    /// Maximum number of calls at once; 0 is no limit.
    pub max_concurrent: u32,
}

pub(super) fn model_calls(top: &Section<'_>) -> ModelCalls {
    let (section, usual) = (top.section("llm_call"), RetryRules::default());
    let wait = |key: &str, usual: Duration| {
        let millis = u64::try_from(usual.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(section.amount(key, NumberUnit::Milliseconds, 1..=600_000).or(millis))
    };
    let retries = RetryRules {
        attempts: section.number("retry_max_attempts", 1..=20).or(usual.attempts),
        base: wait("retry_base_delay_ms", usual.base),
        cap: wait("retry_cap_delay_ms", usual.cap),
        burst_base: wait("burst_retry_base_delay_ms", usual.burst_base),
        patience: Duration::from_secs(
            section.amount("patience_seconds", NumberUnit::Seconds, 1..=3_600).or(usual.patience.as_secs()),
        ),
    };
    let max_concurrent = section.number("max_concurrent_calls", 0..=10_000_u32).or(0);
    ModelCalls { retries, rest: read_rest(top), max_concurrent }
}

/// Reads when a provider that keeps failing is left alone.
fn read_rest(top: &Section<'_>) -> RestRules {
    let (section, usual) = (top.section("circuit_breaker"), RestRules::default());
    RestRules {
        after: section.number("failure_threshold", 1..=1000).or(usual.after),
        time: section.seconds("recovery_timeout_sec", 1.0).or(usual.time),
    }
}
