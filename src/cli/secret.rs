//! `pudu secret`: secrets that skills of a user need. Values come from standard input and are never printed.
//!
//! It works on the disk and needs no daemon; one that runs sees the change with its next run.

use super::{
    person::{self, Belonging},
    remote, run, say,
};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use pudu_client::{SecretStore, base::UserId};
use pudu_config::Start;
use std::{
    io::{self, Read},
    process::ExitCode,
};

/// Maximum length of what is read, in bytes.
const MAX_INPUT_BYTES: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Keep a secret that comes by standard input, whose last line break is no part of it.
    Set {
        /// Its name, which is that of the variable that commands find it in.
        name: String,
        /// The person whose it is, as for `pudu export`; `default` is the page and the terminal.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
    /// List the names of a person's secrets.
    List {
        /// The person.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
    /// Delete a secret.
    Delete {
        /// Its name.
        name: String,
        /// The person.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
}

/// Does what is asked for and says it.
pub(super) fn secret(start: &Start, verb: &SecretCommand) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let (SecretCommand::Set { user, .. } | SecretCommand::List { user } | SecretCommand::Delete { user, .. }) =
        verb;
    let store = SecretStore::new(loaded.config.fixed.home.join("users"));
    let user = remote::wait(person::named(start, &loaded, user, Belonging::Secrets));
    match user.and_then(|user| act(&store, &user, verb)) {
        Ok(words) => say(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

fn act(store: &SecretStore, user: &UserId, verb: &SecretCommand) -> Result<String> {
    Ok(match verb {
        SecretCommand::Set { name, .. } => {
            let mut value = String::new();
            io::stdin()
                .take(MAX_INPUT_BYTES)
                .read_to_string(&mut value)
                .context("cannot read standard input")?;
            let value = value.strip_suffix('\n').unwrap_or(&value);
            store.set(user, name, value.strip_suffix('\r').unwrap_or(value))?;
            format!("{name} is kept\n")
        }
        SecretCommand::List { .. } => store.names(user)?.iter().map(|name| format!("{name}\n")).collect(),
        SecretCommand::Delete { name, .. } => match store.delete(user, name)? {
            true => format!("{name} is deleted\n"),
            false => bail!("there is no secret `{name}`"),
        },
    })
}
