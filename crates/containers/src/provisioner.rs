//! Sandboxes that a provisioner makes: DeerFlow's service in front of a cluster. It is asked over its REST API for a
//! sandbox, answers with an address, and there the all-in-one image's API does the rest.
//!
//! Deliberately absent: everything that the provisioner decides itself (image, limits, network, its own
//! skills).

mod api;

use crate::{Aio, BoxId, ContainerEngine, GEM, Order, Pair, apart::Apart, docker::share};
use api::{ExtraMount, ProvisionerApi, ProvisionerError, SandboxRequest, SandboxResponse, SandboxStatus};
use pudu_base::{BoxFuture, Sandbox, SandboxError, ThreadFolder, UserId};
use pudu_sandbox::{Folders, Mount};
use secrecy::SecretString;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use url::Url;

/// How long a sandbox may take to answer before it is given up: the cluster may have to fetch its image.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How often the provisioner is asked meanwhile whether there is any hope.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The longest name of a thread that is sent.
const NAME: usize = 63;

/// Settings of a provisioner.
#[derive(Clone, Debug)]
pub struct ProvisionerSettings {
    /// Its address.
    pub url: Url,
    /// Its key, if it wants one.
    pub key: Option<SecretString>,
    /// Whether its sandboxes show the very folders that threads have on this machine. Otherwise files go over the
    /// sandbox's API.
    pub shared: bool,
    /// The folders of threads.
    pub folders: Folders,
    /// Folders of the cluster's nodes that all threads find.
    pub mounts: Vec<Mount>,
    /// Environment variables of commands, besides the image's own.
    pub environment: Vec<(String, String)>,
    /// How much is fetched of what commands put into `outputs`, in bytes.
    pub most: u64,
}

/// An engine that asks a provisioner.
pub struct ProvisionerEngine {
    settings: ProvisionerSettings,
    api: OnceLock<Arc<ProvisionerApi>>,
    /// Killings that nobody waits for.
    tasks: TaskTracker,
}

impl ProvisionerEngine {
    /// Prepares an engine. The provisioner is asked when the first sandbox is wanted.
    #[must_use]
    pub fn new(settings: ProvisionerSettings) -> Self {
        Self { settings, api: OnceLock::new(), tasks: TaskTracker::new() }
    }

    /// Asks whether the provisioner is there, and whether it takes the key; returns how many sandboxes it has.
    ///
    /// # Errors
    /// When it is not, or does not.
    pub async fn examine(&self) -> Result<usize, SandboxError> {
        let api = self.api()?;
        api.health().await?;
        Ok(api.list().await?.len())
    }

    fn api(&self) -> Result<Arc<ProvisionerApi>, ProvisionerError> {
        if let Some(api) = self.api.get() {
            return Ok(api.clone());
        }
        let api = Arc::new(ProvisionerApi::new(self.settings.url.clone(), self.settings.key.as_ref())?);
        Ok(self.api.get_or_init(|| api).clone())
    }

