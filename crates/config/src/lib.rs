//! The configuration: `config.yaml` in DeerFlow's shape, and its meaning.
//!
//! It is read in two steps. `raw.rs` parses the file as it was typed, with the position of every value. `reader.rs` and
//! the files of the sections turn that into [`Config`], in which all defaults are filled in and all variables are
//! expanded. No other part of pudu sees the environment, a `$NAME` or a default.
//!
//! Settings that need a restart are in [`Fixed`]; the daemon is built with them. Settings that apply from the next
//! message on are in [`HotConfig`], which [`Watcher`] reloads when the file changes. `config.example.yaml` and
//! `docs/configuration.md`, which are generated from the keys' declarations (`declare.rs`), show the same distinction.
//!
//! Deliberately absent: writing configuration (only `pudu config upgrade` does, as text), and a typed form of sections
//! that no part of pudu uses yet (`later.rs`).

mod declaration;
#[macro_use]
mod declare;

mod acp;
mod approvals;
mod assist;
mod auth;
mod budgets;
mod channel;
mod class;
mod containers;
mod database;
mod elsewhere;
mod env;
mod error;
pub mod extensions;
mod find;
mod gateway;
mod guardrails;
mod later;
mod limits;
mod loops;
mod memory;
mod model;
mod model_name;
mod oidc;
mod output;
mod problem;
mod progress;
mod protections;
mod quantity;
mod raw;
mod reader;
mod retention;
mod sandbox;
mod scheduler;
mod schema;
mod setting;
mod skills;
mod subagents;
mod summarization;
mod title;
mod transcription;
pub mod trust;
mod unknown;
pub mod upgrade;
mod watch;
mod web;

pub use {
    approvals::{ApprovalsConfig, is_own_tool},
    auth::AuthConfig,
    channel::{
        AccountConfig, AccountPolicy, Allow, CLOSING, Capacity, Choosing, FollowUpMode, GroupContext,
        GroupHistory, LOCAL, Menu, SessionOverrides, Timing, UnpairedPeople,
    },
    class::Native,
    containers::{DockerConfig, SandboxBackend},
    database::{Backend, Database},
    elsewhere::{HomeVolume, KubernetesConfig, ProvisionerConfig},
    env::Env,
    error::ConfigError,
    find::Start,
    gateway::GatewayConfig,
    guardrails::GuardrailsConfig,
    limits::{ModelCalls, Runs, Uploads},
    model::ModelConfig,
    oidc::{ClientAuth, OidcConfig, OidcProvider, is_safe as is_safe_address},
    output::LongResults,
    problem::{Pos, Problem, Report, Severity, nearest},
    sandbox::{SandboxConfig, ToolConfig},
    scheduler::SchedulerConfig,
    schema::schema,
    skills::SkillsConfig,
    subagents::Subagent,
    transcription::Transcription,
    watch::Watcher,
    web::WebConfig,
};

use assist::Assistance;
use indexmap::IndexMap;
use memory::MemoryConfig;
use pudu_acp::AcpAgent;
use pudu_agent::{BudgetRules, RetentionRules, SkillRules};
use pudu_harness::{LoopRules, TokenBudget, ToolProgressRules};
use pudu_net::scrub;
use raw::Node;
use reader::{ConfigReader, Key, Section};
use secrecy::{ExposeSecret, SecretString};
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};
use summarization::Summarization;
use title::Titles;
use url::Url;

/// The version of the configuration's schema, which is the same as in the corresponding DeerFlow. A file states it in
/// `config_version`.
pub const VERSION: u32 = 34;

/// The example file, with every key and its default.
pub const EXAMPLE: &str = include_str!("../../../config.example.yaml");

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Settings that need a restart.
    pub fixed: Fixed,
    /// Settings that apply from the next message on.
    pub hot: Arc<HotConfig>,
}

/// Settings used to build the daemon. A change needs a restart.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The folder for all of pudu's data.
    pub home: PathBuf,
    /// Minimum level of log events.
    pub log_level: LogLevel,
    /// The HTTP API and the page.
    pub gateway: GatewayConfig,
    /// Sign-in to the HTTP API.
    pub auth: AuthConfig,
    /// The database.
    pub database: Database,
    /// Limits of waiting messages and concurrent runs.
    pub capacity: Capacity,
    /// Folders of skills.
    pub skills: SkillsConfig,
    /// Backend of sandboxes for commands.
    pub provider: SandboxBackend,
}

