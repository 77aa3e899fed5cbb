//! Parses the command line and runs its command.

mod account;
mod acp;
mod agent;
mod audit;
mod chat;
pub(crate) mod config;
mod connect;
mod doctor;
mod explain;
mod health;
mod import;
mod mcp;
mod memory;
mod person;
mod place;
mod remote;
mod run;
mod schedule;
mod secret;
mod skill;
mod storage;
mod table;
mod typed;
mod usage;

use clap::{CommandFactory, Parser, Subcommand, builder::RangedI64ValueParser};
use pudu_config::{Env, Start};
use pudu_daemon::agent::READ_DOCUMENT;
use pudu_gateway::{AUDIT_ENTRIES, DAYS};
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// A super-agent that lives in your team's chats: one fast daemon.
#[derive(Debug, Parser)]
#[command(name = "pudu", version, about)]
struct Cli {
    /// Configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the HTTP API and the web page: HOST:PORT, HOST or :PORT.
    #[arg(long, global = true, value_name = "ADDRESS")]
    bind: Option<String>,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the daemon (the default command).
    Run,
    /// Chat in the terminal.
    Chat(chat::Args),
    /// Serve an editor as an agent, by the Agent Client Protocol over standard input and output.
    Acp(acp::Args),
    /// Check or upgrade the configuration file.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Check the configuration, the models and each bot, and suggest fixes.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the request that an agent sends to its model: middlewares, tools and prompt, with their tokens.
    Explain {
        /// Custom agent (default: the lead agent).
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Model (default: the agent's model).
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Create a code that admits one user to a running bot.
    Connect {
        /// Name of the bot: its key under `channels:`.
        account: String,
    },
    /// List sandbox actions of agents and their approvals.
    Audit {
        /// Only list the entries of this thread.
        #[arg(long)]
        thread: Option<String>,
        /// Maximum number of entries; the newest are listed.
        #[arg(long, default_value_t = AUDIT_ENTRIES.0, value_parser = up_to(AUDIT_ENTRIES.1))]
        limit: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List model spending and the remaining budgets.
    Usage {
        /// Number of days, including today.
        #[arg(long, default_value_t = DAYS.0, value_parser = up_to(DAYS.1))]
        days: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show and prune stored data: threads, files and the audit.
    #[command(subcommand)]
    Storage(storage::Verb),
    /// List, add, change, start and delete scheduled tasks.
    #[command(subcommand)]
    Schedule(schedule::ScheduleVerb),
    /// List, export and import the memory of users.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// List, show, create and remove custom agents.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// List, enable, disable, install, remove and roll back skills.
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// List and test MCP servers.
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Set, list and delete the secrets that skills need.
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Create, list and remove login accounts for the HTTP API.
    #[command(subcommand)]
    User(account::UserCommand),
    /// Create, list and revoke API tokens for programs.
    #[command(subcommand)]
    Token(account::TokenCommand),
    /// Import data from another program.
    #[command(subcommand)]
    Import(import::ImportSource),
    /// List users with stored data.
    Users {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Export all stored data of one user as a ZIP archive.
    Export {
        /// User: a user ID, an e-mail address, a platform's ID, or a name that only one user has.
        #[arg(long, value_name = "WHO")]
        user: String,
        /// Archive to write (default: pudu-export.zip).
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Delete all stored data of one user. This cannot be undone.
    Forget {
        /// User, as for `pudu export`.
        #[arg(long, value_name = "WHO")]
        user: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Check whether the daemon is running; for health checks.
    Health {
        /// URL of the health endpoint (default: the one of the daemon in this folder, or else the configured address).
        #[arg(long)]
        url: Option<String>,
    },
    /// Print a shell completion script.
    Completions {
        /// Shell to print the script for.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
    /// Convert a document for another pudu process.
    #[command(name = READ_DOCUMENT, hide = true)]
    ReadDocument,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Check the configuration and report errors and warnings.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Raise the file's `config_version` and change nothing else.
    Upgrade,
    /// Print the JSON schema of the file, for editors.
    Schema,
}

/// Returns a parser for a number from 1 to `most`.
fn up_to(most: u32) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(most))
}

/// Runs the command given on the command line.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    // Otherwise calls would bypass a proxy with an invalid URL.
    let proxies = pudu_net::proxy::ProxySettings::from_env();
    if let Err(fault) = proxies.check() {
        return run::fail(&fault.into());
    }
    for entry in proxies.useless_exceptions() {
        // An entry with a scheme may be a URL with a password.
        let shown = entry.rsplit_once('@').map_or(entry, |(_, place)| place);
        eprintln!(
            "warning: NO_PROXY: `{shown}` matches no host: write hosts without a scheme, separated by commas"
        );
    }
    let start = Start { config: cli.config, bind: cli.bind, env: Env::process(), dir: PathBuf::new() };
    match cli.command {
        None | Some(CliCommand::Run) => run::daemon(start),
        Some(CliCommand::Chat(args)) => chat::chat(start, args),
        Some(CliCommand::Acp(args)) => acp::acp(start, args),
        Some(CliCommand::Config(ConfigVerb::Check { json })) => {
            written(|out| config::check(&start, json, out))
        }
        Some(CliCommand::Config(ConfigVerb::Schema)) => written(config::schema),
        Some(CliCommand::Config(ConfigVerb::Upgrade)) => written(|out| config::upgrade(&start, out)),
        Some(CliCommand::Doctor { json }) => doctor::doctor(&start, json),
        Some(CliCommand::Explain { agent, model }) => explain::explain(&start, agent, model),
        Some(CliCommand::Connect { account }) => remote::print(connect::connect(&start, &account)),
        Some(CliCommand::Audit { thread, limit, json }) => {
            remote::print(audit::audit(&start, thread.as_deref(), limit, json))
        }
        Some(CliCommand::Usage { days, json }) => remote::print(usage::usage(&start, days, json)),
        Some(CliCommand::Storage(verb)) => remote::print(storage::storage(&start, &verb)),
        Some(CliCommand::Schedule(verb)) => remote::print(schedule::schedule(&start, &verb)),
        Some(CliCommand::Memory(verb)) => remote::print(memory::memory(&start, &verb)),
        Some(CliCommand::Agent(verb)) => agent::agent(&start, &verb),
        Some(CliCommand::Skill(verb)) => skill::skill(&start, &verb),
        Some(CliCommand::Mcp(verb)) => remote::print(mcp::mcp(&start, &verb)),
        Some(CliCommand::Secret(verb)) => secret::secret(&start, &verb),
        Some(CliCommand::User(verb)) => remote::print(account::user(&start, &verb)),
        Some(CliCommand::Token(verb)) => remote::print(account::token(&start, &verb)),
        Some(CliCommand::Import(source)) => remote::print(import::import(&start, &source)),
        Some(CliCommand::Users { json }) => remote::print(person::users(&start, json)),
        Some(CliCommand::Export { user, out }) => {
            remote::print(person::export(&start, &user, out.as_deref()))
        }
        Some(CliCommand::Forget { user, yes }) => remote::print(person::forget(&start, &user, yes)),
        Some(CliCommand::Health { url }) => health::ask(url, &start),
        Some(CliCommand::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pudu", &mut script);
            print_output(&script, ExitCode::SUCCESS)
        }
        Some(CliCommand::Man) => written(manual),
        Some(CliCommand::ReadDocument) => pudu_documents::serve(pudu_sandbox::withdraw),
    }
}

/// Writes the manual page: the page of pudu, followed by a section for each command.
fn manual(out: &mut dyn Write) -> io::Result<config::ConfigVerdict> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let page = clap_mangen::Man::new(command.clone()).render(out).and_then(|()| {
        command.get_subcommands().filter(|verb| !verb.is_hide_set()).try_for_each(|verb| {
            let name = format!("pudu {}", verb.get_name());
            writeln!(out, ".SH \"{}\"", name.to_uppercase())?;
            let man = clap_mangen::Man::new(verb.clone().bin_name(name));
            man.render_synopsis_section(out)?;
            man.render_description_section(out)?;
            man.render_options_section(out)?;
            if verb.has_subcommands() { man.render_subcommands_section(out) } else { Ok(()) }
        })
    });
    page.map(|()| config::ConfigVerdict::Fine)
}

/// Writes a command's output to standard output and returns its exit code.
fn written(command: impl FnOnce(&mut dyn Write) -> io::Result<config::ConfigVerdict>) -> ExitCode {
    let mut words = Vec::new();
    match command(&mut words) {
        Ok(verdict) => print_output(&words, verdict.into()),
        Err(error) => run::fail(&error.into()),
    }
}

/// Writes to standard output and returns the exit code. A closed pipe is not a failure.
fn print_output(words: impl AsRef<[u8]>, code: ExitCode) -> ExitCode {
    let mut out = io::stdout();
    match out.write_all(words.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            run::fail(&anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => code,
    }
}
