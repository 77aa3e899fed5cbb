//! Scheduled tasks. Their runs are in `schedules::history`, and the transaction that starts one in `schedules::claim`.

pub(crate) mod claim;
pub(crate) mod history;

use crate::{
    Db, Result, StoreError, crash,
    engines::{Column, ColumnValue, FromRow, Row, Tx, query},
};
use pudu_base::{ThreadId, UserId};

/// Declares an enum that is stored by its name.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Returns DeerFlow's name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Parses DeerFlow's name.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                [$(Self::$variant,)*].into_iter().find(|known| known.as_str() == word)
            }
        }

        impl ColumnValue for $name {
            fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
                let known = |word: String| {
                    Self::parse(&word).ok_or_else(|| StoreError::Corrupt(format!("unknown name: {word}")))
                };
                row.column::<Option<String>>(at)?.map(known).transpose()
            }
        }
    };
}
pub(crate) use named;

named! {
    /// State of a scheduled task.
    ScheduledTaskStatus {
        /// It runs at its next time.
        Enabled "enabled",
        /// It does not run until it is resumed.
        Paused "paused",
        /// Its only run works. Tasks with several times stay enabled.
        Running "running",
        /// Its only run ended.
        Completed "completed",
        /// Its only run failed or was skipped.
        Failed "failed",
        /// Its only run was stopped.
        Cancelled "cancelled",
    }
}

named! {
    /// Kind of the times of a scheduled task.
    ScheduleKind {
        /// A cron expression.
        Cron "cron",
        /// One time.
        Once "once",
    }
}

/// Chat that gets the answers of a scheduled task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledChat {
    /// The bot.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The owner's id on the bot's platform.
    pub person: String,
    /// The address, JSON.
    pub target: String,
}

/// A scheduled task. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledTask {
    /// Its id.
    pub id: String,
    /// The owner.
    pub user: UserId,
    /// The thread of every run; without one, each run gets a new thread.
    pub thread: Option<ThreadId>,
    /// The title.
    pub title: String,
    /// The message for the agent.
    pub prompt: String,
    /// Kind of its times.
    pub kind: ScheduleKind,
    /// The cron expression or the time, JSON.
    pub spec: String,
    /// IANA name of the time zone.
    pub zone: String,
    /// Its state.
    pub status: ScheduledTaskStatus,
    /// The agent; the lead agent, or the one of the chat, if `None`.
    pub agent: Option<String>,
    /// The model; the agent's or the chat's if `None`.
    pub model: Option<String>,
    /// Maximum number of tokens of a run, if it has a limit of its own.
    pub budget: Option<i64>,
    /// The chat that gets the answers; without one they are in the thread only.
    pub chat: Option<ScheduledChat>,
    /// The next due time.
    pub next_run: Option<i64>,
    /// Time of its last start.
    pub last_run: Option<i64>,
    /// The last run.
    pub last_run_id: Option<String>,
    /// The thread of the last run.
    pub last_thread: Option<ThreadId>,
    /// The error of the last run, if it failed.
    pub last_error: Option<String>,
    /// Number of starts.
    pub run_count: i64,
    /// Number of failed runs since the last success.
    pub failures: i64,
    /// Time of its creation.
    pub created: i64,
    /// Time of its last change by a person.
    pub updated: i64,
}

impl FromRow for ScheduledTask {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let account: String = row.column("account")?;
        let chat = match account.is_empty() {
            true => None,
            false => Some(ScheduledChat {
                account,
                chat: row.column("chat")?,
                person: row.column("person")?,
                target: row.column("target")?,
            }),
        };
        Ok(Self {
            id: row.column("id")?,
            user: row.column("user_id")?,
            thread: row.column("thread")?,
            title: row.column("title")?,
            prompt: row.column("prompt")?,
            kind: row.column("kind")?,
            spec: row.column("spec")?,
            zone: row.column("zone")?,
            status: row.column("status")?,
            agent: row.column("agent")?,
            model: row.column("model")?,
            budget: row.column("budget")?,
            chat,
            next_run: row.column("next_run")?,
            last_run: row.column("last_run")?,
            last_run_id: row.column("last_run_id")?,
            last_thread: row.column("last_thread")?,
            last_error: row.column("last_error")?,
            run_count: row.column("run_count")?,
            failures: row.column("failures")?,
            created: row.column("created")?,
            updated: row.column("updated")?,
        })
    }
}

macro_rules! tasks {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, thread, title, prompt, kind, spec, zone, status, agent, model, budget, account, chat, person,
                target, next_run, last_run, last_run_id, last_thread, last_error, run_count, failures, created, updated
                FROM scheduled_tasks ",
            $rest
        )
    };
}

impl Db {
    /// Stores a new task, unless its owner has `most` tasks. Returns whether it was stored.
    pub async fn add_scheduled_task(&self, task: ScheduledTask, most: i64) -> Result<bool> {
        self.write(&crash::ADD_SCHEDULED, move |tx| {
            let sql = "SELECT COUNT(*) FROM scheduled_tasks WHERE user_id = $1";
            if query(sql).bind(&task.user).fetch_one::<i64>(tx)? >= most {
                return Ok(false);
            }
            insert(tx, &task)?;
            Ok(true)
        })
        .await
    }