/// Settings that are looked up for each message.
#[derive(Clone, Debug)]
pub struct HotConfig {
    /// The models, the default first. Empty if none is configured and the environment has no key.
    pub models: Vec<ModelConfig>,
    /// The tools.
    pub tools: Vec<ToolConfig>,
    /// Names of tool groups, in addition to the groups of the tools.
    pub tool_groups: Vec<String>,
    /// Whether the HTTP API can list, create and change agents.
    pub agents_api: bool,
    /// Programs that MCP servers added through the HTTP API may start.
    pub mcp_commands: Vec<String>,
    /// Writing assistance by a model.
    pub assistance: Assistance,
    /// Names, addresses and networks outside the public internet that may be fetched.
    pub reachable: Vec<String>,
    /// Limits and permissions in the sandbox.
    pub sandbox: SandboxConfig,
    /// Actions of the agent that need approval.
    pub approvals: ApprovalsConfig,
    /// Guardrails, which decide on tool calls without people; `None` if they are off.
    pub guardrails: Option<GuardrailsConfig>,
    /// Handling of tool results that are too long for a model.
    pub results: LongResults,
    /// Whether the model has to search for tools of MCP servers.
    pub tool_search: bool,
    /// The sub-agents.
    pub subagents: Vec<Subagent>,
    /// The agents of the Agent Client Protocol.
    pub acp_agents: Arc<[AcpAgent]>,
    /// Rules for summaries of conversations.
    pub summarization: Summarization,
    /// Rules for titles of threads.
    pub titles: Titles,
    /// The server that transcribes voice notes and videos.
    pub transcription: Option<Transcription>,
    /// Memory of users and rooms.
    pub memory: MemoryConfig,
    /// Rules for agents' use of skills.
    pub skill_rules: SkillRules,
    /// Rules for stopping a run that repeats itself; `None` if it is never stopped.
    pub loops: Option<LoopRules>,
    /// Retries and concurrency of model calls.
    pub model_calls: ModelCalls,
    /// Rules for hints about tools without progress, and for closing them; `None` if there are none.
    pub progress: Option<ToolProgressRules>,
    /// Whether visitors may create an account.
    pub registration: bool,
    /// Limits of uploads.
    pub uploads: Uploads,
    /// Limits of runs.
    pub runs: Runs,
    /// Scheduled tasks.
    pub scheduler: SchedulerConfig,
    /// Timing settings.
    pub timing: Timing,
    /// The bots that are on, in the file's order.
    pub accounts: Vec<AccountConfig>,
    /// Behaviour of each bot that is on, by its name.
    pub policies: IndexMap<String, AccountPolicy>,
    /// Retention of the bots' data.
    pub retention: RetentionRules,
    /// Budgets of runs, by requester.
    pub budgets: BudgetRules,
    /// Token budget of one run.
    pub run_tokens: TokenBudget,
}

impl HotConfig {
    /// Returns the bots that are open to everyone.
    pub fn open_to_the_world(&self) -> Vec<&str> {
        let open = |account: &&AccountConfig| {
            account.platform.is_public()
                && self.policies.get(&account.name).is_some_and(AccountPolicy::admits_everybody)
        };
        self.accounts.iter().filter(open).map(|account| account.name.as_str()).collect()
    }

    /// Returns the tools that are offered to the model. Without a usable shell, the shell tool is omitted.
    pub fn offered(&self, shell: bool) -> impl Iterator<Item = &ToolConfig> {
        self.tools.iter().filter(move |tool| shell || tool.tool != Native::Bash)
    }
}

/// Minimum level of log events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Details for developers.
    Debug,
    /// Events for operators.
    Info,
    /// Anomalies.
    Warn,
    /// Failures.
    Error,
}

const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("trace", LogLevel::Trace),
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warning", LogLevel::Warn),
    ("warn", LogLevel::Warn),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Error),
];

/// A usable configuration, and the report of reading it.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The path of the file, and warnings and notes about it.
    pub report: Report,
    /// The keys that were read, by their path.
    keys: IndexMap<String, Key>,
    /// Fingerprint of the file before it was read.
    stamp: Option<watch::ConfigStamp>,
    /// Whether the file has any settings.
    has_entries: bool,
    /// Secrets in the configuration.
    secrets: Vec<SecretString>,
}

