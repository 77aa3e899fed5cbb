//! When a run that repeats itself is ended: DeerFlow's `loop_detection`.

use super::reader::Section;
use pudu_client::harness::{CallFrequency, LoopRules};

/// Reads the rules; `None` if nothing is to be ended.
pub(super) fn rules(top: &Section<'_>) -> Option<LoopRules> {
    let section = top.section("loop_detection");
    // How many threads are remembered: here each run counts for itself.
    section.know_all(&["max_tracked_threads"]);
    let usual = LoopRules::default();
    let enabled = section.flag("enabled").or(true);
    let rules = LoopRules {
        warn: section.number("warn_threshold", 1..=1000).or(usual.warn),
        stop: section.number("hard_limit", 1..=1000).or(usual.stop),
        window: section.number("window_size", 1..=1000_u32).or(20) as usize,
        tool: CallFrequency {
            warn: section.number("tool_freq_warn", 1..=10_000).or(usual.tool.warn),
            stop: section.number("tool_freq_hard_limit", 1..=10_000).or(usual.tool.stop),
        },
        tools: overrides(&section.section("tool_freq_overrides")),
    };
    let late = "a run is stopped before anything is pointed out";
    if rules.warn > rules.stop {
        section.warn("warn_threshold", late, "make it smaller than `hard_limit`");
    }
    if rules.window < rules.stop as usize {
        section.refuse(
            "window_size",
            "so few replies are compared that nothing is ever stopped",
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
        let tool = section.section_like(name, "bash");
        let frequency = CallFrequency {
            warn: tool.number("warn", 1..=10_000).required("say how many calls are pointed out")?,
            stop: tool.number("hard_limit", 1..=10_000).required("say how many calls stop a run")?,
        };
        Some((name.to_owned(), frequency))
    };
    section.present().filter_map(|entry| one(&entry.key)).collect()
}
