//! The agent's own tools, one per file. Error texts help a model to fix its call.
//!
//! Deliberately absent: guards that inspect the text of a command or path. The boundary is the sandbox and, for network
//! access, the guard of `pudu-net` (`web.rs`).

mod ask_clarification;
mod bash;
mod edit;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod glob;
mod grep;
mod line_ends;
mod list_uploaded_files;
mod ls;
mod mark;
mod names;
mod present_files;
mod read_file;
mod str_replace;
mod text_file;
mod view_image;
pub mod web;
mod write_file;
mod write_todos;

use pudu_base::{Network, Shell, Tool, erase};
use std::{sync::Arc, time::Duration};

/// Output limits of tools, in characters, and the timeout and shell of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Maximum length of the output of `bash`; its middle is cut.
    pub bash: usize,
    /// Maximum length of the output of `read_file`; its end is cut.
    pub read_file: usize,
    /// Maximum length of the output of `ls`; its end is cut.
    pub ls: usize,
    /// Timeout of a command.
    pub bash_timeout: Duration,
    /// Shell that runs the commands.
    pub shell: Shell,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            bash: 20_000,
            read_file: 50_000,
            ls: 20_000,
            bash_timeout: Duration::from_secs(600),
            shell: Shell::Confined(Network::None),
        }
    }
}

/// Names of all tools in this crate except the web tools, for checking a configuration.
pub const NAMES: [&str; 12] = [
    "ls",
    "read_file",
    "write_file",
    "str_replace",
    "glob",
    "grep",
    "bash",
    "present_files",
    "list_uploaded_files",
    "view_image",
    "ask_clarification",
    "write_todos",
];

/// Names of the tools that every agent has.
pub const BUILT_IN: [&str; 3] = ["ask_clarification", "write_todos", "view_image"];

/// Returns the tool with this name.
#[must_use]
pub fn tool(name: &str, limits: ToolLimits) -> Option<Arc<dyn Tool>> {
    Some(match name {
        "ls" => erase(ls::Ls(limits.ls)),
        "read_file" => erase(read_file::ReadFile(limits.read_file)),
        "write_file" => erase(write_file::WriteFile),
        "str_replace" => erase(str_replace::StrReplace),
        "bash" => erase(bash::Bash { most: limits.bash, timeout: limits.bash_timeout, shell: limits.shell }),
        "glob" => erase(glob::GlobTool),
        "grep" => erase(grep::Grep),
        "present_files" => erase(present_files::PresentFiles),
        "view_image" => erase(view_image::ViewImage),
        "ask_clarification" => erase(ask_clarification::AskClarification),
        "write_todos" => erase(write_todos::WriteTodos),
        "list_uploaded_files" => erase(list_uploaded_files::ListUploadedFiles),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
