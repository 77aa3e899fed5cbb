//! The command line.

mod account;
mod agent;
mod audit;
mod chat;
pub(crate) mod config;
mod connect;
mod doctor;
mod explain;
mod health;
mod import;
mod memory;
mod person;
mod remote;
mod run;
mod secret;
mod skill;
mod storage;
mod typed;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};
use pudu_config::{Env, Start};
use pudu_daemon::agent::READ_DOCUMENT;
use pudu_gateway::usage::DAYS;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// A super-agent that lives in your team's chats: one fast daemon.
#[derive(Debug, Parser)]
#[command(name = "pudu", version, about)]
struct Cli {
    /// The configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the HTTP API and the page: HOST:PORT, HOST or :PORT.
    #[arg(long, global = true, value_name = "ADDRESS")]
    bind: Option<String>,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the daemon (what `pudu` alone does).
    Run,
    /// Chat in the terminal.
    Chat(chat::Args),
    /// Check the configuration, or bring its file up to date.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Try what pudu needs to work: configuration, models, each account; say how to mend what does not.
    Doctor {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show what an agent's model is told: middlewares, tools and prompt, with their tokens.
    Explain {
        /// The custom agent; the lead agent if not said.
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The model; the agent's own, or the default, if not said.
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Make a code by which one person can make themselves known to a bot that runs.
    Connect {
        /// The bot: its key under `channels:`.
        account: String,
    },
    /// List what agents did with their sandboxes, and who approved it.
    Audit {
        /// Only what was done in this thread.
        #[arg(long)]
        thread: Option<String>,
        /// How many deeds, the newest.
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// List who spent how much on models, and what is left of their budgets.
    Usage {
        /// So many days, today included.
        #[arg(long, default_value_t = DAYS.0, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS.1)))]
        days: u32,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show and prune what chats leave behind: threads, files, the audit.
    #[command(subcommand)]
    Storage(storage::Verb),
    /// List, export and import what is remembered of users.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// List, show, make and remove custom agents.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// List, switch, install and remove skills, and bring former versions back.
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// Keep, list and delete secrets that skills need.
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Make, list and remove accounts of people who sign in to the HTTP API.
    #[command(subcommand)]
    User(account::UserCommand),
    /// Make, list and revoke tokens by which programs use the HTTP API.
    #[command(subcommand)]
    Token(account::TokenCommand),
    /// Move in from another program.
    #[command(subcommand)]
    Import(import::ImportSource),
    /// List everybody of whom something is stored.
    Users {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Write everything that is stored of one person into an archive.
    Export {
        /// The person: the user's id, an e-mail address, the platform's id, or a name that only one has.
        #[arg(long, value_name = "WHO")]
        user: String,
        /// The archive; `pudu-export.zip` if not said.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Delete everything that is stored of one person. Nobody can bring it back.
    Forget {
        /// The person, as for `pudu export`.
        #[arg(long, value_name = "WHO")]
        user: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Ask a running daemon whether it lives; for health checks.
    Health {
        /// Its health endpoint; that of the daemon in this folder, or where it is configured or told to listen.
        #[arg(long)]
        url: Option<String>,
    },
    /// Print what a shell needs to complete pudu's commands.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
    /// Read a document for another pudu.
    #[command(name = READ_DOCUMENT, hide = true)]
    ReadDocument,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Say whether the configuration can be used, and what is odd about it.
    Check {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Raise the version that the file says it is of; nothing else changes.
    Upgrade,
}

/// Does what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    // Otherwise calls would go past a proxy that is written wrongly.
    let proxies = pudu_client::net::proxy::ProxySettings::from_env();
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
        Some(CliCommand::Config(ConfigVerb::Check { json })) => {
            written(|out| config::check(&start, json, out))
        }
        Some(CliCommand::Config(ConfigVerb::Upgrade)) => written(|out| config::upgrade(&start, out)),
        Some(CliCommand::Doctor { json }) => doctor::doctor(&start, json),
        Some(CliCommand::Explain { agent, model }) => explain::explain(&start, agent, model),
        Some(CliCommand::Connect { account }) => remote::print(connect::connect(&start, &account)),
        Some(CliCommand::Audit { thread, limit, json }) => {
            remote::print(audit::audit(&start, thread.map(Into::into), limit, json))
        }
        Some(CliCommand::Usage { days, json }) => remote::print(usage::usage(&start, days, json)),
        Some(CliCommand::Storage(verb)) => remote::print(storage::storage(&start, &verb)),
        Some(CliCommand::Memory(verb)) => remote::print(memory::memory(&start, &verb)),
        Some(CliCommand::Agent(verb)) => agent::agent(&start, &verb),
        Some(CliCommand::Skill(verb)) => skill::skill(&start, &verb),
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
            say(&script, ExitCode::SUCCESS)
        }
        Some(CliCommand::Man) => written(manual),
        Some(CliCommand::ReadDocument) => pudu_client::documents::serve(pudu_client::sandbox::withdraw),
    }
}

/// Writes the manual page: pudu's own, and below it what each command takes.
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

/// Writes to standard output what a command has to say, and ends as it does.
fn written(command: impl FnOnce(&mut dyn Write) -> io::Result<config::ConfigVerdict>) -> ExitCode {
    let mut words = Vec::new();
    match command(&mut words) {
        Ok(verdict) => say(&words, verdict.into()),
        Err(error) => run::fail(&error.into()),
    }
}

/// Writes to standard output and ends with this code. A reader that has gone wants no more, which is no failure.
fn say(words: impl AsRef<[u8]>, code: ExitCode) -> ExitCode {
    let mut out = io::stdout();
    match out.write_all(words.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            run::fail(&anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => code,
    }
}
