//! A sandbox on another machine, without shared folders. Uploads are copied to it before a command runs, and files
//! that commands write to `outputs` are fetched, so that users and the web page find them here.
//!
//! Deliberately absent: copying the workspace, which stays with the commands; and deleting files here that a command
//! deleted there, because there may be links to them.

use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand};
use pudu_sandbox::{ROOT, ThreadFiles};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{io::AsyncReadExt, sync::Mutex};

/// Maximum number of files compared on each side.
const MAX_FILES: usize = 2000;
/// Maximum size of a copied file in bytes, as in DeerFlow.
const MAX_FILE_BYTES: u64 = 100 << 20;
/// Timeout for listing files.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// Age in seconds up to which a file may have changed again without a new modification time.
const FRESH_SECONDS: u64 = 2;

/// Script that prints the current time, and then the size, modification time and path of each file.
const LIST_OUTPUTS_SCRIPT: &str = "cd /mnt/user-data/outputs 2>/dev/null || exit 0; date +%s; \
                    LC_ALL=C find . -type f -exec stat -c '%s %Y %n' {} + | head -n 2001";

/// A sandbox on another machine.
pub(crate) struct Apart {
    remote: Arc<dyn Sandbox>,
    /// The thread's folder on this machine, and the mounts that exist only here.
    here: Arc<dyn Sandbox>,
    files: ThreadFiles,
    /// Maximum total size of fetched files, in bytes.
    most: u64,
    /// Held while files are copied.
    known: Mutex<SyncedFiles>,
}

/// Files that are equal on both sides.
#[derive(Default)]
struct SyncedFiles {
    brought: HashMap<String, (u64, SystemTime)>,
    fetched: HashMap<String, FileVersion>,
}

/// Version of a file: its size in bytes, and its modification time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion(u64, u64);

impl Apart {
    pub(crate) fn new(
        remote: Arc<dyn Sandbox>,
        here: Arc<dyn Sandbox>,
        files: ThreadFiles,
        most: u64,
    ) -> Self {
        Self { remote, here, files, most, known: Mutex::default() }
    }

    /// Copies new uploads to the sandbox and deletes those that have been removed.
    async fn sync_uploads(&self) -> Result<(), SandboxError> {
        let mut known = self.known.lock().await;
        let uploads = self.files.uploads(MAX_FILES).await?;
        for upload in &uploads {
            let version = (upload.size, upload.modified);
            if known.brought.get(&upload.path) == Some(&version) {
                continue;
            }
            if upload.size > MAX_FILE_BYTES {
                tracing::warn!(
                    file = upload.name,
                    size = upload.size,
                    "skipped upload: too large for its sandbox"
                );
            } else {
                let bytes = self.own(&upload.path).await?;
                self.remote.write(&upload.path, &bytes, false).await?;
            }
            known.brought.insert(upload.path.clone(), version);
        }
        let gone: Vec<String> = known
            .brought
            .keys()
            .filter(|path| uploads.iter().all(|upload| upload.path != **path))
            .cloned()
            .collect();
        for path in gone {
            let script = format!("rm -f -- {}", quoted(&path));
            self.remote.exec(&ShellCommand::new(script, LIST_TIMEOUT)).await?;
            known.brought.remove(&path);
        }
        Ok(())
    }

