//! Logs without secrets: readable text on a terminal, JSON otherwise.

use pudu_config::{Config, LogLevel};
use pudu_net::scrub;
use serde_json::json;
use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tracing::{Dispatch, Metadata, subscriber::DefaultGuard};
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Maximum length of a log line, in bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Maximum number of log lines of libraries per minute.
const LIBRARY_LINES: u32 = 100;
const MINUTE: Duration = Duration::from_secs(60);

/// Starts logging to standard error. The configured level applies to pudu; libraries log warnings and errors. `filter`
/// (from `RUST_LOG`) overrides both. Known secrets are hidden.
pub fn start(config: &Config, filter: Option<&str>) {
    begin(config, filter, LogTarget::Stderr);
}

/// Like `start`, but writes to a new file that replaces the previous one: for a process whose standard error is a
/// person's screen.
pub fn start_in_file(config: &Config, filter: Option<&str>, path: &Path) -> io::Result<()> {
    begin(config, filter, LogTarget::File(Arc::new(File::create(path)?)));
    Ok(())
}

/// Returns a log for individual threads of a process, which writes to `file`: see [`enter`].
pub fn for_threads(config: &Config, filter: Option<&str>, file: Arc<File>) -> Dispatch {
    log(config, filter, LogTarget::File(file))
}

/// Returns a log for errors only, which writes to standard error: for commands, which print everything else themselves.
pub fn errors(config: &Config) -> Dispatch {
    log(config, Some("error"), LogTarget::Stderr)
}

/// Makes this thread write to a log until the guard is dropped.
pub fn enter(log: &Dispatch) -> DefaultGuard {
    log.clone().set_default()
}

fn begin(config: &Config, filter: Option<&str>, target: LogTarget) {
    // Only tests start it twice.
    log(config, filter, target).try_init().ok();
}

fn log(config: &Config, filter: Option<&str>, target: LogTarget) -> Dispatch {
    let level = level(config.fixed.log_level);
    // The first part of a target is enough: it matches every crate of the workspace.
    let plain = format!("warn,html5ever=off,pudu={level}");
    let filter =
        filter.and_then(|filter| EnvFilter::try_new(filter).ok()).unwrap_or_else(|| EnvFilter::new(plain));
    let terminal = matches!(target, LogTarget::Stderr) && io::stderr().is_terminal();
    let make = Scrubbing { target, flood: Arc::default() };
    let layer = if terminal {
        fmt::layer().with_writer(make).with_target(false).boxed()
    } else {
        fmt::layer().json().flatten_event(true).with_writer(make).boxed()
    };
    tracing_subscriber::registry().with(filter).with(layer).into()
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

/// Creates writers that hide secrets.
#[derive(Clone)]
struct Scrubbing {
    target: LogTarget,
    flood: Arc<Mutex<Flood>>,
}

/// Log lines of libraries within the last minute. Malicious input can trigger any number of warnings.
#[derive(Default)]
struct Flood {
    since: Option<Instant>,
    lines: u32,
}

impl Flood {
    /// Counts a line. Returns whether it exceeds the limit, and whether it is the last line within it.
    fn count(&mut self, now: Instant) -> (bool, bool) {
        if self.since.is_none_or(|since| now.duration_since(since) >= MINUTE) {
            *self = Self { since: Some(now), lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        (self.lines > LIBRARY_LINES, self.lines == LIBRARY_LINES)
    }
}

/// Destination of a log.
#[derive(Clone)]
enum LogTarget {
    Stderr,
    File(Arc<File>),
}

impl Scrubbing {
    fn line(&self, fate: LineFate) -> LogLine {
        LogLine { target: self.target.clone(), text: Vec::new(), fate }
    }
}

impl fmt::MakeWriter<'_> for Scrubbing {
    type Writer = LogLine;

    fn make_writer(&self) -> LogLine {
        self.line(LineFate::Said)
    }

    fn make_writer_for(&self, about: &Metadata<'_>) -> LogLine {
        let fate = match about.target() {
            target if target.starts_with("pudu") => LineFate::Said,
            _ => match self.flood.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now()) {
                (true, _) => LineFate::Dropped,
                (false, true) => LineFate::Last,
                (false, false) => LineFate::Said,
            },
        };
        self.line(fate)
    }
}

/// Decision about a log line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineFate {
    Said,
    /// Written, with a note that more lines were dropped.
    Last,
    Dropped,
}

/// One event, written as a whole so that no secret is split.
struct LogLine {
    target: LogTarget,
    text: Vec<u8>,
    fate: LineFate,
}

impl LogLine {
    /// Returns the text to write, shortened if it exceeds the limit.
    fn render(&self) -> String {
        let text = scrub::hide_in_log(&String::from_utf8_lossy(&self.text)).into_owned();
        let mut shown = if text.len() <= MAX_LINE_BYTES {
            text
        } else {
            let beginning = text.get(..text.floor_char_boundary(MAX_LINE_BYTES)).unwrap_or_default();
            match text.starts_with('{') {
                true => format!("{}\n", json!({ "cut_line": beginning, "bytes": text.len() })),
                false => format!("{beginning}… ({} bytes)\n", text.len()),
            }
        };
        if self.fate == LineFate::Last {
            let words = "suppressing further log lines of libraries for a minute";
            shown.push_str(&if shown.starts_with('{') {
                format!("{}\n", json!({ "level": "WARN", "message": words }))
            } else {
                format!(" WARN {words}\n")
            });
        }
        shown
    }
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        if self.fate == LineFate::Dropped {
            return;
        }
        let text = self.render();
        let written = match &self.target {
            LogTarget::Stderr => io::stderr().write_all(text.as_bytes()),
            LogTarget::File(file) => file.as_ref().write_all(text.as_bytes()),
        };
        // A failure to write a log cannot be logged.
        written.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_line(text: &str, fate: LineFate) -> String {
        let target = LogTarget::File(Arc::new(tempfile::tempfile().unwrap()));
        LogLine { target, text: text.into(), fate }.render()
    }

    #[test]
    fn a_line_is_bounded_and_keeps_its_format() {
        assert_eq!(render_line("short\n", LineFate::Said), "short\n");
        let long = format!("{{\"message\":\"{}\"}}\n", "ü\\".repeat(MAX_LINE_BYTES));
        let cut: serde_json::Value = serde_json::from_str(&render_line(&long, LineFate::Said)).unwrap();
        assert_eq!(cut["bytes"], long.len());
        assert!(cut["cut_line"].as_str().unwrap().len() > MAX_LINE_BYTES - 4);
        assert!(render_line(&"x".repeat(2 * MAX_LINE_BYTES), LineFate::Said).ends_with("… (32768 bytes)\n"));
        let last = render_line("{\"a\":1}\n", LineFate::Last);
        assert!(last.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{last}");
        assert_eq!(last.lines().count(), 2);
    }

    #[test]
    fn lines_of_libraries_are_limited_per_minute() {
        let (mut flood, start) = (Flood::default(), Instant::now());
        for line in 1..LIBRARY_LINES {
            assert_eq!(flood.count(start), (false, false), "{line}");
        }
        assert_eq!((flood.count(start), flood.count(start)), ((false, true), (true, false)));
        assert_eq!(flood.count(start + MINUTE), (false, false));
    }
}
