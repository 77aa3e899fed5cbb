//! What this machine has to offer: models that answer on it, and what its kernel does to confine commands.

use crate::{
    config::{Live, ModelConfig},
    discover,
};
use pudu_client::{
    base::{Network, SandboxProvider, Shell},
    egress::Proxy,
    net,
    sandbox::{Egress, Folders, Jail, Local, Mount, Options, Shelf, Unconfined},
    skills::Skills,
};
use std::{path::Path, sync::Arc};

/// What was found when the daemon started. It does not change while it runs.
pub(crate) struct Machine {
    /// Models, for when none is configured.
    pub(crate) models: Vec<ModelConfig>,
    /// Where threads have their folders.
    pub(crate) folders: Folders,
    jail: Result<Arc<Jail>, Unconfined>,
    shelf: Arc<Skillshelf>,
}

/// The skills that are on, as sandboxes show them.
struct Skillshelf(Skills);

impl Shelf for Skillshelf {
    fn mounts(&self) -> Vec<Mount> {
        let mount = |(agent, host): (&str, &Path)| Mount {
            host: host.to_owned(),
            agent: agent.to_owned(),
            read_only: true,
        };
        self.0.read().folders().map(mount).collect()
    }
}

impl Machine {
    /// Looks around; also returns which model answers, and why that one.
    pub(crate) async fn look(home: &Path, live: &Live, skills: Skills) -> (Self, String) {
        let found = async {
            // Its first call reads root certificates: on a thread of its own, while the others wait for the kernel.
            tokio::task::spawn_blocking(net::tls).await.ok();
            discover::models(live).await
        };
        let (jail, (models, model)) = tokio::join!(Jail::probe(), found);
        let jail = jail.map(Arc::new);
        let folders = Folders::new(home.to_owned(), jail.as_ref().ok().and_then(|jail| jail.owner()));
        (Self { models, folders, jail, shelf: Arc::new(Skillshelf(skills)) }, model)
    }

    /// Returns the sandboxes that a configuration asks for.
    pub(crate) fn sandboxes(&self, live: &Live) -> Local {
        let sandbox = &live.sandbox;
        let proxy = || Arc::new(Proxy::new(sandbox.allowed_domains.clone())) as Arc<dyn Egress>;
        let options = Options {
            host_shell: sandbox.allow_host_bash,
            mounts: sandbox.mounts.clone(),
            shelf: Some(self.shelf.clone()),
            environment: sandbox.environment.clone(),
            network: sandbox.network,
            egress: (sandbox.network == Network::Proxy).then(proxy),
            limits: sandbox.limits,
        };
        Local::new(self.folders.clone(), self.jail.as_ref().ok().cloned(), options)
    }

    /// Says in one line what commands run in.
    pub(crate) fn words(&self, live: &Live) -> String {
        match (self.sandboxes(live).shell(), &self.jail) {
            (Some(Shell::Confined(network)), Ok(jail)) => {
                let network = match network {
                    Network::None => "no network",
                    Network::Proxy => "some domains by a proxy",
                    Network::Full => "the whole network",
                };
                format!("confined: {}; {network}", jail.words())
            }
            (Some(_), _) => "that of this machine, with nothing between (sandbox.allow_host_bash)".to_owned(),
            (None, _) => "none: this machine cannot confine commands (pudu doctor says more)".to_owned(),
        }
    }

    /// Says in the log what is not as it should be.
    pub(crate) fn tell(&self, live: &Live) {
        match (&self.jail, live.sandbox.allow_host_bash) {
            (Ok(jail), _) => tracing::info!(means = jail.words(), "commands are confined"),
            (Err(Unconfined { why, mend }), true) => {
                tracing::warn!(why, mend, "commands are NOT confined: they run in the shell of this machine");
            }
            (Err(Unconfined { why, mend }), false) => {
                tracing::warn!(why, mend, "commands cannot be confined here, so the agent has no shell");
            }
        }
        for mount in live.sandbox.mounts.iter().filter(|mount| !mount.host.is_dir()) {
            let (folder, path) = (mount.host.display(), &mount.agent);
            tracing::warn!(%folder, path, "a mount of the sandbox is left out: there is no such folder");
        }
    }

    /// Returns what confines commands, for whoever wants to try it.
    pub(crate) fn jail(&self) -> &Result<Arc<Jail>, Unconfined> {
        &self.jail
    }
}
