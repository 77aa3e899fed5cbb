//! Texts about budgets: the remaining amount, the notice when little remains, and the refusal when nothing remains.

use pudu_agent::{BudgetNotice, BudgetState};
use pudu_base::{BudgetPeriod, BudgetScope, ShortBudget, UsedBudget, money};
use pudu_store::BudgetUnit;
use pudu_texts::Language;

/// Returns the message for a budget that is used up, too small, or reserved by other answers. If others can read the
/// message, `asker` is the name of the person who asked. If the budget is that person's own, the message then names the
/// person and hides the remaining amount.
pub(super) fn refused(language: Language, used: &UsedBudget, asker: Option<&str>) -> String {
    let asker = asker.filter(|_| used.scope == BudgetScope::Person);
    let budget_name = match asker {
        Some(name) => language.budget_of_named(name),
        None => budget_name(language, used.scope).to_owned(),
    };
    match &used.short {
        _ if used.busy => language.budget_busy(budget_name),
        None => used_up(language, used, &budget_name),
        Some(short) if short.is_too_small() => too_small(language, used, short, &budget_name),
        Some(_) if asker.is_some() => match used.period {
            Some(BudgetPeriod::Month) => language.budget_scant_month(budget_name),
            _ => language.budget_scant_day(budget_name),
        },
        Some(short) => too_little(language, used, short, &budget_name),
    }
}

fn used_up(language: Language, used: &UsedBudget, budget_name: &str) -> String {
    match (used.scope, used.period) {
        (BudgetScope::Run, _) => language.budget_used_run().to_owned(),
        (_, Some(BudgetPeriod::Month)) => language.budget_used_month(budget_name),
        (_, Some(BudgetPeriod::Day) | None) => language.budget_used_day(budget_name),
    }
}

fn too_small(language: Language, used: &UsedBudget, short: &ShortBudget, budget_name: &str) -> String {
    let key = format!("`budgets.{}`", used.scope.as_str());
    let (limit, needs) =
        (short_amount(language, short, short.limit), short_amount(language, short, short.needs));
    match (used.scope, used.period) {
        (BudgetScope::Run, _) => language.budget_small_run(key, limit, needs),
        (_, Some(BudgetPeriod::Month)) => language.budget_small_month(key, limit, needs, budget_name),
        (_, Some(BudgetPeriod::Day) | None) => language.budget_small_day(key, limit, needs, budget_name),
    }
}

fn too_little(language: Language, used: &UsedBudget, short: &ShortBudget, budget_name: &str) -> String {
    let (left, limit) =
        (short_amount(language, short, short.left), short_amount(language, short, short.limit));
    match (used.scope, used.period) {
        (BudgetScope::Run, _) => language.budget_short_run(left, limit),
        (_, Some(BudgetPeriod::Month)) => language.budget_short_month(left, limit, budget_name),
        (_, Some(BudgetPeriod::Day) | None) => language.budget_short_day(left, limit, budget_name),
    }
}

fn short_amount(language: Language, short: &ShortBudget, amount: i64) -> String {
    match &short.currency {
        None => language.budget_tokens(amount.unsigned_abs()),
        Some(currency) => money(currency, amount),
    }
}

/// Returns the notice, shown once, that little of a budget remains.
pub(super) fn near(language: Language, notice: &BudgetNotice) -> String {
    let BudgetNotice { state, cheaper, too_dear } = notice;
    let (budget_name, percent) = (budget_name(language, state.rule.scope), percent(state));
    let near = match state.rule.period {
        Some(BudgetPeriod::Month) => language.budget_near_month(percent, budget_name),
        _ => language.budget_near_day(percent, budget_name),
    };
    let cheaper = match cheaper.as_ref().map(|model| format!("`{model}`")) {
        Some(model) if *too_dear => language.budget_cheaper_now(model),
        Some(model) => language.budget_cheaper(model),
        None => String::new(),
    };
    language.paragraph(&[&near, &cheaper])
}

/// Returns a line for each budget.
pub(super) fn lines(language: Language, states: &[BudgetState]) -> Vec<String> {
    let line = |state: &BudgetState| {
        let amount = |amount: i64| amount_words(language, &state.rule.unit, amount);
        let limit = amount(state.rule.limit);
        let (left, spent) = (amount((state.rule.limit - state.spent).max(0)), amount(state.spent));
        let budget_name = budget_name(language, state.rule.scope);
        let line = match state.rule.period {
            None => language.budget_line_run(limit),
            Some(BudgetPeriod::Day) => language.budget_line_day(left, limit, spent, budget_name),
            Some(BudgetPeriod::Month) => language.budget_line_month(left, limit, spent, budget_name),
        };
        format!("- {line}")
    };
    states.iter().map(line).collect()
}

