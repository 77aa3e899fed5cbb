//! From an account in the configuration to its channel: one arm a platform.

use crate::{config, dispatch::command};
use anyhow::{Context, Result};
use pudu_channels::{Channel, telegram};
use std::sync::Arc;

/// Makes an account's channel. Nothing is sent before it listens or replies.
pub(crate) fn channel(account: &config::Account) -> Result<Arc<dyn Channel>> {
    let name = &account.name;
    let channel: Result<Arc<dyn Channel>, _> = match &account.platform {
        config::Platform::Telegram(config) => {
            telegram::Telegram::new(telegram(name, config)).map(|channel| Arc::new(channel) as _)
        }
    };
    channel.with_context(|| format!("channels.{name}"))
}

/// The commands for a platform's own menu: names without the slash, and what they do.
fn commands() -> Vec<(String, String)> {
    command::TABLE.iter().map(|row| (row.name.to_owned(), row.help.to_owned())).collect()
}

fn telegram(name: &str, config: &config::Telegram) -> telegram::Config {
    let mode = match &config.transport {
        config::Transport::Polling => telegram::Mode::Polling,
        config::Transport::Webhook { url, secret_token } => {
            telegram::Mode::Webhook { url: url.clone(), secret_token: secret_token.clone() }
        }
    };
    telegram::Config {
        account: name.to_owned(),
        token: config.token.clone(),
        api_url: config.api_url.clone(),
        mode,
        require_mention: config.require_mention,
        commands: commands(),
    }
}