    /// Reads a file of the thread from this machine.
    async fn own(&self, path: &str) -> Result<Vec<u8>, SandboxError> {
        let failed = |source| SandboxError::Io { path: path.to_owned(), source };
        let (file, _) = self.files.open(path).await?;
        let mut bytes = Vec::new();
        let file = tokio::fs::File::from_std(file);
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).await.map_err(failed)?;
        Ok(bytes)
    }

    /// Fetches new outputs. Returns a description of each file that could not be fetched.
    async fn fetch(&self) -> Result<Vec<String>, SandboxError> {
        let mut known = self.known.lock().await;
        let look = ShellCommand::new(LIST_OUTPUTS_SCRIPT.to_owned(), LIST_TIMEOUT);
        let (now, remote_files) = stamps(&self.remote.exec(&look).await?.stdout);
        let mut left = Vec::new();
        if remote_files.len() > MAX_FILES {
            left.push(format!("more than {MAX_FILES} files"));
        }
        let total: u64 = remote_files.values().map(|stamp| stamp.0).sum();
        if total > self.most {
            left.push(format!("{total} bytes in total, more than sandbox.disk_limit ({})", self.most));
            return Ok(left);
        }
        for (path, stamp) in remote_files.into_iter().take(MAX_FILES) {
            if known.fetched.get(&path) == Some(&stamp) {
                continue;
            }
            if stamp.0 > MAX_FILE_BYTES {
                left.push(format!("{path} has {} bytes, more than {MAX_FILE_BYTES}", stamp.0));
            } else if let Err(error) = self.fetch_one(&path).await {
                left.push(error.to_string());
                continue;
            }
            if stamp.1 + FRESH_SECONDS < now {
                known.fetched.insert(path, stamp);
            }
        }
        Ok(left)
    }

    async fn fetch_one(&self, path: &str) -> Result<(), SandboxError> {
        let bytes = self.remote.read(path, MAX_FILE_BYTES).await?;
        self.here.write(path, &bytes, false).await
    }

    async fn run(&self, command: &ShellCommand) -> Result<Exec, SandboxError> {
        self.sync_uploads().await?;
        let mut done = self.remote.exec(command).await?;
        let left = self.fetch().await.unwrap_or_else(|error| vec![error.to_string()]);
        if !left.is_empty() {
            tracing::warn!(?left, "failed to fetch all outputs from sandbox");
            done.stderr.push_str(&format!(
                "\n[not all of /mnt/user-data/outputs can be sent to users: {}]",
                left.join("; ")
            ));
        }
        Ok(done)
    }

    /// Returns whether a path is in the thread's folder, which the other machine has.
    fn is_elsewhere(path: &str) -> bool {
        lies_in(path, ROOT)
    }
}

fn lies_in(path: &str, folder: &str) -> bool {
    std::path::Path::new(path).starts_with(folder)
}

/// Quotes a path for a shell.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Parses the output of [`LIST_OUTPUTS_SCRIPT`] into the time there and the files. Skips invalid lines, which come from
/// names with line breaks.
fn stamps(said: &str) -> (u64, BTreeMap<String, FileVersion>) {
    let mut lines = said.lines();
    let now = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or_default();
    let file = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let (size, changed, name) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = FileVersion(size.parse().ok()?, changed.parse().ok()?);
        Some((format!("{ROOT}/outputs/{}", name.strip_prefix("./")?), stamp))
    };
    (now, lines.filter_map(file).collect())
}

impl Sandbox for Apart {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        let command = command.exported();
        Box::pin(async move { self.run(&command).await })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(async move {
            if !Self::is_elsewhere(path) {
                return self.here.read(path, limit).await;
            }
            self.sync_uploads().await?;
            self.remote.read(path, limit).await
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move {
            if !Self::is_elsewhere(path) {
                return self.here.write(path, bytes, append).await;
            }
            self.remote.write(path, bytes, append).await?;
            if lies_in(path, "/mnt/user-data/outputs") {
                self.fetch_one(path).await?;
            }
            Ok(())
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(async move {
            if !Self::is_elsewhere(path) {
                return self.here.list(path, depth, limit).await;
            }
            self.sync_uploads().await?;
            self.remote.list(path, depth, limit).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_parsed_and_invalid_lines_are_skipped() {
        let said = "1700000000\n3 1699999000 ./a b.txt\n0 1699999999 ./sub/ü\nodd\n1 x ./c\n2 1 d\n";
        let expect = [
            ("/mnt/user-data/outputs/a b.txt", (3, 1_699_999_000)),
            ("/mnt/user-data/outputs/sub/ü", (0, 1_699_999_999)),
        ];
        let expect = expect.map(|(path, (size, changed))| (path.to_owned(), FileVersion(size, changed)));
        assert_eq!(stamps(said), (1_700_000_000, BTreeMap::from(expect)));
        assert_eq!(stamps(""), (0, BTreeMap::new()));
    }

    #[test]
    fn a_path_is_quoted_as_one_word() {
        assert_eq!(quoted("/a/it's $(x).txt"), r"'/a/it'\''s $(x).txt'");
    }
}
