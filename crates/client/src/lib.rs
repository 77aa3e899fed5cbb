//! The assembled agent: takes a store, models and tools, and runs turns on threads. The daemon's dispatcher and gateway
//! are thin layers over this crate; another program can embed it the same way.
//!
//! Deliberately absent: chats, HTTP and configuration files.

pub mod agents;
mod approvals;
mod assemble;
mod assist;
mod audit;
mod budget;
mod catalog_cache;
mod changes;
mod conclude;
mod control;
pub mod egress;
pub mod embed;
mod explain;
mod follow;
mod guardrail;
mod lazy_sandbox;
mod memory;
mod models;
mod moderation;
mod person;
mod price;
mod profile;
mod results;
mod rewind;
mod run;
mod run_end;
mod run_registry;
mod runs;
mod secrets;
mod setup;
mod skill_manage;
mod storage;
mod task;
mod threads;
mod title;
mod uploads;
mod vision;

pub use pudu_base as base;
pub use pudu_containers as containers;
pub use pudu_documents as documents;
pub use pudu_guardrails as guardrails;
pub use pudu_harness as harness;
pub use pudu_langgraph as wire;
pub use pudu_mcp as mcp;
pub use pudu_model as model;
pub use pudu_net as net;
pub use pudu_sandbox as sandbox;
pub use pudu_skills as skills;
pub use pudu_store as store;
pub use pudu_tools as tools;

pub use approvals::PendingApprovals;
pub use assist::{AssistError, AssistFor};
pub use audit::killed;
pub use budget::{BudgetNotice, BudgetRule, BudgetRules, BudgetSetup, BudgetState, CheaperModel};
pub use control::Control;
pub use explain::AgentExplanation;
pub use follow::{FrameStream, StreamRequest};
pub use memory::{Memories, MemoryMode, MemoryOf, MemoryRules, MemorySetup, MemoryTrouble};
pub use models::{KnownModel, ModelInfo, ThinkingSupport, named_model};
pub use person::{ExportedPerson, ForgottenPerson, PersonData, PersonError};
pub use price::ModelPrice;
pub use pudu_memory as memories;
pub use results::FOLDER as RESULTS_FOLDER;
pub use run::Run;
pub use run_end::{MissingSecret, RunEnd};
pub use run_registry::{LiveRun, ThreadPlace};
pub use runs::{ClientRun, MAX_RESUMES, Multitask, SubmitError, UnfinishedRun};
pub use secrets::{RunSecrets, SecretError, SecretStore};
pub use setup::{AgentSetup, SkillEvolution, SkillRules, ToolGroups};
pub use storage::{
    AccountUsage, MemoryRetention, Pruned, Retention, RetentionLimits, RetentionRules, Storage,
};
pub use task::{Asker, Authoring, RunFeatures, RunTask};
pub use title::{TitleRules, TitleSetup};
pub use vision::BlindModel;

use agents::Agents;
use base::{SandboxError, ThreadFolder};
use catalog_cache::CatalogCache;
use futures_util::FutureExt;
use harness::{Memory, Replay};
use run_registry::{RunRegistry, ThreadSlot};
use sandbox::{Folders, ThreadFiles};
use skills::{Catalog, Skills};
use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError, RwLock},
};
use store::{Db, StoreError, now};
use threads::Threads;
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The agent.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

/// The right of one run to work, held until it is dropped.
pub struct Admission {
    _permit: OwnedSemaphorePermit,
}

struct Inner {
    db: Db,
    folders: Folders,
    setup: RwLock<Arc<AgentSetup>>,
    skills: Skills,
    secrets: SecretStore,
    catalog_cache: CatalogCache,
    agents: Agents,
    threads: Threads,
    runs: RunRegistry,
    approvals: Arc<PendingApprovals>,
    /// One permit per run: the whole admission control.
    admission: Arc<Semaphore>,
    /// Memory budget of the files that tools read, for all runs.
    memory: Memory,
    tasks: TaskTracker,
    /// Memories whose facts are known to be in the index.
    indexed: Arc<memory::IndexedMemories>,
    /// Notified when a conversation was stored to be learnt from.
    learns: Notify,
    /// Notified when a model call was settled.
    settled: Notify,
    /// Name of this process as a reader of conversations.
    reader: String,
    /// Locked for reading while learnt facts are committed, and for writing while memories are merged, or a user is parted
    /// or forgotten.
    moving: tokio::sync::RwLock<()>,
    /// Cancelled to end the active runs without writing an end for them.
    suspend: CancellationToken,
}

