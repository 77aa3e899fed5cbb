//! A thread's sandbox during a run. It is acquired by the first tool that needs it, and released at the end. The state
//! of the files is recorded before the first call that may write.

use crate::changes::ChangeRecorder;
use pudu_base::{
    BoxFuture, DirEntry, Exec, Sandbox, SandboxError, SandboxProvider, ShellCommand, ShownFolder,
    ThreadFolder,
};
use pudu_kit::blocking;
use pudu_sandbox::Folders;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Name of the variable that passes the requester's id to commands.
const PERSON: &str = "DEERFLOW_CHANNEL_USER_ID";
/// Maximum length of the id, in bytes.
const MAX_PERSON_BYTES: usize = 256;

/// A sandbox that is acquired on first use.
pub struct LazySandbox {
    provider: Arc<dyn SandboxProvider>,
    folder: ThreadFolder,
    /// Prefix of each command.
    prelude: String,
    /// The folders of skills that it shows.
    shown: Vec<ShownFolder>,
    changes: Option<ChangeRecorder>,
    /// Creates the folder of other agents, if there are some: a sandbox shows the folders that exist when it is acquired.
    acp_workspace: Option<Folders>,
    place: OnceCell<Arc<dyn Sandbox>>,
}

impl LazySandbox {
    pub(crate) fn new(
        provider: Arc<dyn SandboxProvider>,
        folder: ThreadFolder,
        person: &str,
        shown: Vec<ShownFolder>,
        changes: Option<ChangeRecorder>,
    ) -> Self {
        let prelude = prelude(person).unwrap_or_default();
        Self { provider, folder, prelude, shown, changes, acp_workspace: None, place: OnceCell::new() }
    }

    /// Also shows the folder of other agents.
    pub(crate) fn with_acp_workspace(self, folders: Option<Folders>) -> Self {
        Self { acp_workspace: folders, ..self }
    }

    /// Records the changes of the files, and releases the sandbox if it was acquired. `goes_on` is set for a resumed
    /// run, which may have changed files before the restart.
    pub async fn give_back(&self, resumed: bool) {
        if let Some(changes) = &self.changes {
            changes.finish(resumed).await;
        }
        if self.place.initialized() {
            self.provider.release(&self.folder).await;
        }
    }

    async fn place(&self) -> Result<&dyn Sandbox, SandboxError> {
        let acquire = async || {
            if let Some(folders) = self.acp_workspace.clone() {
                let folder = self.folder.clone();
                let created = blocking::run(move || folders.acp_workspace(&folder)).await;
                if !matches!(created, Ok(Ok(_))) {
                    tracing::error!(thread = %self.folder.thread, "failed to create workspace of ACP agents");
                }
            }
            self.provider.acquire_with(&self.folder, &self.shown).await
        };
        let sandbox = self.place.get_or_try_init(acquire).await?;
        Ok(&**sandbox)
    }

    /// Returns the sandbox for an operation that may change files.
    async fn place_to_write(&self) -> Result<&dyn Sandbox, SandboxError> {
        if let Some(changes) = &self.changes {
            changes.begin().await;
        }
        self.place().await
    }
}

/// Returns an assignment before a command, on the same line, that sets DeerFlow's variable to the requester's platform
/// id. It contains no text from messages.
fn prelude(person: &str) -> Option<String> {
    let plain =
        !person.is_empty() && person.len() <= MAX_PERSON_BYTES && !person.chars().any(char::is_control);
    plain.then(|| format!("export {PERSON}='{}'; ", person.replace('\'', r"'\''")))
}

impl Sandbox for LazySandbox {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move {
            let script = format!("{}{}", self.prelude, command.script);
            let command = ShellCommand { script, ..command.clone() };
            self.place_to_write().await?.exec(&command).await
        })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(async move { self.place().await?.read(path, limit).await })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move { self.place_to_write().await?.write(path, bytes, append).await })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(async move { self.place().await?.list(path, depth, limit).await })
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(async move { self.place().await?.measure(path).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Shell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts acquisitions and releases; the first acquisition fails.
    #[derive(Default)]
    struct Counter {
        asked: AtomicUsize,
        back: AtomicUsize,
    }

    struct Empty;

    impl Sandbox for Empty {
        fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
            Box::pin(std::future::pending())
        }
        fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
        fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
            Box::pin(async { Ok(()) })
        }
        fn list<'a>(
            &'a self,
            _: &'a str,
            _: usize,
            _: usize,
        ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    impl SandboxProvider for Counter {
        fn acquire<'a>(
            &'a self,
            _: &'a ThreadFolder,
        ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
            let first = self.asked.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                match first {
                    true => Err(SandboxError::Refused("not yet".to_owned())),
                    false => Ok(Arc::new(Empty) as Arc<dyn Sandbox>),
                }
            })
        }
        fn release<'a>(&'a self, _: &'a ThreadFolder) -> BoxFuture<'a, ()> {
            self.back.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(()))
        }
        fn shell(&self) -> Option<Shell> {
            None
        }
    }

    #[test]
    fn commands_get_the_requesters_id_and_no_id_is_run() {
        assert_eq!(prelude("U1").as_deref(), Some("export DEERFLOW_CHANNEL_USER_ID='U1'; "));
        let quoted = prelude("a'; rm -rf /").unwrap();
        assert_eq!(quoted, r"export DEERFLOW_CHANNEL_USER_ID='a'\''; rm -rf /'; ");
        for unfit in ["", "a\nb", "a\0", &"x".repeat(257)] {
            assert_eq!(prelude(unfit), None, "{unfit:?}");
        }
    }

    #[tokio::test]
    async fn a_sandbox_is_acquired_once_when_needed_and_then_released() {
        let provider = Arc::new(Counter::default());
        let counts = || (provider.asked.load(Ordering::Relaxed), provider.back.load(Ordering::Relaxed));
        let lazy = LazySandbox::new(provider.clone(), "t".into(), "", Vec::new(), None);
        lazy.give_back(false).await;
        assert_eq!(counts(), (0, 0));
        // A failure is not cached.
        assert!(lazy.read("/mnt/user-data/a", 1).await.is_err());
        lazy.read("/mnt/user-data/a", 1).await.unwrap();
        lazy.list("/mnt/user-data", 1, 1).await.unwrap();
        assert_eq!(counts(), (2, 0));
        lazy.give_back(false).await;
        assert_eq!(counts(), (2, 1));
    }
}
