//! Paths of artifacts, and their media types.

use pudu_base::SandboxError;

/// Prefix of every artifact's path.
const ROOT: &str = "mnt/user-data/";
/// Folders below [`ROOT`] whose files may be shown.
const SHOWN: [&str; 2] = ["outputs/", "uploads/"];
/// Suffix of archives whose files may be shown.
const ARCHIVE: &str = ".skill/";
/// Number of bytes read to distinguish text from other data.
pub const HEAD: u64 = 8 * 1024;

/// Reason why an artifact is not available.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The path contains `.` or `..` as a part, a backslash or a NUL.
    #[error("Access denied: path traversal detected")]
    Traversal,
    /// The path is outside of the thread's files.
    #[error("the path must begin with mnt/user-data/")]
    Unknown,
    /// The path belongs to the agent's private files.
    #[error("Access denied: only outputs and uploads are shown")]
    Hidden,
    /// The archive is too large.
    #[error("the archive is too large to open")]
    LargeArchive,
    /// The archive is invalid, or does not contain the file, or the file is too large.
    #[error("the file cannot be read from the archive: {0}")]
    Archived(String),
    /// The file is not a document.
    #[error("the file is not a document, so it has no text")]
    NoDocument,
    /// The document's text cannot be read.
    #[error("the text of the document cannot be read: {0}")]
    Unreadable(String),
    /// The file cannot be opened.
    #[error(transparent)]
    Files(#[from] SandboxError),
}

/// Converts the path of a URL to the agent's path.
///
/// # Errors
/// When the path may not be shown.
pub fn path(path: &str) -> Result<String, ArtifactError> {
    let path = path.trim_start_matches('/');
    if path.contains(['\0', '\\']) || path.split('/').any(|part| matches!(part, ".." | ".")) {
        return Err(ArtifactError::Traversal);
    }
    let inner = path.strip_prefix(ROOT).ok_or(ArtifactError::Unknown)?;
    match SHOWN.iter().any(|folder| inner.starts_with(folder)) {
        true => Ok(format!("/{path}")),
        false => Err(ArtifactError::Hidden),
    }
}

/// Splits a path into the path of an archive and the path of a file inside it; `None` if the path leads into no
/// archive.
#[must_use]
pub fn archived(path: &str) -> Option<(String, &str)> {
    let (archive, inner) = path.split_once(ARCHIVE)?;
    Some((format!("{archive}{}", ARCHIVE.trim_end_matches('/')), inner))
}

/// Returns the media type of a file, guessed from its name or else from its first [`HEAD`] bytes.
#[must_use]
pub fn media_type(name: &str, head: &[u8]) -> &'static str {
    let is_text = || !head.contains(&0);
    let guessed = mime_guess::from_path(name).first_raw();
    guessed.unwrap_or_else(|| if is_text() { "text/plain" } else { "application/octet-stream" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_is_guessed_from_the_name_or_the_bytes() {
        for (name, head, expect) in [
            ("a.png", &b""[..], "image/png"),
            ("LICENSE", b"MIT", "text/plain"),
            ("LICENSE", b"\0", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name, head), expect, "{name}");
        }
    }
}
