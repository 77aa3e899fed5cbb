//! Runs a command in a Pod over the API server's WebSocket: input, outputs and exit code.

use super::trouble::ClusterError;
use futures_util::future::{BoxFuture, FutureExt};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Status};
use kube::{
    Api,
    api::{AttachParams, AttachedProcess},
};
use std::{pin::pin, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Size of the buffer for each output, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;
/// Timeout for the start of an exec.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Target of a command: a container in a Pod.
#[derive(Clone)]
pub(crate) struct ExecTarget {
    pub(crate) pods: Api<Pod>,
    pub(crate) pod: String,
    pub(crate) container: &'static str,
}

/// A running command. Dropping it closes the connection but does not end the command. Only `end` reports a broken
/// connection, because the library leaves the outputs open in this case.
pub(crate) struct PodExec {
    process: AttachedProcess,
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves to the exit code, or to an error if the connection broke.
    pub(crate) end: BoxFuture<'static, Result<i32, ClusterError>>,
}

/// Result of a short script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExecOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl ExecTarget {
    /// Starts a command.
    pub(crate) async fn start(&self, command: &[&str]) -> Result<PodExec, ClusterError> {
        let how = AttachParams::default()
            .container(self.container)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .max_stdout_buf_size(BUFFER_BYTES)
            .max_stderr_buf_size(BUFFER_BYTES);
        let opening = self.pods.exec(&self.pod, command.iter().copied(), &how);
        let opened = tokio::time::timeout(START_TIMEOUT, opening).await;
        let mut process = opened.map_err(|_| ClusterError::timed_out("an exec did not start"))??;
        let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
        let end = process.take_status();
        let (Some(stdin), Some(stdout), Some(stderr), Some(end)) = (stdin, stdout, stderr, end) else {
            return Err(ClusterError::Broken("the exec has no streams".to_owned()));
        };
        Ok(PodExec {
            process,
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            end: end.map(code).boxed(),
        })
    }

    /// Runs one of our short scripts and keeps at most `most` bytes of its output.
    pub(crate) async fn call(
        &self,
        script: &str,
        args: &[&str],
        most: usize,
        patience: Duration,
    ) -> Result<ExecOutput, ClusterError> {
        let command: Vec<&str> =
            ["/bin/sh", "-c", script, "pudu"].into_iter().chain(args.iter().copied()).collect();
        let work = async {
            let running = self.start(&command).await?;
            let PodExec { process, stdin, stdout, stderr, mut end } = running;
            let mut reading = pin!(async { tokio::join!(begins(stdout, most), begins(stderr, most)) });
            let (code, (stdout, stderr)) = tokio::select! {
                read = &mut reading => (end.await?, read),
                code = &mut end => (code?, reading.await),
            };
            drop((process, stdin));
            Ok(ExecOutput { code, stdout, stderr: String::from_utf8_lossy(&stderr).trim().to_owned() })
        };
        tokio::time::timeout(patience, work)
            .await
            .map_err(|_| ClusterError::timed_out("an exec did not end"))?
    }
}

impl PodExec {
    /// Sends the command's input. The stream stays open, because the older of the two protocols cannot close it
    /// separately, so the reader has to know the length.
    pub(crate) async fn feed(&mut self, bytes: &[u8]) -> Result<(), ClusterError> {
        let sent = async {
            self.stdin.write_all(bytes).await?;
            self.stdin.flush().await
        };
        sent.await.map_err(|_| {
            ClusterError::Broken("the connection was lost before the command started".to_owned())
        })
    }

    /// Closes the connection.
    pub(crate) fn cut(self) {
        self.process.abort();
    }
}

/// Reads to the end, and keeps at most the first `max_bytes` bytes.
async fn begins(mut from: impl AsyncRead + Unpin, max_bytes: usize) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    // A broken connection is reported by `end`.
    while let Ok(count) = from.read(&mut buffer).await {
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        let room = max_bytes.saturating_sub(kept.len());
        kept.extend(bytes.iter().take(room));
    }
    kept
}

/// Parses the exit code from the status channel.
fn code(status: Option<Status>) -> Result<i32, ClusterError> {
    let Some(status) = status else {
        return Err(ClusterError::Broken("the connection to the cluster was lost".to_owned()));
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let exit = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = exit.and_then(|cause| cause.message.as_deref()?.trim().parse().ok());
    code.ok_or_else(|| {
        ClusterError::Broken(super::trouble::plain(status.message.as_deref().unwrap_or("an exec failed")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_exit_code_is_parsed_from_the_status_channel() {
        let check = |status, expect: Result<i32, &str>| {
            let status = serde_json::from_value(status).unwrap();
            assert_eq!(
                code(Some(status)).map_err(|trouble| trouble.to_string()),
                expect.map_err(str::to_owned)
            );
        };
        check(json!({"metadata": {}, "status": "Success"}), Ok(0));
        check(
            json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": "command terminated with non-zero exit code: exit status 7",
                "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}
            }),
            Ok(7),
        );
        check(
            json!({"metadata": {}, "status": "Failure", "message": "container is gone", "reason": "InternalError"}),
            Err("container is gone"),
        );
        assert!(code(None).is_err());
    }
}