    async fn open(&self, order: &Order) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let api = self.api()?;
        if self.settings.shared && self.settings.folders.owner() != Some(GEM) {
            share::with_all(order)?;
        }
        let made = self.make(&api, order).await?;
        let environment = self.settings.environment.clone();
        let aio =
            Aio::with_environment(&made.sandbox_url, self.shown(order), environment, self.tasks.clone())?;
        self.wait(&api, &order.id, &aio).await?;
        aio.furnish().await?;
        if self.settings.shared {
            self.same_folder(order, &aio).await?;
            return Ok(Arc::new(Pair::new(Arc::new(aio), order.files.clone())));
        }
        let files = self.settings.folders.of(&order.folder);
        Ok(Arc::new(Apart::new(Arc::new(aio), order.files.clone(), files, self.settings.most)))
    }

    /// Has the sandbox made; one that has come to its end is made anew.
    async fn make(&self, api: &ProvisionerApi, order: &Order) -> Result<SandboxResponse, ProvisionerError> {
        let thread = self.thread(order)?;
        let wanted = || SandboxRequest {
            sandbox_id: order.id.as_str(),
            thread_id: &thread,
            user_id: order.folder.owner.as_str(),
            extra_mounts: self.settings.mounts.iter().map(extra).collect(),
        };
        let made = api.make(&wanted()).await?;
        let SandboxStatus::Over(status) = &made.status else { return Ok(made) };
        tracing::info!(id = %order.id, status, "recreating ended sandbox");
        api.take_away(order.id.as_str()).await?;
        let made = api.make(&wanted()).await?;
        match &made.status {
            SandboxStatus::Over(status) => Err(hopeless(status)),
            _ => Ok(made),
        }
    }

    /// Waits until the sandbox answers.
    async fn wait(&self, api: &ProvisionerApi, id: &BoxId, aio: &Aio) -> Result<(), ProvisionerError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !aio.wait(POLL_INTERVAL).await {
            match api.look(id.as_str()).await {
                Ok(SandboxResponse { status: SandboxStatus::Over(status), .. }) => {
                    return Err(hopeless(&status));
                }
                Err(ProvisionerError::Missing) => return Err(hopeless("NotFound")),
                // It can be as good as before, and it may be the provisioner alone that is away.
                Ok(_) | Err(ProvisionerError::Away(_)) => {}
                Err(trouble) => return Err(trouble),
            }
            if Instant::now() >= deadline {
                return Err(ProvisionerError::Refused(format!(
                    "the sandbox does not answer after {} s; see its Pod, and that this machine reaches the address \
                     that the provisioner gives (its NODE_HOST or its Service)",
                    START_TIMEOUT.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// Returns what the provisioner calls the thread: as its folder is called here, because it shows the folder of
    /// that name. It takes letters, digits, `-` and `_` only.
    fn thread(&self, order: &Order) -> Result<String, ProvisionerError> {
        let own = order.mounts.first().and_then(|own| own.host.parent()).and_then(Path::file_name);
        let folder = own.unwrap_or_default().to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name: String = folder.chars().take(NAME).map(|c| if plain(c) { c } else { '-' }).collect();
        if self.settings.shared && name != folder {
            let text = "the provisioner cannot show the folder of a thread with such an id: use ids of up to 63 letters, \
                        digits, `-` and `_`";
            return Err(ProvisionerError::Refused(text.to_owned()));
        }
        Ok(name)
    }

    /// Returns what a sandbox shows, for whoever judges paths.
    fn shown(&self, order: &Order) -> Vec<Mount> {
        let mut shown: Vec<Mount> = self.settings.mounts.clone();
        shown.extend(order.mounts.iter().filter(|mount| !self.settings.mounts.contains(mount)).cloned());
        shown
    }

    /// Looks whether the sandbox shows the thread's folder of this machine, as the configuration says.
    async fn same_folder(&self, order: &Order, aio: &Aio) -> Result<(), SandboxError> {
        let name = format!("/mnt/user-data/workspace/.{}", crate::word()?);
        order.files.write(&name, b"seen", false).await?;
        let seen = aio.read(&name, 16).await;
        // Whoever sees it can remove it; nobody misses it otherwise.
        let script = format!("rm -f -- {name}");
        aio.exec(&pudu_base::ShellCommand { script, timeout: POLL_INTERVAL }).await.ok();
        match seen {
            Ok(_) => Ok(()),
            Err(SandboxError::Missing { .. }) => Err(SandboxError::Refused(
                "the provisioner's sandboxes do not show the folders of this machine's threads: leave \
                 sandbox.thread_data_mounts out, or let THREADS_HOST_PATH or USERDATA_PVC_NAME there lead to them"
                    .to_owned(),
            )),
            Err(error) => Err(error),
        }
    }

    /// Returns the names of the sandboxes that threads of this home have: the provisioner has others' as well, and
    /// does not say whose they are.
    async fn ours(&self) -> Vec<BoxId> {
        let users = self.settings.folders.home().join("users");
        let names = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok())
        };
        let read = move || -> Vec<BoxId> {
            let owners = names(users.clone()).filter_map(|name| UserId::of(&name).ok());
            let threads = owners.flat_map(|owner| {
                let own = names(users.join(owner.as_str()).join("threads"));
                own.map(move |thread| ThreadFolder { owner: owner.clone(), thread: thread.into() })
            });
            threads.map(|folder| BoxId::of(&folder)).collect()
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }
}

fn extra(mount: &Mount) -> ExtraMount {
    ExtraMount {
        host_path: mount.host.to_string_lossy().into_owned(),
        container_path: mount.agent.clone(),
        read_only: mount.read_only,
    }
}

fn hopeless(status: &str) -> ProvisionerError {
    ProvisionerError::Refused(format!(
        "the sandbox does not run: the provisioner says {status}; `kubectl describe pod` in its namespace says why"
    ))
}

impl From<ProvisionerError> for SandboxError {
    fn from(trouble: ProvisionerError) -> Self {
        Self::Refused(trouble.to_string())
    }
}

impl ContainerEngine for ProvisionerEngine {
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(self.open(order))
    }

    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Ok(api) = self.api() else { return false };
            let Ok(made) = api.look(id.as_str()).await else { return false };
            let aio = Aio::new(&made.sandbox_url, Vec::new(), self.tasks.clone());
            match aio {
                Ok(aio) => made.status == SandboxStatus::Running && aio.ready().await,
                Err(_) => false,
            }
        })
    }

    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move { Ok(self.api()?.take_away(id.as_str()).await?) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>> {
        Box::pin(async move {
            let all = self.api()?.list().await?;
            let ours = self.ours().await;
            let running = all.iter().filter(|made| !matches!(made.status, SandboxStatus::Over(_)));
            let ids = running.map(|made| BoxId::new(&made.sandbox_id));
            Ok(ids.filter(|id| ours.contains(id)).collect())
        })
    }

    fn shares_folders(&self) -> bool {
        self.settings.shared
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}
