//! The agent's setup from the configuration: models, tools and limits.

use crate::machine::Machine;
use pudu_agent::{
    AgentSetup, BudgetSetup, KnownModel, MemorySetup, ModelInfo, ThinkingSupport, TitleSetup, ToolGroups,
    agents::UPDATE_AGENT, named_model,
};
use pudu_base::{Model, ModelError, Shell, Tool};
use pudu_config::{
    ApprovalsConfig, GuardrailsConfig, HotConfig, ModelConfig, Runs, Subagent, WebConfig, is_own_tool,
};
use pudu_documents::{Converter, DocumentLimits};
use pudu_guardrails::{GuardrailProvider, Guards, HttpGuardrail, Passport};
use pudu_harness::{
    ApprovalPolicy, ContextSetup, Fallback, ModelGuards, PromptMount, Retry, RetryRules, RunBounds,
    SKILL_MANAGE, ToolCatalog,
    subagent::{Kinds, SubagentKind},
};
use pudu_kit::program;
use pudu_model::{HttpModel, Offline};
use pudu_net::{
    guard::{AllowedTargets, Guard},
    reqwest,
};
use pudu_sandbox::{Folders, LocalSandboxes, Mount, Options};
use pudu_tools::{self as tools, web};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

/// Name of the hidden subcommand that the daemon runs to read a document in a separate process.
pub const READ_DOCUMENT: &str = "read-document";

/// Creates the parts that runs use. If no model is configured, uses one found on the machine, or else the built-in
/// offline model. A tool of an extension never replaces one of our own.
pub fn setup(
    hot: &HotConfig,
    machine: &Machine,
    extensions: Vec<Arc<dyn Tool>>,
) -> Result<AgentSetup, ModelError> {
    let configured = if hot.models.is_empty() { &machine.models } else { &hot.models };
    machine.model_guards.set(hot.model_calls.rest, hot.model_calls.max_concurrent);
    let mut models = models(configured, hot.model_calls.retries, &machine.model_guards)?;
    if models.is_empty() {
        models.push(offline());
    }
    let steps = hot.runs.recursion_limit;
    let Runs { timeout: time, subagents, at_once, .. } = hot.runs;
    let bounds = RunBounds { steps, time, subagents, at_once, tokens: hot.run_tokens };
    let sandboxes = machine.sandboxes(hot);
    let own = tools(hot, sandboxes.shell())?;
    let foreign = foreign(&own, extensions);
    let deferred: Vec<_> =
        foreign.iter().filter(|_| hot.tool_search).map(|tool| tool.spec().clone()).collect();
    let tools = own.into_iter().chain(foreign);
    let kinds = hot.subagents.iter().map(|subagent| kind(subagent, &models)).collect();
    let ApprovalsConfig { dangerous, agent_changes, skill_changes, tools: asked, timeout } =
        hot.approvals.clone();
    let changing = [(agent_changes, UPDATE_AGENT), (skill_changes, SKILL_MANAGE)];
    let shared = changing.iter().filter(|(asks, _)| *asks).map(|(_, tool)| (*tool).to_owned()).collect();
    let mounts = hot.sandbox.mounts.iter().filter(|mount| mount.host.is_dir());
    let mount = |mount: &Mount| PromptMount { path: mount.agent.clone(), read_only: mount.read_only };
    let by_name = |name: &Option<String>| named_model(&models, name.as_deref());
    let (context, title) = (by_name(&hot.summarization.model), by_name(&hot.titles.model));
    let memory = hot.memory.rules.clone();
    Ok(AgentSetup {
        deferred: Arc::new(ToolCatalog::new(deferred)),
        subagents: Kinds::new(kinds, bounds.at_once),
        acp_agents: hot.acp_agents.clone(),
        groups: groups(hot),
        mounts: mounts.map(mount).collect(),
        policy: Arc::new(ApprovalPolicy { tools: asked, shared, dangerous }),
        patience: timeout,
        documents: DOCUMENTS.clone(),
        loops: hot.loops.clone().map(Arc::new),
        context: ContextSetup { rules: Arc::new(hot.summarization.rules.clone()), model: context },
        titles: hot.titles.rules.clone().map(|rules| TitleSetup { rules, model: title }),
        memory: memory.and_then(|rules| MemorySetup::new(rules, hot.memory.model.as_deref(), &models)),
        progress: hot.progress.clone().map(Arc::new),
        budgets: Arc::new(BudgetSetup::new(hot.budgets.clone(), &models)),
        guardrails: hot.guardrails.as_ref().map(guardrails).transpose()?,
        skills: hot.skill_rules.clone().checked(&models),
        results: Arc::new(hot.results.rules.clone()),
        results_folder: hot.results.folder.as_str().into(),
        ..AgentSetup::new(models, tools, bounds, sandboxes)
    })
}

