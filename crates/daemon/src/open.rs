//! First startup phase: finds, locks and reads all resources outside of the process.

use crate::{crash_point, discover, machine::Machine, scope::Scope, skills, store};
use anyhow::{Context, Result};
use pudu_config::{Config, Fixed, HotConfig, LoadedConfig, Start, Watcher, extensions};
use pudu_kit::{clock, home::Home};
use pudu_skills::Skills;
use pudu_store::{Claim, Db};
use std::{io::ErrorKind, path::PathBuf, sync::Arc};
use tokio::net::TcpListener;

/// Resources that a daemon holds until it ends.
pub(crate) struct Opened {
    pub(crate) start: Start,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    pub(crate) fixed: Fixed,
    pub(crate) hot: Arc<HotConfig>,
    pub(crate) watcher: Watcher,
    /// Socket of the HTTP API.
    pub(crate) listener: TcpListener,
    pub(crate) home: Home,
    pub(crate) skills: Skills,
    pub(crate) db: Db,
    pub(crate) claim: Claim,
    pub(crate) machine: Machine,
    /// The default model, and why it was chosen.
    pub(crate) model: String,
}

impl Opened {
    /// Opens all resources. Fails if another process uses the port, the home folder or the database.
    pub(crate) async fn open(start: Start, loaded: LoadedConfig, scope: Scope) -> Result<Self> {
        crash_point::arm(&start);
        let watcher = Watcher::new(start.clone(), &loaded);
        check_extensions(&start, &loaded)?;
        let file = loaded.report.file;
        let Config { fixed, hot } = loaded.config;
        let listener = match scope {
            Scope::Whole => listen(&fixed.gateway.host, fixed.gateway.port).await?,
            Scope::Local => listen("127.0.0.1", 0).await?,
        };
        let home = Home::lock(&fixed.home)?;
        let skills = skills::open(&start, &fixed, file.as_deref())?;
        let (db, (machine, model)) =
            tokio::join!(store::open(&fixed.database), Machine::detect(&fixed.home, &fixed.provider, &hot));
        let db = db?;
        let claim = db.claim().await.context("cannot get exclusive use of the database")?;
        db.abandon_audit_entries(clock::now()).await.context("cannot write to the store")?;
        machine.log_sandbox(&hot);
        if scope == Scope::Whole && hot.models.is_empty() && machine.models.is_empty() {
            discover::tell_none();
        }
        skills::remove_old_versions(&skills);
        for line in skills::unknown(&hot.subagents, &skills.read()) {
            tracing::warn!("unknown skill: {line}");
        }
        Ok(Self { start, file, fixed, hot, watcher, listener, home, skills, db, claim, machine, model })
    }
}

/// Refuses to start with an `extensions_config.json` that has errors, and logs its warnings.
fn check_extensions(start: &Start, loaded: &LoadedConfig) -> Result<()> {
    for report in extensions::check(start, loaded) {
        if report.has_errors() {
            return Err(anyhow::Error::msg(report));
        }
        report.lines().for_each(|(_, line)| tracing::warn!("{line}"));
    }
    Ok(())
}

async fn listen(host: &str, port: u16) -> Result<TcpListener> {
    TcpListener::bind((host, port)).await.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "; if pudu is already running, choose another port with `--bind :PORT`",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("cannot listen on {host}:{port}{hint}"))
    })
}
