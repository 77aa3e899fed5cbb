//! Provides sandboxes on this machine, with a folder for each thread. The kernel confines commands; if it cannot, they
//! run in the host's shell, provided that the operator allows it.

use crate::{
    CommandLimits, Egress, Jail,
    files::Files,
    folders::{ACP_WORKSPACE, Folders, blocking},
    jail_spec::JailSpec,
    mounts::{ACP, Mount, ROOT},
    share, shell,
};
use pudu_base::{
    BoxFuture, DirEntry, Exec, Network, Sandbox, SandboxError, SandboxProvider, Shell, ShellCommand,
    ShownFolder, ThreadFolder, Variable,
};
use std::sync::Arc;

/// Options of sandboxes on this machine.
#[derive(Clone, Default)]
pub struct Options {
    /// Whether the host's shell may be used if the kernel cannot confine commands.
    pub host_shell: bool,
    /// Mounts for all threads, in addition to a thread's own folder. Missing ones are skipped.
    pub mounts: Vec<Mount>,
    /// Environment variables for commands, in addition to the defaults.
    pub environment: Vec<(String, String)>,
    /// Network access of commands.
    pub network: Network,
    /// Serves network requests if `network` is [`Network::Proxy`].
    pub egress: Option<Arc<dyn Egress>>,
    /// Resource limits of a command.
    pub limits: CommandLimits,
}

/// Sandboxes on this machine.
pub struct LocalSandboxes {
    folders: Folders,
    jail: Option<Arc<Jail>>,
    options: Arc<Options>,
}

impl LocalSandboxes {
    /// Creates a provider whose sandboxes use these folders, confined by the kernel if `jail` is set.
    #[must_use]
    pub fn new(folders: Folders, jail: Option<Arc<Jail>>, options: Options) -> Self {
        Self { folders, jail, options: Arc::new(options) }
    }

    /// Returns a thread's mounts, beginning with its own folder, and its files on this machine, for a provider that
    /// runs commands elsewhere with the same mounts. Creates the folder if needed.
    ///
    /// # Errors
    /// When the thread's folder cannot be created.
    pub async fn mounts_and_files(
        &self,
        folder: &ThreadFolder,
    ) -> Result<(Vec<Mount>, Arc<dyn Sandbox>), SandboxError> {
        self.furnish_with(folder, &[]).await
    }

    /// Like [`Self::mounts_and_files`], with additional folders.
    ///
    /// # Errors
    /// When the thread's folder cannot be created.
    pub async fn furnish_with(
        &self,
        folder: &ThreadFolder,
        shown: &[ShownFolder],
    ) -> Result<(Vec<Mount>, Arc<dyn Sandbox>), SandboxError> {
        furnished(self.place(folder, shown)).await
    }

    /// Returns the owner of the threads' files if it is not the daemon's user.
    #[must_use]
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.folders.owner()
    }

    fn place(&self, folder: &ThreadFolder, shown: &[ShownFolder]) -> LocalSandbox {
        let folder = self.folders.thread(folder);
        let acp = Mount { host: folder.join(ACP_WORKSPACE), agent: ACP.to_owned(), read_only: true };
        let shown = shown.iter().cloned().map(Mount::from_shown_folder);
        let mut mounts: Vec<Mount> = self.options.mounts.iter().cloned().chain([acp]).chain(shown).collect();
        mounts.retain(|mount| mount.host.is_dir());
        // Parents first, so that they do not hide their children.
        mounts.sort_by_key(|mount| mount.agent.len());
        LocalSandbox {
            files: Arc::new(Files::new(folder.join("user-data"), mounts, self.folders.owner())),
            jail: self.jail.clone(),
            options: self.options.clone(),
        }
    }
}

impl SandboxProvider for LocalSandboxes {
    fn acquire<'a>(
        &'a self,
        folder: &'a ThreadFolder,
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        self.acquire_with(folder, &[])
    }

    fn acquire_with<'a>(
        &'a self,
        folder: &'a ThreadFolder,
        shown: &'a [ShownFolder],
    ) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move { Ok(Arc::new(self.place(folder, shown)) as Arc<dyn Sandbox>) })
    }

    /// Does nothing, because local sandboxes have no state beyond a command.
    fn release<'a>(&'a self, _: &'a ThreadFolder) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn shell(&self) -> Option<Shell> {
        match (&self.jail, self.options.host_shell) {
            (Some(_), _) => Some(Shell::Confined(self.options.network)),
            (None, true) => Some(Shell::Host),
            (None, false) => None,
        }
    }
}

/// One thread's sandbox.
struct LocalSandbox {
    files: Arc<Files>,
    jail: Option<Arc<Jail>>,
    options: Arc<Options>,
}

impl LocalSandbox {
    async fn confined(&self, jail: &Jail, command: &ShellCommand) -> Result<Exec, SandboxError> {
        let options = &self.options;
        let mounts = blocking(&self.files, ROOT, |files, _| files.mounts().map(<[Mount]>::to_vec)).await?;
        let folder = mounts.first().map(|own| own.host.clone());
        let spec = JailSpec {
            environment: &with(environment(options), &command.variables),
            mounts,
            network: options.network,
            limits: options.limits,
            disk: folder.as_deref(),
            egress: options.egress.as_deref(),
        };
        jail.run(command, spec).await
    }
}

async fn furnished(place: LocalSandbox) -> Result<(Vec<Mount>, Arc<dyn Sandbox>), SandboxError> {
    let mounts = blocking(&place.files, ROOT, |files, _| files.mounts().map(<[Mount]>::to_vec)).await?;
    Ok((mounts, Arc::new(place)))
}

/// Returns the complete environment of a confined command, which contains nothing from the daemon's environment.
fn environment(options: &Options) -> Vec<(String, String)> {
    let workspace = format!("{ROOT}/workspace");
    let mut all: Vec<(String, String)> = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", &workspace),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    if options.network == Network::Proxy {
        let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        all.extend(names.map(|name| (name.to_owned(), "http://127.0.0.1:3128".to_owned())));
        let around = "localhost,127.0.0.1,::1";
        all.extend(["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), around.to_owned())));
    }
    all.extend(options.environment.iter().cloned());
    all
}

/// Adds the variables of one command. Existing ones, including the operator's, take precedence.
fn with(mut environment: Vec<(String, String)>, variables: &[Variable]) -> Vec<(String, String)> {
    for Variable { name, value } in variables {
        if !environment.iter().any(|(taken, _)| taken == name) {
            environment.push((name.clone(), value.clone()));
        }
    }
    environment
}

impl Sandbox for LocalSandbox {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move {
            match &self.jail {
                Some(jail) => self.confined(jail, command).await,
                None if self.options.host_shell => {
                    let workspace = blocking(&self.files, ROOT, |files, _| files.workspace()).await?;
                    let Options { environment, limits, .. } = &*self.options;
                    let environment = with(environment.clone(), &command.variables);
                    shell::run(command, &environment, &workspace, limits.disk).await
                }
                None => {
                    let text = "no shell is available: this machine cannot confine commands, and the \
                                operator has not enabled the machine's own shell (sandbox.allow_host_bash)";
                    Err(SandboxError::Refused(text.to_owned()))
                }
            }
        })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(blocking(&self.files, path, move |files, path| files.read(path, limit)))
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        let bytes = bytes.to_vec();
        Box::pin(blocking(&self.files, path, move |files, path| files.write(path, &bytes, append)))
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(blocking(&self.files, path, move |files, path| files.list(path, depth, limit)))
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(blocking(&self.files, path, |files, path| Ok(share::open(files.own()?, path)?.1)))
    }
}
