//! Where commands run: on this machine, or in containers of somebody else's. A change of it needs a restart.

use super::{
    class::{self, Class, Kind, Where},
    reader::Section,
    sandbox::Sandbox,
};
use pudu_client::base::Network;
use secrecy::SecretString;
use std::{path::PathBuf, time::Duration};
use url::Url;

/// Where commands run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine.
    Here,
    /// In containers.
    Elsewhere(Keeping, Maker),
}

/// Who makes containers.
#[derive(Clone, Debug)]
pub(crate) enum Maker {
    /// A provisioner.
    Provisioner(Provisioner),
    /// A cluster: they are Pods.
    #[cfg(feature = "kubernetes")]
    Kubernetes(Box<Kubernetes>),
}

/// How long containers are kept, and how many.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    /// One that nobody worked in for so long is taken away; never if zero.
    pub(crate) idle_timeout: Duration,
    /// So many there should be at most.
    pub(crate) replicas: usize,
}

/// Where a provisioner is.
#[derive(Clone, Debug)]
pub(crate) struct Provisioner {
    /// Its address.
    pub(crate) url: Url,
    /// Its key.
    pub(crate) key: Option<SecretString>,
    /// Whether its sandboxes show the folders of this machine.
    pub(crate) shared: bool,
}

/// How Pods are made.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "kubernetes"), allow(dead_code, reason = "read, and refused"))]
pub(crate) struct Kubernetes {
    /// Where the cluster is written down.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which of its contexts.
    pub(crate) context: Option<String>,
    /// The namespace.
    pub(crate) namespace: Option<String>,
    /// What holds pudu's home there.
    pub(crate) home: Home,
    /// What names of Pods begin with.
    pub(crate) prefix: String,
    /// The image.
    pub(crate) image: String,
    /// The secret by which it is fetched.
    pub(crate) pull_secret: Option<String>,
    /// The user that commands run as, if not pudu's own.
    pub(crate) run_as: Option<u32>,
}

/// What holds pudu's home in a cluster.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "kubernetes"), allow(dead_code, reason = "read, and refused"))]
pub(crate) enum Home {
    /// A claim.
    Claim(String),
    /// A folder of the nodes.
    Host(String),
}

/// It has a shell, Python, and what else a Pod needs.
const IMAGE: &str = "python:3.13-slim";
/// DeerFlow's.
const PREFIX: &str = "deer-flow-sandbox";
/// The longest beginning of a name: a name has 63 characters at most, and 17 are ours.
const LONGEST: usize = 40;

const NO_DOCKER: &str = "set provisioner_url to where DeerFlow's provisioner is; containers of a Docker engine are not in \
     this version";
const NO_HOME: &str =
    "write `home: claim NAME` for the claim that it is on, or `home: host PATH` for the folder that nodes have it in";

/// Reads where commands run; `None` if that cannot be.
pub(super) fn read(section: &Section<'_>) -> Option<Place> {
    let class = class::read(section, Kind::Sandbox, Some("deerflow.sandbox.local:LocalSandboxProvider"));
    let place = match class {
        Some(Class::Sandbox(place)) => place,
        _ => Where::Here,
    };
    let keeping = Keeping {
        idle_timeout: idle(section),
        replicas: section.number("replicas", 1..=10_000_u32).or(3) as usize,
    };
    let image = section.text("image").or_told(IMAGE.to_owned(), IMAGE);
    let prefix = prefix(section);
    let provisioner = provisioner(section, place == Where::Aio);
    let kubernetes = kubernetes(section, place == Where::Kubernetes, image, prefix);
    match place {
        Where::Here => Some(Place::Here),
        Where::Aio => Some(Place::Elsewhere(keeping, Maker::Provisioner(provisioner?))),
        #[cfg(feature = "kubernetes")]
        Where::Kubernetes => Some(Place::Elsewhere(keeping, Maker::Kubernetes(Box::new(kubernetes?)))),
        #[cfg(not(feature = "kubernetes"))]
        Where::Kubernetes => {
            drop((keeping, kubernetes));
            section.refuse("use", "this pudu was built without Kubernetes", "take one that was built with the feature");
            None
        }
    }
}