impl LoadedConfig {
    /// Returns the position of a key's value, or of its section.
    pub fn place(&self, key: &str) -> Option<Pos> {
        self.keys.get(key).and_then(|key| key.at)
    }

    /// Returns the position at which the file sets a key.
    pub fn said_at(&self, key: &str) -> Option<Pos> {
        self.keys.get(key).filter(|key| key.said).and_then(|key| key.at)
    }

    /// Registers its secrets, so that they are removed from all output of the process.
    pub fn remember_secrets(&self) {
        scrub::remember(self.secrets.iter().map(|secret| secret.expose_secret().to_owned()));
    }
}

/// Finds, reads and interprets the configuration.
pub fn load(start: &Start) -> Result<LoadedConfig, ConfigError> {
    let file = start.file()?;
    load_file(start, file.as_deref())
}

fn load_file(start: &Start, file: Option<&Path>) -> Result<LoadedConfig, ConfigError> {
    let stamp = file.and_then(watch::stamp);
    let (env, mut problems) = environment(start, file);
    let start = Start { env, ..start.clone() };
    if let Some(path) = file.filter(|path| path.is_dir()) {
        return Err(ConfigError::Folder { path: path.to_owned() });
    }
    let bytes = file.map_or_else(|| Ok(Vec::new()), read_file)?;
    let (root, faults) = raw::parse(&bytes);
    problems.extend(faults);
    let Some(root) = root else {
        return Err(ConfigError::Wrong(Report::new(file.map(Into::into), problems)));
    };
    let (config, log) = understand(&root, &start);
    let secrets = secrets(&log.secrets, &start.env);
    problems.extend(log.problems);
    if !log.unused.is_empty() {
        let unused: Vec<_> = log.unused.into_iter().collect();
        problems.push(Problem::note(format!("not used by this version: {}", unused.join(", "))));
    }
    if !log.differing.is_empty() {
        let differing: Vec<_> = log.differing.into_iter().collect();
        problems.push(Problem::note(format!("different unit than in DeerFlow: {}", differing.join(", "))));
    }
    if let Some(file) =
        file.filter(|_| config.as_ref().is_some_and(|config| !config.hot.acp_agents.is_empty()))
    {
        // These files name the programs that are started.
        let secrets = file.with_file_name(".env");
        for file in std::iter::once(file).chain(Some(&*secrets).filter(|file| file.exists())) {
            trust::check(file)?;
        }
    }
    let report = Report::new(file.map(Into::into), problems);
    match config {
        Some(config) if !report.has_errors() => Ok(LoadedConfig {
            config,
            report,
            keys: log.keys,
            stamp,
            has_entries: !root.entries().is_empty(),
            secrets,
        }),
        _ => Err(ConfigError::Wrong(report)),
    }
}

/// Returns the secrets that no output may contain, including the values of variables whose names mark secrets.
fn secrets(secrets: &[SecretString], env: &Env) -> Vec<SecretString> {
    const NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
    let is_secret_name = |(name, _): &(String, String)| NAMES.iter().any(|end| name.ends_with(end));
    let password = |secret: &SecretString| {
        let url = Url::parse(secret.expose_secret()).ok()?;
        Some(SecretString::from(url.password()?))
    };
    let of_variables = env.all().filter(is_secret_name).map(|(_, value)| value.into());
    let passwords = secrets.iter().filter_map(password);
    secrets.iter().cloned().chain(passwords).chain(of_variables).collect()
}

/// Adds the `.env` file next to the config file, or in the current folder if there is no config file.
fn environment(start: &Start, file: Option<&Path>) -> (Env, Vec<Problem>) {
    let mut env = start.env.clone();
    let path = file.and_then(Path::parent).unwrap_or(&start.dir).join(".env");
    let problems = match read_file(&path).map(String::from_utf8) {
        Ok(Ok(text)) => env.add_file(&text),
        Ok(Err(_)) => vec![Problem::warning(None, "", "this is not UTF-8 text", "save it as UTF-8")],
        Err(ConfigError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![Problem::warning(None, "", error.to_string(), "make it readable, or remove it")],
    };
    // The report is about the config file, so positions in the `.env` file are written as text.
    let name = |Problem { at, what, help, .. }: Problem| {
        let what = at.map_or_else(|| what.clone(), |at| format!("line {}: {what}", at.line));
        Problem::warning(None, ".env", what, help)
    };
    (env, problems.into_iter().map(name).collect())
}

fn read_file(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    file.take(raw::MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > raw::MAX_BYTES {
        let what = format!("the file is larger than {} KiB", raw::MAX_BYTES / 1024);
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, what)));
    }
    Ok(bytes)
}

