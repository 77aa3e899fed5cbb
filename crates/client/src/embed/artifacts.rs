//! Artifacts, as served by the gateway: files of a thread, and files inside skill archives.

use crate::Client;
use pudu_base::{SandboxError, ThreadId, foreign};
use pudu_documents::{Document, Error, member};
use pudu_langgraph::artifact::{self, ArtifactError};
use std::{fmt::Write, fs::File, io::Read};

/// Maximum size of an artifact that is read into memory, and of an archive that is opened, in bytes.
const MAX_ARTIFACT_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of a file that is taken from an archive, in bytes.
const MAX_MEMBER_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum length of a warning about a document, in characters.
const WARNING_CHARS: usize = 300;

/// An existing artifact.
#[derive(Debug)]
pub enum Artifact {
    /// A file, with its size in bytes.
    File(File, u64),
    /// A file in an archive.
    Member(Vec<u8>),
}

impl Client {
    /// Opens a file of a thread by its path, such as `mnt/user-data/outputs/report.md`. A concurrent command cannot
    /// redirect the path to another file.
    ///
    /// # Errors
    /// If the path does not name an artifact, or cannot be opened.
    pub async fn open_artifact(&self, thread: &ThreadId, path: &str) -> Result<Artifact, ArtifactError> {
        let path = artifact::path(path)?;
        let files = self.agent().files(thread).await?;
        let Some((archive, inner)) = artifact::archived(&path) else {
            let (file, size) = files.open(&path).await?;
            return Ok(Artifact::File(file, size));
        };
        let (file, size) = files.open(&archive).await?;
        if size > MAX_ARTIFACT_BYTES {
            return Err(ArtifactError::LargeArchive);
        }
        let inner = inner.to_owned();
        let read = tokio::task::spawn_blocking(move || member(file, &inner, MAX_MEMBER_BYTES)).await;
        let read = read.map_err(|error| ArtifactError::Archived(error.to_string()))?;
        read.map(Artifact::Member).map_err(|error| ArtifactError::Archived(error.to_string()))
    }

    /// Returns the text of a document as Markdown, preceded by a quoted line for each part that is missing or may be
    /// wrong.
    ///
    /// # Errors
    /// If the file is not a document, its text cannot be read, or the path does not name an artifact.
    pub async fn artifact_text(&self, thread: &ThreadId, path: &str) -> Result<String, ArtifactError> {
        let Artifact::File(file, _) = self.open_artifact(thread, path).await? else {
            return Err(ArtifactError::NoDocument);
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        match self.agent().setup().documents.convert(file, name).await {
            Ok(document) => Ok(noted(&document)),
            Err(Error::Unknown) => Err(ArtifactError::NoDocument),
            Err(error) => {
                tracing::info!(%thread, path, %error, "failed to read document");
                Err(ArtifactError::Unreadable(error.to_string()))
            }
        }
    }

    /// Returns the bytes of an artifact, at most 64 MiB, and their media type.
    ///
    /// # Errors
    /// If the path does not name an artifact, cannot be read, or the artifact is larger.
    pub async fn get_artifact(
        &self,
        thread: &ThreadId,
        path: &str,
    ) -> Result<(Vec<u8>, &'static str), ArtifactError> {
        let bytes = match self.open_artifact(thread, path).await? {
            Artifact::Member(bytes) => bytes,
            Artifact::File(_, size) if size > MAX_ARTIFACT_BYTES => {
                let (path, limit) = (path.to_owned(), MAX_ARTIFACT_BYTES);
                return Err(SandboxError::TooLarge { path, size, limit }.into());
            }
            Artifact::File(file, _) => {
                let failed = |source| SandboxError::Io { path: path.to_owned(), source };
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = Vec::new();
                    // A concurrent command may extend the file.
                    file.take(MAX_ARTIFACT_BYTES).read_to_end(&mut bytes).map(|_| bytes)
                });
                read.await.map_err(std::io::Error::other).and_then(|read| read).map_err(failed)?
            }
        };
        let head = usize::try_from(artifact::HEAD).unwrap_or(usize::MAX);
        let kind = artifact::media_type(path, bytes.get(..head).unwrap_or(&bytes));
        Ok((bytes, kind))
    }
}

/// Returns the text of a document after its warnings.
fn noted(document: &Document) -> String {
    let mut text = String::new();
    for warning in &document.warnings {
        let _ = write!(text, "> {}\n\n", foreign::line(warning, WARNING_CHARS));
    }
    text + &document.markdown
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_documents::{DocumentLimits, convert};

    #[test]
    fn warnings_about_a_document_precede_its_text() {
        let read = |rtf: &[u8]| noted(&convert(rtf, "a.rtf", &DocumentLimits::default()).unwrap());
        assert_eq!(read(b"{\\rtf1 words\\par}"), "words\n");
        assert_eq!(
            read(b"{\\rtf1{\\pict 00}{\\header top}words\\par}"),
            "> 1 pictures in it are not shown\n\n> 1 page headers and footers in it are not shown\n\nwords\n"
        );
    }
}
