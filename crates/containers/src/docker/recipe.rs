//! Specification of a container, in the engine's words.

use super::{API_PORT, DockerSettings, ExecMethod, command, link::Facts, network};
use crate::{Order, engine::fingerprint};
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions, MountType, PortBinding,
};
use pudu_base::Network;
use pudu_sandbox::ROOT;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The label that says whose it is: a fingerprint of the daemon's home.
pub(super) const HOME: &str = "pudu.home";
/// The label with the name that the pool has for it.
pub(super) const BOX: &str = "pudu.box";
/// The label with the thread, for people.
const THREAD: &str = "pudu.thread";
/// The label with a fingerprint of all that it was made to.
pub(super) const ORDER: &str = "pudu.order";

/// Shared memory for the browser in the all-in-one image, in bytes. What is not used costs nothing.
const SHARED_MEMORY: i64 = 2 << 30;

/// Returns a fingerprint of what a container is made to: one with another has to be replaced. Where its API is
/// published does not count.
pub(super) fn order(settings: &DockerSettings, order: &Order, facts: &Facts) -> String {
    // What cannot be written as JSON is not in it.
    let body = serde_json::to_value(sketch(settings, order, facts, 0)).unwrap_or_default();
    let mut text = String::new();
    write(&body, &mut text);
    fingerprint(&text)
}

/// Writes a value with its keys in order: maps have theirs in another one each time.
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

/// Returns the whole order, with its labels. Port 0 lets the engine choose.
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
    ContainerCreateBody { labels: Some(labels), ..sketch(settings, wanted, facts, port) }
}

fn sketch(settings: &DockerSettings, order: &Order, facts: &Facts, port: u16) -> ContainerCreateBody {
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
            host_config: Some(alone(host, settings)),
            ..body
        },
        ExecMethod::Aio => ContainerCreateBody {
            exposed_ports: Some(vec![API_PORT.to_owned()]),
            host_config: Some(serving(host, settings, port)),
            ..body
        },
    }
}

/// Returns the host configuration that both kinds share.
fn host(settings: &DockerSettings, order: &Order, facts: &Facts) -> HostConfig {
    let memory = i64::try_from(settings.limits.memory).unwrap_or(i64::MAX);
    #[allow(clippy::cast_possible_truncation, reason = "the configuration bounds it")]
    let cpus = settings.cpus.map(|cpus| (cpus * 1e9) as i64);
    HostConfig {
        mounts: Some(order.mounts.iter().map(|mount| bind(settings, mount)).collect()),
        memory: Some(memory),
        // No swap besides.
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

/// A container that does nothing but wait for commands, which have no rights in it at all.
fn alone(host: HostConfig, settings: &DockerSettings) -> HostConfig {
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

/// A container that serves the API. Its browser makes namespaces of its own, which the engine's filter of system
/// calls does not let it.
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

/// Returns the user and group of commands. In an engine without root, root of a container is the very user
/// that the files belong to.
pub(super) fn user(settings: &DockerSettings, facts: &Facts) -> String {
    let (user, group) = if facts.rootless { (0, 0) } else { settings.owner };
    format!("{user}:{group}")
}

/// Returns the environment of commands. The image's own `PATH` stays.
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
    // The all-in-one image has a user and a home of its own.
    let usual: &[(&str, &str)] = if settings.api == ExecMethod::Exec { &usual } else { &[] };
    let usual = usual.iter().map(|(name, value)| format!("{name}={value}"));
    usual.chain(settings.environment.iter().map(|(name, value)| format!("{name}={value}"))).collect()
}

fn bind(settings: &DockerSettings, mount: &pudu_sandbox::Mount) -> Mount {
    Mount {
        target: Some(mount.agent.clone()),
        source: Some(settings.outside(&mount.host).to_string_lossy().into_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(mount.read_only),
        // What is mounted below it later on this machine does not come in.
        bind_options: Some(MountBindOptions {
            propagation: Some(bollard::models::MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}