impl Client {
    /// Assembles an agent. At most `concurrency` runs work at once; others wait. [`Skills::none`] turns skills off.
    #[must_use]
    pub fn new(db: Db, folders: Folders, setup: AgentSetup, skills: Skills, concurrency: usize) -> Self {
        Self(Arc::new(Inner {
            threads: Threads::new(Arc::new(db.clone())),
            runs: RunRegistry::default(),
            approvals: Arc::new(PendingApprovals::new(db.clone(), setup.patience)),
            db,
            agents: Agents::new(folders.home().to_owned()),
            secrets: SecretStore::new(folders.home().join("users")),
            folders,
            setup: RwLock::new(Arc::new(setup)),
            skills,
            catalog_cache: CatalogCache::default(),
            admission: Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS))),
            memory: Memory::default(),
            tasks: TaskTracker::new(),
            indexed: Arc::default(),
            learns: Notify::new(),
            settled: Notify::new(),
            reader: base::RunId::fresh().to_string(),
            moving: tokio::sync::RwLock::default(),
            suspend: CancellationToken::new(),
        }))
    }

    /// Changes models, tools and limits for runs that start from now on.
    pub fn configure(&self, setup: AgentSetup) {
        self.0.approvals.set_patience(setup.patience);
        *self.0.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
    }

    /// Returns the name of the model that last answered in place of this one, or of the default.
    #[must_use]
    pub fn standby(&self, model: Option<&str>) -> Option<String> {
        self.setup().model(model)?.standby()
    }

    /// Returns a thread and the user whose folder holds its files: the local user for an unknown thread.
    async fn folder(&self, thread: &base::ThreadId) -> Result<ThreadFolder, StoreError> {
        let owner = self.0.db.owner(thread).await?.unwrap_or_default();
        Ok(ThreadFolder { owner, thread: thread.clone() })
    }

    /// Returns the files of a thread.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn files(&self, thread: &base::ThreadId) -> Result<ThreadFiles, SandboxError> {
        Ok(self.0.folders.thread_files(&self.files_folder(thread).await?))
    }

    async fn files_folder(&self, thread: &base::ThreadId) -> Result<ThreadFolder, SandboxError> {
        let unknown = |error| SandboxError::Refused(format!("nobody can tell where the files are: {error}"));
        self.folder(thread).await.map_err(unknown)
    }

    /// Returns the pending approvals.
    #[must_use]
    pub fn approvals(&self) -> &PendingApprovals {
        &self.0.approvals
    }

    /// Returns the handle on the skills. Its methods block; [`Client::catalog`] does not.
    #[must_use]
    pub fn skills(&self) -> Skills {
        self.0.skills.clone()
    }

    /// Returns the current skills shared by all users.
    pub async fn catalog(&self) -> Arc<Catalog> {
        self.catalog_of(&base::UserId::local()).await
    }

    /// Returns the current skills of a user: the shared ones and their own.
    pub async fn catalog_of(&self, user: &base::UserId) -> Arc<Catalog> {
        self.0.catalog_cache.at(&self.skills(), user).await
    }

    /// Returns the handle on the secrets that users gave. Its methods block.
    #[must_use]
    pub fn secrets(&self) -> SecretStore {
        self.0.secrets.clone()
    }

    /// Makes and records a change of a skill by an operator.
    ///
    /// # Errors
    /// When the change could not be made or recorded.
    pub async fn operate_skill<T>(
        &self,
        detail: &str,
        work: impl Future<Output = Result<T, skills::SkillError>>,
    ) -> Result<Result<T, skills::SkillError>, StoreError> {
        let asker = Asker { name: "operator".to_owned(), ..Asker::default() };
        let (thread, run) = (base::ThreadId::from(""), base::RunId::from(""));
        let audit_log = audit::AuditLog { db: self.0.db.clone(), thread, run, asker, is_guarded: false };
        audit_log.operated("skill", detail, work).await
    }

    /// Returns the state of a thread.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn state(&self, thread: &base::ThreadId) -> Result<base::ThreadState, base::LogError> {
        self.0.threads.peek(thread).await
    }

    /// Returns the state of a thread, and the position of its log at that state.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn state_now(
        &self,
        thread: &base::ThreadId,
    ) -> Result<(base::Seq, base::ThreadState), base::LogError> {
        self.0.threads.peek_at(thread).await
    }

    /// Returns whether there is memory at all.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.setup().memory.is_some()
    }

    /// Returns the storage that chats fill.
    #[must_use]
    pub fn storage(&self) -> Storage {
        Storage::new(self.0.db.clone(), self.0.folders.clone())
    }

    /// Returns access to all data of single users.
    #[must_use]
    pub fn people(&self) -> PersonData {
        let setup = self.setup();
        let options = setup.memory.as_ref().map(|memory| memory.rules.options.clone()).unwrap_or_default();
        PersonData::new(self.0.db.clone(), self.0.folders.clone(), options)
    }

    /// Deletes all data of a user.
    ///
    /// # Errors
    /// When the agent works for them, or a step fails. A second call resumes the deletion.
    pub async fn forget_person(&self, keys: &store::PersonKeys) -> Result<ForgottenPerson, PersonError> {
        // Nothing read from their data is learnt meanwhile.
        let _alone = self.0.moving.write().await;
        let people = self.people();
        let concerned = people.concerned_threads(keys).await?;
        let drop_cached = || concerned.iter().for_each(|thread| self.0.threads.forget(thread));
        drop_cached();
        let forgotten = people.forget(keys).await;
        drop_cached();
        forgotten
    }

    /// Returns a guard; while it lives no thread loses its files.
    pub async fn keep_files(&self) -> OwnedRwLockReadGuard<()> {
        self.0.folders.keep_files().await
    }

    /// Waits until one more run may work; `None` when `cancel` comes first. For callers that prepare a run before it
    /// starts.
    pub async fn admit(&self, cancel: &CancellationToken) -> Option<Admission> {
        let permit = cancel.run_until_cancelled(self.0.admission.clone().acquire_owned()).await?;
        Some(Admission { _permit: permit.ok()? })
    }

    /// Starts a run. It waits until another run on its thread is over.
    #[must_use]
    pub fn start(&self, task: RunTask, control: Control) -> Run {
        self.start_admitted(task, control, None, None)
    }

    /// Like [`Client::start`], for a run that is already admitted or already has a place in the queue.
    #[must_use]
    pub fn start_admitted(
        &self,
        task: RunTask,
        control: Control,
        admission: Option<Admission>,
        place: Option<ThreadPlace>,
    ) -> Run {
        let live = runs::live(&task, control);
        // Without `alone`, the run waits for earlier runs of the thread.
        self.0.runs.open(live.clone(), false).ok();
        let turn = place.unwrap_or_else(|| self.place(&live.thread)).turn();
        self.spawn(task, live, admission, turn)
    }

    /// Returns a place in the queue for a thread, for a run that starts later.
    #[must_use]
    pub fn place(&self, thread: &base::ThreadId) -> ThreadPlace {
        self.0.runs.place(thread)
    }

    /// Spawns a registered run, which works when its turn on its thread comes.
    fn spawn(
        &self,
        task: RunTask,
        live: LiveRun,
        admission: Option<Admission>,
        turn: impl Future<Output = ThreadSlot> + Send + 'static,
    ) -> Run {
        let (ended, done) = oneshot::channel();
        let run = Run { id: live.run.clone(), replay: live.replay.clone(), done };
        let (client, suspend, by_client) = (self.clone(), self.0.suspend.clone(), task.by_client);
        self.0.tasks.spawn(async move {
            // A run that ends with the process writes nothing: it resumes after a restart.
            let Some(end) = suspend.run_until_cancelled(client.run(task, &live, admission, turn)).await
            else {
                return;
            };
            if by_client {
                live.end.set(end.clone()).ok();
            }
            // The starter of the run may be gone: the log has everything.
            ended.send(end).ok();
            client.0.runs.close(&live.run);
        });
        run
    }

    /// Runs a task when its turn comes, and records its end before the thread is released.
    async fn run(
        &self,
        task: RunTask,
        live: &LiveRun,
        admission: Option<Admission>,
        turn: impl Future<Output = ThreadSlot>,
    ) -> RunEnd {
        let by_client = task.by_client;
        let begun = run::wait(self, &task, &live.control.cancel, admission, turn).await;
        let (_slot, worked) = match begun {
            None => (None, Ok(run::did_nothing(base::Outcome::Stopped, live).await)),
            Some((slot, admission)) => {
                let work = Box::pin(run::execute(self, task, live, admission));
                (Some(slot), AssertUnwindSafe(work).catch_unwind().await)
            }
        };
        let (end, ending) = match worked {
            Ok(ended) => ended,
            Err(_) => {
                tracing::error!(run = %live.run, "aborted run after panic");
                run::broke_down(self, live, by_client).await
            }
        };
        conclude::store_end(&self.0.db, &live.run, ending).await;
        end
    }

    /// Returns the replay ring of a run that works, or ended a minute ago at most.
    #[must_use]
    pub fn replay(&self, run: &base::RunId) -> Option<Arc<Replay>> {
        self.live_run(run).map(|live| live.replay)
    }

    /// Returns the runs that work or wait to, oldest first.
    #[must_use]
    pub fn runs(&self) -> Vec<(base::RunId, Arc<Replay>)> {
        self.0.runs.list()
    }

    /// Returns how many runs work or wait to.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.tasks.len()
    }

    /// Ends all runs without writing an end for them, and lets none begin. They resume after a restart.
    pub async fn suspend(&self) {
        self.0.suspend.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Drops threads from memory that were unused for a while, which are read again when needed, and ended runs past
    /// their time to be read.
    pub fn trim(&self) {
        self.0.threads.trim();
        self.0.runs.trim();
    }

    fn setup(&self) -> Arc<AgentSetup> {
        self.0.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
