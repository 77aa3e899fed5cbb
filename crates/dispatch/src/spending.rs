//! Texts about spending: tokens, the share of the provider's cache, and cost.

use pudu_base::{Usage, money};
use pudu_store::SpendingSum;
use pudu_texts::Language;
use std::collections::BTreeMap;

/// Returns the sum of all tokens.
pub(super) fn tokens(sums: &[SpendingSum]) -> Usage {
    let mut usage = Usage::default();
    sums.iter().for_each(|sum| usage += sum.usage);
    usage
}

/// Returns the share of the prompt that came from the provider's cache, in percent; `None` if nothing was cached.
pub(super) fn cache_share(usage: Usage) -> Option<u64> {
    (usage.cached > 0).then(|| usage.cached.saturating_mul(100).checked_div(usage.input)).flatten()
}

/// Returns the known cost as text, and the number of calls whose cost is unknown.
pub(super) fn cost(sums: &[SpendingSum]) -> (Option<String>, i64) {
    let mut known: BTreeMap<&str, i64> = BTreeMap::new();
    let mut unknown = 0;
    for sum in sums {
        match &sum.cost {
            Some(cost) => *known.entry(&cost.currency).or_default() += cost.micros,
            None => unknown += sum.calls,
        }
    }
    let parts: Vec<String> = known.iter().map(|(currency, micros)| money(currency, *micros)).collect();
    ((!parts.is_empty()).then(|| parts.join(" + ")), unknown)
}

/// Returns the details on cache, thinking and cost that follow a token count.
pub(super) fn details(language: Language, sums: &[SpendingSum]) -> Vec<String> {
    let usage = tokens(sums);
    let (known, unknown) = cost(sums);
    let calls = |calls: i64| usize::try_from(calls).ok().filter(|calls| *calls > 0);
    let estimated = sums.iter().map(|sum| sum.unreported).sum();
    let parts = [
        cache_share(usage).map(|percent| language.usage_cache(percent)),
        (usage.reasoning > 0).then(|| language.usage_reasoning(usage.reasoning)),
        known.map(|cost| language.usage_cost(&cost)),
        calls(unknown).map(|calls| language.usage_cost_unknown(calls)),
        calls(estimated).map(|calls| language.usage_estimated(calls)),
    ];
    parts.into_iter().flatten().collect()
}

/// Returns a line for each model and caller.
pub(super) fn parts(language: Language, sums: &[SpendingSum]) -> Vec<String> {
    let line = |sum: &SpendingSum| {
        let caller = match sum.caller.as_str() {
            "subagent" => language.usage_caller_subagent(),
            "title" => language.usage_caller_title(),
            "goal" => language.usage_caller_goal(),
            "summary" => language.usage_caller_summary(),
            "assistance" => language.usage_caller_assistance(),
            "memory" => language.usage_caller_memory(),
            _ => language.usage_caller_lead(),
        };
        let part = language.usage_part(caller, format!("`{}`", sum.model), sum.usage.input, sum.usage.output);
        let cost = sum
            .cost
            .as_ref()
            .map(|cost| format!("{}{}", language.clause_gap(), money(&cost.currency, cost.micros)));
        format!("- {part}{}", cost.unwrap_or_default())
    };
    sums.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_store::Cost;

    fn sum(currency: Option<&str>, micros: i64, unreported: i64) -> SpendingSum {
        SpendingSum {
            caller: "lead".into(),
            model: "m".into(),
            usage: Usage { input: 1_000, output: 20, cached: 900, cache_writes: 0, reasoning: 5 },
            calls: 3,
            unreported,
            cost: currency.map(|currency| Cost { currency: currency.into(), micros }),
        }
    }

    #[test]
    fn small_amounts_are_shown_with_more_decimals() {
        for (micros, expect) in [
            (0, "USD 0.00"),
            (1_500, "USD 0.001500"),
            (16_200, "USD 0.0162"),
            (999_999, "USD 0.9999"),
            (1_996_000, "USD 2.00"),
            (12_340_000, "USD 12.34"),
        ] {
            assert_eq!(money("USD", micros), expect);
        }
    }

    #[test]
    fn unknown_costs_are_reported_as_unknown() {
        assert_eq!(cost(&[sum(None, 0, 1)]), (None, 3));
        let both = [sum(Some("USD"), 20_000, 1), sum(Some("CNY"), 10_000, 0), sum(Some("USD"), 10_000, 0)];
        assert_eq!(cost(&both), (Some("CNY 0.0100 + USD 0.0300".to_owned()), 0));
        let lines = details(Language::English, &both);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].contains("90 %"), "{lines:?}");
    }
}
