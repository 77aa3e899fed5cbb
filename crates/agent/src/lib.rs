//! Assembles the agent of a run from the store, models, tools, skills, memory, budgets and sandboxes.
//!
//! Deliberately absent: queueing, recording and ending runs, chats, HTTP and configuration files.

mod acp;
pub mod agents;
mod approvals;
pub mod assemble;
mod assist;
mod audit;
mod budget;
mod catalog_cache;
mod changes;
pub mod egress;
mod explain;
#[cfg(test)]
mod fixture;
mod guardrail;
mod lazy_sandbox;
pub mod memory;
mod models;
mod moderation;
mod price;
mod profile;
mod results;
mod schedule_tools;
mod secrets;
mod setup;
mod skill_manage;
mod storage;
mod task;
mod threads;
pub mod title;
mod uploads;
mod vision;

pub use acp::McpSource;
pub use approvals::PendingApprovals;
pub use assist::{AssistError, AssistFor};
pub use audit::killed;
pub use budget::{BudgetNotice, BudgetRule, BudgetRules, BudgetSetup, BudgetState, CheaperModel, Meter};
pub use explain::AgentExplanation;
pub use lazy_sandbox::LazySandbox;
pub use memory::{Memories, MemoryMode, MemoryOf, MemoryRules, MemorySetup, MemoryTrouble};
pub use models::{KnownModel, ModelInfo, ThinkingSupport, named_model};
pub use price::ModelPrice;
pub use results::FOLDER as RESULTS_FOLDER;
pub use secrets::{LentSecrets, RunSecrets, SecretError, SecretStore};
pub use setup::{AgentSetup, SkillEvolution, SkillRules, ToolGroups};
pub use storage::{
    AccountUsage, MemoryRetention, Pruned, Retention, RetentionLimits, RetentionRules, Storage,
};
pub use task::{Asker, Authoring, RunFeatures, RunTask, SchedulePlace};
pub use threads::Threads;
pub use title::{TitleRules, TitleSetup};
pub use vision::BlindModel;

use agents::Agents;
use catalog_cache::CatalogCache;
use pudu_base::{LogError, RunId, SandboxError, Seq, ThreadFolder, ThreadId, ThreadState, UserId};
use pudu_harness::Memory;
use pudu_sandbox::{Folders, ThreadFiles};
use pudu_schedules::Schedules;
use pudu_skills::{Catalog, SkillError, Skills};
use pudu_store::{Db, StoreError};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLockWriteGuard};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The parts used to assemble the agent of each run: the store, the current setup, and the caches between runs.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    db: Db,
    folders: Folders,
    setup: RwLock<Arc<AgentSetup>>,
    skills: Skills,
    secrets: SecretStore,
    catalog_cache: CatalogCache,
    agents: Agents,
    threads: Arc<Threads>,
    approvals: Arc<PendingApprovals>,
    /// Memory budget of the files that tools read, for all runs.
    memory: Memory,
    /// Tasks of runs and of background work.
    tasks: TaskTracker,
    /// Memories whose facts are known to be indexed.
    indexed: Arc<memory::IndexedMemories>,
    /// Notified when a conversation was stored for learning.
    learns: Notify,
    /// Notified when a model call was settled.
    settled: Notify,
    /// Name of this process as a reader of conversations for learning.
    reader: String,
    /// Locked for reading while learned facts are committed, and for writing while memories are merged, or a user is
    /// separated or deleted.
    moving: tokio::sync::RwLock<()>,
    /// Scheduled tasks, if people can make some by talking.
    schedules: OnceLock<Arc<Schedules>>,
    /// The MCP servers that other agents may get.
    mcp_servers: OnceLock<McpSource>,
    /// Cancelled to interrupt the active runs without recording an end.
    suspend: CancellationToken,
}

impl Agent {
    /// Lets people schedule tasks by talking. Called once.
    pub fn use_schedules(&self, schedules: Arc<Schedules>) {
        self.0.schedules.set(schedules).ok();
    }

    /// Lets agents of the Agent Client Protocol use MCP servers. Called once.
    pub fn use_mcp_servers(&self, servers: McpSource) {
        self.0.mcp_servers.set(servers).ok();
    }

    /// Creates an agent from its parts. [`Skills::none`] disables skills.
    #[must_use]
    pub fn new(db: Db, folders: Folders, setup: AgentSetup, skills: Skills) -> Self {
        Self(Arc::new(Inner {
            threads: Arc::new(Threads::new(Arc::new(db.clone()))),
            approvals: Arc::new(PendingApprovals::new(db.clone(), setup.patience)),
            db,
            agents: Agents::new(folders.home().to_owned()),
            secrets: SecretStore::new(folders.home().join("users")),
            folders,
            setup: RwLock::new(Arc::new(setup)),
            skills,
            catalog_cache: CatalogCache::default(),
            memory: Memory::default(),
            tasks: TaskTracker::new(),
            indexed: Arc::default(),
            learns: Notify::new(),
            settled: Notify::new(),
            reader: RunId::fresh().to_string(),
            moving: tokio::sync::RwLock::default(),
            schedules: OnceLock::new(),
            mcp_servers: OnceLock::new(),
            suspend: CancellationToken::new(),
        }))
    }

