//! `pudu secret`: secrets for the skills of a user. Values are read from standard input and never printed.
//!
//! It works on files and needs no daemon; in a running daemon, the change takes effect with the next run.

use super::{
    person::{self, Belonging},
    print_output, remote, run,
};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use pudu_agent::SecretStore;
use pudu_base::UserId;
use pudu_config::Start;
use std::{
    io::{self, Read},
    process::ExitCode,
};

/// Maximum size of a secret read from standard input, in bytes.
const MAX_INPUT_BYTES: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Set a secret to the value on standard input, without its last line break.
    Set {
        /// Name of the secret: the environment variable that commands read.
        name: String,
        /// User that owns the secret, as for `pudu export`; `default` is the local user of the web page and the
        /// terminal.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
    /// List the names of a user's secrets.
    List {
        /// User, as for `pudu export`.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
    /// Delete a secret.
    Delete {
        /// Name of the secret.
        name: String,
        /// User, as for `pudu export`.
        #[arg(long, value_name = "WHO", default_value = "default")]
        user: String,
    },
}

/// Runs `pudu secret`.
pub(super) fn secret(start: &Start, verb: &SecretCommand) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let (SecretCommand::Set { user, .. } | SecretCommand::List { user } | SecretCommand::Delete { user, .. }) =
        verb;
    let store = SecretStore::new(loaded.config.fixed.home.join("users"));
    let user = remote::wait(person::named(start, &loaded, user, Belonging::Secrets));
    match user.and_then(|user| execute(&store, &user, verb)) {
        Ok(words) => print_output(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

fn execute(store: &SecretStore, user: &UserId, verb: &SecretCommand) -> Result<String> {
    Ok(match verb {
        SecretCommand::Set { name, .. } => {
            let mut value = String::new();
            io::stdin()
                .take(MAX_INPUT_BYTES)
                .read_to_string(&mut value)
                .context("cannot read standard input")?;
            let value = value.strip_suffix('\n').unwrap_or(&value);
            store.set(user, name, value.strip_suffix('\r').unwrap_or(value))?;
            format!("Stored {name}.\n")
        }
        SecretCommand::List { .. } => match store.names(user)?.as_slice() {
            [] => "There are no secrets.\n".to_owned(),
            names => names.iter().map(|name| format!("{name}\n")).collect(),
        },
        SecretCommand::Delete { name, .. } => match store.delete(user, name)? {
            true => format!("Deleted {name}.\n"),
            false => bail!("there is no secret `{name}`"),
        },
    })
}
