//! The command line.

mod chat;
pub(crate) mod config;
mod connect;
mod doctor;
mod health;
mod run;

use crate::config::{Env, Start};
use clap::{Parser, Subcommand};
use std::{io, path::PathBuf, process::ExitCode};

/// A super-agent that lives in your team's chats: one fast daemon.
#[derive(Debug, Parser)]
#[command(name = "pudu", version, about)]
struct Cli {
    /// The configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the HTTP API and the page listen: HOST:PORT, HOST or :PORT.
    #[arg(long, global = true, value_name = "ADDRESS")]
    bind: Option<String>,
    #[command(subcommand)]
    command: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the daemon (what `pudu` alone does).
    Run,
    /// Chat in the terminal.
    Chat(chat::Args),
    /// Check the configuration, or bring its file up to date.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Try what pudu needs to work: configuration, models, each account; say how to mend what does not.
    Doctor,
    /// Make a code by which one person can make themselves known to a bot that runs.
    Connect {
        /// The bot: its key under `channels:`.
        account: String,
    },
    /// Ask a running daemon whether it lives; for health checks.
    Health {
        /// Its health endpoint; that of the daemon in this folder, or at the usual place.
        #[arg(long)]
        url: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Say whether the configuration can be used, and what is odd about it.
    Check,
    /// Add keys that are new, as comments; no value, comment or order changes.
    Upgrade,
}

/// Does what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let start = Start { config: cli.config, bind: cli.bind, env: Env::process(), dir: PathBuf::new() };
    match cli.command {
        None | Some(Verb::Run) => run::daemon(start),
        Some(Verb::Chat(args)) => chat::chat(start, args),
        Some(Verb::Config(ConfigVerb::Check)) => written(config::check(&start, &mut io::stdout())),
        Some(Verb::Config(ConfigVerb::Upgrade)) => written(config::upgrade(&start, &mut io::stdout())),
        Some(Verb::Doctor) => doctor::doctor(&start),
        Some(Verb::Connect { account }) => connect::connect(&start, &account),
        Some(Verb::Health { url }) => health::ask(url, &start),
    }
}

fn written(verdict: io::Result<config::Verdict>) -> ExitCode {
    match verdict {
        Ok(verdict) => verdict.into(),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
