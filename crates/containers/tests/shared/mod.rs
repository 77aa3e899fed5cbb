//! Helpers of the tests: a home with a thread, and an engine for its container.

use pudu_base::{Exec, Network, Sandbox, SandboxProvider, ShellCommand};
use pudu_containers::{DockerEngine, DockerSettings, ExecMethod, GEM, Pool, PoolRules};
use pudu_sandbox::{CommandLimits, Folders, LocalSandboxes, Options};
use std::{os::unix::fs::MetadataExt, sync::Arc, time::Duration};

/// Timeout of a command that ends.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// A home, and containers for its threads.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) options: Options,
    nobody: (u32, u32),
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "of the daemon").unwrap();
        Self { folder, options: Options::default(), nobody: (65_501, 65_501) }
    }

    /// A home for the all-in-one image, whose files belong to the image's user if their owner can be changed.
    pub(crate) fn of_gem() -> Self {
        Self { nobody: GEM, ..Self::new() }
    }

    /// Owner of the threads' files: the user who runs the tests, or an unprivileged one.
    pub(crate) fn owner(&self) -> (u32, u32) {
        let meta = self.folder.path().metadata().unwrap();
        if meta.uid() == 0 { self.nobody } else { (meta.uid(), meta.gid()) }
    }

    pub(crate) fn settings(&self, host: &str, image: &str, api: ExecMethod) -> DockerSettings {
        DockerSettings {
            host: host.to_owned(),
            certificates: None,
            image: image.to_owned(),
            api,
            port: None,
            bind: "127.0.0.1".to_owned(),
            reach: "127.0.0.1".to_owned(),
            prefix: "pudu-test".to_owned(),
            environment: vec![("GREETING".to_owned(), "hello there".to_owned())],
            network: if api == ExecMethod::Aio { Network::Full } else { Network::None },
            limits: CommandLimits::default(),
            cpus: None,
            home: self.folder.path().to_owned(),
            host_home: None,
            owner: self.owner(),
        }
    }

    pub(crate) fn places(&self) -> LocalSandboxes {
        let me = self.folder.path().metadata().unwrap().uid();
        let owner = Some(self.owner()).filter(|owner| owner.0 != me);
        LocalSandboxes::new(Folders::new(self.folder.path().to_owned(), owner), None, self.options.clone())
    }

    pub(crate) fn pool(&self, engine: DockerEngine) -> Pool {
        Pool::new(Arc::new(engine), self.places(), rules())
    }

    /// Path of a thread's file on this machine.
    pub(crate) fn on_host(&self, thread: &str, inner: &str) -> std::path::PathBuf {
        let threads = self.folder.path().join("users/default/threads");
        let own = threads.join(thread).join("user-data");
        if inner.is_empty() { own } else { own.join(inner) }
    }
}

pub(crate) fn rules() -> PoolRules {
    PoolRules { idle_timeout: Duration::from_secs(600), replicas: 3, network: Network::None }
}

pub(crate) fn command(script: &str) -> ShellCommand {
    ShellCommand::new(script.to_owned(), COMMAND_TIMEOUT)
}

pub(crate) async fn sh(sandbox: &dyn Sandbox, script: &str) -> Exec {
    sandbox.exec(&command(script)).await.unwrap()
}

/// Runs a script and returns its output.
pub(crate) async fn says(sandbox: &dyn Sandbox, script: &str) -> String {
    let done = sh(sandbox, script).await;
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{script}: {done:?}");
    done.stdout.trim_end().to_owned()
}

pub(crate) async fn acquire(pool: &Pool, thread: &str) -> Arc<dyn Sandbox> {
    pool.acquire(&thread.into()).await.unwrap()
}
