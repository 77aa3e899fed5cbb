//! Sandboxes from a provisioner, which is DeerFlow's service in front of a cluster. Its REST API creates a sandbox and
//! returns the URL of the all-in-one image's API in it.
//!
//! Deliberately absent: everything that the provisioner determines (image, limits, network, its own skills).

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

/// Timeout for a new sandbox to respond, including an image pull.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between status requests to the provisioner while a sandbox is starting.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum length of a thread's name, in characters.
const MAX_NAME_CHARS: usize = 63;

/// Settings of a provisioner.
#[derive(Clone, Debug)]
pub struct ProvisionerSettings {
    /// Address of the provisioner.
    pub url: Url,
    /// Key, if the provisioner requires one.
    pub key: Option<SecretString>,
    /// Whether sandboxes mount the threads' folders from this machine. Otherwise, files are accessed over the sandbox's
    /// API.
    pub shared: bool,
    /// The folders of threads.
    pub folders: Folders,
    /// Folders of the cluster's nodes that are mounted in all sandboxes.
    pub mounts: Vec<Mount>,
    /// Environment variables for commands, in addition to the image's.
    pub environment: Vec<(String, String)>,
    /// Maximum total size of fetched outputs, in bytes.
    pub most: u64,
}

/// An engine that uses a provisioner.
pub struct ProvisionerEngine {
    settings: ProvisionerSettings,
    api: OnceLock<Arc<ProvisionerApi>>,
    /// Tasks that kill abandoned commands.
    tasks: TaskTracker,
}

impl ProvisionerEngine {
    /// Creates an engine. The provisioner is not contacted until the first sandbox is needed.
    #[must_use]
    pub fn new(settings: ProvisionerSettings) -> Self {
        Self { settings, api: OnceLock::new(), tasks: TaskTracker::new() }
    }

