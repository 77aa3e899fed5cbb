//! Helpers of the tests: a home with a thread and its shell.

use pudu_base::{Exec, Sandbox, SandboxError, SandboxProvider, ShellCommand};
use pudu_sandbox::{Folders, Jail, LocalSandboxes, Options, ThreadFiles};
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Timeout of a command that ends.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// A home with a thread.
pub(crate) struct House {
    pub(crate) home: tempfile::TempDir,
    pub(crate) local: LocalSandboxes,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) files: ThreadFiles,
}

/// Returns the program that is started as a sandbox in the tests.
pub(crate) fn fixture() -> PathBuf {
    env!("CARGO_BIN_EXE_sandbox-fixture").into()
}

/// Copies the program that is started as a sandbox. Another process does it: a descriptor for writing in this one would be
/// inherited by any process that another test starts at that moment, and the kernel then refuses to run the copy.
pub(crate) fn copy_fixture(target: &Path) {
    assert!(Command::new("cp").arg(fixture()).arg(target).status().unwrap().success());
}

/// Returns the kernel's mechanisms; `None` with a note if the tests have to be skipped.
pub(crate) async fn jail() -> Option<Arc<Jail>> {
    match Jail::probe_with(fixture()).await {
        Ok(jail) => Some(Arc::new(jail)),
        Err(error) if std::env::var_os("PUDU_REQUIRE_SANDBOX").is_some() => {
            panic!("commands cannot be confined here: {error}")
        }
        Err(error) => {
            println!("skipped: commands cannot be confined here: {error}");
            None
        }
    }
}

/// Returns a house whose commands are confined; `None` if the kernel does not support this.
pub(crate) async fn confined(options: Options) -> Option<House> {
    Some(house(jail().await, options).await)
}

/// Returns a house with the machine's own shell.
pub(crate) async fn with_host_shell() -> House {
    house(None, Options { host_shell: true, ..Options::default() }).await
}

pub(crate) async fn house(jail: Option<Arc<Jail>>, options: Options) -> House {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "of the host").unwrap();
    let folders = Folders::new(home.path().to_owned(), jail.as_ref().and_then(|jail| jail.owner()));
    let files = folders.thread_files(&"t".into());
    let local = LocalSandboxes::new(folders, jail, options);
    let sandbox = local.acquire(&"t".into()).await.unwrap();
    House { home, local, sandbox, files }
}

impl House {
    /// Returns the path of a thread's file on this machine.
    pub(crate) fn on_host(&self, inner: &str) -> PathBuf {
        self.home.path().join("users/default/threads/t/user-data").join(inner)
    }

    /// Runs a script.
    pub(crate) async fn sh(&self, script: &str) -> Exec {
        self.sh_for(script, COMMAND_TIMEOUT).await
    }

    pub(crate) async fn sh_for(&self, script: &str, timeout: Duration) -> Exec {
        let command = ShellCommand::new(script.into(), timeout);
        self.sandbox.exec(&command).await.unwrap()
    }

    /// Runs a script and returns its output.
    pub(crate) async fn says(&self, script: &str) -> String {
        let done = self.sh(script).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{script}: {done:?}");
        done.stdout.trim_end().to_owned()
    }

    /// Copies a file to the daemon's folder of files to send.
    pub(crate) async fn kept(&self, path: &str) -> Result<PathBuf, SandboxError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
        self.files.keep(path, self.home.path(), &name, 1 << 20).await
    }

    pub(crate) async fn read(&self, path: &str) -> Result<String, SandboxError> {
        self.sandbox.read(path, 1000).await.map(|bytes| String::from_utf8(bytes).unwrap())
    }
}

/// Returns the number of processes of this machine with a word in their command line.
pub(crate) fn processes(word: &str) -> usize {
    let found = |path: &Path| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(word)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| found(&entry.path())).count()
}

/// Waits until no process has the word in its command line.
pub(crate) async fn gone(word: &str) {
    for _ in 0..500 {
        if processes(word) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a process lives on: {word}");
}
