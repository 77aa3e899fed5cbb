//! `pudu health`: a health check that needs no other program.

use crate::{
    config::{self, Start},
    home,
};
use pudu_client::net;
use std::{process::ExitCode, time::Duration};

/// Where a daemon answers if nobody moved it.
const USUAL: &str = "http://127.0.0.1:8001/health";

/// Returns where the daemon is: where `--bind` says, where that of this folder says, or where it is configured.
fn address(start: &Start) -> Option<String> {
    let neighbour = || home::neighbour(&start.home());
    let configured = || config::load(start).ok()?.config.fixed.gateway.url();
    match start.bind {
        Some(_) => configured().or_else(neighbour),
        None => neighbour().or_else(configured),
    }
}

/// Asks a running daemon whether it lives.
pub(super) fn ask(url: Option<String>, start: &Start) -> ExitCode {
    let url = url.or_else(|| Some(format!("{}/health", address(start)?))).unwrap_or_else(|| USUAL.to_owned());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let ask = async { net::client()?.get(url).send().await?.error_for_status()?.text().await };
    // The clock of a timeout is the runtime's, so it has to be made inside.
    let asked = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(3), ask).await });
    match asked {
        Ok(Ok(answer)) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        Err(_) => {
            eprintln!("error: no answer within 3 s");
            ExitCode::FAILURE
        }
    }
}
