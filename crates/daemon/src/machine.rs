//! Resources of this machine: local models, and sandboxes for commands, provided by the kernel or a container engine.

mod elsewhere;

use crate::discover;
use elsewhere::RemoteSettings;
use pudu_agent::egress::Proxy;
use pudu_base::{Network, SandboxError, SandboxProvider};
use pudu_config::{self as config, HotConfig, ModelConfig, SandboxBackend};
use pudu_containers::{ContainerEngine, DockerEngine, DockerSettings, ExecMethod, GEM, Pool, PoolRules};
use pudu_gateway::Exposed;
use pudu_harness::ModelGuards;
use pudu_kit::program;
use pudu_net as net;
use pudu_sandbox::{Egress, Folders, Jail, LocalSandboxes, Options, Unconfined};
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::OnceCell;

/// How long containers may take to stop when the daemon stops.
const CONTAINER_STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// User and group of commands in containers if the daemon is root and the jail does not choose a user.
const CONTAINER_USER: (u32, u32) = (65_533, 65_533);

/// Facts detected when the daemon starts. They do not change while it runs.
pub struct Machine {
    /// Models to use if none is configured.
    pub models: Vec<ModelConfig>,
    /// Folders of threads.
    pub folders: Folders,
    /// Guards of all model calls, regardless of the configuration.
    pub model_guards: ModelGuards,
    jail: Result<Arc<Jail>, Unconfined>,
    provider: SandboxBackend,
    /// The containers, and the settings that they were created with.
    pool: Mutex<Option<(Recipe, config::SandboxConfig, Pool)>>,
    exposed: Exposed,
}

/// Settings that an engine uses to create containers.
#[derive(PartialEq)]
enum Recipe {
    Docker(Box<DockerSettings>),
    Provisioner(config::ProvisionerConfig, RemoteSettings),
    #[cfg(feature = "kubernetes")]
    Kubernetes(Box<config::KubernetesConfig>, RemoteSettings),
}

impl Machine {
    /// Detects the machine's resources. Also returns a line that states which model is used and why.
    pub async fn detect(home: &Path, provider: &SandboxBackend, hot: &HotConfig) -> (Self, String) {
        let found = async {
            // The first call reads root certificates, which blocks; the other checks wait for the kernel at the same
            // time.
            tokio::task::spawn_blocking(net::tls).await.ok();
            discover::models(hot).await
        };
        let (jail, (models, model)) = tokio::join!(probe(), found);
        let jailed = jail.as_ref().ok().and_then(|jail| jail.owner());
        let owner = owner(provider, jailed, hot.sandbox.allow_host_bash);
        let folders = Folders::new(home.to_owned(), owner);
        let (pool, exposed) = (Mutex::default(), Exposed::default());
        (
            Self {
                models,
                folders,
                model_guards: ModelGuards::default(),
                jail,
                provider: provider.clone(),
                pool,
                exposed,
            },
            model,
        )
    }

    /// Returns the sandboxes for a configuration.
    pub fn sandboxes(&self, hot: &HotConfig) -> Arc<dyn SandboxProvider> {
        // Set this before any command can reach the API.
        if self.exposes(hot) && !self.exposed.is() {
            self.exposed.set();
            tracing::info!("requiring the HTTP API's token, because commands can reach this machine's ports");
        }
        match self.recipe(hot) {
            None => Arc::new(self.local(hot)),
            Some(recipe) => Arc::new(self.containers(recipe, hot)),
        }
    }

    /// Returns the settings for creating containers; `None` if commands run on this machine.
    fn recipe(&self, hot: &HotConfig) -> Option<Recipe> {
        let wanted = RemoteSettings::from_config(&hot.sandbox);
        match &self.provider {
            SandboxBackend::Local => None,
            SandboxBackend::Docker(docker) => Some(Recipe::Docker(Box::new(self.settings(docker, hot)))),
            SandboxBackend::Provisioner(provisioner) => {
                Some(Recipe::Provisioner(provisioner.clone(), wanted))
            }
            #[cfg(feature = "kubernetes")]
            SandboxBackend::Kubernetes(kubernetes) => Some(Recipe::Kubernetes(kubernetes.clone(), wanted)),
        }
    }

    /// Returns the engine that creates containers.
    fn engine(&self, recipe: &Recipe) -> Arc<dyn ContainerEngine> {
        match recipe {
            Recipe::Docker(settings) => Arc::new(DockerEngine::new((**settings).clone())),
            Recipe::Provisioner(provisioner, wanted) => {
                Arc::new(elsewhere::provisioner(provisioner, &self.folders, wanted.clone()))
            }
            #[cfg(feature = "kubernetes")]
            Recipe::Kubernetes(kubernetes, wanted) => {
                Arc::new(elsewhere::kubernetes(kubernetes, &self.folders, wanted.clone()))
            }
        }
    }

