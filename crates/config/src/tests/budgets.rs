//! Budgets, and messages about budgets that cannot be enforced.

use super::*;

#[test]
fn an_unenforceable_budget_prevents_the_start() {
    let model =
        |more: &str| format!("models: [{{name: a, model: a, base_url: 'http://localhost/v1'{more}}}]\n");
    let priced = |currency: &str| {
        let pricing = format!("{{currency: {currency}, input_per_million: 1, output_per_million: 2}}");
        model(&format!(", pricing: {pricing}"))
    };
    let check = |text: String, expect: &str| {
        let messages = messages(&text, []);
        match expect {
            "" => assert_eq!(messages, "", "{text}"),
            expect => assert!(messages.contains(expect), "{text}: {messages}"),
        }
    };
    let money = "budgets: {person: {cost_per_day: 0.5}}\n";
    check(
        money.to_owned(),
        "error: budgets: a budget in money needs models with prices, but no model has one",
    );
    check(model("") + money, "error: budgets: the model \"a\" has no price, so its calls would not count");
    check(priced("EUR") + money, "the price of the model \"a\" is in EUR, but the budgets are in USD");
    check(priced("EUR") + "budgets: {currency: EUR, run: {cost: 1}}\n", "");
    check(model("") + "budgets: {room: {tokens_per_day: 0}, everybody: {tokens_per_month: 5}}\n", "");
    check(model("") + "budgets: {cheaper_model: b}\n", "error: budgets.cheaper_model: there is no model b");
    check("budgets: {person: {tokens_per_day: -1}}\n".into(), "error: budgets.person.tokens_per_day: ");
    check("budgets: {person: {tokens_per_day: lots}}\n".into(), "error: budgets.person.tokens_per_day: ");
    check("budgets: {warn_threshold: 1.5}\n".into(), "error: budgets.warn_threshold: ");
    check("budgets: {person: {tokens: 5}}\n".into(), "budgets.person.tokens: unknown key");
    let late = "token_budget: {enabled: true, warn_threshold: 0.9, hard_stop_threshold: 0.5}\n";
    check(
        late.into(),
        "error: token_budget.hard_stop_threshold: a run would be stopped before its model is warned",
    );
    check(
        "token_budget: {max_tokens: 5}\n".into(),
        "warning: token_budget: this budget applies only with `enabled: true`",
    );
}

#[test]
fn a_task_has_deerflows_token_budget_by_default() {
    let check = |text: &str, kind: &str, expect: Option<(u64, u64)>| {
        let hot = good(text, []).config.hot;
        let kind = hot.subagents.iter().find(|other| other.name == kind).unwrap();
        let total = kind.bounds.tokens.total;
        assert_eq!(total.map(|limit| (limit.warn, limit.stop)), expect, "{text}");
    };
    check("", "bash", Some((700_000, 1_000_000)));
    check("summarization: {enabled: false}\n", "bash", Some((1_400_000, 2_000_000)));
    check(
        "subagents: {token_budget: {max_tokens: 1000, hard_stop_threshold: 0.9}}\n",
        "bash",
        Some((700, 900)),
    );
    check("subagents: {token_budget: {enabled: false}}\n", "general-purpose", None);
    let own = "subagents: {token_budget: {max_tokens: 1000}, agents: {bash: {token_budget: {warn_threshold: 0.5}}}}\n";
    check(own, "bash", Some((500, 1_000)));
    check(own, "general-purpose", Some((700, 1_000)));
    let run = good("token_budget: {enabled: true, max_output_tokens: 10}\n", []).config.hot.run_tokens;
    let limit = |limit: Option<pudu_harness::TokenLimit>| limit.map(|limit| (limit.warn, limit.stop));
    assert_eq!(
        (limit(run.total), limit(run.input), limit(run.output)),
        (Some((160_000, 200_000)), None, Some((8, 10)))
    );
    assert!(!good("token_budget: {enabled: false}\n", []).config.hot.run_tokens.is_limited());
}

