//! Rules for stopping a run that repeats itself: DeerFlow's `loop_detection`.

use super::reader::Section;
use pudu_harness::{CallFrequency, LoopRules};

/// Reads the rules. Returns `None` if they are off.
pub(super) fn rules(top: &Section<'_>) -> Option<LoopRules> {
    let section = top
        .section("loop_detection")
        .about("Detection of runs that repeat themselves: the model gets a hint, then the run is stopped.");
    // The number of remembered threads has no effect, because each run is judged separately.
    section.know_all(&["max_tracked_threads"]);
    let usual = LoopRules::default();
    settings! { section =>
        /// Enables loop detection.
        enabled = flag().or(true);
        /// Number of replies with the same calls that gives the model a hint.
        warn as "warn_threshold" = number(1..=1000).or(usual.warn);
        /// Number of replies with the same calls that stops the run.
        stop as "hard_limit" = number(1..=1000).or(usual.stop);
        /// Number of newest replies that are compared.
        window as "window_size" = number(1..=1000).or(20);
        /// Number of calls of one tool that gives the model a hint.
        tool_warn as "tool_freq_warn" = number(1..=10_000).or(usual.tool.warn);
        /// Number of calls of one tool that stops the run.
        tool_stop as "tool_freq_hard_limit" = number(1..=10_000).or(usual.tool.stop);
    }
    let tools = section.section("tool_freq_overrides").about("Limits of single tools, by their names.");
    let tool = CallFrequency { warn: tool_warn, stop: tool_stop };
    let rules = LoopRules { warn, stop, window, tool, tools: overrides(&tools) };
    let late = "a run would be stopped before any warning";
    if rules.warn > rules.stop {
        section.warn("warn_threshold", late, "make it smaller than `hard_limit`");
    }
    if rules.window < rules.stop as usize {
        section.refuse(
            "window_size",
            "too few replies are compared for a run to be stopped",
            "make it at least `hard_limit`",
        );
    }
    if rules.tool.warn > rules.tool.stop {
        section.warn("tool_freq_warn", late, "make it smaller than `tool_freq_hard_limit`");
    }
    enabled.then_some(rules)
}

fn overrides(section: &Section<'_>) -> std::collections::BTreeMap<String, CallFrequency> {
    let one = |name: &str| {
        let tool = section.section_named(name, "bash").about("Name of the tool.");
        settings! { tool =>
            /// Number of calls that gives the model a hint.
            warn = number(1..=10_000).eg("150").required("set the number of calls that triggers a warning");
            /// Number of calls that stops the run.
            stop as "hard_limit" = number(1..=10_000).eg("300").required("set the number of calls that stops a run");
        }
        Some((name.to_owned(), CallFrequency { warn: warn?, stop: stop? }))
    };
    section.present().filter_map(|entry| one(&entry.key)).collect()
}
