//! Rules for summaries of conversations: DeerFlow's `summarization`.
//!
//! There are two differences, because a summary is requested with the prompt that the provider has already cached:
//! `trim_tokens_to_summarize` applies only to another model, and a full window always triggers a summary.

use super::{model::ModelConfig, quantity::NumberUnit, raw::NodeValue, reader::Section};
use pudu_harness::{ContextRules, ContextSize};

/// Maximum value of a size in tokens or messages.
const MAX_SIZE: f64 = 1e8;
/// Keys of older DeerFlow versions, without effect. Each summary lists the skills that were read.
const OLDER_KEYS: &[&str] = &[
    "preserve_recent_skill_count",
    "preserve_recent_skill_tokens",
    "preserve_recent_skill_tokens_per_skill",
];

/// Rules for summaries, before the model is looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Summarization {
    /// The rules.
    pub rules: ContextRules,
    /// Name of the model that summarises; the run's own if `None`.
    pub model: Option<String>,
}

/// Units of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SizeKind {
    Tokens,
    Messages,
    Fraction,
}

const KINDS: &[(&str, SizeKind)] =
    &[("tokens", SizeKind::Tokens), ("messages", SizeKind::Messages), ("fraction", SizeKind::Fraction)];

/// Reads the rules.
pub(super) fn read(top: &Section<'_>, models: &[ModelConfig]) -> Summarization {
    let section = top.section("summarization").about(
        "Summaries of long conversations: a summary replaces the beginning when the model's window fills up.",
    );
    section.note_unused(OLDER_KEYS);
    let usual = ContextRules::default();
    settings! { section =>
        /// Enables summaries; without them old tool results and the beginning are omitted.
        summaries as "enabled" = flag().or(usual.summaries);
        /// Name of the model that summarizes.
        model as "model_name" = model(models).eg("main").optional("the model of the run");
    }
    let triggers = triggers(&section);
    let keep = section
        .section("keep")
        .about("Newest messages that are kept unchanged, in at most half of the available space.");
    let keep = size(&keep, ["messages", "20"], ["messages", "20"]).unwrap_or(usual.keep);
    settings! { section =>
        /// Maximum number of tokens that another model reads to summarize, the newest; older ones are omitted.
        most_read as "trim_tokens_to_summarize" = amount(NumberUnit::Tokens, 1..=100_000_000)
            .eg("4000").optional("all");
        /// Instruction to the model; {messages} refers to the conversation above it.
        prompt as "summary_prompt" = text()
            .eg("Summarize {messages} in ten sentences.").optional("pudu's own").map(Into::into);
        /// Tools that read skills; the summary lists the skills that they read.
        skill_tools as "skill_file_read_tool_names" = names()
            .or(usual.skill_tools.iter().cloned().collect()).into_iter().collect();
    }
    if most_read.is_some() && model.is_none() {
        let what = "this has no effect: the run's own model already has the conversation";
        section.warn("trim_tokens_to_summarize", what, "set another model in `model_name`, or remove it");
    }
    let rules = ContextRules { summaries, triggers, keep, most_read, prompt, skill_tools };
    check(&section, &rules);
    Summarization { rules, model }
}

/// Reads one trigger or a list of triggers.
fn triggers(section: &Section<'_>) -> Vec<ContextSize> {
    let listed = section.entry("trigger").is_some_and(|entry| matches!(entry.node.value, NodeValue::List(_)));
    let one = |section: &Section<'_>| size(section, ["none", "none"], ["tokens", "32000"]);
    if listed {
        return section.items("trigger").iter().filter_map(one).collect();
    }
    let section = section.section("trigger").about(
        "Size of the messages that triggers a summary before the window is full; in a list, the first size that is reached.",
    );
    one(&section).into_iter().collect()
}

/// Reads a size. Returns `None` if the file has none.
fn size(section: &Section<'_>, usual: [&str; 2], example: [&'static str; 2]) -> Option<ContextSize> {
    let ([usual_kind, usual], [example_kind, example]) = (usual, example);
    settings! { section =>
        /// Unit of the size; a fraction is a share of the model's window.
        kind as "type" = choice(KINDS).eg(example_kind).optional(usual_kind);
        /// Size.
        value = share_or_tokens(0.0..=MAX_SIZE).eg(example).optional(usual);
    }
    match (kind, value) {
        (None, None) => None,
        (Some(_), None) => {
            section.refuse_here("`value` is missing", "write both `type` and `value`");
            None
        }
        (None, Some(_)) => {
            section.refuse_here("`type` is missing", "write `type: tokens`, `messages` or `fraction`");
            None
        }
        (Some(kind), Some(value)) => to_context_size(section, kind, value),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, and within bounds")]
fn to_context_size(section: &Section<'_>, kind: SizeKind, value: f64) -> Option<ContextSize> {
    if kind == SizeKind::Fraction {
        if value > 0.0 && value <= 1.0 {
            return Some(ContextSize::Fraction(value));
        }
        section.refuse(
            "value",
            format!("{value} is not a fraction of the window"),
            "write a number above 0 and up to 1",
        );
        return None;
    }
    if value < 1.0 || value.fract() != 0.0 {
        section.refuse("value", format!("{value} is not a count"), "write a whole number of at least 1");
        return None;
    }
    Some(match kind {
        SizeKind::Tokens => ContextSize::Tokens(value as u64),
        _ => ContextSize::Messages(value as u64),
    })
}

/// Checks that the kept size is smaller than the trigger's, if both have the same unit.
fn check(section: &Section<'_>, rules: &ContextRules) {
    let reached = |trigger: &ContextSize| match (*trigger, rules.keep) {
        (ContextSize::Tokens(most), ContextSize::Tokens(kept))
        | (ContextSize::Messages(most), ContextSize::Messages(kept)) => kept >= most,
        (ContextSize::Fraction(most), ContextSize::Fraction(kept)) => kept >= most,
        _ => false,
    };
    if rules.triggers.iter().any(reached) {
        let what = "`keep` is as large as `trigger`, so a summary would free almost nothing";
        section.warn("keep", what, "make it smaller than `trigger`");
    }
}
