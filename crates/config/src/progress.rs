//! Rules for hints about tools without progress, and for closing them: DeerFlow's `tool_progress`.

use super::reader::Section;
use pudu_harness::ToolProgressRules;

/// Reads the rules. Returns `None` if they are off.
pub(super) fn rules(top: &Section<'_>) -> Option<ToolProgressRules> {
    let section = top.section("tool_progress").about(
        "Detection of tools without new results: the model gets a hint, and a tool that no call can fix is closed \
         for the run.",
    );
    // The number of remembered threads has no effect, because each run is judged separately.
    section.know_all(&["max_tracked_threads"]);
    let usual = ToolProgressRules::default();
    settings! { section =>
        /// Enables the section.
        enabled = flag().or(false);
        /// Number of results in a row, nearly the same, that gives the model a hint.
        stagnation as "stagnation_threshold" = number(1..=1000).or(usual.stagnation);
        /// Number of further such results that closes a failing tool.
        escalation as "warn_escalation_count" = number(1..=1000).or(usual.escalation);
        /// Whether the model gets hints.
        hints as "inject_assessment" = flag().or(usual.hints);
        /// Share of common words from which two results count as nearly the same, 0 to 1.
        similarity as "jaccard_similarity_threshold" = decimal(0.0..=1.0).or(usual.similarity);
        /// Minimum number of different words of a compared result.
        min_words as "min_word_count_for_similarity" = number(1..=1000).or(10);
        /// Tools that are not judged.
        exempt as "exempt_tools" = names().or(usual.exempt.into_iter().collect()).into_iter().collect();
    }
    enabled.then_some(ToolProgressRules { stagnation, escalation, hints, similarity, min_words, exempt })
}
