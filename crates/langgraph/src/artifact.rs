//! Paths of artifacts, and their media types.

use pudu_base::SandboxError;

/// Prefix of every artifact's path.
const ROOT: &str = "mnt/user-data/";
/// Folders below [`ROOT`] whose files are shown.
const SHOWN: [&str; 2] = ["outputs/", "uploads/"];
/// The ending of archives whose files are shown.
const ARCHIVE: &str = ".skill/";
/// Number of bytes read to distinguish text from other data.
pub const HEAD: u64 = 8 * 1024;

/// Reason why an artifact is not given.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The path leads elsewhere.
    #[error("Access denied: path traversal detected")]
    Traversal,
    /// The path is none of a thread's.
    #[error("the path begins with mnt/user-data/")]
    Unknown,
    /// The path is one of the agent's own.
    #[error("Access denied: only outputs and uploads are shown")]
    Hidden,
    /// The archive is too large.
    #[error("the archive is too large to be looked into")]
    LargeArchive,
    /// The archive is none, or does not have the file, or a smaller one.
    #[error("the file cannot be had from the archive: {0}")]
    Archived(String),
    /// The file is no document.
    #[error("the file is no document, so there is no text to read from it")]
    NoDocument,
    /// The document's text cannot be read.
    #[error("the text of the document cannot be read: {0}")]
    Unreadable(String),
    /// The file cannot be opened.
    #[error(transparent)]
    Files(#[from] SandboxError),
}

/// Turns an address's path into the agent's.
///
/// # Errors
/// When it is none of those that are shown.
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

/// Returns an archive's path, and the path of a file inside it, if this is one.
#[must_use]
pub fn archived(path: &str) -> Option<(String, &str)> {
    let (archive, inner) = path.split_once(ARCHIVE)?;
    Some((format!("{archive}{}", ARCHIVE.trim_end_matches('/')), inner))
}

/// Returns the media type of a file by its name, or else by its first [`HEAD`] bytes.
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
    fn a_media_type_is_known_by_the_name_or_the_bytes() {
        for (name, head, expect) in [
            ("a.png", &b""[..], "image/png"),
            ("LICENSE", b"MIT", "text/plain"),
            ("LICENSE", b"\0", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name, head), expect, "{name}");
        }
    }
}