#[test]
fn a_misspelt_budget_prevents_the_start() {
    let check = |text: &str, key: &str, near: &str| {
        let messages = messages(text, []);
        let help = if near.is_empty() { "remove it".to_owned() } else { format!("did you mean {near}") };
        let expected = format!("error: {key}: unknown key\n  help: {help}");
        assert!(messages.contains(&expected), "{text}: {messages}");
    };
    check("budgets: {persn: {tokens_per_day: 10}}\n", "budgets.persn", "`person`?");
    check("budgets: {person: {token_per_day: 5}}\n", "budgets.person.token_per_day", "`tokens_per_day`?");
    check("budgets: {run: {tokens_per_day: 500}}\n", "budgets.run.tokens_per_day", "");
    check("budgets: {most: 5}\n", "budgets.most", "");
    check("budget: {person: {tokens_per_day: 10}}\n", "budget", "`budgets`?");
    check("person: {tokens_per_day: 10}\n", "person", "`budgets.person`?");
    check("tokens_per_day: 10\n", "tokens_per_day", "`budgets.");
    check("channels: {telegram: {bot_token: t, budgets: {}}}\n", "channels.telegram.budgets", "");
    check("token_budgets: {enabled: true}\n", "token_budgets", "`token_budget`?");
    check("token_budget: {enabled: true, max_token: 5}\n", "token_budget.max_token", "`max_tokens`?");
    check("subagents: {token_budgets: {max_tokens: 5}}\n", "subagents.token_budgets", "`token_budget`?");
    check("subagents: {token_budget: {max_token: 5}}\n", "subagents.token_budget.max_token", "`max_tokens`?");
    check(
        "subagents: {agents: {bash: {token_budget: {tokens: 5}}}}\n",
        "subagents.agents.bash.token_budget.tokens",
        "`max_",
    );
    check("guardrail: {enabled: true}\n", "guardrail", "`guardrails`?");
}

#[test]
fn every_key_of_a_sub_agent_is_checked_despite_earlier_errors() {
    let more = "tools: [ls], disallowed_tools: [bash_tool], skills: [a], model: inherit, max_turns: 5, timeout_seconds: 9";
    let text =
        format!("subagents: {{custom_agents: {{a: {{description: [b], system_prompt: 5, {more}}}}}}}\n");
    let messages = messages(&text, []);
    for key in ["description: found", "system_prompt: found", "disallowed_tools: unknown tool"] {
        assert!(messages.contains(&format!("error: subagents.custom_agents.a.{key}")), "{messages}");
    }
    assert!(!messages.contains("unknown key"), "{messages}");
}

#[test]
fn names_models_and_skills_of_sub_agents_are_checked() {
    let check = |agents: &str, key: &str, what: &str, help: &str| {
        let models =
            "models: [{name: big, use: langchain_openai:ChatOpenAI, model: m, api_key: k-0123456789}]\n";
        let messages = messages(&format!("{models}subagents: {{{agents}}}\n"), []);
        assert!(messages.contains(&format!("error: subagents.{key}: {what}")), "{agents}: {messages}");
        assert!(messages.contains(help) && messages.contains("config.yaml:3"), "{agents}: {messages}");
    };
    let own = |name: &str, more: &str| {
        format!("custom_agents: {{\"{name}\": {{description: a, system_prompt: b{more}}}}}")
    };
    check(&own("a", ", model: small"), "custom_agents.a.model", "there is no model small", "`models`: big");
    check("agents: {bash: {model: small}}", "agents.bash.model", "there is no model small", "`models`: big");
    check(
        &own("a", ", skills: [Wide Net]"),
        "custom_agents.a.skills",
        "\"Wide Net\" is not a valid skill name",
        "hyphens",
    );
    check(
        "agents: {bash: {skills: [../x]}}",
        "agents.bash.skills",
        "\"../x\" is not a valid skill name",
        "hyphens",
    );
    check(&own("a b", ""), "custom_agents.a b", "\"a b\" is not a valid sub-agent name", "up to 64 letters");
    check(
        &own("bash", ""),
        "custom_agents.bash",
        "the sub-agent \"bash\" already exists",
        "`subagents.agents`",
    );
    check(
        &own("General_Purpose", ""),
        "custom_agents.General_Purpose",
        "the sub-agent \"general-purpose\" already exists",
        "rename it",
    );
    let good = "subagents: {custom_agents: {web-net_2: {description: a, system_prompt: b, model: inherit, skills: [deep-net]}}}\n";
    assert!(!messages(good, []).contains("error"), "{}", messages(good, []));
}
