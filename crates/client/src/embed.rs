//! Embeds the agent in another program. It needs a folder and a model, and has the usual tools for a thread's files.
//!
//! ```
//! use pudu_client::{Client, base::Model, model::Offline};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let home = folder.path();
//! let model: Arc<dyn Model> = Arc::new(Offline);
//! let client = Client::open(home, [model]).await?;
//! let wish = r#"/tool write_file {"path": "/mnt/user-data/outputs/note.txt", "content": "hello"}"#;
//! println!("{}", client.chat("trip", wish).await?.text);
//! let state = client.agent().state(&"trip".into()).await?;
//! # let texts: Vec<&str> = state.messages.values().map(|message| message.text()).collect();
//! # assert_eq!(texts[0], wish);
//! # assert!(texts[3].contains("The tool `write_file` answered"), "{texts:?}");
//! # let written = home.join("users/default/threads/trip/user-data/outputs/note.txt");
//! # assert_eq!(std::fs::read_to_string(written)?, "hello");
//! assert_eq!(state.messages.len(), 4);
//! # Ok(())
//! # }
//! ```

mod artifacts;
mod memory;
mod models;
mod skills;
mod stream;
mod threads;
mod uploads;

pub use artifacts::Artifact;
pub use stream::{RunStream, StreamFailure, StreamItem, StreamMessage, StreamUsage};
pub use threads::GoalError;
pub use uploads::{UploadError, UploadPart};

use crate::Client;
use pudu_agent::{Agent, AgentSetup, ModelInfo, RunTask};
use pudu_base::{Human, MessageId, Model, RunId, ThreadFolder, ThreadId, UserId};
use pudu_harness::RunBounds;
use pudu_runs::{Control, Run, RunEnd, RunManager};
use pudu_sandbox::{Folders, LocalSandboxes, Options};
use pudu_skills::Skills;
use pudu_store::{Db, DbLocation, StoreError, now};
use pudu_tools::{self as tools, BUILT_IN, ToolLimits};
use std::{path::Path, sync::Arc};

/// Account name of threads created by an embedding program. Threads of chats have their bot's name instead.
const ACCOUNT: &str = "embedded";
/// Maximum number of concurrent runs.
const CONCURRENCY: usize = 16;
/// Tools in addition to the built-in ones. They include no shell and no network access.
const FILE_TOOLS: [&str; 7] =
    ["ls", "read_file", "write_file", "str_replace", "glob", "grep", "present_files"];

impl Client {
    /// Opens an agent in its own folder, with a SQLite database and the files of its threads. The first model is the
    /// default. For other tools, limits, skills and sandboxes see [`Agent::new`] and [`Agent::configure`].
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub async fn open(
        home: &Path,
        models: impl IntoIterator<Item = Arc<dyn Model>>,
    ) -> Result<Self, StoreError> {
        let db = Db::open(&DbLocation::Sqlite(home.join("data").join("pudu.db"))).await?;
        let folders = Folders::new(home.to_owned(), None);
        let places = LocalSandboxes::new(folders.clone(), None, Options::default());
        let models = models.into_iter().map(|model| (ModelInfo::named(model.name()), model));
        let names = FILE_TOOLS.iter().chain(&BUILT_IN);
        let tools = names.filter_map(|name| tools::tool(name, ToolLimits::default()));
        let setup = AgentSetup::new(models, tools, RunBounds::default(), Arc::new(places));
        let agent = Agent::new(db, folders, setup, Skills::none());
        Ok(RunManager::new(agent, CONCURRENCY).into())
    }

    /// Sends a message to a thread, which is created if it is new, and waits for the answer.
    ///
    /// # Errors
    /// If the store fails, or the agent stops first.
    pub async fn chat(&self, thread: &str, text: &str) -> Result<RunEnd, StoreError> {
        self.say(thread, text).await?.ended().await.ok_or(StoreError::Closed)
    }

    /// Sends a message to a thread, which is created if it is new, and returns the run that answers. The run continues
    /// with or without a reader. To read its items, use [`Client::stream`] instead.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn say(&self, thread: &str, text: &str) -> Result<Run, StoreError> {
        let thread = ThreadId::from(thread);
        let folder = ThreadFolder { owner: UserId::local(), thread: thread.clone() };
        self.agent().db().thread_used(&folder, ACCOUNT, now()).await?;
        let input = vec![Human::new(MessageId::fresh(), text)];
        Ok(self.runs().start(RunTask { input, ..RunTask::new(thread, RunId::fresh()) }, Control::default()))
    }
}