    /// Checks that the remote provider of sandboxes answers; `None` without one.
    pub async fn examine(&self, hot: &HotConfig) -> Option<Result<String, SandboxError>> {
        match &self.provider {
            SandboxBackend::Local | SandboxBackend::Docker(_) => None,
            SandboxBackend::Provisioner(provisioner) => {
                let wanted = RemoteSettings::from_config(&hot.sandbox);
                let found = elsewhere::provisioner(provisioner, &self.folders, wanted).examine().await;
                Some(found.map(|count| format!("it responds, accepts the key, and has {count} sandboxes")))
            }
            #[cfg(feature = "kubernetes")]
            SandboxBackend::Kubernetes(kubernetes) => {
                let wanted = RemoteSettings::from_config(&hot.sandbox);
                Some(elsewhere::kubernetes(kubernetes, &self.folders, wanted).version().await)
            }
        }
    }

    fn local(&self, hot: &HotConfig) -> LocalSandboxes {
        let sandbox = &hot.sandbox;
        let proxy = || Arc::new(Proxy::new(sandbox.allowed_domains.clone())) as Arc<dyn Egress>;
        let options = Options {
            host_shell: sandbox.allow_host_bash,
            mounts: sandbox.mounts.clone(),
            environment: sandbox.environment.clone(),
            network: sandbox.network,
            egress: (sandbox.network == Network::Proxy).then(proxy),
            limits: sandbox.limits,
        };
        LocalSandboxes::new(self.folders.clone(), self.jail.as_ref().ok().cloned(), options)
    }

    /// Returns the container pool: the existing one while its settings are unchanged, otherwise a new one that takes
    /// over the existing containers.
    fn containers(&self, recipe: Recipe, hot: &HotConfig) -> Pool {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match pool.take() {
            Some((old, sandbox, made)) if old == recipe && sandbox == hot.sandbox => made,
            // The existing containers are kept, with the new rules or folders.
            Some((old, _, made)) if old == recipe => made.renew(made.engine(), self.places(hot), rules(hot)),
            Some((.., made)) => made.renew(self.engine(&recipe), self.places(hot), rules(hot)),
            None => Pool::new(self.engine(&recipe), self.places(hot), rules(hot)),
        };
        *pool = Some((recipe, hot.sandbox.clone(), made.clone()));
        made
    }

    /// Returns sandboxes that access the files of threads but have no shell.
    fn places(&self, hot: &HotConfig) -> LocalSandboxes {
        let options = Options { mounts: hot.sandbox.mounts.clone(), ..Options::default() };
        LocalSandboxes::new(self.folders.clone(), None, options)
    }

    /// Returns the settings for creating Docker containers.
    pub fn settings(&self, docker: &config::DockerConfig, hot: &HotConfig) -> DockerSettings {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let sandbox = &hot.sandbox;
        DockerSettings {
            host: docker.host.clone(),
            certificates: docker.certificates.clone(),
            image: docker.image.clone(),
            api: docker.api,
            port: docker.port,
            bind: docker.bind.clone(),
            reach: docker.reach.clone(),
            prefix: docker.prefix.clone(),
            environment: sandbox.environment.clone(),
            network: sandbox.network,
            limits: sandbox.limits,
            cpus: sandbox.keep.cpus,
            home: self.folders.home().to_owned(),
            host_home: docker.host_home.clone(),
            owner: self.folders.owner().unwrap_or(own),
        }
    }

    /// Maintains the containers, if any, until the future is dropped.
    pub async fn keep(&self) {
        let pool = self.pool();
        match pool {
            Some(pool) => pool.keep().await,
            None => std::future::pending().await,
        }
    }

    /// Removes the containers.
    pub async fn close(&self) {
        if let Some(pool) = self.pool() {
            pool.close(CONTAINER_STOP_TIMEOUT).await;
        }
    }

    fn pool(&self) -> Option<Pool> {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.as_ref().map(|(.., pool)| pool.clone())
    }

    /// Returns whether commands can reach the gateway, for the gateway's access check.
    pub fn exposed(&self) -> Exposed {
        self.exposed.clone()
    }

    /// Returns whether a configuration's commands can reach this machine's loopback ports.
    fn exposes(&self, hot: &HotConfig) -> bool {
        match (&self.provider, &self.jail) {
            (SandboxBackend::Local, Ok(_)) => hot.sandbox.network == Network::Full,
            (SandboxBackend::Local, Err(_)) => hot.sandbox.allow_host_bash,
            _ => false,
        }
    }

