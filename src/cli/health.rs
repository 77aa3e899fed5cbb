//! `pudu health`: checks whether the daemon is healthy, without other programs such as curl.

use super::{print_output, remote, run};
use anyhow::Context;
use pudu_config::{self as config, Start};
use pudu_kit::home;
use pudu_net as net;
use std::{process::ExitCode, time::Duration};

/// Timeout of the health check.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// URL of the health check at the default address.
const DEFAULT_URL: &str = "http://127.0.0.1:8001/health";

/// Returns the daemon's address: from `--bind`, from the daemon of this folder, or from the configuration.
fn address(start: &Start) -> Option<String> {
    let neighbour = || home::running_url(&start.home());
    let configured = || config::load(start).ok()?.config.fixed.gateway.url();
    match start.bind {
        Some(_) => configured().or_else(neighbour),
        None => neighbour().or_else(configured),
    }
}

/// Checks whether the daemon is running.
pub(super) fn ask(url: Option<String>, start: &Start) -> ExitCode {
    let url =
        url.or_else(|| Some(format!("{}/health", address(start)?))).unwrap_or_else(|| DEFAULT_URL.to_owned());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let answer_text = runtime.block_on(async {
        let address = remote::address(&url)?;
        // A timeout needs the runtime's clock, so it has to be created inside the runtime.
        let answer = net::client()?.get(address).timeout(REQUEST_TIMEOUT).send().await;
        let answer = answer
            .ok()
            .with_context(|| format!("no pudu answers at {url}; start it, or check its address"))?;
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        anyhow::ensure!(
            status.is_success(),
            "{url} answers with {status}: it is not pudu, or pudu is unhealthy"
        );
        Ok(text)
    });
    answer_text.map_or_else(|error| run::fail(&error), |text| print_output(text + "\n", ExitCode::SUCCESS))
}
