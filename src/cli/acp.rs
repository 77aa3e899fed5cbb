//! `pudu acp`: an agent for editors, by the Agent Client Protocol over standard input and output, with a running daemon or,
//! if there is none, with one in this process. A session is a thread, and a prompt is a run.
//!
//! Deliberately absent: files and terminals of the editor. The agent works with the files of its thread, in its sandbox.

mod failure;
mod frames;
mod history;
mod prompt;
mod server;
mod session;

use super::{
    chat::api::Api,
    place::{DaemonPlace, OwnDaemon, RunningDaemon},
    run,
};
use anyhow::Result;
use pudu_acp::rpc;
use pudu_config::{LoadedConfig, Start};
use server::AcpServer;
use std::{process::ExitCode, time::Duration};
use tokio::time::timeout;

/// How long the answers to an editor that has closed its end may take to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: DaemonPlace,
    /// Custom agent (default: the lead agent).
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// Serves an editor until it closes standard input.
pub(super) fn acp(start: Start, args: Args) -> ExitCode {
    let loaded = match args.place.load(&start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return run::fail(&error.into()),
    };
    let ended = runtime.block_on(serve(start, loaded, args));
    // An open read of standard input must not keep the process alive.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => run::fail(&error),
    }
}

async fn serve(start: Start, loaded: Option<LoadedConfig>, args: Args) -> Result<()> {
    match args.place.running(&start, loaded.as_ref()).await? {
        RunningDaemon::At { api, .. } => {
            talk(api, args.agent).await;
            Ok(())
        }
        RunningDaemon::None(loaded) => {
            let own = Box::pin(OwnDaemon::start(start, loaded.clone(), "acp.log")).await?;
            talk(own.api, args.agent).await;
            own.daemon.drain().await;
            Ok(())
        }
    }
}

/// Answers the editor until it closes its end.
async fn talk(api: Api, agent: Option<String>) {
    let (peer, reader, writing) = rpc::connect(tokio::io::stdin(), tokio::io::stdout());
    AcpServer::new(api, agent, peer).serve(reader).await;
    timeout(WRITE_TIMEOUT, writing).await.ok();
}
