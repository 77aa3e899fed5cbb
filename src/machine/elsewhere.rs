//! Sandboxes that are not on this machine: one pool for as long as the daemon runs, made anew where the configuration
//! wants something else of what is in them.

#[cfg(feature = "kubernetes")]
use crate::config::{Home, Kubernetes};
use crate::config::{Keeping, Live, Maker, Place, Provisioner, Sandbox};
use pudu_client::{
    base::{Network, SandboxError},
    containers::{self, Engine, Pool, Rules},
    sandbox::{Folders, Limits, Local, Mount, Options, Shelf},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Whom commands run as where pudu is root: the same that confined commands on this machine have.
const NOBODY: u32 = 65533;

/// Sandboxes somewhere else.
pub(super) struct Elsewhere {
    keeping: Keeping,
    maker: Maker,
    folders: Folders,
    shelf: Arc<dyn Shelf>,
    now: Mutex<Option<(Wanted, Pool)>>,
    changed: Notify,
}

/// What of the configuration sandboxes are made of; where it changes, so do they.
#[derive(Clone, PartialEq)]
struct Wanted {
    network: Network,
    environment: Vec<(String, String)>,
    mounts: Vec<Mount>,
    limits: Limits,
}

/// Returns whom the files of threads belong to where commands run elsewhere and the daemon may give files away.
pub(super) fn owner(place: &Place) -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let Place::Elsewhere(_, maker) = place else { return None };
    match maker {
        Maker::Provisioner(_) => Some(containers::GEM),
        #[cfg(feature = "kubernetes")]
        Maker::Kubernetes(kubernetes) => {
            let user = kubernetes.run_as.unwrap_or(NOBODY);
            Some((user, user))
        }
    }
}

impl Elsewhere {
    /// Returns what a configuration asks for; `None` where commands run here.
    pub(super) fn new(place: &Place, folders: &Folders, shelf: Arc<dyn Shelf>) -> Option<Self> {
        let Place::Elsewhere(keeping, maker) = place.clone() else { return None };
        let (now, changed) = (Mutex::default(), Notify::new());
        Some(Self { keeping, maker, folders: folders.clone(), shelf, now, changed })
    }

    /// Returns the pool as the configuration wants it.
    pub(super) fn pool(&self, live: &Live) -> Pool {
        let wanted = self.wanted(&live.sandbox);
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((had, pool)) = &*now
            && *had == wanted
        {
            return pool.clone();
        }
        let (engine, rules) = (self.engine(&wanted), self.rules(&wanted));
        let options =
            Options { mounts: wanted.mounts.clone(), shelf: Some(self.shelf.clone()), ..Options::default() };
        let places = Local::new(self.folders.clone(), None, options);
        let pool = match now.take() {
            Some((_, pool)) => pool.renew(engine, places, rules),
            None => Pool::new(engine, places, rules),
        };
        *now = Some((wanted, pool.clone()));
        self.changed.notify_one();
        pool
    }

    /// Looks after the pool until the future is dropped.
    pub(super) async fn keep(&self) {
        loop {
            let changed = self.changed.notified();
            match self.current() {
                Some(pool) => tokio::select! { () = pool.keep() => {}, () = changed => {} },
                None => changed.await,
            }
        }
    }

    /// Takes all sandboxes away, within a time.
    pub(super) async fn close(&self, patience: Duration) {
        if let Some(pool) = self.current() {
            pool.close(patience).await;
        }
    }

    /// Says in a few words where commands run.
    pub(super) fn words(&self, live: &Live) -> String {
        match &self.maker {
            Maker::Provisioner(Provisioner { url, shared, .. }) => {
                let files = if *shared { "folders are shared" } else { "files are carried" };
                let host = url.host_str().unwrap_or_default();
                let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
                format!("sandboxes of the provisioner at {host}{port}; {files}; the network is its own")
            }
            #[cfg(feature = "kubernetes")]
            Maker::Kubernetes(kubernetes) => {
                let network = match live.sandbox.network {
                    Network::Full => "the cluster's network",
                    _ => "no network, where the cluster keeps to policies",
                };
                format!("Pods of Kubernetes with {}; {network}", kubernetes.image)
            }
        }
    }

    /// Asks whoever makes sandboxes whether it is there; says so in words.
    pub(super) async fn examine(&self, live: &Live) -> Result<String, SandboxError> {
        match &self.maker {
            Maker::Provisioner(provisioner) => {
                let count = self.provisioner(provisioner, &self.wanted(&live.sandbox)).examine().await?;
                Ok(format!("the provisioner answers, takes the key, and has {count} sandboxes"))
            }
            #[cfg(feature = "kubernetes")]
            Maker::Kubernetes(kubernetes) => self.pods(kubernetes, &self.wanted(&live.sandbox)).version().await,
        }
    }

    fn current(&self) -> Option<Pool> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|(_, pool)| pool.clone())
    }

    fn wanted(&self, sandbox: &Sandbox) -> Wanted {
        let network = match self.maker {
            // What it really is, nobody tells.
            Maker::Provisioner(_) => Network::Full,
            #[cfg(feature = "kubernetes")]
            Maker::Kubernetes(_) => sandbox.network,
        };
        let Sandbox { environment, mounts, limits, .. } = sandbox.clone();
        Wanted { network, environment, mounts, limits }
    }

    fn rules(&self, wanted: &Wanted) -> Rules {
        let Keeping { idle_timeout, replicas } = self.keeping.clone();
        Rules { idle_timeout, replicas, network: wanted.network }
    }

    fn engine(&self, wanted: &Wanted) -> Arc<dyn Engine> {
        match &self.maker {
            Maker::Provisioner(provisioner) => Arc::new(self.provisioner(provisioner, wanted)),
            #[cfg(feature = "kubernetes")]
            Maker::Kubernetes(kubernetes) => Arc::new(self.pods(kubernetes, wanted)),
        }
    }

    fn provisioner(&self, provisioner: &Provisioner, wanted: &Wanted) -> containers::Provisioner {
        let Provisioner { url, key, shared } = provisioner.clone();
        containers::Provisioner::new(containers::provisioner::Settings {
            url,
            key,
            shared,
            folders: self.folders.clone(),
            mounts: wanted.mounts.clone(),
            environment: wanted.environment.clone(),
            most: wanted.limits.disk,
        })
    }
}

#[cfg(feature = "kubernetes")]
impl Elsewhere {
    fn pods(&self, kubernetes: &Kubernetes, wanted: &Wanted) -> containers::Kubernetes {
        use containers::kubernetes::{Settings, Volume, owner};
        let Kubernetes { kubeconfig, context, namespace, home, prefix, image, pull_secret, run_as } =
            kubernetes.clone();
        let volume = match home {
            Home::Claim(claim) => Volume::Claim(claim),
            Home::Host(path) => Volume::Host(path),
        };
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let user = run_as.map(|user| (user, user)).or_else(|| self.folders.owner()).unwrap_or(own);
        let home = self.folders.home().to_owned();
        containers::Kubernetes::new(Settings {
            kubeconfig,
            context,
            namespace,
            prefix,
            owner: owner(&volume, &home),
            home,
            volume,
            image,
            pull_secret,
            user,
            network: wanted.network,
            environment: wanted.environment.clone(),
            mounts: wanted.mounts.clone(),
            limits: wanted.limits,
        })
    }
}
