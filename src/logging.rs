//! Logs: readable on a terminal, JSON otherwise, and no secret in either.

use crate::config::{Config, LogLevel};
use pudu_client::net::scrub;
use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Arc,
};
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Starts logging to standard error. The configured level holds for pudu, its libraries speak up from
/// warnings on; `filter` (from `RUST_LOG`) wins over both. What is known to be secret is hidden.
pub(crate) fn start(config: &Config, filter: Option<&str>) {
    begin(config, filter, Target::Stderr);
}

/// Like `start`, but writes to a file of its own, in place of the one before: for a process whose standard
/// error is a person's screen.
pub(crate) fn start_in_file(config: &Config, filter: Option<&str>, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    begin(config, filter, Target::File(Arc::new(File::create(path)?)));
    Ok(())
}

fn begin(config: &Config, filter: Option<&str>, target: Target) {
    let level = level(config.fixed.log_level);
    let plain = format!(
        "warn,pudu={level},pudu_channels={level},pudu_client={level},pudu_harness={level},pudu_store={level},pudu_mcp={level}"
    );
    let filter =
        filter.and_then(|filter| EnvFilter::try_new(filter).ok()).unwrap_or_else(|| EnvFilter::new(plain));
    let terminal = matches!(target, Target::Stderr) && io::stderr().is_terminal();
    let make = Scrubbing { target };
    let layer = if terminal {
        fmt::layer().with_writer(make).with_target(false).boxed()
    } else {
        fmt::layer().json().flatten_event(true).with_writer(make).boxed()
    };
    // Only tests start it twice.
    tracing_subscriber::registry().with(filter).with(layer).try_init().ok();
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

/// Makes writers that hide secrets.
#[derive(Clone)]
struct Scrubbing {
    target: Target,
}

/// Where a log goes.
#[derive(Clone)]
enum Target {
    Stderr,
    File(Arc<File>),
}

impl fmt::MakeWriter<'_> for Scrubbing {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line { target: self.target.clone(), text: Vec::new() }
    }
}

/// One event, written as a whole so that no secret is torn apart.
struct Line {
    target: Target,
    text: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        let text = scrub::hide(&text);
        let written = match &self.target {
            Target::Stderr => io::stderr().write_all(text.as_bytes()),
            Target::File(file) => file.as_ref().write_all(text.as_bytes()),
        };
        // Nobody is left to tell when the log is gone.
        written.ok();
    }
}
