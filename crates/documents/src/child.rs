//! The child process: limits its own resources, reads the document from its standard input, and writes the result to
//! its standard output.

use crate::{Document, DocumentLimits, Error, convert};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

/// Environment variable with the request. A child has no other variables.
pub(crate) const WISH: &str = "PUDU_DOCUMENT";

/// Task of a child process.
#[derive(Serialize, Deserialize)]
pub(crate) struct ConversionRequest {
    pub(crate) name: String,
    pub(crate) limits: DocumentLimits,
}

/// Result of a child process.
pub(crate) type ConversionReply = Result<Document, Error>;

/// Converts one document as a child process of a [`crate::Converter`]. Before any byte is read, `confine` drops the
/// privileges that reading a document does not need; if it fails, nothing is read.
#[must_use]
pub fn serve(confine: impl FnOnce() -> Result<(), String>) -> ExitCode {
    let said =
        std::env::var(WISH).ok().and_then(|text| serde_json::from_str::<ConversionRequest>(&text).ok());
    let Some(request) = said else {
        eprintln!("this program is internal to pudu, which converts documents in separate processes");
        return ExitCode::FAILURE;
    };
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::OutOfMemory => Error::TooHungry,
        _ => Error::Unavailable(error.to_string()),
    };
    let answer = confine()
        .map_err(|why| Error::Unavailable(format!("its reader cannot be sandboxed: {why}")))
        .and_then(|()| bound(&request.limits).map_err(broken))
        .and_then(|()| read_input(&request.limits).map_err(broken))
        .and_then(|bytes| convert(&bytes, &request.name, &request.limits));
    match write_reply(&answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Limits the resources of this process irrevocably.
fn bound(limits: &DocumentLimits) -> io::Result<()> {
    let seconds = limits.time.as_secs().max(1);
    for (resource, most) in [
        (Resource::As, limits.memory),
        (Resource::Cpu, seconds),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 16),
    ] {
        // macOS cannot limit the address space. The limits that it supports apply anyway.
        let bounded = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
        if !cfg!(target_os = "macos") {
            bounded?;
        }
    }
    Ok(())
}

fn read_input(limits: &DocumentLimits) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(limits.input.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_reply(answer: &ConversionReply) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&serde_json::to_vec(answer)?)?;
    out.flush()
}
