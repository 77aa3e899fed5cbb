//! What the tests share: a home with a thread in it, and a shell there.

use pudu_base::{Exec, Sandbox, SandboxError, SandboxProvider, ShellCommand};
use pudu_sandbox::{Folders, Jail, LocalSandboxes, Options, ThreadFiles};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Long enough for anything that ends.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// A home, and a thread in it.
pub(crate) struct House {
    pub(crate) home: tempfile::TempDir,
    pub(crate) local: LocalSandboxes,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) files: ThreadFiles,
}

/// The program of which the tests' sandboxes are made.
pub(crate) fn fixture() -> PathBuf {
    env!("CARGO_BIN_EXE_sandbox-fixture").into()
}

/// What the kernel here does; `None`, and a word, where tests have to do without.
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

/// A house whose commands are confined; `None` where the kernel does not do that.
pub(crate) async fn confined(options: Options) -> Option<House> {
    Some(house(jail().await, options).await)
}

/// A house with the machine's own shell.
pub(crate) async fn with_host_shell() -> House {
    house(None, Options { host_shell: true, ..Options::default() }).await
}

pub(crate) async fn house(jail: Option<Arc<Jail>>, options: Options) -> House {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("secret"), "of the host").unwrap();
    let folders = Folders::new(home.path().to_owned(), jail.as_ref().and_then(|jail| jail.owner()));
    let files = folders.of(&"t".into());
    let local = LocalSandboxes::new(folders, jail, options);
    let sandbox = local.acquire(&"t".into()).await.unwrap();
    House { home, local, sandbox, files }
}

impl House {
    /// Where something of the thread is on this machine.
    pub(crate) fn on_host(&self, inner: &str) -> PathBuf {
        self.home.path().join("users/default/threads/t/user-data").join(inner)
    }

    /// Runs a script to its end.
    pub(crate) async fn sh(&self, script: &str) -> Exec {
        self.sh_for(script, COMMAND_TIMEOUT).await
    }

    pub(crate) async fn sh_for(&self, script: &str, timeout: Duration) -> Exec {
        let command = ShellCommand { script: script.into(), timeout };
        self.sandbox.exec(&command).await.unwrap()
    }

    /// Runs a script that writes one thing.
    pub(crate) async fn says(&self, script: &str) -> String {
        let done = self.sh(script).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{script}: {done:?}");
        done.stdout.trim_end().to_owned()
    }

    /// Keeps a file where the daemon keeps what it sends.
    pub(crate) async fn kept(&self, path: &str) -> Result<PathBuf, SandboxError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
        self.files.keep(path, self.home.path(), &name, 1 << 20).await
    }

    pub(crate) async fn read(&self, path: &str) -> Result<String, SandboxError> {
        self.sandbox.read(path, 1000).await.map(|bytes| String::from_utf8(bytes).unwrap())
    }
}

/// How many processes of this machine have a word in their command line.
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
