//! When a tool that brings nothing new is pointed out and closed: DeerFlow's `tool_progress`.

use super::reader::Section;
use pudu_client::harness::ToolProgressRules;

/// Reads the rules; `None` if no tool is judged.
pub(super) fn rules(top: &Section<'_>) -> Option<ToolProgressRules> {
    let section = top.section("tool_progress");
    // How many threads are remembered: here each run counts for itself.
    section.know_all(&["max_tracked_threads"]);
    let usual = ToolProgressRules::default();
    let enabled = section.flag("enabled").or(false);
    let exempt = usual.exempt.into_iter().collect();
    let rules = ToolProgressRules {
        stagnation: section.number("stagnation_threshold", 1..=1000).or(usual.stagnation),
        escalation: section.number("warn_escalation_count", 1..=1000).or(usual.escalation),
        hints: section.flag("inject_assessment").or(usual.hints),
        similarity: section.decimal("jaccard_similarity_threshold", 0.0..=1.0).or(usual.similarity),
        min_words: section.number("min_word_count_for_similarity", 1..=1000_u32).or(10) as usize,
        exempt: section
            .names("exempt_tools")
            .or_told(exempt, "those that ask, list and deliver")
            .into_iter()
            .collect(),
    };
    enabled.then_some(rules)
}
