//! When a conversation is summarised, and how much remains: DeerFlow's `summarization`.
//!
//! Two keys work otherwise than there, because a summary is asked with the bytes that the provider has read already:
//! `trim_tokens_to_summarize` counts for another model alone, and there is always a trigger, the full window.

use super::{model::ModelConfig, model_name, quantity::NumberUnit, raw::NodeValue, reader::Section};
use pudu_client::harness::{ContextRules, ContextSize};

/// Maximum value of a size in tokens or messages.
const MAX_SIZE: f64 = 1e8;
/// Keys of an older DeerFlow. Skills that were read are named in each summary.
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
    /// Name of the model that summarises; the run's own if none.
    pub model: Option<String>,
}

/// The ways to give a size.
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
    let section = top.section("summarization");
    section.note_unused(OLDER_KEYS);
    let usual = ContextRules::default();
    let model = model_name::named(&section, "model_name", models, "the run's own");
    let most_read =
        section.amount("trim_tokens_to_summarize", NumberUnit::Tokens, 1..=100_000_000_u32).optional("all");
    if most_read.is_some() && model.is_none() {
        let what = "this has no effect: the run's own model has read the conversation already";
        section.warn("trim_tokens_to_summarize", what, "name another model with `model_name`, or remove it");
    }
    let tools = usual.skill_tools.iter().cloned().collect();
    let rules = ContextRules {
        summaries: section.flag("enabled").or(usual.summaries),
        triggers: triggers(&section),
        keep: size(&section.section("keep"), "messages", "20").unwrap_or(usual.keep),
        most_read: most_read.map(u64::from),
        prompt: section.text("summary_prompt").optional("pudu's own").map(Into::into),
        skill_tools: section.names("skill_file_read_tool_names").or(tools).into_iter().collect(),
    };
    check(&section, &rules);
    Summarization { rules, model }
}

/// Reads one trigger, or a list.
fn triggers(section: &Section<'_>) -> Vec<ContextSize> {
    let listed = section.entry("trigger").is_some_and(|entry| matches!(entry.node.value, NodeValue::List(_)));
    if listed {
        let items = section.items("trigger");
        return items.iter().filter_map(|item| size(item, "none", "none")).collect();
    }
    size(&section.section("trigger"), "none", "none").into_iter().collect()
}

/// Reads a size; `None` if the file says none.
fn size(section: &Section<'_>, kind: &str, value: &str) -> Option<ContextSize> {
    let kind = section.choice("type", KINDS).optional(kind);
    let value = section.share_or_tokens("value", 0.0..=MAX_SIZE).optional(value);
    match (kind, value) {
        (None, None) => None,
        (Some(_), None) => {
            section.refuse_here("it says no `value`", "write both `type` and `value`");
            None
        }
        (None, Some(_)) => {
            section.refuse_here("it says no `type`", "write `type: tokens`, `messages` or `fraction`");
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
            format!("{value} is no share of a window"),
            "write a number above 0, up to 1",
        );
        return None;
    }
    if value < 1.0 || value.fract() != 0.0 {
        section.refuse("value", format!("{value} is no count"), "write a whole number, at least 1");
        return None;
    }
    Some(match kind {
        SizeKind::Tokens => ContextSize::Tokens(value as u64),
        _ => ContextSize::Messages(value as u64),
    })
}

/// Checks that less is kept than triggers a summary, where both have the same unit.
fn check(section: &Section<'_>, rules: &ContextRules) {
    let reached = |trigger: &ContextSize| match (*trigger, rules.keep) {
        (ContextSize::Tokens(most), ContextSize::Tokens(kept))
        | (ContextSize::Messages(most), ContextSize::Messages(kept)) => kept >= most,
        (ContextSize::Fraction(most), ContextSize::Fraction(kept)) => kept >= most,
        _ => false,
    };
    if rules.triggers.iter().any(reached) {
        let what = "as much stays as triggers a summary, so each would leave out next to nothing";
        section.warn("keep", what, "make it smaller than `trigger`");
    }
}