    /// Changes a task in one transaction. Returns the changed task, or the refusal of `change`; `None` if there is no
    /// such task.
    pub async fn change_scheduled_task<E: Send + 'static>(
        &self,
        id: &str,
        change: impl Fn(&mut ScheduledTask) -> std::result::Result<(), E> + Send + 'static,
    ) -> Result<Option<std::result::Result<ScheduledTask, E>>> {
        let id = id.to_owned();
        self.write(&crash::CHANGE_SCHEDULED, move |tx| {
            let Some(mut task) = find(tx, &id)? else { return Ok(None) };
            let changed = change(&mut task);
            if changed.is_ok() {
                update(tx, &task)?;
            }
            Ok(Some(changed.map(|()| task)))
        })
        .await
    }

    /// Deletes a task. Its runs are kept. Returns whether there was one.
    pub async fn delete_scheduled_task(&self, id: &str) -> Result<bool> {
        let delete = query("DELETE FROM scheduled_tasks WHERE id = $1").bind(id);
        Ok(self.execute(&crash::DELETE_SCHEDULED, delete).await? > 0)
    }

    /// Returns a task.
    pub async fn scheduled_task(&self, id: &str) -> Result<Option<ScheduledTask>> {
        let id = id.to_owned();
        self.read(move |tx| find(tx, &id)).await
    }

    /// Returns a user's tasks, newest first.
    pub async fn scheduled_tasks(&self, user: &UserId) -> Result<Vec<ScheduledTask>> {
        self.all(query(tasks!("WHERE user_id = $1 ORDER BY created DESC, id")).bind(user)).await
    }

    /// Returns a user's tasks that use a thread or used it last, newest first.
    pub async fn scheduled_tasks_of_thread(
        &self,
        user: &UserId,
        thread: &ThreadId,
    ) -> Result<Vec<ScheduledTask>> {
        let sql =
            tasks!("WHERE user_id = $1 AND (thread = $2 OR last_thread = $2) ORDER BY created DESC, id");
        self.all(query(sql).bind(user).bind(thread)).await
    }

    /// Returns the tasks of all users, newest first.
    pub async fn all_scheduled_tasks(&self) -> Result<Vec<ScheduledTask>> {
        self.all(query(tasks!("ORDER BY created DESC, id"))).await
    }

    /// Returns the next due time of all tasks.
    pub async fn next_scheduled(&self) -> Result<Option<i64>> {
        let sql =
            "SELECT MIN(next_run) FROM scheduled_tasks WHERE status = 'enabled' AND next_run IS NOT NULL";
        self.one(query(sql)).await
    }

    /// Returns tasks that are due, oldest due time first.
    pub async fn due_scheduled(&self, now: i64, limit: i64) -> Result<Vec<ScheduledTask>> {
        let sql = tasks!("WHERE status = 'enabled' AND next_run <= $1 ORDER BY next_run, id LIMIT $2");
        self.all(query(sql).bind(now).bind(limit)).await
    }

    /// Returns enabled tasks that failed at least `failures` times since their last success.
    pub async fn failing_scheduled(&self, failures: i64) -> Result<Vec<ScheduledTask>> {
        let sql = tasks!("WHERE status = 'enabled' AND failures >= $1 ORDER BY id");
        self.all(query(sql).bind(failures)).await
    }
}

/// Assigns the tasks that a platform identity made in chats to a user.
pub(crate) fn belong(tx: &mut Tx<'_>, account: &str, person: &str, user: &UserId) -> Result<()> {
    let sql = "UPDATE scheduled_tasks SET user_id = $3 WHERE account = $1 AND person = $2";
    query(sql).bind(account).bind(person).bind(user).execute(tx).map(drop)
}

pub(crate) fn find(tx: &mut Tx<'_>, id: &str) -> Result<Option<ScheduledTask>> {
    query(tasks!("WHERE id = $1")).bind(id).fetch_optional(tx)
}

/// Stores a new task.
pub(crate) fn insert(tx: &mut Tx<'_>, task: &ScheduledTask) -> Result<()> {
    let sql =
        "INSERT INTO scheduled_tasks (id, user_id, kind, created, account, chat, person, target, title, prompt, spec,
            zone, status, run_count, failures, updated)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', '', '', '', '', 0, 0, 0)";
    let chat = task.chat.as_ref();
    let chat_columns =
        chat.map(|chat| [&chat.account, &chat.chat, &chat.person, &chat.target].map(String::as_str));
    let insert = query(sql).bind(&task.id).bind(&task.user).bind(task.kind.as_str()).bind(task.created);
    insert.bind_all(chat_columns.unwrap_or_default()).execute(tx)?;
    update(tx, task)
}

/// Stores every column that can change.
fn update(tx: &mut Tx<'_>, task: &ScheduledTask) -> Result<()> {
    let sql = "UPDATE scheduled_tasks SET thread = $2, title = $3, prompt = $4, spec = $5, zone = $6, status = $7, agent = $8,
        model = $9, budget = $10, next_run = $11, last_run = $12, last_run_id = $13, last_thread = $14, last_error = $15,
        run_count = $16, failures = $17, updated = $18 WHERE id = $1";
    let update = query(sql)
        .bind(&task.id)
        .bind(task.thread.as_ref().map(ThreadId::as_str))
        .bind(&task.title)
        .bind(&task.prompt);
    let update = update.bind(&task.spec).bind(&task.zone).bind(task.status.as_str());
    let update = update.bind(task.agent.as_deref()).bind(task.model.as_deref()).bind(task.budget);
    let update = update.bind(task.next_run).bind(task.last_run).bind(task.last_run_id.as_deref());
    let update =
        update.bind(task.last_thread.as_ref().map(ThreadId::as_str)).bind(task.last_error.as_deref());
    update.bind(task.run_count).bind(task.failures).bind(task.updated).execute(tx).map(drop)
}
