//! Checks whether containers can be created and confine commands.

use super::{Check, Scratch, mounts, verdict};
use pudu_config::{DockerConfig, HotConfig};
use pudu_containers::{self as containers, ExecMethod, prove};
use pudu_daemon::machine::Machine;

/// Checks the engine, creates a container and attempts to escape from it.
pub(super) async fn check(machine: &Machine, docker: &DockerConfig, hot: &HotConfig) -> Vec<Check> {
    let settings = machine.settings(docker, hot);
    let found = match containers::DockerEngine::new(settings.clone()).check_engine().await {
        Ok(found) => found,
        Err(error) => {
            let help = "start the engine, give pudu's user access to its socket, or set sandbox.docker_host";
            return vec![Check::bad("engine", error.to_string(), help)];
        }
    };
    let root = if found.rootless { ", without root" } else { "" };
    let engine = format!("{} (API {}) at {}{root}", found.version, found.api, docker.host);
    let mut checks = vec![Check::good("engine", engine), Check::good("shell", machine.describe_sandbox(hot))];
    checks.push(match found.image {
        true => Check::good("image", format!("{} is available", docker.image)),
        false => {
            let why = format!("{} is missing; it is pulled before the first command", docker.image);
            Check::poor("image", why, format!("docker pull {}", docker.image))
        }
    });
    checks.extend(mounts(hot));
    if docker.api == ExecMethod::Aio {
        let why = "the image needs the engine's seccomp filter disabled, and its user can become root in the \
                   container";
        checks.push(Check::poor(
            "boundary",
            why,
            "if untrusted users use the agent, choose an image with a shell and `api: exec`",
        ));
    }
    // A container is created only if the image has been pulled, because pulling can take minutes.
    if found.image {
        checks.push(try_container(machine, settings).await);
    }
    checks
}

async fn try_container(machine: &Machine, settings: containers::DockerSettings) -> Check {
    // In the home folder, because an engine that sees the threads' folders also sees this one.
    let Ok(folder) = Scratch::make(machine.folders.home()) else {
        return Check::bad("escape", "the home folder is not writable", "free some disk space");
    };
    match prove(settings, &folder.0).await {
        Ok(proofs) => verdict(&proofs),
        Err(error) => Check::bad("container", error.to_string(), "see docs/sandbox.md, \"Containers\""),
    }
}
