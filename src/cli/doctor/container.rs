//! Checks whether containers can be created and confine commands.

use super::{Check, Scratch, mounts, verdict};
use pudu_client::containers::{self, ExecMethod, prove};
use pudu_config::{DockerConfig, HotConfig};
use pudu_daemon::machine::Machine;

/// Checks the engine, creates a container and attempts to escape from it.
pub(super) async fn check(machine: &Machine, docker: &DockerConfig, hot: &HotConfig) -> Vec<Check> {
    let settings = machine.settings(docker, hot);
    let found = match containers::DockerEngine::new(settings.clone()).check_engine().await {
        Ok(found) => found,
        Err(error) => {
            let help = "start the engine, let pudu's user use its socket, or set sandbox.docker_host";
            return vec![Check::bad("engine", error.to_string(), help)];
        }
    };
    let root = if found.rootless { ", without root" } else { "" };
    let engine = format!("{} (API {}) at {}{root}", found.version, found.api, docker.host);
    let mut checks = vec![Check::good("engine", engine), Check::good("shell", machine.describe_sandbox(hot))];
    checks.push(match found.image {
        true => Check::good("image", format!("{} is there", docker.image)),
        false => {
            let why = format!("{} is not there yet; it is fetched for the first command", docker.image);
            Check::poor("image", why, format!("docker pull {}", docker.image))
        }
    });
    checks.extend(mounts(hot));
    if docker.api == ExecMethod::Aio {
        let why = "the image needs the engine's filter of system calls off, and its user may become root in the container";
        checks.push(Check::poor(
            "boundary",
            why,
            "take an image with a shell and `api: exec` if strangers write",
        ));
    }
    // No container is created before the image has been pulled, because that can take minutes.
    if found.image {
        checks.push(try_container(machine, settings).await);
    }
    checks
}

async fn try_container(machine: &Machine, settings: containers::DockerSettings) -> Check {
    // In the home: an engine that sees the threads' folders sees this folder too.
    let Ok(folder) = Scratch::make(machine.folders.home()) else {
        return Check::bad("escape", "nothing can be written to the home folder", "make room");
    };
    match prove(settings, &folder.0).await {
        Ok(proofs) => verdict(&proofs),
        Err(error) => Check::bad("container", error.to_string(), "see docs/sandbox.md, \"Containers\""),
    }
}