/// DeerFlow's 0 stands for never.
fn idle(section: &Section<'_>) -> Duration {
    section.seconds("idle_timeout", 0.0).or(Duration::from_secs(600))
}

fn prefix(section: &Section<'_>) -> String {
    let prefix = section.text("container_prefix").or(PREFIX.to_owned());
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = prefix.starts_with(|c: char| c.is_ascii_lowercase());
    if prefix.len() > LONGEST || !prefix.chars().all(plain) || !begins || prefix.ends_with('-') {
        let what = format!("\"{prefix}\" cannot begin the names of containers");
        let mend = format!("use up to {LONGEST} small letters, digits and `-`, with a letter first");
        section.refuse("container_prefix", what, mend);
    }
    prefix
}

fn provisioner(section: &Section<'_>, wanted: bool) -> Option<Provisioner> {
    let setting = section.url("provisioner_url");
    let spoilt = setting.is_spoilt();
    let url = setting.optional("none");
    let key = section.clone().needed(wanted).secret("provisioner_api_key").optional("none");
    let shared = section.flag("thread_data_mounts").or(false);
    match &url {
        None if wanted && !spoilt => section.refuse("use", "there is no provisioner to ask for sandboxes", NO_DOCKER),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            let mend = "put the key into provisioner_api_key, which is sent in a header";
            section.refuse("provisioner_url", "an address with a name or a password ends up in logs", mend);
        }
        _ => {}
    }
    Some(Provisioner { url: url?, key, shared })
}

fn kubernetes(section: &Section<'_>, wanted: bool, image: String, prefix: String) -> Option<Kubernetes> {
    let inner = section.section("kubernetes");
    let home = inner.text("home").optional("none");
    let kubeconfig = inner.text("kubeconfig").optional("`KUBECONFIG`, `~/.kube/config`, or the Pod's own account");
    let context = inner.text("context").optional("the current one");
    let namespace = inner.text("namespace").optional("the context's");
    let run_as = inner.number("run_as", 1..=u32::MAX).optional("pudu's own user; 65533 where that is root");
    let pull_secret = inner.text("pull_secret").optional("none");
    let home = match home.as_deref().map(str::trim).map(parse) {
        Some(Some(home)) => home,
        Some(None) => {
            inner.refuse("home", "this names neither a claim nor a folder of the nodes", NO_HOME);
            return None;
        }
        None => {
            if wanted {
                section.refuse("kubernetes", "nothing says where pudu's home is in the cluster", NO_HOME);
            }
            return None;
        }
    };
    let kubeconfig = kubeconfig.map(PathBuf::from);
    Some(Kubernetes { kubeconfig, context, namespace, home, prefix, image, pull_secret, run_as })
}

fn parse(text: &str) -> Option<Home> {
    match text.split_once(' ').map(|(kind, name)| (kind, name.trim()))? {
        ("claim", name) if !name.contains([' ', '/']) => Some(Home::Claim(name.to_owned())),
        ("host", path) if path.starts_with('/') => Some(Home::Host(path.to_owned())),
        _ => None,
    }
}

/// Checks what of the rest of the section does not go with the place.
pub(super) fn agree(top: &Section<'_>, place: &Place, sandbox: &Sandbox) {
    let section = top.section("sandbox");
    let said = section.entry("network").is_some();
    let Place::Elsewhere(_, maker) = place else { return };
    match maker {
        Maker::Provisioner(_) if said && sandbox.network != Network::Full => {
            let what = "this has no effect: the provisioner decides what its sandboxes reach";
            section.warn("network", what, "let a NetworkPolicy of the cluster hold them, and set `network: full`");
        }
        Maker::Provisioner(_) => {}
        #[cfg(feature = "kubernetes")]
        Maker::Kubernetes(_) if sandbox.network == Network::Proxy => {
            let what = "Pods cannot have pudu's proxy";
            section.refuse("network", what, "set `network: none`, or `full` with a NetworkPolicy of your own");
        }
        #[cfg(feature = "kubernetes")]
        Maker::Kubernetes(_) => {}
    }
    if sandbox.allow_host_bash {
        section.warn("allow_host_bash", "this has no effect: commands run elsewhere", "remove it");
    }
}