fn understand(root: &Node, start: &Start) -> (Option<Config>, reader::Log) {
    let reader = ConfigReader::new(root, &start.env);
    let top = reader.fixed();
    top.note_unused(later::SECTIONS);
    protections::check(&top);
    version(&reader.live());
    let fixed = fixed(&top, start);
    let accounts = channel::accounts(&reader.accounts());
    let provider = fixed.as_ref().map(|fixed| fixed.provider.clone()).unwrap_or_default();
    let guardrails = guardrails::read(&reader.live(), start);
    let hot = read_hot(&reader.live(), &start.env, &provider);
    let mut log = reader.finish();
    unknown::report(root, "", channel::homes, &mut log);
    let accounts = accounts.into_iter().map(|account| account.stamped(&log.keys)).collect();
    (fixed.map(|fixed| Config { fixed, hot: Arc::new(HotConfig { accounts, guardrails, ..hot }) }), log)
}

fn fixed(top: &Section<'_>, start: &Start) -> Option<Fixed> {
    let home = start.home();
    settings! { top =>
        /// Log level: trace, debug, info, warning or error.
        log_level = choice(LOG_LEVELS).or(LogLevel::Info);
    }
    let gateway = gateway::read(top, start);
    let auth = auth::read(top, start, gateway.public_url.clone());
    let database = database::read(top, start);
    let provider = sandbox::provider(top, start);
    let capacity = channel::capacity(top);
    let skills = skills::read(top, start);
    Some(Fixed { home, log_level, gateway, auth, database: database?, capacity, skills, provider })
}

fn read_hot(top: &Section<'_>, env: &Env, provider: &SandboxBackend) -> HotConfig {
    let mut models = model::read(top, env);
    if models.is_empty() {
        models.extend(model::of_environment(top, env));
    }
    limits::token_usage(top);
    let sandbox = sandbox::limits(top, provider);
    let tools = sandbox::tools(top, env);
    let (summarization, titles) = (summarization::read(top, &models), title::read(top, &models));
    let timing = channel::timing(top);
    let memory = memory::read(top, &models, timing.unpaired);
    let summaries = summarization.rules.summaries;
    let skill_rules = skills::rules(top, &models);
    let subagents = subagents::subagents(top, &models, summaries);
    let section = top.section("agents_api").about("The routes of agents in the HTTP API.");
    settings! { section =>
        /// Enables /api/agents.
        agents_api as "enabled" = flag().or(false);
    }
    HotConfig {
        budgets: budgets::rules(top, &models),
        run_tokens: budgets::of_run(top),
        memory,
        skill_rules,
        assistance: assist::read(top, &models),
        mcp_commands: gateway::mcp_commands(top),
        models,
        summarization,
        titles,
        transcription: transcription::read(top),
        tool_groups: sandbox::groups(top),
        agents_api,
        reachable: web::allowed(top),
        approvals: approvals::approvals(top, sandbox.allow_host_bash, &tools),
        tools,
        sandbox,
        guardrails: None,
        results: output::results(top),
        tool_search: output::searched(top),
        subagents,
        acp_agents: acp::agents(top, env),
        loops: loops::rules(top),
        model_calls: limits::model_calls(top),
        progress: progress::rules(top),
        registration: auth::registration(top),
        uploads: limits::uploads(top),
        runs: limits::runs(top),
        scheduler: scheduler::read(top),
        timing,
        accounts: Vec::new(),
        policies: channel::policies(top),
        retention: channel::retention(top),
    }
}

/// Checks the version. A file without one is treated as current.
fn version(top: &Section<'_>) {
    settings! { top =>
        /// Schema version of this file; `pudu config upgrade` upgrades an older file.
        version as "config_version" = number(0..=u32::MAX).or(VERSION);
    }
    if version < VERSION {
        let what = format!("the file has config_version {version}; this pudu uses {VERSION}");
        top.warn("config_version", what, "`pudu config upgrade` raises it without changing any value");
    }
    if version > VERSION {
        let what = format!("the file has config_version {version}; this pudu supports up to {VERSION}");
        top.warn("config_version", what, "newer keys have no effect");
    }
}

#[cfg(test)]
mod tests;
