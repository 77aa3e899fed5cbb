//! Reads text files for the tools, and maps errors to texts for the model.

use pudu_base::{Sandbox, SandboxError, ToolError};
use pudu_documents::{
    DocumentKind,
    text::{EncodeError, TextFile},
};

/// Maximum size of a file that a tool reads or writes, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Length of the beginning that reveals whether a file is a document, in bytes.
const HEAD: usize = 4096;

// Not `From`, because both types are foreign.
#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
pub(crate) fn failed(error: SandboxError) -> ToolError {
    ToolError(error.to_string())
}

/// Fails if a text file would become too large for the tools to read.
pub(crate) fn check_size(path: &str, size: u64) -> Result<(), ToolError> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(ToolError(format!(
        "{path} would have {size} bytes, more than the limit of {MAX_FILE_BYTES} for text files; write less, \
         or use bash"
    )))
}

/// Reads a file that has to be text.
pub(crate) async fn read_text(sandbox: &dyn Sandbox, path: &str) -> Result<TextFile, ToolError> {
    text(read(sandbox, path).await?, path)
}

/// Reads a file.
pub(crate) async fn read(sandbox: &dyn Sandbox, path: &str) -> Result<Vec<u8>, ToolError> {
    sandbox.read(path, MAX_FILE_BYTES).await.map_err(failed)
}

/// Decodes the bytes of a file as text.
pub(crate) fn text(bytes: Vec<u8>, path: &str) -> Result<TextFile, ToolError> {
    let head = bytes.get(..HEAD).unwrap_or(&bytes);
    let advice = if DocumentKind::may_be_document(head, "") {
        ", but a document; an uploaded document has its text next to it as Markdown; use bash for other \
         documents"
    } else {
        ""
    };
    TextFile::read(bytes).map_err(|why| ToolError(format!("{path} is not a text file: {why}{advice}")))
}

/// Adds notes about a file's encoding and invalid bytes to a tool's result.
pub(crate) fn with_notes(mut text: String, file: &TextFile) -> String {
    let name = file.encoding.name();
    if !file.encoding.is_utf8() {
        text.push_str(&format!("\n[the encoding of the file is {name}; changes keep it]"));
    }
    if file.is_damaged() {
        text.push_str(&format!("\n[bytes that are not valid {name} are shown as \u{FFFD}]"));
    }
    text
}

/// Returns the error for new text that cannot be encoded like its file.
pub(crate) fn unencodable(path: &str, error: EncodeError) -> ToolError {
    ToolError(format!("{path} was not changed: {error}"))
}
