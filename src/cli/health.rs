//! `pudu health`: a health check that needs no other program.

use pudu_client::net;
use std::{process::ExitCode, time::Duration};

/// Asks a running daemon whether it lives.
pub(super) fn ask(url: &str) -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let asked = runtime.block_on(tokio::time::timeout(Duration::from_secs(3), async {
        net::client()?.get(url).send().await?.error_for_status()?.text().await
    }));
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