    /// Checks whether the provisioner responds and accepts the key. Returns the number of its sandboxes.
    ///
    /// # Errors
    /// When either check fails.
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
        let sandbox = self.create_sandbox(&api, order).await?;
        let environment = self.settings.environment.clone();
        let aio = Aio::with_environment(
            &sandbox.sandbox_url,
            self.visible_mounts(order),
            environment,
            self.tasks.clone(),
        )?;
        self.wait(&api, &order.id, &aio).await?;
        aio.create_folders().await?;
        if self.settings.shared {
            self.same_folder(order, &aio).await?;
            return Ok(Arc::new(Pair::new(Arc::new(aio), order.files.clone())));
        }
        let files = self.settings.folders.thread_files(&order.folder);
        Ok(Arc::new(Apart::new(Arc::new(aio), order.files.clone(), files, self.settings.most)))
    }

    /// Creates the sandbox. Replaces one that has ended.
    async fn create_sandbox(
        &self,
        api: &ProvisionerApi,
        order: &Order,
    ) -> Result<SandboxResponse, ProvisionerError> {
        let thread = self.thread(order)?;
        let wanted = || SandboxRequest {
            sandbox_id: order.id.as_str(),
            thread_id: &thread,
            user_id: order.folder.owner.as_str(),
            extra_mounts: self.settings.mounts.iter().map(extra).collect(),
        };
        let made = api.create_sandbox(&wanted()).await?;
        let SandboxStatus::Over(status) = &made.status else { return Ok(made) };
        tracing::info!(id = %order.id, status, "recreating ended sandbox");
        api.take_away(order.id.as_str()).await?;
        let made = api.create_sandbox(&wanted()).await?;
        match &made.status {
            SandboxStatus::Over(status) => Err(sandbox_failed(status)),
            _ => Ok(made),
        }
    }

    /// Waits until the sandbox responds.
    async fn wait(&self, api: &ProvisionerApi, id: &BoxId, aio: &Aio) -> Result<(), ProvisionerError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !aio.wait(POLL_INTERVAL).await {
            match api.fetch_sandbox(id.as_str()).await {
                Ok(SandboxResponse { status: SandboxStatus::Over(status), .. }) => {
                    return Err(sandbox_failed(&status));
                }
                Err(ProvisionerError::Missing) => return Err(sandbox_failed("NotFound")),
                // The sandbox may be fine if only the provisioner is unavailable.
                Ok(_) | Err(ProvisionerError::Away(_)) => {}
                Err(trouble) => return Err(trouble),
            }
            if Instant::now() >= deadline {
                return Err(ProvisionerError::Refused(format!(
                    "the sandbox does not respond after {} s; check its Pod, and that this machine can reach \
                     the address given by the provisioner (its NODE_HOST or its Service)",
                    START_TIMEOUT.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// Returns the thread's name for the provisioner. It is the name of the thread's folder here, because the
    /// provisioner mounts the folder with that name. Only letters, digits, `-` and `_` are allowed.
    fn thread(&self, order: &Order) -> Result<String, ProvisionerError> {
        let own = order.mounts.first().and_then(|own| own.host.parent()).and_then(Path::file_name);
        let folder = own.unwrap_or_default().to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name: String =
            folder.chars().take(MAX_NAME_CHARS).map(|c| if plain(c) { c } else { '-' }).collect();
        if self.settings.shared && name != folder {
            let text = "the provisioner cannot mount the folder of a thread with this ID; use IDs of up to \
                        63 letters, digits, `-` and `_`";
            return Err(ProvisionerError::Refused(text.to_owned()));
        }
        Ok(name)
    }

    /// Returns the mounts of a sandbox, for checking paths.
    fn visible_mounts(&self, order: &Order) -> Vec<Mount> {
        let mut shown: Vec<Mount> = self.settings.mounts.clone();
        shown.extend(order.mounts.iter().filter(|mount| !self.settings.mounts.contains(mount)).cloned());
        shown
    }

    /// Checks that the sandbox shows the thread's folder on this machine, as configured.
    async fn same_folder(&self, order: &Order, aio: &Aio) -> Result<(), SandboxError> {
        let name = format!("/mnt/user-data/workspace/.{}", crate::random_word()?);
        order.files.write(&name, b"seen", false).await?;
        let seen = aio.read(&name, 16).await;
        // A sandbox that sees the file can remove it. A leftover file is harmless.
        let script = format!("rm -f -- {name}");
        aio.exec(&pudu_base::ShellCommand::new(script, POLL_INTERVAL)).await.ok();
        match seen {
            Ok(_) => Ok(()),
            Err(SandboxError::Missing { .. }) => Err(SandboxError::Refused(
                "the provisioner's sandboxes do not mount this machine's thread folders; remove \
                 sandbox.thread_data_mounts, or point the provisioner's THREADS_HOST_PATH or \
                 USERDATA_PVC_NAME to these folders"
                    .to_owned(),
            )),
            Err(error) => Err(error),
        }
    }

    /// Returns the IDs of the sandboxes for this home's threads. The provisioner also lists those of other homes
    /// without naming their owners.
    async fn own_ids(&self) -> Vec<BoxId> {
        let users = self.settings.folders.home().join("users");
        let names = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok())
        };
        let read = move || -> Vec<BoxId> {
            let owners = names(users.clone()).filter_map(|name| UserId::from_raw(&name).ok());
            let threads = owners.flat_map(|owner| {
                let own = names(users.join(owner.as_str()).join("threads"));
                own.map(move |thread| ThreadFolder { owner: owner.clone(), thread: thread.into() })
            });
            threads.map(|folder| BoxId::from_folder(&folder)).collect()
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

fn sandbox_failed(status: &str) -> ProvisionerError {
    ProvisionerError::Refused(format!(
        "the sandbox is not running: the provisioner reports {status}; see `kubectl describe pod` in its \
         namespace"
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
            let Ok(made) = api.fetch_sandbox(id.as_str()).await else { return false };
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
            let ours = self.own_ids().await;
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
