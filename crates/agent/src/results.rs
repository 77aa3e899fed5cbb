//! Stores a thread's long results in a folder of its outputs. The daemon writes them, not the agent.

use pudu_base::{BoxFuture, MessageId, ResultFiles, SandboxError};
use pudu_sandbox::ThreadFiles;
use std::sync::Arc;

/// Default folder of results below the outputs.
pub const FOLDER: &str = ".tool-results";
/// Number of hex digits in a file name that make it unique.
const DIGITS: usize = 12;
/// The tool whose results are stored as logs, and not as text files.
const LOGS: &str = "bash";

/// One thread's results.
pub(crate) struct ThreadResults {
    pub(crate) files: ThreadFiles,
    pub(crate) folder: Arc<str>,
}

impl ResultFiles for ThreadResults {
    fn keep<'a>(&'a self, tool: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, SandboxError>> {
        let ending = if tool == LOGS { "log" } else { "txt" };
        Box::pin(async move { self.files.keep_result(&self.folder, &name(tool, ending), text.into()).await })
    }

    fn keep_image<'a>(
        &'a self,
        tool: &'a str,
        ending: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<String, SandboxError>> {
        Box::pin(async move { self.files.keep_result(&self.folder, &name(tool, ending), bytes).await })
    }
}

/// Returns an unused name.
fn name(tool: &str, ending: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let tool: String = tool.chars().take(64).map(plain).collect();
    let id = MessageId::fresh().to_string();
    // The end of an id is random; its beginning is a timestamp.
    let digits: String = id.split_at(id.len().saturating_sub(DIGITS)).1.to_owned();
    format!("{tool}-{digits}.{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_contains_the_tool_and_is_unique() {
        let parts = |tool: &str, ending: &str| {
            let name = name(tool, ending);
            let (tool, rest) = name.rsplit_once('-').unwrap();
            let (digits, kind) = rest.split_once('.').unwrap();
            assert!(digits.len() == DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
            (tool.to_owned(), kind.to_owned())
        };
        assert_eq!(parts("bash", "log"), ("bash".into(), "log".into()));
        assert_eq!(parts("git_log", "txt"), ("git_log".into(), "txt".into()));
        assert_eq!(parts("../a/ü", "png"), ("---a--".into(), "png".into()));
        assert_ne!(name("bash", "log"), name("bash", "log"));
    }
}