    /// Replaces models, tools and limits, for runs that start from now on.
    pub fn configure(&self, setup: AgentSetup) {
        self.0.approvals.set_patience(setup.patience);
        *self.0.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
    }

    /// Returns the name of the fallback that last answered for this model, or for the default, if one did.
    #[must_use]
    pub fn standby(&self, model: Option<&str>) -> Option<String> {
        self.setup().model(model)?.standby()
    }

    /// Returns a thread and the user whose folder contains its files; the local user for an unknown thread.
    async fn folder(&self, thread: &ThreadId) -> Result<ThreadFolder, StoreError> {
        let owner = self.0.db.owner(thread).await?.unwrap_or_default();
        Ok(ThreadFolder { owner, thread: thread.clone() })
    }

    /// Returns the files of a thread.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn files(&self, thread: &ThreadId) -> Result<ThreadFiles, SandboxError> {
        Ok(self.0.folders.thread_files(&self.files_folder(thread).await?))
    }

    async fn files_folder(&self, thread: &ThreadId) -> Result<ThreadFolder, SandboxError> {
        let unknown = |error| SandboxError::Refused(format!("nobody can tell where the files are: {error}"));
        self.folder(thread).await.map_err(unknown)
    }

    /// Returns the pending approvals.
    #[must_use]
    pub fn approvals(&self) -> &PendingApprovals {
        &self.0.approvals
    }

    /// Returns the handle on the skills. Its methods block; [`Agent::catalog`] does not.
    #[must_use]
    pub fn skills(&self) -> Skills {
        self.0.skills.clone()
    }

    /// Returns the current skills shared by all users.
    pub async fn catalog(&self) -> Arc<Catalog> {
        self.catalog_of(&UserId::local()).await
    }

    /// Returns the current skills of a user: the shared ones and their own.
    pub async fn catalog_of(&self, user: &UserId) -> Arc<Catalog> {
        self.0.catalog_cache.at(&self.skills(), user).await
    }

    /// Returns the handle on users' secrets. Its methods block.
    #[must_use]
    pub fn secrets(&self) -> SecretStore {
        self.0.secrets.clone()
    }

    /// Executes and records an operator's change of a skill.
    ///
    /// # Errors
    /// If the change could not be made or recorded.
    pub async fn operate_skill<T>(
        &self,
        detail: &str,
        work: impl Future<Output = Result<T, SkillError>>,
    ) -> Result<Result<T, SkillError>, StoreError> {
        let asker = Asker { name: "operator".to_owned(), ..Asker::default() };
        let (thread, run) = (ThreadId::from(""), RunId::from(""));
        let audit_log = audit::AuditLog { db: self.0.db.clone(), thread, run, asker, is_guarded: false };
        audit_log.operated("skill", detail, work).await
    }

    /// Returns the state of a thread.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn state(&self, thread: &ThreadId) -> Result<ThreadState, LogError> {
        self.0.threads.peek(thread).await
    }

    /// Returns the state of a thread, and the corresponding position of its log.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn state_now(&self, thread: &ThreadId) -> Result<(Seq, ThreadState), LogError> {
        self.0.threads.peek_at(thread).await
    }

    /// Returns whether memory is enabled.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.setup().memory.is_some()
    }

    /// Returns the handle on stored data, for usage and retention.
    #[must_use]
    pub fn storage(&self) -> Storage {
        Storage::new(self.0.db.clone(), self.0.folders.clone())
    }

    /// Returns the store.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.0.db
    }

    /// Returns the folders of users and threads.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.0.folders
    }

    /// Returns the cache of threads between runs.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.0.threads
    }

    /// Returns the tracker of tasks for runs and background work.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Returns the token that interrupts the active runs and background work, without recording an end.
    #[must_use]
    pub fn suspension(&self) -> &CancellationToken {
        &self.0.suspend
    }

    /// Returns a guard. While it is held, no facts are learned, and no memory moves to another user.
    pub async fn pause_learning(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.moving.write().await
    }

    /// Returns a guard. While it is held, no thread's files are deleted.
    pub async fn keep_files(&self) -> OwnedRwLockReadGuard<()> {
        self.0.folders.keep_files().await
    }

    /// Returns the current setup, for new runs.
    #[must_use]
    pub fn setup(&self) -> Arc<AgentSetup> {
        self.0.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
