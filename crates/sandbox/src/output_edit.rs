//! Applies a user's edits to the agent's text files.

use crate::{ROOT, failure::failed, files::Files, mounts::OUTPUTS, share};
use pudu_base::{SandboxError, digest};
use std::io::Read;

/// New text for a file in the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputEdit {
    /// The text.
    pub text: String,
    /// Hexadecimal SHA-256 of the file when the user read it.
    pub expected_sha256: String,
    /// Maximum size of the file, in bytes.
    pub max_bytes: u64,
}

/// Outcome of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputEdited {
    /// The file has the new text.
    Written {
        /// The file's new SHA-256, in hexadecimal.
        sha256: String,
        /// The file's new size, in bytes.
        size: u64,
    },
    /// The file has changed since the user read it.
    Stale,
    /// The file is not text.
    NotText,
    /// The file or the new text is too large.
    TooLarge,
}

/// Rewrites a text file of the outputs.
pub(crate) fn edit(files: &Files, path: &str, edit: &OutputEdit) -> Result<OutputEdited, SandboxError> {
    if !path.starts_with(&format!("{ROOT}/{OUTPUTS}/")) {
        return Err(SandboxError::Outside { path: path.to_owned() });
    }
    share::inner(path)?;
    let (file, size) = share::open(files.existing(path)?, path)?;
    if size > edit.max_bytes || edit.text.len() as u64 > edit.max_bytes {
        return Ok(OutputEdited::TooLarge);
    }
    let mut bytes = Vec::new();
    let read = file.take(edit.max_bytes).read_to_end(&mut bytes);
    read.map_err(|error| failed(path, error))?;
    if std::str::from_utf8(&bytes).is_err() || bytes.contains(&0) {
        return Ok(OutputEdited::NotText);
    }
    if !digest(&bytes).eq_ignore_ascii_case(&edit.expected_sha256) {
        return Ok(OutputEdited::Stale);
    }
    files.write(path, edit.text.as_bytes(), false)?;
    Ok(OutputEdited::Written { sha256: digest(&edit.text), size: edit.text.len() as u64 })
}
