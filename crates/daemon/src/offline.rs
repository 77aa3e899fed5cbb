//! Serves the HTTP API inside a command when no daemon is running: the same routes on the same store, without listener,
//! platforms, MCP servers, recovery and housekeeping.

use crate::{
    agent, crash_point, logging,
    servers::Extensions,
    services::{ServiceParts, Services, services},
    store,
};
use anyhow::{Context, Result, bail};
use pudu_agent::Agent;
use pudu_config::{AuthConfig, Backend, Config, Database, LoadedConfig, Start, Watcher};
use pudu_dispatch::{Dispatcher, Shared, connections::Connections};
use pudu_gateway::{self as gateway, AnsweringProcess, Exposed, GatewayState, GatewayToken, SignIn};
use pudu_kit::home::{self, Home};
use pudu_net::reqwest::{Body, Method, Response};
use pudu_sandbox::Folders;
use pudu_skills::Skills;
use pudu_store::Claim;
use serde_json::Value;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tracing::{Dispatch, instrument::WithSubscriber};

/// Error if another process uses the database.
const CLAIMED: &str = "cannot get exclusive use of the database";

/// How a command uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// Reads while other processes may use the store, and takes no lock. A missing store is read as empty.
    Read,
    /// Has exclusive access to the home folder and the database. A missing store is created.
    Write,
    /// Like `Write`, for data that includes users' files, which are in the daemon's home folder.
    WriteFiles,
}

/// The API of a home folder without a daemon.
pub struct OfflineApi {
    gateway: GatewayState,
    shared: Arc<Shared>,
    stop: CancellationToken,
    log: Dispatch,
    _home: Option<Home>,
    _claim: Option<Claim>,
}

impl OfflineApi {
    /// Opens the store and creates the routes.
    ///
    /// # Errors
    /// When the store cannot be opened, or another process has a lock that [`StoreAccess::Write`] needs.
    pub async fn open(start: &Start, loaded: &LoadedConfig, access: StoreAccess) -> Result<Self> {
        let Config { fixed, hot } = &loaded.config;
        let (is_read, backend) = (access == StoreAccess::Read, &fixed.database.backend);
        let is_server = matches!(backend, Backend::Postgres { .. });
        if access == StoreAccess::WriteFiles && is_server && !fixed.home.join("users").exists() {
            bail!("{} has no user data; run this in the daemon's folder", fixed.home.display());
        }
        let is_shared = is_read && (is_server || home::is_taken(&fixed.home));
        let process = if is_shared { AnsweringProcess::Reader } else { AnsweringProcess::Command };
        crash_point::arm(start);
        let home = if is_read { None } else { Some(Home::lock(&fixed.home)?) };
        let is_empty = is_read && !store::has_store(backend)?;
        let backend = if is_empty { Backend::Memory } else { backend.clone() };
        let db = store::open(&Database { backend }).await?;
        let claim = if is_read { None } else { Some(db.claim().await.context(CLAIMED)?) };
        let folders = Folders::new(fixed.home.clone(), None);
        let setup = agent::setup_without_runs(hot, &folders);
        let agent = Agent::new(db.clone(), folders, setup, Skills::none());
        // Links, sessions and tokens of this process are not used after it ends.
        let keys = TempDir::new().context("cannot create a temporary folder")?;
        let stop = CancellationToken::new();
        let servers = Arc::new(Extensions::new(start.clone(), loaded.report.file.clone(), &fixed.home));
        let parts = ServiceParts { agent, db, servers };
        let Services { shared, .. } = services(parts, fixed, hot, &[], keys.path(), &stop).await?;
        let connections = Connections::new(shared.clone(), Dispatcher::new(shared.clone()), stop.clone());
        let secret = gateway::token::fresh()?;
        let auth = AuthConfig { jwt_secret: Some(secret.clone()), ..fixed.auth.clone() };
        let gateway = GatewayState::new(
            shared.clone(),
            Arc::new(connections),
            Arc::new(Watcher::new(start.clone(), loaded)),
            process,
            GatewayToken { secret, everywhere: true, exposed: Exposed::default() },
            SignIn::open(&auth, &fixed.home)?,
            stop.clone(),
        );
        Ok(Self { gateway, shared, stop, log: logging::errors(&loaded.config), _home: home, _claim: claim })
    }

    /// Answers a request with the operator's rights. `target` is the path with its query.
    ///
    /// # Errors
    /// When the target is invalid.
    pub async fn answer(&self, method: Method, target: &str, body: Option<&Value>) -> Result<Response> {
        let answer = self.gateway.answer(method, target, body).with_subscriber(self.log.clone()).await?;
        Ok(answer.map(|body| Body::wrap_stream(body.into_data_stream())).into())
    }

    /// Closes the store.
    pub async fn close(self) {
        self.stop.cancel();
        self.shared.db.close().await;
    }
}
