//! Uploads, as in the gateway.

use super::ACCOUNT;
use crate::Client;
use pudu_base::{MessageId, SandboxError, SharedFile, ThreadFolder, ThreadId, UserId};
use pudu_langgraph::upload::{ListedUpload, UploadList, UploadedFiles, WasDone};
use pudu_runs::STORE_TIMEOUT;
use pudu_store::{StoreError, now};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Maximum number of listed uploads.
const LISTED: usize = 10_000;

/// A file to be uploaded, outside of the thread's folder. It is deleted on drop, unless it was moved.
#[derive(Debug)]
pub struct UploadPart {
    /// The original name.
    pub name: String,
    /// Its path on disk.
    pub path: PathBuf,
}

/// Why no file was uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The path is not a plain file.
    #[error("{} is not a file", .0.display())]
    NoFile(PathBuf),
    /// A file could not be read, or copied.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be added to the uploads.
    #[error(transparent)]
    Files(#[from] SandboxError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Drop for UploadPart {
    fn drop(&mut self) {
        // Fails if the file was moved.
        std::fs::remove_file(&self.path).ok();
    }
}

impl Client {
    /// Returns the path of a new file for [`Client::take_uploads`].
    ///
    /// # Errors
    /// If its folder cannot be created.
    pub async fn new_upload(&self, name: &str) -> io::Result<UploadPart> {
        let folder = self.agent().folders().home().join("tmp");
        tokio::fs::create_dir_all(&folder).await?;
        let path = folder.join(format!("{}.part", MessageId::fresh()));
        Ok(UploadPart { name: name.to_owned(), path })
    }

    /// Copies local files into a thread's uploads, all or none. The thread is created if it is new. The text of each
    /// document is stored next to it.
    ///
    /// # Errors
    /// If a path is not a plain file, which is checked first, or a file cannot be uploaded.
    pub async fn upload_files(&self, thread: &str, paths: &[PathBuf]) -> Result<UploadedFiles, UploadError> {
        for path in paths {
            if !tokio::fs::metadata(path).await.is_ok_and(|found| found.is_file()) {
                return Err(UploadError::NoFile(path.clone()));
            }
        }
        let mut parts = Vec::new();
        for path in paths {
            parts.push(self.copied(path).await.map_err(|source| {
                let path = path.clone();
                UploadError::Unreadable { path, source }
            })?);
        }
        let folder = ThreadFolder { owner: UserId::local(), thread: ThreadId::from(thread) };
        self.take_uploads(&folder, ACCOUNT, &parts, true).await
    }

    async fn copied(&self, path: &Path) -> io::Result<UploadPart> {
        let part = self.new_upload(&path.file_name().unwrap_or_default().to_string_lossy()).await?;
        tokio::fs::copy(path, &part.path).await?;
        Ok(part)
    }

    /// Moves files into a thread's uploads, all or none. With `convert`, each document's text is stored next to it.
    ///
    /// # Errors
    /// If a file cannot be uploaded, or the store fails.
    pub async fn take_uploads(
        &self,
        folder: &ThreadFolder,
        account: &str,
        parts: &[UploadPart],
        convert: bool,
    ) -> Result<UploadedFiles, UploadError> {
        // A thread with files needs a row, so that retention finds them. The guard keeps retention from deleting them.
        let _kept = self.agent().keep_files().await;
        let (db, thread) = (self.agent().db().within(STORE_TIMEOUT), &folder.thread);
        // An existing thread keeps its owner.
        db.thread_used(folder, account, now()).await?;
        let mut stored: Vec<SharedFile> = Vec::new();
        for part in parts {
            match self.agent().adopt(thread, &part.path, &part.name).await {
                Ok(file) => stored.push(file),
                Err(error) => {
                    for file in &stored {
                        self.agent().remove_upload(thread, &file.name).await.ok();
                    }
                    return Err(error.into());
                }
            }
        }
        let mut files = Vec::new();
        for (mut file, part) in stored.into_iter().zip(parts) {
            if convert {
                self.agent().read_document(thread, &mut file).await;
            }
            files.push(ListedUpload::of_file(thread, &file, &part.name));
        }
        db.thread_used(folder, account, now()).await?;
        let message = format!("Successfully uploaded {} file(s)", files.len());
        Ok(UploadedFiles { success: true, files, message, skipped_files: Vec::new() })
    }

    /// Lists the uploads of a thread.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn list_uploads(&self, thread: &ThreadId) -> Result<UploadList, SandboxError> {
        let uploads = self.agent().files(thread).await?.uploads(LISTED).await?;
        let files: Vec<_> = uploads.iter().map(|upload| ListedUpload::of_upload(thread, upload)).collect();
        Ok(UploadList { count: files.len(), files })
    }

    /// Removes an upload, and the text extracted from it.
    ///
    /// # Errors
    /// If there is no upload with this name, or it cannot be removed.
    pub async fn delete_upload(&self, thread: &ThreadId, name: &str) -> Result<WasDone, SandboxError> {
        self.agent().remove_upload(thread, name).await?;
        Ok(WasDone { success: true, message: format!("Deleted {name}") })
    }
}
