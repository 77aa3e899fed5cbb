//! Stores uploaded files among the thread's uploads, and the text of documents as Markdown next to them.

use crate::Agent;
use pudu_base::{
    DocumentText, MessageId, OutlineEntry, ReadOutcome, SandboxError, SharedFile, ThreadId, UnreadCause,
    foreign,
};
use pudu_documents::{Document, DocumentKind, Error, Heading, outline};
use std::{
    fs::File,
    io::{self, Read, Seek},
    path::Path,
};

/// Number of bytes read to detect a document.
const HEAD: u64 = 4096;
/// Maximum length of a document's shown opening, in lines and in characters.
const OPENING: (usize, usize) = (10, 600);
/// Maximum number of uploads that are searched for a document's text.
const MAX_UPLOADS: usize = 10_000;
/// Maximum length of the first line of an extracted text, which contains the document's name, in bytes.
const MARK: u64 = 300;

impl Agent {
    /// Moves a local file into a thread's uploads, under a safe, unused name.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub async fn adopt(
        &self,
        thread: &ThreadId,
        from: &Path,
        name: &str,
    ) -> Result<SharedFile, SandboxError> {
        self.files(thread).await?.adopt(from, name).await
    }

    /// Extracts the text of an upload, if it is a document: the text is stored next to it as Markdown, and the outcome
    /// is set in `file`. Other files stay unchanged.
    pub async fn read_document(&self, thread: &ThreadId, file: &mut SharedFile) {
        file.reading = match self.reading(thread, file).await {
            Ok(text) => Some(ReadOutcome::Text(Box::new(text))),
            Err(Error::Unknown) => None,
            Err(error) => {
                tracing::info!(%thread, file = file.name, %error, "failed to read document");
                Some(ReadOutcome::Failed { reason: error.to_string(), cause: Some(cause(&error)) })
            }
        };
    }

    /// Removes an upload, and the text extracted from it.
    ///
    /// # Errors
    /// If there is no upload with this name, or it cannot be removed.
    pub async fn remove_upload(&self, thread: &ThreadId, name: &str) -> Result<(), SandboxError> {
        let sandbox = self.files(thread).await?;
        sandbox.remove_upload(name).await?;
        let mark = mark(name);
        for upload in sandbox.uploads(MAX_UPLOADS).await?.iter().filter(|upload| upload.name.ends_with(".md"))
        {
            let Ok((found, _)) = sandbox.open(&upload.path).await else { continue };
            if begins(found, MARK).await.is_ok_and(|head| head.starts_with(mark.as_bytes())) {
                sandbox.remove_upload(&upload.name).await?;
            }
        }
        Ok(())
    }

    async fn reading(&self, thread: &ThreadId, file: &SharedFile) -> Result<DocumentText, Error> {
        let sandbox = self.files(thread).await.map_err(unavailable)?;
        let (open, _) = sandbox.open(&file.path).await.map_err(unavailable)?;
        let head = begins(open.try_clone().map_err(unavailable)?, HEAD).await.map_err(unavailable)?;
        if !DocumentKind::may_be_document(&head, &file.name) {
            return Err(Error::Unknown);
        }
        let document = self.setup().documents.convert(open, &file.name).await?;
        let markdown = format!("{}\n\n{}", mark(&file.name), foreign::text(&document.markdown));
        let beside = self.keep(thread, &file.name, &markdown).await.map_err(unavailable)?;
        Ok(document_record(&document, &beside, &markdown))
    }

    /// Stores a text next to its document.
    async fn keep(&self, thread: &ThreadId, name: &str, markdown: &str) -> Result<SharedFile, SandboxError> {
        let failed = |source| SandboxError::Io { path: name.to_owned(), source };
        let folder = self.0.folders.home().join("tmp");
        tokio::fs::create_dir_all(&folder).await.map_err(failed)?;
        let part = folder.join(format!("{}.part", MessageId::fresh()));
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let stored = match tokio::fs::write(&part, markdown).await {
            Ok(()) => self.files(thread).await?.adopt(&part, &format!("{stem}.md")).await,
            Err(error) => Err(failed(error)),
        };
        // Only exists if a step failed; otherwise the file was moved.
        tokio::fs::remove_file(&part).await.ok();
        stored
    }
}

/// Returns the first line of an extracted text. It names the document, so that both are removed together.
fn mark(name: &str) -> String {
    format!("<!-- the text of {} -->", foreign::line(name, usize::MAX).replace("--", "- -"))
}

