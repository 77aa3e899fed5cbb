//! The agent's own tools, one a file. Failures are texts from which a model can mend its call.
//!
//! What is deliberately absent: any guard by the text of a command or path. The sandbox is the boundary.

mod bash;
mod cut;
mod ls;
mod present_files;
mod read_file;
mod str_replace;
mod write_file;

use pudu_base::{SandboxError, Tool, ToolError, erase};
use std::{sync::Arc, time::Duration};

/// How much tools return, in characters, and how long a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What `bash` returns at most; its middle is cut.
    pub bash: usize,
    /// What `read_file` returns at most; its end is cut.
    pub read_file: usize,
    /// What `ls` returns at most; its end is cut.
    pub ls: usize,
    /// How long a command may run.
    pub bash_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bash: 20_000, read_file: 50_000, ls: 20_000, bash_timeout: Duration::from_secs(600) }
    }
}

/// The names of all tools here, for whoever checks a configuration.
pub const NAMES: [&str; 6] = ["ls", "read_file", "write_file", "str_replace", "bash", "present_files"];

/// Returns a tool by its name.
#[must_use]
pub fn tool(name: &str, limits: Limits) -> Option<Arc<dyn Tool>> {
    Some(match name {
        "ls" => erase(ls::Ls(limits.ls)),
        "read_file" => erase(read_file::ReadFile(limits.read_file)),
        "write_file" => erase(write_file::WriteFile),
        "str_replace" => erase(str_replace::StrReplace),
        "bash" => erase(bash::Bash { most: limits.bash, timeout: limits.bash_timeout }),
        "present_files" => erase(present_files::PresentFiles),
        _ => return None,
    })
}

/// The largest file that a tool reads, in bytes.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

// Not `From`: neither type is ours.
#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
fn failed(error: SandboxError) -> ToolError {
    ToolError(error.to_string())
}

/// Reads a file that has to be text.
async fn read_text(sandbox: &dyn pudu_base::Sandbox, path: &str) -> Result<String, ToolError> {
    let bytes = sandbox.read(path, LARGEST_FILE).await.map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| ToolError(format!("{path} is not a text file in UTF-8")))
}

#[cfg(test)]
mod tests;
