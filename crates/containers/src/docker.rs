//! Containers on a Docker engine, or a compatible one such as podman, over its socket.
//!
//! Each container has a label for the daemon's home, so that two daemons on one engine ignore each other's containers,
//! and a label for its specification, so that outdated containers are replaced. Deliberately absent: decisions on when
//! containers start and stop, which the [`Pool`](crate::Pool) makes.

mod check;
mod command;
mod image;
mod kill;
mod link;
mod network;
mod recipe;
mod settings;
pub(crate) mod share;
mod shell;

pub use check::EngineCheck;
pub use settings::{DockerSettings, ExecMethod, GEM};

use crate::{Aio, BoxId, ContainerEngine, Order, Pair, Runner, engine::fingerprint};
use bollard::{
    errors::Error,
    models::ContainerInspectResponse,
    query_parameters::{
        CreateContainerOptions, InspectContainerOptions, ListContainersOptions, RemoveContainerOptions,
        StartContainerOptions,
    },
};
use link::{EngineLink, failed, status};
use pudu_base::{BoxFuture, Sandbox, SandboxError};
use pudu_kit::locks::KeyedLocks;
use recipe::{BOX, HOME, ORDER};
use shell::ContainerShell;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio_util::task::TaskTracker;

/// Timeout for the start of the image's API.
const API_START_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of ports to try, starting at the configured one.
const PORTS: u16 = 10;
/// Port of the API in the container.
const API_PORT: &str = "8080/tcp";

/// A Docker engine and the settings of its containers. Clones share their state.
#[derive(Clone)]
pub struct DockerEngine(Arc<Inner>);

struct Inner {
    settings: DockerSettings,
    link: EngineLink,
    /// Value of the label for the home that owns the containers.
    home: String,
    /// Serializes the creation of a thread's container, because a concurrent call would mistake a starting container
    /// for a dead one.
    making: KeyedLocks<BoxId>,
    tasks: TaskTracker,
}

impl DockerEngine {
    /// Creates a client for an engine, without connecting to it.
    #[must_use]
    pub fn new(settings: DockerSettings) -> Self {
        let home = fingerprint(&settings.engine_path(&settings.home).to_string_lossy());
        let link = EngineLink::new(settings.host.clone(), settings.certificates.clone());
        let (making, tasks) = (KeyedLocks::default(), TaskTracker::new());
        Self(Arc::new(Inner { settings, link, home, making, tasks }))
    }

    fn name(&self, id: &BoxId) -> String {
        format!("{}-{id}", self.0.settings.prefix)
    }

