//! Uploads in the API's format.

use pudu_base::{ReadOutcome, SharedFile, ThreadId};
use pudu_sandbox as sandbox;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::UNIX_EPOCH;

/// An upload. DeerFlow's fields for paths on the server contain the agent's paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "File")]
pub struct ListedUpload {
    /// Its name.
    pub filename: String,
    /// Its size, in bytes.
    pub size: u64,
    /// The agent's path of the file.
    pub path: String,
    /// The same path.
    pub virtual_path: String,
    /// The URL at which the API serves it.
    pub artifact_url: String,
    /// The suffix of its name.
    pub extension: String,
    /// The original name, if different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_filename: Option<String>,
    /// Its text as Markdown, if it is a document.
    #[serde(flatten)]
    pub markdown: Option<ListedMarkdown>,
    /// Reason why its text is missing, if it is a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown_error: Option<String>,
    /// When it was last written, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<f64>,
}

/// The text of an uploaded document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedMarkdown {
    /// The name of its file.
    pub markdown_file: String,
    /// The agent's path of the file.
    pub markdown_path: String,
    /// The same path.
    pub markdown_virtual_path: String,
    /// The URL at which the API serves it.
    pub markdown_artifact_url: String,
}

/// The uploads of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UploadList {
    /// Number of uploads.
    pub count: usize,
    /// The uploads, by name.
    pub files: Vec<ListedUpload>,
}

/// Uploaded files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UploadedFiles {
    /// Whether they were uploaded: always true.
    pub success: bool,
    /// The files.
    pub files: Vec<ListedUpload>,
    /// The confirmation as text.
    pub message: String,
    /// Skipped files: always none.
    pub skipped_files: Vec<String>,
}

/// Confirmation of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasDone {
    /// Whether it was done: always true.
    pub success: bool,
    /// Description of the action.
    pub message: String,
}

impl ListedUpload {
    fn new(thread: &ThreadId, name: &str, path: &str, size: u64) -> Self {
        Self {
            filename: name.to_owned(),
            size,
            path: path.to_owned(),
            virtual_path: path.to_owned(),
            artifact_url: address(thread, path),
            extension: name.rsplit_once('.').map(|(_, ending)| format!(".{ending}")).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Renders a stored upload.
    pub fn of_upload(thread: &ThreadId, upload: &sandbox::Upload) -> Self {
        let since = upload.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = Some(since.as_secs_f64());
        Self { modified, ..Self::new(thread, &upload.name, &upload.path, upload.size) }
    }

    /// Renders a newly uploaded file. `called` is its original name.
    pub fn of_file(thread: &ThreadId, file: &SharedFile, called: &str) -> Self {
        let original_filename = (file.name != called).then(|| called.to_owned());
        let (markdown, markdown_error) = match &file.reading {
            None => (None, None),
            Some(ReadOutcome::Failed { reason, .. }) => (None, Some(reason.clone())),
            Some(ReadOutcome::Text(text)) => {
                let markdown = ListedMarkdown {
                    markdown_file: text.path.rsplit('/').next().unwrap_or_default().to_owned(),
                    markdown_path: text.path.clone(),
                    markdown_virtual_path: text.path.clone(),
                    markdown_artifact_url: address(thread, &text.path),
                };
                (Some(markdown), None)
            }
        };
        let listed = Self::new(thread, &file.name, &file.path, file.size);
        Self { original_filename, markdown, markdown_error, ..listed }
    }
}

fn address(thread: &ThreadId, path: &str) -> String {
    format!("/api/threads/{thread}/artifacts{}", in_address(path))
}

/// Percent-encodes a path for a URL.
#[must_use]
pub fn in_address(path: &str) -> String {
    path.bytes().map(percent).collect()
}

fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
