//! Limits of uploads, runs and model calls.

use super::{quantity::NumberUnit, reader::Section};
use pudu_harness::{RestRules, RetryRules};
use std::time::Duration;

/// Reads whether tokens are counted. It has no effect, because limits and `/usage` need the numbers.
pub(super) fn token_usage(top: &Section<'_>) {
    let section = top.section("token_usage").about("Tokens are always counted.");
    settings! { section =>
        /// Counts tokens; without effect, because tokens are always counted.
        enabled = flag().or(true);
    }
    if !enabled {
        let what = "tokens are counted in any case";
        section.warn("enabled", what, "remove it: /usage shows the numbers on request only");
    }
}

settings! {
    /// Limits of files that people send.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Uploads(section) {
        /// Maximum number of files at once.
        max_files: u32 = number(0..=1000).or(10);
        /// Maximum size of a file, in bytes.
        max_file_size: u64 = amount(NumberUnit::Bytes, 1..=4 * GIB).or(50 * 1024 * 1024);
        /// Maximum total size of the files of a message, in bytes.
        max_total_size: u64 = amount(NumberUnit::Bytes, 1..=16 * GIB).or(100 * 1024 * 1024);
        /// Enables conversion of documents to Markdown, each beside its file: PDF, Word, PowerPoint, Excel, LibreOffice
        /// spreadsheets, web pages, CSV, TSV and EPUB.
        auto_convert_documents: bool = flag().or(true);
    }
}

/// Limits of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Default number of steps of a run.
    pub recursion_limit: u32,
    /// Maximum number of steps that may be requested.
    pub max_recursion_limit: u32,
    /// Time limit of a run.
    pub timeout: Duration,
    /// Maximum number of sub-agents in a run.
    pub subagents: u32,
    /// Maximum number of sub-agents started by one reply.
    pub at_once: u32,
}

const GIB: u64 = 1024 * 1024 * 1024;

pub(super) fn uploads(top: &Section<'_>) -> Uploads {
    let section = top.section("uploads").about("Files that users send.");
    section.note_unused(&["pdf_converter"]);
    let uploads = Uploads::read(&section);
    if uploads.max_file_size > uploads.max_total_size {
        let what = "the limit of one file is larger than the limit of all files";
        section.warn("max_file_size", what, "the smaller limit applies");
    }
    uploads
}

pub(super) fn runs(top: &Section<'_>) -> Runs {
    settings! { top =>
        /// Maximum number of steps of a run, unless its session sets another.
        recursion_limit: u32 = number(1..=100_000).or(100);
        /// Maximum value of `recursion_limit`.
        max_recursion_limit = number(1..=100_000).or(1000);
        /// Maximum duration of a run, in seconds.
        timeout as "run_timeout_seconds" = seconds(1.0).or(Duration::from_secs(3600));
    }
    let section = top.section("subagents");
    settings! { section =>
        /// Maximum number of sub-agents that one reply starts; they run in parallel.
        at_once as "max_concurrent_subagents" = number(1..=4).or(3);
        /// Maximum number of sub-agents of a run in total.
        subagents as "max_total_per_run" = number(1..=50).or(6);
    }
    let recursion_limit = recursion_limit.min(max_recursion_limit);
    Runs { recursion_limit, max_recursion_limit, timeout, subagents, at_once }
}

/// Retries and concurrency of model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCalls {
    /// Retries of failed calls: their number and their delays.
    pub retries: RetryRules,
    /// Rules for pausing calls to a provider that keeps failing.
    pub rest: RestRules,
    /// Maximum number of concurrent calls; 0 means no limit.
    pub max_concurrent: u32,
}

pub(super) fn model_calls(top: &Section<'_>) -> ModelCalls {
    let usual = RetryRules::default();
    let section = top.section("llm_call").about("Model calls: retries, and the number of concurrent calls.");
    settings! { section =>
        /// Maximum number of attempts of a call that fails temporarily; `models[].max_retries` overrides it.
        attempts as "retry_max_attempts" = number(1..=20).or(usual.attempts);
        /// Minimum wait before a retry, in milliseconds; the wait is random, and longer each time.
        base as "retry_base_delay_ms" = span(NumberUnit::Milliseconds, 1..=600_000).or(usual.base);
        /// Maximum wait before a retry, in milliseconds, unless the provider requests more.
        cap as "retry_cap_delay_ms" = span(NumberUnit::Milliseconds, 1..=600_000).or(usual.cap);
        /// Minimum wait after a provider's limit on the growth of requests, in milliseconds; such a call is tried at most
        /// twice.
        burst_base as "burst_retry_base_delay_ms" = span(NumberUnit::Milliseconds, 1..=600_000).or(usual.burst_base);
        /// Maximum number of concurrent calls; 0 sets no limit.
        max_concurrent as "max_concurrent_calls" = number(0..=10_000).or(0);
        /// Maximum time that users wait for a busy model, all attempts together, in seconds; then the answer is an error
        /// with the time to try again. `models[].fallbacks` answer meanwhile.
        patience as "patience_seconds" = span(NumberUnit::Seconds, 1..=3_600).or(usual.patience);
    }
    let retries = RetryRules { attempts, base, cap, burst_base, patience };
    let usual = RestRules::default();
    let section = top
        .section("circuit_breaker")
        .about("Pause of a model provider that keeps failing; messages wait meanwhile.");
    settings! { section =>
        /// Number of consecutive failed requests, retries not counted, that starts the pause.
        after as "failure_threshold" = number(1..=1000).or(usual.after);
        /// Duration of the pause, in seconds.
        time as "recovery_timeout_sec" = seconds(1.0).or(usual.time);
    }
    ModelCalls { retries, rest: RestRules { after, time }, max_concurrent }
}
