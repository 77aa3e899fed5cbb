//! The daemon of commands that talk to an agent: a running one, or one in this process.

use super::{chat::api::Api, remote, run};
use anyhow::{Context, Result, bail};
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::{Daemon, Scope, logging};
use pudu_gateway::token;
use pudu_kit::home;
use pudu_texts::Language;
use secrecy::SecretString;
use std::{process::ExitCode, time::Duration};

/// Timeout for a daemon on this machine to answer; `REMOTE_TIMEOUT` applies to other machines.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(500);
const REMOTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The daemon named on the command line.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DaemonPlace {
    /// URL of the daemon (default: the configured address, or else a daemon in this process).
    #[arg(long)]
    url: Option<String>,
    /// Token of the daemon (default: the configured one).
    #[arg(long, env = "PUDU_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// A running daemon.
pub(super) enum RunningDaemon<'c> {
    /// A daemon that answers.
    At {
        /// Its URL.
        url: String,
        /// Its API.
        api: Api,
    },
    /// None answers; one with this configuration may run in this process.
    None(&'c LoadedConfig),
}

impl DaemonPlace {
    /// Loads the configuration, unless a daemon is named.
    pub(super) fn load(&self, start: &Start) -> Result<Option<LoadedConfig>, ExitCode> {
        self.url.is_none().then(|| run::load(start)).transpose()
    }

    /// Finds the named daemon, or else the one of the configuration, which is loaded unless a daemon is named.
    pub(super) async fn running<'c>(
        self,
        start: &Start,
        loaded: Option<&'c LoadedConfig>,
    ) -> Result<RunningDaemon<'c>> {
        let language = person_language(start);
        let given = self.token.map(SecretString::from);
        let Some(loaded) = loaded else {
            let url = self.url.unwrap_or_default();
            remote::address(&url)?;
            let api = Api::new(&url, given, language)?;
            if !api.answers(REMOTE_TIMEOUT).await {
                bail!("no pudu answers at {url}");
            }
            return Ok(RunningDaemon::At { url, api });
        };
        let fixed = &loaded.config.fixed;
        if let Some(url) = home::running_url(&fixed.home).or_else(|| fixed.gateway.url()) {
            let token = given.or_else(|| fixed.gateway.token.clone()).or_else(|| token::found(&fixed.home));
            let api = Api::new(&url, token, language)?;
            if api.answers(LOCAL_TIMEOUT).await {
                return Ok(RunningDaemon::At { url, api });
            }
        }
        Ok(RunningDaemon::None(loaded))
    }
}

/// A daemon in this process, without platforms.
pub(super) struct OwnDaemon {
    pub(super) daemon: Daemon,
    /// Its API.
    pub(super) api: Api,
    /// Description of its model.
    pub(super) model: String,
}

impl OwnDaemon {
    /// Starts it. Its log goes to a file in the home folder, because standard output and error have another use.
    pub(super) async fn start(start: Start, loaded: LoadedConfig, log: &str) -> Result<Self> {
        home::create(&start.home())?;
        let log = start.home().join(log);
        logging::start_in_file(&loaded.config, start.env.get("RUST_LOG"), &log)
            .with_context(|| format!("cannot write the log {}", log.display()))?;
        let (language, home) = (person_language(&start), loaded.config.fixed.home.clone());
        let chosen = loaded.config.fixed.gateway.token.clone();
        let (daemon, greeting) = Daemon::start(start, loaded, Scope::Local).await?;
        let token = chosen.or_else(|| token::found(&home));
        let api = Api::new(&format!("http://{}", greeting.address), token, language)?;
        Ok(Self { daemon, api, model: greeting.model })
    }
}

/// Returns the language of the terminal, if it has a catalogue.
fn person_language(start: &Start) -> Option<Language> {
    let (_, locale) = start.env.first(&["LC_ALL", "LC_MESSAGES", "LANG"])?;
    Language::of_person(locale)
}
