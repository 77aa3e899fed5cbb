//! `pudu explain`: the request that an agent sends to its model, part by part, with the tokens of each.
//!
//! It starts the MCP servers to list their tools, and does not call a model.

use super::{print_output, run};
use anyhow::{Context, Result, anyhow, bail};
use pudu_agent::Agent;
use pudu_agent::{AgentExplanation, agents::is_lead};
use pudu_base::ToolSpec;
use pudu_config::{LoadedConfig, Start, nearest};
use pudu_daemon::{agent, machine::Machine, servers::Extensions, skills};
use pudu_harness::PromptSection;
use pudu_store::{Db, DbLocation};
use std::{fmt::Write, process::ExitCode, sync::Arc};

/// ASCII characters per token. Other scripts have about one token per character.
const LATIN_CHARS_PER_TOKEN: usize = 4;

/// Explains an agent with a model. The defaults are the lead agent and its model.
pub(super) fn explain(start: &Start, agent: Option<String>, model: Option<String>) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let work = || -> Result<String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let explained_request = runtime.block_on(explain_agent(start, loaded, agent, model));
        runtime.shutdown_background();
        Ok(render(&explained_request?))
    };
    match work() {
        Ok(words) => print_output(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

async fn explain_agent(
    start: &Start,
    loaded: LoadedConfig,
    agent: Option<String>,
    model: Option<String>,
) -> Result<AgentExplanation> {
    let file = loaded.report.file.clone();
    let (fixed, hot) = (loaded.config.fixed, loaded.config.hot);
    let skills = skills::open(start, &fixed, file.as_deref())?;
    let (machine, _) = Machine::detect(&fixed.home, &fixed.provider, &hot).await;
    let extensions = Extensions::new(start.clone(), file, &fixed.home);
    extensions.connect().await;
    let setup = agent::setup(&hot, &machine, extensions.lock().all())?;
    let db = Db::open(&DbLocation::Memory).await.context("cannot create a store in memory")?;
    let explained = Agent::new(db, machine.folders.clone(), setup, skills);
    if let Some(model) = &model {
        refuse_unknown_model(model, &explained)?;
    }
    let explained_request = explained.explain(agent.filter(|name| !is_lead(name)), model).await;
    extensions.close().await;
    explained_request.map_err(|cause| anyhow!("{cause}"))
}

fn refuse_unknown_model(model: &str, agent: &Agent) -> Result<()> {
    let names: Vec<String> = agent.models().into_iter().map(|info| info.name).collect();
    if names.iter().any(|name| name == model) {
        return Ok(());
    }
    match nearest(model, names.iter().map(String::as_str)) {
        Some(near) => bail!("there is no model `{model}`; did you mean `{near}`?"),
        None => bail!("there is no model `{model}`; available: {}", names.join(", ")),
    }
}

fn render(explained_request: &AgentExplanation) -> String {
    let AgentExplanation { model, context_window, middlewares, guardrails, sections, tools } =
        explained_request;
    let prompt: usize = sections.iter().map(|section| tokens(&section.text)).sum();
    let schemas: usize = tools.iter().map(tool_tokens).sum();
    // Writing to a String cannot fail.
    let mut out = String::new();
    let _ = writeln!(out, "model: {model}, with a window of {context_window} tokens");
    let _ = writeln!(out, "first request: about {} tokens before the first message", prompt + schemas);
    let _ = writeln!(out, "\nmiddlewares, in order:");
    for (at, name) in middlewares.iter().enumerate() {
        let _ = writeln!(out, "  {:>2}. {name}", at + 1);
    }
    if let Some(guardrails) = guardrails {
        let _ = writeln!(out, "\nguardrails, before each call: {guardrails}");
    }
    let _ = writeln!(out, "\ntools: {}, about {schemas} tokens", tools.len());
    for tool in tools {
        let _ = writeln!(out, "  {} (about {} tokens)", tool.name, tool_tokens(tool));
    }
    let _ = writeln!(out, "\nprompt: {} sections, about {prompt} tokens", sections.len());
    for PromptSection { name, text } in sections {
        let _ = writeln!(out, "\n--- {name} (about {} tokens)\n{text}", tokens(text));
    }
    out
}

fn tool_tokens(tool: &Arc<ToolSpec>) -> usize {
    tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
}

/// Estimates the tokens of a text. Providers count differently.
fn tokens(text: &str) -> usize {
    let latin = text.chars().filter(char::is_ascii).count();
    latin.div_ceil(LATIN_CHARS_PER_TOKEN) + (text.chars().count() - latin)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_are_estimated_by_script() {
        assert_eq!([tokens(""), tokens("word"), tokens("words"), tokens("你好 ok")], [0, 1, 2, 3]);
    }
}