/// Creates the parts needed to read and change stored data. Runs get no model and no tools from it.
pub(crate) fn setup_without_runs(hot: &HotConfig, folders: &Folders) -> AgentSetup {
    let models = [offline()];
    let memory = hot.memory.rules.clone().and_then(|rules| MemorySetup::new(rules, None, &models));
    let sandboxes = LocalSandboxes::new(folders.clone(), None, Options::default());
    AgentSetup { memory, ..AgentSetup::new(models, [], RunBounds::default(), Arc::new(sandboxes)) }
}

/// Creates the providers that decide on tool calls, the ones without cost first.
pub fn guardrails(config: &GuardrailsConfig) -> Result<Guards, ModelError> {
    let mut providers: Vec<Arc<dyn GuardrailProvider>> = Vec::new();
    if let Some(list) = &config.allowlist {
        providers.push(Arc::new(list.clone()));
    }
    if let Some(source) = &config.passport {
        providers.push(Arc::new(Passport::new(source.clone())));
    }
    if let Some(settings) = &config.http {
        let guardrail = HttpGuardrail::new(settings);
        providers.push(Arc::new(guardrail.map_err(|error| ModelError::Unreachable(error.to_string()))?));
    }
    Ok(Guards::new(providers, config.fail_closed, config.agent_id.clone()))
}

/// Drops tools that have the name of one of our own, even if that one is not offered: policies, groups and skills refer
/// to such names.
fn foreign(own: &[Arc<dyn Tool>], extensions: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let taken = |name: &str| is_own_tool(name) || own.iter().any(|tool| tool.spec().name == name);
    let (foreign, left): (Vec<_>, Vec<_>) =
        extensions.into_iter().partition(|tool| !taken(&tool.spec().name));
    for tool in left {
        let name = &tool.spec().name;
        tracing::warn!(tool = name, "skipped tool of extension: a built-in tool has the same name");
    }
    foreign
}

/// Returns the groups of tools. Built-in tools belong to no group, because every agent has them.
pub fn groups(hot: &HotConfig) -> ToolGroups {
    let configured = hot.tools.iter().filter(|tool| !tool.tool.is_built_in());
    let of = configured.map(|tool| (tool.tool.name().to_owned(), tool.group.clone()));
    let of: BTreeMap<String, String> = of.collect();
    let names = of.values().chain(&hot.tool_groups).filter(|name| !name.is_empty()).cloned().collect();
    ToolGroups { names, of }
}

/// Looks up a sub-agent's model. If it no longer exists, the sub-agent uses its parent's.
fn kind(subagent: &Subagent, models: &[KnownModel]) -> SubagentKind {
    let Subagent { name, about, system, tools, without, skills, model, bounds } = subagent.clone();
    let model = named_model(models, model.as_deref());
    SubagentKind { name, about, system: system.into(), tools, without, skills, model, bounds }
}

/// Reads documents in processes of this program. Shared by all setups, so that it can limit concurrent reads.
static DOCUMENTS: LazyLock<Converter> = LazyLock::new(|| match program::path() {
    Ok(own) => Converter::child(own, [READ_DOCUMENT], DocumentLimits::default()),
    Err(error) => {
        tracing::warn!(%error, "reading documents in the daemon's process: cannot find pudu's program");
        Converter::in_process(DocumentLimits::default())
    }
});

fn offline() -> KnownModel {
    let info = ModelInfo {
        about: Some("built in; echoes messages, and calls tools with /tool".to_owned()),
        ..ModelInfo::named(Offline::NAME)
    };
    (info, Arc::new(Offline))
}