    /// Returns one line about the sandbox of commands.
    pub fn describe_sandbox(&self, hot: &HotConfig) -> String {
        let network = match hot.sandbox.network {
            Network::None => "no network",
            Network::Proxy => "allowed domains only, through a proxy",
            Network::Full => "full network access",
        };
        match (&self.provider, &self.jail) {
            (SandboxBackend::Docker(docker), _) => {
                let by = match docker.api {
                    ExecMethod::Aio => "by its own API",
                    ExecMethod::Exec => "by exec",
                };
                format!("containers of {} {by}, on {}; {network}", docker.image, docker.host)
            }
            (SandboxBackend::Provisioner(provisioner), _) => elsewhere::describe_provisioner(provisioner),
            #[cfg(feature = "kubernetes")]
            (SandboxBackend::Kubernetes(kubernetes), _) => {
                let held = if hot.sandbox.network == Network::None {
                    ", if the cluster enforces network policies"
                } else {
                    ""
                };
                format!("Pods of Kubernetes with {}; {network}{held}", kubernetes.image)
            }
            (SandboxBackend::Local, Ok(jail)) if self.exposes(hot) => {
                format!("confined: {}; {network}, so the HTTP API requires its token", jail.describe())
            }
            (SandboxBackend::Local, Ok(jail)) => format!("confined: {}; {network}", jail.describe()),
            (SandboxBackend::Local, Err(_)) if hot.sandbox.allow_host_bash => {
                "the shell of this machine, unconfined (sandbox.allow_host_bash); the HTTP API requires its \
                 token, but this shell can read the token"
                    .to_owned()
            }
            (SandboxBackend::Local, Err(_)) => {
                "none: this machine cannot confine commands (see `pudu doctor`)".to_owned()
            }
        }
    }

    /// Logs the state of the sandbox, and its missing mounts.
    pub fn log_sandbox(&self, hot: &HotConfig) {
        match (&self.provider, &self.jail, hot.sandbox.allow_host_bash) {
            (SandboxBackend::Local, Ok(jail), _) => {
                tracing::info!(means = jail.describe(), "confining commands")
            }
            (SandboxBackend::Local, Err(Unconfined { why, help }), true) => {
                tracing::warn!(why, help, "running commands UNCONFINED in the shell of this machine");
            }
            (SandboxBackend::Local, Err(Unconfined { why, help }), false) => {
                tracing::warn!(why, help, "disabled the agent's shell: commands cannot be confined here");
            }
            _ => tracing::info!(means = self.describe_sandbox(hot), "running commands in containers"),
        }
        for mount in hot.sandbox.mounts.iter().filter(|mount| !mount.host.is_dir()) {
            let (folder, path) = (mount.host.display(), &mount.agent);
            tracing::warn!(%folder, path, "skipped mount: the folder does not exist");
        }
    }

    /// Returns the jail that confines commands, so that it can be tested.
    pub fn jail(&self) -> &Result<Arc<Jail>, Unconfined> {
        &self.jail
    }

    /// Returns the configured backend of sandboxes.
    pub fn provider(&self) -> &SandboxBackend {
        &self.provider
    }
}

/// Checks whether commands can be confined, with this program as the first process of a sandbox. A successful result is
/// kept for the lifetime of the process.
async fn probe() -> Result<Arc<Jail>, Unconfined> {
    static FOUND: OnceCell<Arc<Jail>> = OnceCell::const_new();
    let found = FOUND.get_or_try_init(|| async {
        match program::path() {
            Ok(own) => Jail::probe_with(own).await.map(Arc::new),
            Err(_) => Jail::probe().await.map(Arc::new),
        }
    });
    found.await.cloned()
}

fn rules(hot: &HotConfig) -> PoolRules {
    let keep = hot.sandbox.keep;
    let network = hot.sandbox.network;
    PoolRules { idle_timeout: keep.idle_timeout, replicas: keep.replicas, network }
}

/// Returns the user and group that own the files of threads; `None` for the daemon's own user. Only root can give files
/// to another user, and commands run as root only in the host's shell. File tools have this user's rights even if no
/// commands run.
fn owner(provider: &SandboxBackend, jailed: Option<(u32, u32)>, host_shell: bool) -> Option<(u32, u32)> {
    let root = rustix::process::geteuid().is_root();
    match provider {
        SandboxBackend::Local => {
            let alone = root && !host_shell && pudu_sandbox::can_change_user();
            jailed.or(alone.then_some(CONTAINER_USER))
        }
        SandboxBackend::Docker(config::DockerConfig { api: ExecMethod::Aio, .. }) => root.then_some(GEM),
        SandboxBackend::Docker(_) => root.then(|| jailed.unwrap_or(CONTAINER_USER)),
        SandboxBackend::Provisioner(_) => root.then_some(GEM),
        #[cfg(feature = "kubernetes")]
        SandboxBackend::Kubernetes(kubernetes) => {
            let user = kubernetes.run_as.map(|user| (user, user));
            root.then(|| user.or(jailed).unwrap_or(CONTAINER_USER))
        }
    }
}
