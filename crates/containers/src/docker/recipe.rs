//! Builds the specification of a container in the engine's format.

use super::{API_PORT, DockerSettings, ExecMethod, command, link::Facts, network};
use crate::{Order, engine::fingerprint};
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions, MountType, PortBinding,
};
use pudu_base::Network;
use pudu_sandbox::ROOT;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Label with the owner, which is a fingerprint of the daemon's home.
pub(super) const HOME: &str = "pudu.home";
/// Label with the pool's ID for the container.
pub(super) const BOX: &str = "pudu.box";
/// Label with the thread, for administrators.
const THREAD: &str = "pudu.thread";
/// Label with a fingerprint of the specification.
pub(super) const ORDER: &str = "pudu.order";

/// Size of the shared memory for the browser in the all-in-one image, in bytes. Unused memory costs nothing.
const SHARED_MEMORY: i64 = 2 << 30;

/// Returns a fingerprint of a container's specification without the published port of its API. A container with another
/// fingerprint has to be replaced.
pub(super) fn order(settings: &DockerSettings, order: &Order, facts: &Facts) -> String {
    // The fingerprint omits values that cannot be written as JSON.
    let body = serde_json::to_value(container_spec(settings, order, facts, 0)).unwrap_or_default();
    let mut text = String::new();
    write(&body, &mut text);
    fingerprint(&text)
}

/// Writes a value with sorted keys, because the order of hash maps is random.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            for (key, value) in sorted {
                out.push_str(key);
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            list.iter().for_each(|value| write(value, out));
            out.push(']');
        }
        plain => {
            out.push_str(&plain.to_string());
            out.push(',');
        }
    }
}

/// Returns the complete specification with its labels. If `port` is 0, the engine chooses one.
pub(super) fn body(
    settings: &DockerSettings,
    home: &str,
    wanted: &Order,
    facts: &Facts,
    port: u16,
) -> ContainerCreateBody {
    let labels = [
        (HOME, home.to_owned()),
        (BOX, wanted.id.to_string()),
        (THREAD, wanted.folder.thread.as_str().to_owned()),
        (ORDER, order(settings, wanted, facts)),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value)).into();
    ContainerCreateBody { labels: Some(labels), ..container_spec(settings, wanted, facts, port) }
}

fn container_spec(settings: &DockerSettings, order: &Order, facts: &Facts, port: u16) -> ContainerCreateBody {
    let host = host(settings, order, facts);
    let body = ContainerCreateBody {
        image: Some(settings.image.clone()),
        env: Some(environment(settings)),
        ..ContainerCreateBody::default()
    };
    match settings.api {
        ExecMethod::Exec => ContainerCreateBody {
            entrypoint: Some(vec!["/bin/sh".to_owned()]),
            cmd: Some(vec!["-c".to_owned(), command::IDLE.to_owned()]),
            user: Some(user(settings, facts)),
            working_dir: Some(format!("{ROOT}/workspace")),
            host_config: Some(idle_spec(host, settings)),
            ..body
        },
        ExecMethod::Aio => ContainerCreateBody {
            exposed_ports: Some(vec![API_PORT.to_owned()]),
            host_config: Some(serving(host, settings, port)),
            ..body
        },
    }
}

/// Returns the host configuration that both kinds of containers share.
fn host(settings: &DockerSettings, order: &Order, facts: &Facts) -> HostConfig {
    let memory = i64::try_from(settings.limits.memory).unwrap_or(i64::MAX);
    #[allow(clippy::cast_possible_truncation, reason = "the configuration limits the value")]
    let cpus = settings.cpus.map(|cpus| (cpus * 1e9) as i64);
    HostConfig {
        mounts: Some(order.mounts.iter().map(|mount| bind(settings, mount)).collect()),
        memory: Some(memory),
        // Equal to the memory limit, so that there is no swap.
        memory_swap: Some(memory),
        pids_limit: Some(i64::try_from(settings.limits.processes).unwrap_or(i64::MAX)),
        nano_cpus: cpus,
        auto_remove: Some(true),
        ipc_mode: Some("private".to_owned()),
        userns_mode: facts.remaps.then(|| "host".to_owned()),
        network_mode: Some(match settings.network {
            Network::None => "none".to_owned(),
            Network::Full | Network::Proxy => network::name(settings),
        }),
        ..HostConfig::default()
    }
}

/// Returns the host configuration of an idle container, whose commands have no capabilities.
fn idle_spec(host: HostConfig, settings: &DockerSettings) -> HostConfig {
    let scratch = format!("rw,nosuid,nodev,mode=1777,size={}", settings.limits.memory / 2);
    let tmpfs = ["/tmp", "/var/tmp", "/run"].map(|path| (path.to_owned(), scratch.clone())).into();
    HostConfig {
        init: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some(tmpfs),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..host
    }
}

/// Returns the host configuration of a container that serves the API. Its browser creates namespaces, which the
/// engine's seccomp filter would deny.
fn serving(host: HostConfig, settings: &DockerSettings, port: u16) -> HostConfig {
    let log = [("max-size", "1m"), ("max-file", "1")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let published = PortBinding {
        host_ip: Some(settings.bind.clone()),
        host_port: Some(if port == 0 { String::new() } else { port.to_string() }),
    };
    HostConfig {
        security_opt: Some(vec!["seccomp=unconfined".to_owned()]),
        shm_size: Some(SHARED_MEMORY),
        port_bindings: Some(HashMap::from([(API_PORT.to_owned(), Some(vec![published]))])),
        log_config: Some(HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(log.into()) }),
        ..host
    }
}

/// Returns the user and group for commands. With a rootless engine, root in a container is the user that owns the
/// files.
pub(super) fn user(settings: &DockerSettings, facts: &Facts) -> String {
    let (user, group) = if facts.rootless { (0, 0) } else { settings.owner };
    format!("{user}:{group}")
}

/// Returns the environment for commands. The image's `PATH` is kept.
fn environment(settings: &DockerSettings) -> Vec<String> {
    let home = format!("{ROOT}/workspace");
    let usual = [
        ("HOME", home.as_str()),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        (command::MARK, command::NOBODY),
    ];
    // The all-in-one image has its own user and home.
    let usual: &[(&str, &str)] = if settings.api == ExecMethod::Exec { &usual } else { &[] };
    let usual = usual.iter().map(|(name, value)| format!("{name}={value}"));
    usual.chain(settings.environment.iter().map(|(name, value)| format!("{name}={value}"))).collect()
}

fn bind(settings: &DockerSettings, mount: &pudu_sandbox::Mount) -> Mount {
    Mount {
        target: Some(mount.agent.clone()),
        source: Some(settings.engine_path(&mount.host).to_string_lossy().into_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(mount.read_only),
        // Keeps later mounts below this folder on this machine invisible.
        bind_options: Some(MountBindOptions {
            propagation: Some(bollard::models::MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}
