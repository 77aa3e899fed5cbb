//! The parent process: starts one child process per document, with limits on concurrency and time.

use crate::{
    Document, DocumentLimits, Error,
    child::{ConversionReply, ConversionRequest, WISH},
    convert,
};
use rustix::process::Signal;
use std::{
    ffi::OsString,
    fs::File,
    io::Read,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    sync::Semaphore,
    time::timeout,
};

/// Maximum number of concurrent conversions. Further ones wait.
const MAX_CONCURRENT_CONVERSIONS: usize = 2;
/// Maximum size of one byte of text after JSON escaping, in bytes.
const WIDEST: u64 = 6;
/// Maximum number of bytes kept from a child's error output.
const COMPLAINT: u64 = 4 * 1024;

/// Converts documents.
#[derive(Clone)]
pub struct Converter {
    /// Program of the child process and its arguments; `None` converts in this process.
    child: Option<(PathBuf, Vec<OsString>)>,
    limits: Arc<DocumentLimits>,
    room: Arc<Semaphore>,
}

impl Converter {
    /// Creates a converter that works in this process. All limits apply except those on time and memory, and a PDF
    /// whose compressed data is nested too deeply crashes the process.
    #[must_use]
    pub fn in_process(limits: DocumentLimits) -> Self {
        Self {
            child: None,
            limits: Arc::new(limits),
            room: Arc::new(Semaphore::new(MAX_CONCURRENT_CONVERSIONS)),
        }
    }

    /// Creates a converter that starts a process of `program` for each document. The program must call [`crate::serve`]
    /// when it is started with `args`.
    #[must_use]
    pub fn child(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
        limits: DocumentLimits,
    ) -> Self {
        let child = Some((program.into(), args.into_iter().map(Into::into).collect()));
        Self { child, ..Self::in_process(limits) }
    }

    /// Converts a file. `name` is the sender's name for it.
    ///
    /// # Errors
    /// When the file is not a document or cannot be read; see [`Error`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the child.
    pub async fn convert(&self, file: File, name: &str) -> Result<Document, Error> {
        let size = file.metadata().map_err(unavailable)?.len();
        if size > self.limits.input {
            return Err(Error::TooLarge(format!("it has {size} bytes; the limit is {}", self.limits.input)));
        }
        let _place = self.room.acquire().await.map_err(unavailable)?;
        match &self.child {
            None => self.here_and_now(file, name.to_owned()).await,
            Some((program, args)) => {
                let command = self.command(program, args, file, name)?;
                timeout(self.limits.time, self.ask(command)).await.unwrap_or(Err(Error::TooSlow))
            }
        }
    }

    async fn here_and_now(&self, file: File, name: String) -> Result<Document, Error> {
        let limits = self.limits.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            file.take(limits.input.saturating_add(1)).read_to_end(&mut bytes).map_err(unavailable)?;
            convert(&bytes, &name, &limits)
        });
        work.await.unwrap_or(Err(Error::Broke))
    }

    /// Returns the command for the child, which gets the file as its input and only the request in its environment.
    fn command(
        &self,
        program: &PathBuf,
        args: &[OsString],
        file: File,
        name: &str,
    ) -> Result<Command, Error> {
        let request = ConversionRequest { name: name.to_owned(), limits: (*self.limits).clone() };
        let request = serde_json::to_string(&request).map_err(unavailable)?;
        let mut command = Command::new(program);
        command.args(args).env_clear().env(WISH, request).current_dir("/").kill_on_drop(true);
        command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    async fn ask(&self, mut command: Command) -> Result<Document, Error> {
        let mut child = command.spawn().map_err(unavailable)?;
        let limit = (self.limits.output as u64).saturating_mul(WIDEST).saturating_add(1024 * 1024);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (answer, complaint) = tokio::join!(read(out, limit), read(err, COMPLAINT));
        let status = child.wait().await.map_err(unavailable)?;
        if status.success() {
            return serde_json::from_slice::<ConversionReply>(&answer).unwrap_or(Err(Error::Broke));
        }
        let complaint = String::from_utf8_lossy(&complaint);
        tracing::debug!(%status, %complaint, "failed to run document reader");
        Err(verdict(status, &complaint))
    }
}

/// Maps a child's exit status to the document's error.
fn verdict(status: ExitStatus, complaint: &str) -> Error {
    let signal = status.signal().and_then(Signal::from_named_raw);
    match signal {
        Some(Signal::XCPU | Signal::KILL) => Error::TooSlow,
        Some(Signal::ABORT) if complaint.contains("memory allocation") => Error::TooHungry,
        _ => Error::Broke,
    }
}

/// Reads a pipe to its end, so that the writer never blocks, but keeps only the beginning.
async fn read(pipe: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(mut pipe) = pipe else { return bytes };
    // An error is treated as the end.
    (&mut pipe).take(max_bytes).read_to_end(&mut bytes).await.ok();
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await.ok();
    bytes
}

#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}