    /// Inspects a container; `None` if it does not exist.
    async fn inspect(&self, id: &BoxId) -> Result<Option<ContainerInspectResponse>, SandboxError> {
        let docker = self.0.link.docker().await?;
        match docker.inspect_container(&self.name(id), None::<InspectContainerOptions>).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(failed("inspect the container", error)),
        }
    }

    fn is_ours(&self, found: &ContainerInspectResponse) -> bool {
        label(found, HOME) == Some(&self.0.home)
    }

    /// Removes a container and all its processes.
    async fn remove(&self, id: &BoxId) -> Result<(), SandboxError> {
        let docker = self.0.link.docker().await?;
        let options = RemoveContainerOptions { force: true, v: true, ..Default::default() };
        match docker.remove_container(&self.name(id), Some(options)).await {
            Ok(()) => Ok(()),
            // The container is gone or being removed.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(failed("remove the container", error)),
        }
    }

    /// Returns the container if it is running with the wanted specification. Otherwise removes it, provided that it is
    /// ours.
    async fn adopt(
        &self,
        order: &Order,
        wanted: &str,
    ) -> Result<Option<ContainerInspectResponse>, SandboxError> {
        let Some(found) = self.inspect(&order.id).await? else { return Ok(None) };
        if !self.is_ours(&found) {
            let text = format!(
                "the existing container {} belongs to another program; remove it, or change \
                 sandbox.container_prefix",
                self.name(&order.id)
            );
            return Err(SandboxError::Refused(text));
        }
        if runs(&found) && label(&found, ORDER).is_some_and(|order| order == wanted) {
            return Ok(Some(found));
        }
        self.remove(&order.id).await?;
        Ok(None)
    }

    /// Creates the container, or returns one that was created concurrently.
    async fn create_container(&self, order: &Order) -> Result<ContainerInspectResponse, SandboxError> {
        let inner = &*self.0;
        let docker = inner.link.docker().await?;
        let facts = inner.link.facts().await?;
        if inner.settings.api == ExecMethod::Aio && inner.settings.owner != GEM {
            share::with_all(order)?;
        }
        image::ensure(docker, &inner.settings.image).await?;
        network::ensure(docker, &inner.settings).await?;
        let first = inner.settings.port.unwrap_or_default();
        let last = inner.settings.port.map_or(0, |port| port.saturating_add(PORTS - 1));
        for port in first..=last {
            let body = recipe::body(&inner.settings, &inner.home, order, &facts, port);
            let options = CreateContainerOptions { name: Some(self.name(&order.id)), ..Default::default() };
            match docker.create_container(Some(options), body).await {
                Ok(_) => {}
                Err(error) if status(&error) == Some(409) => {
                    let wanted = recipe::order(&inner.settings, order, &facts);
                    let text = "another container with this name is being created or removed; try again";
                    let adopted = self.adopt(order, &wanted).await?;
                    return adopted.ok_or_else(|| SandboxError::Refused(text.to_owned()));
                }
                Err(error) => return Err(failed("create the container", error)),
            }
            match docker.start_container(&self.name(&order.id), None::<StartContainerOptions>).await {
                Ok(()) => return self.started(order).await,
                Err(error) => {
                    self.remove(&order.id).await?;
                    if port == last || !is_port_taken(&error) {
                        return Err(failed("start the container", error));
                    }
                }
            }
        }
        Err(SandboxError::Refused("no free port for the sandbox".to_owned()))
    }

    async fn started(&self, order: &Order) -> Result<ContainerInspectResponse, SandboxError> {
        let found = self.inspect(&order.id).await?.filter(runs);
        tracing::info!(id = %order.id, image = self.0.settings.image, "created sandbox");
        found.ok_or_else(|| {
            let text = "the container ended immediately; check that sandbox.image has /bin/sh, or the API \
                        set by sandbox.api";
            SandboxError::Refused(text.to_owned())
        })
    }

    /// Returns the sandbox of a container.
    async fn open(
        &self,
        order: &Order,
        found: &ContainerInspectResponse,
    ) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let shell: Arc<dyn Runner> = match self.0.settings.api {
            ExecMethod::Exec => Arc::new(ContainerShell::new(self.clone(), order.clone())),
            ExecMethod::Aio => Arc::new(self.api(order, found).await?),
        };
        Ok(Arc::new(Pair::new(shell, order.files.clone())))
    }

    async fn api(&self, order: &Order, found: &ContainerInspectResponse) -> Result<Aio, SandboxError> {
        let ports = found.network_settings.as_ref().and_then(|network| network.ports.as_ref());
        let bound = ports.and_then(|ports| ports.get(API_PORT)?.as_ref()?.first()?.host_port.clone());
        let port = bound.ok_or_else(|| {
            SandboxError::Refused(
                "the container engine did not publish the port of the sandbox's API".to_owned(),
            )
        })?;
        let base = format!("http://{}:{port}", self.0.settings.reach);
        let aio = Aio::new(&base, order.mounts.clone(), self.0.tasks.clone())?;
        if aio.wait(API_START_TIMEOUT).await {
            return Ok(aio);
        }
        self.remove(&order.id).await?;
        let text = format!(
            "the sandbox's API at {base} did not respond within {} s; check that sandbox.image has the API, \
             or set `sandbox.api: exec` for an image that has only a shell",
            API_START_TIMEOUT.as_secs()
        );
        Err(SandboxError::Refused(text))
    }
}

fn label<'a>(found: &'a ContainerInspectResponse, name: &str) -> Option<&'a String> {
    found.config.as_ref()?.labels.as_ref()?.get(name)
}

fn runs(found: &ContainerInspectResponse) -> bool {
    found.state.as_ref().and_then(|state| state.running).unwrap_or_default()
}

/// Returns whether the published port is in use. Judges by the text, because engines have no error code for this.
fn is_port_taken(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("port is already allocated") || text.contains("address already in use")
}

impl ContainerEngine for DockerEngine {
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let _one = self.0.making.lock(&order.id).await;
            let facts = self.0.link.facts().await?;
            let wanted = recipe::order(&self.0.settings, order, &facts);
            let found = match self.adopt(order, &wanted).await? {
                Some(found) => found,
                None => self.create_container(order).await?,
            };
            self.open(order, &found).await
        })
    }

    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let found = self.inspect(id).await;
            found.is_ok_and(|found| found.is_some_and(|found| self.is_ours(&found) && runs(&found)))
        })
    }

    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move {
            match self.inspect(id).await? {
                Some(found) if self.is_ours(&found) => self.remove(id).await,
                _ => Ok(()),
            }
        })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>> {
        Box::pin(async move {
            let docker = self.0.link.docker().await?;
            let filters = HashMap::from([
                ("label".to_owned(), vec![format!("{HOME}={}", self.0.home)]),
                ("status".to_owned(), vec!["running".to_owned()]),
            ]);
            let options = ListContainersOptions { filters: Some(filters), ..Default::default() };
            let listed = docker.list_containers(Some(options)).await;
            let listed = listed.map_err(|error| failed("list the containers", error))?;
            let mut ids: Vec<BoxId> = listed
                .into_iter()
                .filter_map(|container| container.labels?.remove(BOX))
                .map(BoxId::new)
                .collect();
            ids.sort();
            Ok(ids)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.tasks.close();
            self.0.tasks.wait().await;
        })
    }
}