fn budget_name(language: Language, scope: BudgetScope) -> &'static str {
    match scope {
        BudgetScope::Run => language.budget_of_run(),
        BudgetScope::Person => language.budget_of_person(),
        BudgetScope::Room => language.budget_of_room(),
        BudgetScope::Account => language.budget_of_account(),
        BudgetScope::Everybody => language.budget_of_everybody(),
    }
}

fn percent(state: &BudgetState) -> u64 {
    let percent = i128::from(state.spent) * 100 / i128::from(state.rule.limit.max(1));
    u64::try_from(percent.min(100)).unwrap_or(0)
}

fn amount_words(language: Language, unit: &BudgetUnit, amount: i64) -> String {
    match unit {
        BudgetUnit::Tokens => language.budget_tokens(amount.unsigned_abs()),
        BudgetUnit::Money(currency) => money(currency, amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_agent::BudgetRule;

    fn state(scope: BudgetScope, period: Option<BudgetPeriod>, unit: BudgetUnit, spent: i64) -> BudgetState {
        let rule = BudgetRule { scope, period, unit, limit: 2_000_000 };
        BudgetState { rule, subject: String::new(), spent, opens: None }
    }

    #[test]
    fn budget_lines_show_spent_and_remaining_amounts_with_units() {
        let money = BudgetUnit::Money("USD".into());
        let (day, month) = (Some(BudgetPeriod::Day), Some(BudgetPeriod::Month));
        let states = [
            state(BudgetScope::Run, None, BudgetUnit::Tokens, 0),
            state(BudgetScope::Person, day, BudgetUnit::Tokens, 500_000),
            state(BudgetScope::Room, month, money, 2_500_000),
        ];
        let text = lines(Language::English, &states);
        let expect = [
            "- Each run may spend 2000000 tokens.",
            "- Your budget for today: 500000 tokens of 2000000 tokens spent, 1500000 tokens left until 00:00 UTC.",
            "- The budget of this room for this month: USD 2.50 of USD 2.00 spent, USD 0.00 left until the first of next \
             month, 00:00 UTC.",
        ];
        assert_eq!(text, expect);
    }

    #[test]
    fn refusals_name_the_budget_and_its_reset() {
        let used = |scope, period| UsedBudget { scope, period, ..UsedBudget::of_run() };
        let used_up = |language, used: &UsedBudget| refused(language, used, None);
        let day = used(BudgetScope::Room, Some(BudgetPeriod::Day));
        let text = used_up(Language::English, &day);
        assert_eq!(text, "The budget of this room for today is used up. It resets at 00:00 UTC.");
        assert_eq!(text, day.to_string(), "the text of the API");
        let month = used(BudgetScope::Person, Some(BudgetPeriod::Month));
        assert_eq!(used_up(Language::English, &month), month.to_string());
        let short = |left, needs| Some(ShortBudget { left, limit: 2_000, needs, currency: None });
        let scarce = UsedBudget { short: short(99, 1_000), ..month };
        assert_eq!(used_up(Language::English, &scarce), scarce.to_string());
        assert!(scarce.to_string().contains("has 99 tokens of 2000 tokens left, too little"), "{scarce}");
        let text = used_up(Language::Chinese, &scarce);
        assert_eq!(
            text,
            "您本月的额度 2000 个 token 还剩 99 个 token，不够再回答一次，将于下月 1 日 00:00（UTC）重新开放。"
        );
        let text = refused(Language::English, &scarce, Some("Ada"));
        assert!(
            text.starts_with("The budget of Ada for this month is too small") && !text.contains("99"),
            "{text}"
        );
        let small = UsedBudget { short: short(2_000, 5_000), ..UsedBudget::of_run() };
        assert_eq!(used_up(Language::English, &small), small.to_string());
        assert!(used_up(Language::Chinese, &small).contains("总共只有 2000 个 token"));
        let busy = UsedBudget { busy: true, ..used(BudgetScope::Run, None) };
        let text = used_up(Language::English, &busy);
        assert!(
            text.starts_with("The budget of this run is not used up, but other answers in progress"),
            "{text}"
        );
        assert_eq!(text, busy.to_string(), "the text of the API");
        let state = state(BudgetScope::Person, Some(BudgetPeriod::Day), BudgetUnit::Tokens, 1_700_000);
        let notice = BudgetNotice { state, cheaper: Some("small".into()), too_dear: false };
        let expect =
            "Your budget for today is 85 % used. It resets at 00:00 UTC. `small` answers from now on.";
        assert_eq!(near(Language::English, &notice), expect);
    }
}