/// Returns a file's first bytes, and rewinds it.
async fn begins(mut file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let read = pudu_kit::blocking::run(move || {
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(max_bytes).read_to_end(&mut head)?;
        file.rewind()?;
        Ok(head)
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Returns the description of a document for the thread.
fn document_record(document: &Document, beside: &SharedFile, markdown: &str) -> DocumentText {
    let headings = outline(markdown);
    let opening = if headings.is_empty() { opening(&document.markdown) } else { String::new() };
    let entry = |Heading { line, level, text }| OutlineEntry { line, level, title: text };
    let text = DocumentText {
        path: beside.path.clone(),
        size: beside.size,
        lines: markdown.lines().count(),
        about: about(document),
        opening,
        warnings: document.warnings.clone(),
        ..DocumentText::default()
    };
    text.with_outline(headings.into_iter().map(entry))
}

fn about(document: &Document) -> String {
    let mut about = document.kind.title().to_owned();
    if let Some(count) = document.parts {
        about = format!("{about} with {}", document.kind.parts(count));
    }
    if let Some(title) = &document.title {
        about = format!("{about}, titled \"{title}\"");
    }
    about
}

fn opening(markdown: &str) -> String {
    let lines = markdown.lines().filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    let text: String = lines.take(OPENING.0).collect::<Vec<_>>().join("\n");
    text.chars().take(OPENING.1).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "fits map_err")]
fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}

fn cause(error: &Error) -> UnreadCause {
    match error {
        Error::Unknown | Error::Refused(_) => UnreadCause::Kind,
        Error::Protected => UnreadCause::Protected,
        Error::TooLarge(_) | Error::TooHungry => UnreadCause::TooLarge,
        Error::Damaged(_) => UnreadCause::Damaged,
        Error::Empty => UnreadCause::Empty,
        Error::TooSlow => UnreadCause::TooSlow,
        Error::Broke => UnreadCause::Broken,
        Error::Unavailable(_) => UnreadCause::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use crate::AgentSetup;
    use pudu_base::ReadOutcome;
    use pudu_harness::RunBounds;
    use pudu_store::Db;
    use pudu_store::DbLocation;
    use std::time::Duration;

    use super::*;
    use pudu_sandbox::{Folders, LocalSandboxes, Options};
    use pudu_skills::Skills;
    use std::sync::Arc;

    async fn agent(home: &Path) -> Agent {
        let bounds = RunBounds { steps: 1, time: Duration::from_secs(1), ..RunBounds::default() };
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let folders = Folders::new(home.to_owned(), None);
        let places = Arc::new(LocalSandboxes::new(folders.clone(), None, Options::default()));
        Agent::new(db, folders, AgentSetup::new([], [], bounds, places), Skills::none())
    }

    #[tokio::test]
    async fn a_document_and_its_text_are_stored_and_removed_together() {
        let home = tempfile::tempdir().unwrap();
        let (agent, thread) = (agent(home.path()).await, ThreadId::from("t"));
        let adopt = async |name: &str, bytes: &[u8]| {
            let from = home.path().join("from");
            std::fs::write(&from, bytes).unwrap();
            agent.adopt(&thread, &from, name).await.unwrap()
        };
        adopt("a.md", b"mine").await;
        let mut table = adopt("a.csv", b"x,y\n1,2\n").await;
        agent.read_document(&thread, &mut table).await;
        let Some(ReadOutcome::Text(text)) = table.reading else { panic!("{table:?}") };
        let expect = DocumentText {
            path: "/mnt/user-data/uploads/a_1.md".into(),
            size: 62,
            lines: 5,
            about: "table".into(),
            opening: "| x | y |\n| --- | --- |\n| 1 | 2 |".into(),
            ..DocumentText::default()
        };
        assert_eq!(*text, expect);
        let mut picture = adopt("a.png", b"\x89PNG").await;
        agent.read_document(&thread, &mut picture).await;
        assert_eq!(picture.reading, None);
        let mut broken = adopt("a.pdf", b"%PDF-1.7 broken").await;
        agent.read_document(&thread, &mut broken).await;
        assert!(matches!(broken.reading, Some(ReadOutcome::Failed { .. })), "{broken:?}");
        agent.remove_upload(&thread, "a.csv").await.unwrap();
        let left = agent.files(&thread).await.unwrap().uploads(10).await.unwrap();
        assert_eq!(
            left.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(),
            ["a.md", "a.pdf", "a.png"]
        );
        assert!(agent.remove_upload(&thread, "../a.md").await.is_err());
    }
}