/// Creates the models, each with its fallbacks.
fn models(
    configured: &[ModelConfig],
    retries: RetryRules,
    guards: &ModelGuards,
) -> Result<Vec<KnownModel>, ModelError> {
    let single = configured.iter().map(|config| model(config, retries, guards));
    let single: Vec<Arc<dyn Model>> = single.collect::<Result<_, _>>()?;
    let with_others = |(config, model): (&ModelConfig, &Arc<dyn Model>)| {
        let by_name = |name: &String| single.iter().find(|other| other.name() == name).cloned();
        let others: Vec<_> = config.fallbacks.iter().filter_map(by_name).collect();
        let model =
            if others.is_empty() { model.clone() } else { Arc::new(Fallback::new(model.clone(), others)) };
        (info(config), model)
    };
    Ok(configured.iter().zip(&single).map(with_others).collect())
}

fn info(config: &ModelConfig) -> ModelInfo {
    let thinking = &config.settings.thinking;
    ModelInfo {
        name: config.settings.name.clone(),
        title: config.display_name.clone(),
        about: Some(config.description.clone()).filter(|about| !about.is_empty()),
        price: config.price.clone(),
        model: config.settings.model.clone(),
        thinking: ThinkingSupport { supported: thinking.supported, takes_effort: thinking.takes_effort },
    }
}

fn model(
    config: &ModelConfig,
    retries: RetryRules,
    guards: &ModelGuards,
) -> Result<Arc<dyn Model>, ModelError> {
    let own = config.max_retries.map(|retries| retries.saturating_add(1));
    let rules = RetryRules { attempts: own.unwrap_or(retries.attempts), ..retries };
    let address = config.settings.base_url.as_str();
    let retry = Retry::new(Arc::new(HttpModel::new(config.settings.clone())?), rules, guards, address);
    // A model with fallbacks does not wait until its provider has rested.
    Ok(Arc::new(if config.fallbacks.is_empty() { retry } else { retry.without_waiting_for_rest() }))
}

fn tools(hot: &HotConfig, shell: Option<Shell>) -> Result<Vec<Arc<dyn Tool>>, ModelError> {
    let sandbox = &hot.sandbox;
    let limits = tools::ToolLimits {
        bash: sandbox.bash_output_max_chars,
        read_file: sandbox.read_file_output_max_chars,
        ls: sandbox.ls_output_max_chars,
        bash_timeout: sandbox.bash_command_timeout,
        // Without a shell, `bash` is not offered.
        shell: shell.unwrap_or(Shell::Host),
    };
    let without_tls = |error: reqwest::Error| ModelError::Unreachable(error.to_string());
    let guard = Guard::new(AllowedTargets::new(&hot.reachable)).map_err(without_tls)?;
    let configured = hot.offered(shell.is_some()).map(|tool| match &tool.web {
        Some(config) => web_tool(config, &guard).map_err(without_tls),
        None => Ok(tools::tool(tool.tool.name(), limits)),
    });
    let built_in = tools::BUILT_IN.iter().map(|name| Ok(tools::tool(name, limits)));
    configured.chain(built_in).filter_map(Result::transpose).collect()
}

/// Creates a tool that accesses the web.
fn web_tool(config: &WebConfig, guard: &Guard) -> Result<Option<Arc<dyn Tool>>, reqwest::Error> {
    let settings = web::WebSettings {
        base_url: config.base_url.clone(),
        api_key: config.api_key.clone(),
        max_results: config.max_results,
        max_chars: config.max_chars,
        timeout: config.timeout,
        region: config.region.clone(),
        safe: config.safesearch,
    };
    web::tool(config.kind, config.provider, settings, guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{BoxFuture, ToolCx, ToolError, ToolOutput, ToolSpec};
    use serde_json::{Value, json};

    /// A tool that has nothing but a name.
    struct NamedTool(Arc<ToolSpec>);

    impl Tool for NamedTool {
        fn spec(&self) -> &Arc<ToolSpec> {
            &self.0
        }

        fn call<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            unreachable!()
        }
    }

    fn named(name: &str) -> Arc<dyn Tool> {
        let (name, about, parameters) = (name.to_owned(), String::new(), json!({}));
        Arc::new(NamedTool(Arc::new(ToolSpec { name, description: about, parameters, idempotent: false })))
    }

    #[test]
    fn no_extension_replaces_an_own_tool_even_if_that_is_not_offered() {
        let ours = ["web_search", "bash", "view_image", "task", "tool_search", "setup_agent", "update_agent"];
        let all = ours.iter().chain(&["maps_search"]).map(|name| named(name)).collect();
        let left = foreign(&[named("web_search")], all);
        let names: Vec<&str> = left.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(names, ["maps_search"]);
    }
}
