//! Second startup phase: creates the parts from the configuration and connects them. Receives and runs nothing yet.

use crate::{
    agent,
    daemon::Daemon,
    machine::Machine,
    open::Opened,
    scope::Scope,
    servers::Extensions,
    services::{ServiceParts, Services, services},
};
use anyhow::{Context, Result};
use pudu_agent::Agent;
use pudu_config::{AuthConfig, GatewayConfig, HotConfig};
use pudu_dispatch::{Dispatcher, bus::InboxItem, connections::Connections};
use pudu_gateway::{self as gateway, GatewayToken};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{net::TcpListener, sync::mpsc::Receiver};
use tokio_util::sync::CancellationToken;

/// A daemon whose parts are connected, and the values needed only to start it.
pub(crate) struct Built {
    pub(crate) daemon: Daemon,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) arrivals: Receiver<InboxItem>,
    /// Socket of the HTTP API.
    pub(crate) listener: TcpListener,
    /// Token that the HTTP API requires.
    pub(crate) token: GatewayToken,
    pub(crate) auth: AuthConfig,
    pub(crate) hot: Arc<HotConfig>,
    pub(crate) model: String,
    /// Path of the gateway's generated token, if one was generated.
    pub(crate) made_token: Option<PathBuf>,
    /// Description of the store.
    pub(crate) store: String,
}

impl Built {
    pub(crate) async fn build(opened: Opened, scope: Scope) -> Result<Self> {
        let Opened {
            start,
            file,
            fixed,
            hot,
            watcher,
            listener,
            mut home,
            skills,
            db,
            claim,
            machine,
            model,
        } = opened;
        let machine = Arc::new(machine);
        let setup = agent::setup(&hot, &machine, Vec::new())?;
        let is_guarded = scope == Scope::Local || !listener.local_addr()?.ip().is_loopback();
        let token = token(&fixed.gateway, is_guarded, &fixed.home, &machine)?;
        let is_made = fixed.gateway.token.is_none() && token.guards_all();
        let made_token = is_made.then(|| fixed.home.join(gateway::token::FILE));
        let agent = Agent::new(db.clone(), machine.folders.clone(), setup, skills);
        agent.settle_left().await.context("cannot finish work left by the previous process")?;
        warn_of_small_budgets(&agent).await;
        let stop = CancellationToken::new();
        let wanted = scope.accounts(&hot);
        let extensions = Arc::new(Extensions::new(start, file, &fixed.home));
        let passing = extensions.clone();
        agent.use_mcp_servers(Arc::new(move |names| passing.pass(names)));
        let parts = ServiceParts { agent, db, servers: extensions.clone() };
        let Services { shared, arrivals, tasks } =
            services(parts, &fixed, &hot, wanted, &fixed.home, &stop).await?;
        if scope == Scope::Whole {
            home.announce(&format!("http://{}", listener.local_addr()?))?;
        }
        let dispatcher = Dispatcher::new(shared.clone());
        let daemon = Daemon {
            _home: home,
            claim: Arc::new(claim.into()),
            dispossessed: CancellationToken::new(),
            lines: Arc::new(Connections::new(shared.clone(), dispatcher.clone(), stop.clone())),
            shared,
            watcher: Arc::new(watcher),
            extensions,
            machine,
            stop,
            tasks,
        };
        let (auth, store) = (fixed.auth, crate::store::describe(&fixed.database.backend));
        Ok(Self { daemon, dispatcher, arrivals, listener, token, auth, hot, model, made_token, store })
    }
}

/// Returns the gateway's token: the operator's, or a generated one. Every request requires it if the operator chose it
/// or `is_guarded` is set.
fn token(gateway: &GatewayConfig, is_guarded: bool, home: &Path, machine: &Machine) -> Result<GatewayToken> {
    let secret = match &gateway.token {
        Some(token) => token.clone(),
        None => gateway::token::kept(home)?,
    };
    let everywhere = is_guarded || gateway.token.is_some();
    Ok(GatewayToken { secret, everywhere, exposed: machine.exposed() })
}

/// Warns about budgets that are too small for any answer.
async fn warn_of_small_budgets(agent: &Agent) {
    // Without a model, no answer could be refused.
    for used in agent.small_budgets().await.unwrap_or_default() {
        tracing::warn!(key = %format!("budgets.{}", used.scope.as_str()), "found too small budget: {used}");
    }
}
