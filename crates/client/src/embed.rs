//! The agent in another program: a folder, a model, and the usual tools on the files of threads.
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
//! let state = client.state(&"trip".into()).await?;
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

use crate::{
    AgentSetup, Client, Control, ModelInfo, Run, RunEnd, RunTask,
    base::{Human, MessageId, Model, RunId, ThreadFolder, ThreadId, UserId},
    harness::RunBounds,
    sandbox::{Folders, LocalSandboxes, Options},
    skills::Skills,
    store::{Db, DbLocation, StoreError, now},
    tools::{self, BUILT_IN, ToolLimits},
};
use std::{path::Path, sync::Arc};

/// The account that threads of such a program count for.
const ACCOUNT: &str = "embedded";
/// Maximum number of runs that work at once.
const CONCURRENCY: usize = 16;
/// The tools besides the built-in ones: no shell, and no network access.
const FILE_TOOLS: [&str; 7] =
    ["ls", "read_file", "write_file", "str_replace", "glob", "grep", "present_files"];

impl Client {
    /// Opens an agent in a folder of its own, with a SQLite database and the files of its threads. The first model is the
    /// default. For other tools, limits, skills and sandboxes see [`Client::new`] and [`Client::configure`].
    ///
    /// # Errors
    /// When the database cannot be opened.
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
        Ok(Self::new(db, folders, setup, Skills::none(), CONCURRENCY))
    }

    /// Sends a message to a thread, which is created if it is new, and waits for the answer.
    ///
    /// # Errors
    /// When the store fails, or the agent is stopped meanwhile.
    pub async fn chat(&self, thread: &str, text: &str) -> Result<RunEnd, StoreError> {
        self.say(thread, text).await?.ended().await.ok_or(StoreError::Closed)
    }

    /// Sends a message to a thread, and returns the run that answers, which [`Client::stream`] reads. The run continues
    /// with or without a reader.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn say(&self, thread: &str, text: &str) -> Result<Run, StoreError> {
        let thread = ThreadId::from(thread);
        let folder = ThreadFolder { owner: UserId::local(), thread: thread.clone() };
        self.0.db.thread_used(&folder, ACCOUNT, now()).await?;
        let input = vec![Human::new(MessageId::fresh(), text)];
        Ok(self.start(RunTask { input, ..RunTask::new(thread, RunId::fresh()) }, Control::default()))
    }
}
