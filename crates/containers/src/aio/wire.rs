//! Request and response types of the API.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Common fields of every response.
#[derive(Debug, Deserialize)]
pub(super) struct AioResponse<T> {
    #[serde(default)]
    pub(super) success: bool,
    pub(super) message: Option<String>,
    pub(super) data: Option<T>,
}

/// Request to run a command in its own process. Times are in seconds.
#[derive(Debug, Serialize)]
pub(super) struct ExecRequest<'a> {
    pub(super) command: &'a str,
    pub(super) session_id: &'a str,
    pub(super) exec_dir: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) env: BTreeMap<&'a str, &'a str>,
    /// How long the API waits for the command before it responds with `running`.
    pub(super) timeout: f64,
    /// How long the command may run before the API kills it.
    pub(super) hard_timeout: f64,
    /// Maximum length of each output in the response, in characters. A longer one loses its middle.
    pub(super) max_output_length: usize,
}

/// Result of a command, or its state so far.
#[derive(Debug, Deserialize)]
pub(super) struct ExecResult {
    #[serde(default)]
    pub(super) command_id: String,
    pub(super) status: CommandStatus,
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    pub(super) exit_code: Option<i32>,
    #[serde(default)]
    pub(super) offset: u64,
    #[serde(default)]
    pub(super) stderr_offset: u64,
}

/// State of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CommandStatus {
    /// The command has not started.
    Pending,
    /// The command is running.
    Running,
    /// The command exited.
    Completed,
    /// The command was killed at its timeout.
    TimedOut,
    /// The command was killed on request.
    Killed,
}

/// Request for the output since the previous call.
#[derive(Debug, Serialize)]
pub(super) struct OutputRequest<'a> {
    pub(super) session_id: &'a str,
    pub(super) command_id: &'a str,
    pub(super) offset: u64,
    pub(super) stderr_offset: u64,
    pub(super) wait: bool,
    pub(super) wait_timeout: f64,
}

/// Output since the previous call.
#[derive(Debug, Deserialize)]
pub(super) struct OutputResult {
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    #[serde(default)]
    pub(super) offset: u64,
    #[serde(default)]
    pub(super) stderr_offset: u64,
    pub(super) command: Option<CommandInfo>,
}

/// Current state of a command.
#[derive(Debug, Deserialize)]
pub(super) struct CommandInfo {
    pub(super) status: CommandStatus,
    pub(super) exit_code: Option<i32>,
}

/// Request to kill a session's command.
#[derive(Debug, Serialize)]
pub(super) struct KillRequest<'a> {
    pub(super) session_id: &'a str,
    pub(super) signal: &'a str,
}

/// Request to write a file.
#[derive(Debug, Serialize)]
pub(super) struct WriteRequest<'a> {
    pub(super) file: &'a str,
    pub(super) content: &'a str,
    pub(super) encoding: &'a str,
    pub(super) append: bool,
}

/// Request to list a folder.
#[derive(Debug, Serialize)]
pub(super) struct ListRequest<'a> {
    pub(super) path: &'a str,
    pub(super) recursive: bool,
    pub(super) show_hidden: bool,
    pub(super) max_depth: usize,
    pub(super) include_size: bool,
}

/// Entries of a folder.
#[derive(Debug, Deserialize)]
pub(super) struct ListResult {
    #[serde(default)]
    pub(super) files: Vec<FileInfo>,
}

/// One entry of a folder.
#[derive(Debug, Deserialize)]
pub(super) struct FileInfo {
    pub(super) path: String,
    pub(super) is_directory: bool,
    pub(super) size: Option<u64>,
}
