//! A named conversation: a thread of the HTTP API with the name in its metadata, and its runs.

use super::{
    api::{Api, ApiFailure, Views, backoff},
    wire::{Act, ChatNews, ChatWire, CommandEntry, Letter, LineFile, TranscriptLine, Unsent},
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_base::{MessageId, ThreadId};
use pudu_channels::{BoxFuture, Choice};
use pudu_dispatch::{Shared, decided_by, sent, view::RunView};
use pudu_kit::file;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Metadata key of a thread for the name of the conversation.
const NAME_KEY: &str = "terminal";
/// Number of past messages that are read.
const PAST_MESSAGES: usize = 40;
/// Number of recent runs that are searched for an unfinished or repeated one.
const RECENT_RUNS: usize = 20;
/// Maximum number of lines and runs waiting for the reader.
const MAX_UNREAD: usize = 256;
/// Maximum number of model calls of a run.
pub(in crate::cli) const RECURSION_LIMIT: u32 = 1000;

/// A named conversation.
#[derive(Clone)]
pub(super) struct ThreadChat(Arc<Inner>);

struct Inner {
    api: Api,
    name: String,
    /// The daemon, if it runs in this process.
    inside: Option<Arc<Shared>>,
    /// Id of the thread, once it is found or created.
    thread: tokio::sync::Mutex<Option<String>>,
    news: Sender<Posted>,
    unread: Mutex<Option<Receiver<Posted>>>,
}

/// Result of a letter, passed to the reader.
enum Posted {
    Line(TranscriptLine),
    /// A run that began on a thread.
    Run {
        thread: String,
        run: String,
    },
}

impl ThreadChat {
    /// Creates a named conversation. Files of a daemon in this process have paths; others have URLs.
    pub(super) fn new(api: Api, name: &str, inside: Option<Arc<Shared>>) -> Self {
        let (news, unread) = mpsc::channel(MAX_UNREAD);
        Self(Arc::new(Inner {
            api,
            name: name.to_owned(),
            inside,
            thread: tokio::sync::Mutex::default(),
            news,
            unread: Mutex::new(Some(unread)),
        }))
    }
}

impl ChatWire for ThreadChat {
    fn follow(&self) -> BoxStream<'static, ChatNews> {
        let unread = self.0.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(unread) = unread else { return stream::pending().boxed() };
        let reader = ChatReader {
            chat: self.0.clone(),
            unread,
            begun: false,
            queue: VecDeque::new(),
            following: None,
            failures: 0,
        };
        stream::unfold(reader, |mut reader| async move { Some((reader.next().await, reader)) }).boxed()
    }

    fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>> {
        Box::pin(async move {
            let posted = self.0.post(letter).await?;
            for posted in posted {
                // Without a reader, the terminal is closing.
                self.0.news.send(posted).await.ok();
            }
            Ok(())
        })
    }

    fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>> {
        #[derive(Deserialize)]
        struct OfferedCommand {
            #[serde(flatten)]
            entry: CommandEntry,
            kind: String,
            works_on_threads: bool,
        }
        Box::pin(async move {
            let listed = self.0.api.get("commands").await.unwrap_or_default();
            let listed: Vec<OfferedCommand> =
                serde_json::from_value(listed["commands"].clone()).unwrap_or_default();
            let usable = listed.into_iter().filter(|one| one.works_on_threads || one.kind == "skill");
            usable.map(|one| one.entry).collect()
        })
    }
}

impl Inner {
    /// Finds the newest thread with the name. Returns its id and its title.
    async fn find(&self) -> Result<Option<(String, Option<String>)>, ApiFailure> {
        let wanted = json!({
            "metadata": { NAME_KEY: self.name },
            "limit": 1,
            "sort_by": "created_at",
            "sort_order": "desc",
            "select": ["thread_id", "values"],
        });
        let found = self.api.post("threads/search", &wanted).await?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let newest = &found[0];
        Ok(text(&newest["thread_id"]).map(|thread| (thread, text(&newest["values"]["title"]))))
    }

    /// Creates a thread with the name, unless a thread with the id exists.
    async fn make(&self, thread: &str) -> Result<(), ApiFailure> {
        let new =
            json!({ "thread_id": thread, "if_exists": "do_nothing", "metadata": { NAME_KEY: self.name } });
        self.api.post("threads", &new).await.map(drop)
    }

    /// Returns the thread of the conversation. Creates it if there is none.
    async fn thread(&self) -> Result<String, ApiFailure> {
        let mut known = self.thread.lock().await;
        if let Some(thread) = &*known {
            return Ok(thread.clone());
        }
        let thread = match self.find().await? {
            Some((thread, _)) => thread,
            None => {
                let thread = ThreadId::fresh().to_string();
                self.make(&thread).await?;
                thread
            }
        };
        Ok(known.insert(thread).clone())
    }

    async fn post(&self, letter: &Letter) -> Result<Vec<Posted>, Unsent> {
        let thread = self.thread().await?;
        let done = match &letter.act {
            Act::Choose(action) => match decided_by(action) {
                Some((key, approved)) => self.decide(&thread, key, approved).await,
                None => self.say(&thread, letter, action).await,
            },
            Act::Say(text) => self.say(&thread, letter, text).await,
        };
        if let Err(ApiFailure::Missing(reason)) = done {
            // The thread was deleted. The next attempt to send the letter creates another one.
            *self.thread.lock().await = None;
            return Err(Unsent::Later { reason, after: None });
        }
        Ok(done?)
    }

    async fn decide(&self, thread: &str, key: &str, approved: bool) -> Result<Vec<Posted>, ApiFailure> {
        let path = format!("threads/{thread}/approvals/{key}");
        match self.api.post(&path, &json!({ "approved": approved })).await {
            Err(ApiFailure::Missing(reason)) => Err(ApiFailure::Refused(reason)),
            decided => decided.map(|_| Vec::new()),
        }
    }

    async fn say(&self, thread: &str, letter: &Letter, text: &str) -> Result<Vec<Posted>, ApiFailure> {
        if !text.starts_with('/') {
            return self.run(thread, letter, text).await;
        }
        let path = format!("threads/{thread}/slash-commands");
        let answer = self.api.command(&path, &json!({ "text": text, "context": context() })).await?;
        let answer: CommandReply = serde_json::from_value(answer).unwrap_or_default();
        if answer.is_message {
            return self.run(thread, letter, text).await;
        }
        let thread = self.moved(thread, &answer.thread_id).await?;
        let (run, line) = (answer.run_id.clone(), answer.line());
        // The end of the run shows that it was stopped by a choice.
        let has_words = !line.text.is_empty() || run.is_none();
        let is_stop = matches!(letter.act, Act::Choose(_)) && text == super::talk::STOP;
        let mut posted = Vec::new();
        if has_words && !is_stop {
            posted.push(Posted::Line(line));
        }
        posted.extend(run.map(|run| Posted::Run { thread, run }));
        Ok(posted)
    }

    /// Switches to the thread on which the conversation continues after a command.
    async fn moved(&self, thread: &str, now: &str) -> Result<String, ApiFailure> {
        if now == thread || now.is_empty() {
            return Ok(thread.to_owned());
        }
        self.make(now).await?;
        *self.thread.lock().await = Some(now.to_owned());
        Ok(now.to_owned())
    }

    async fn run(&self, thread: &str, letter: &Letter, text: &str) -> Result<Vec<Posted>, ApiFailure> {
        let key = &letter.key;
        let existing = match letter.is_repeated {
            true => self.runs(thread).await?.into_iter().find(|run| run.metadata["message_id"] == **key),
            false => None,
        };
        let run = match existing {
            Some(run) => run.run_id,
            None => {
                let body = json!({
                    "assistant_id": "lead_agent",
                    "input": { "messages": [{ "type": "human", "id": key, "content": text }] },
                    "multitask_strategy": "enqueue",
                    "on_disconnect": "continue",
                    "stream_mode": "view",
                    "config": { "recursion_limit": RECURSION_LIMIT },
                    "context": context(),
                    "metadata": { "message_id": key },
                });
                let run = self.api.post(&format!("threads/{thread}/runs"), &body).await?;
                run["run_id"].as_str().unwrap_or_default().to_owned()
            }
        };
        Ok(vec![Posted::Run { thread: thread.to_owned(), run }])
    }

    /// Returns the newest runs of a thread, newest first.
    async fn runs(&self, thread: &str) -> Result<Vec<ListedRun>, ApiFailure> {
        let runs = self.api.get(&format!("threads/{thread}/runs?limit={RECENT_RUNS}")).await?;
        Ok(serde_json::from_value(runs).unwrap_or_default())
    }

    /// Returns the existing lines and the unfinished runs, oldest first.
    async fn begin(&self) -> Result<(Vec<TranscriptLine>, Vec<Posted>), ApiFailure> {
        let mut known = self.thread.lock().await;
        let Some((thread, title)) = self.find().await? else { return Ok((Vec::new(), Vec::new())) };
        *known = Some(thread.clone());
        drop(known);
        let runs = self.runs(&thread).await?;
        let is_open = |run: &&ListedRun| matches!(run.status.as_str(), "pending" | "running");
        let open: Vec<String> = runs.iter().rev().filter(is_open).map(|run| run.run_id.clone()).collect();
        let page = self.api.get(&format!("threads/{thread}/messages/page?limit={PAST_MESSAGES}")).await?;
        let mut lines = past(&page, &open);
        lines.extend(open.iter().map(|run| TranscriptLine::by_agent(run, "", false)));
        if let Some(last) = lines.last_mut() {
            last.title = title;
        }
        Ok((lines, open.into_iter().map(|run| Posted::Run { thread: thread.clone(), run }).collect()))
    }

    /// Creates the line for a view, with the paths or URLs of its files.
    async fn line(&self, thread: &str, view: RunView) -> TranscriptLine {
        let mut files = Vec::new();
        for path in &view.files {
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            let location = match &self.inside {
                Some(shared) => kept(shared, thread, path).await,
                None => None,
            };
            let address = || self.api.address(&format!("threads/{thread}/artifacts{path}"));
            files.push(LineFile { name, place: location.unwrap_or_else(address) });
        }
        TranscriptLine::of_run(view, files)
    }
}

/// Returns the options of the runs.
fn context() -> Value {
    json!({ "approvals": "ask" })
}

/// Copies a file of a thread to the home folder of the daemon in this process, and returns its path.
async fn kept(shared: &Shared, thread: &str, path: &str) -> Option<String> {
    let sandbox = shared.agent.files(&thread.into()).await.ok()?;
    let file = sent::keep(&shared.home, &sandbox, path).await.ok()?;
    Some(file.display().to_string())
}

/// Returns the lines for a page of messages. Text of unfinished runs comes from their views.
fn past(page: &Value, open: &[String]) -> Vec<TranscriptLine> {
    let line = |row: &Value| {
        let (message, text) = (&row["content"], text_of(&row["content"]["content"]));
        let id = message["id"].as_str().unwrap_or_default();
        match message["type"].as_str()? {
            "human" => Some(TranscriptLine::by_person(id, &text)),
            "ai" if open.iter().any(|run| row["run_id"] == **run) => None,
            "ai" if !text.trim().is_empty() => Some(TranscriptLine::by_agent(id, &text, true)),
            _ => None,
        }
    };
    page["data"].as_array().into_iter().flatten().filter_map(line).collect()
}

/// Returns the text of a message's content.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}

/// A run in a list.
#[derive(Deserialize)]
struct ListedRun {
    run_id: String,
    status: String,
    #[serde(default)]
    metadata: Value,
}

/// Answer to a slash command.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandReply {
    thread_id: String,
    is_message: bool,
    text: String,
    choices: Vec<Choice>,
    files: Vec<ReplyFile>,
    run_id: Option<String>,
}

/// Text file of an answer.
#[derive(Deserialize)]
struct ReplyFile {
    name: String,
    content: String,
}

impl CommandReply {
    fn line(self) -> TranscriptLine {
        let id = MessageId::fresh().to_string();
        let folder = std::env::temp_dir().join(format!("pudu-{id}"));
        let files = self.files.iter().map(|file| file.write(&folder)).collect();
        let choices = self.choices;
        TranscriptLine { choices, files, ..TranscriptLine::by_agent(&id, &self.text, true) }
    }
}

impl ReplyFile {
    /// Writes the file into a folder, readable only by its owner. Returns its path, or the reason why there is none.
    fn write(&self, folder: &Path) -> LineFile {
        let plain = self.name.rsplit('/').next().unwrap_or_default();
        let path = folder.join(plain);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let written = created.and_then(|()| file::create(&path, self.content.as_bytes(), 0o600));
        let place = match written {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("not written: {error}"),
        };
        LineFile { name: plain.to_owned(), place }
    }
}

/// Follows the runs of a conversation one after the other, and reconnects when necessary.
struct ChatReader {
    chat: Arc<Inner>,
    unread: Receiver<Posted>,
    begun: bool,
    /// Runs to follow, oldest first, each with its thread.
    queue: VecDeque<(String, String)>,
    /// Views of the first run.
    following: Option<Views>,
    /// Number of consecutive failures to reach the daemon.
    failures: u32,
}

impl ChatReader {
    async fn next(&mut self) -> ChatNews {
        loop {
            if !self.begun {
                tokio::time::sleep(backoff(self.failures)).await;
                match self.chat.begin().await {
                    Ok((lines, open)) => {
                        (self.begun, self.failures) = (true, 0);
                        open.into_iter().for_each(|run| drop(self.take(run)));
                        return ChatNews::Begun(lines);
                    }
                    Err(error) => return self.failed(error),
                }
            }
            if self.following.is_none()
                && let Some((thread, run)) = self.queue.front().cloned()
            {
                tokio::time::sleep(backoff(self.failures)).await;
                match self.chat.api.views(&thread, &run).await {
                    Ok(views) => self.following = Some(views),
                    Err(ApiFailure::Missing(reason)) => {
                        self.queue.pop_front();
                        let line = TranscriptLine::by_agent(&run, &reason, true);
                        return ChatNews::Line(TranscriptLine { failed: true, ..line });
                    }
                    Err(error) => return self.failed(error),
                }
            }
            let news = match &mut self.following {
                Some(views) => tokio::select! {
                    view = views.next() => Some(self.seen(view).await),
                    Some(posted) = self.unread.recv() => self.take(posted),
                },
                None => match self.unread.recv().await {
                    Some(posted) => self.take(posted),
                    None => std::future::pending().await,
                },
            };
            if let Some(news) = news {
                return news;
            }
        }
    }

    /// Handles the next view of the first run; `None` if the connection is lost.
    async fn seen(&mut self, view: Option<RunView>) -> ChatNews {
        let (Some(view), Some((thread, _))) = (view, self.queue.front()) else {
            self.following = None;
            self.failures += 1;
            return ChatNews::Lost;
        };
        let is_done = view.done;
        let line = self.chat.line(thread, view).await;
        self.failures = 0;
        if is_done {
            self.following = None;
            self.queue.pop_front();
        }
        ChatNews::Line(line)
    }

    /// Handles the result of a letter. A run begins as a line without text.
    fn take(&mut self, posted: Posted) -> Option<ChatNews> {
        match posted {
            Posted::Line(line) => Some(ChatNews::Line(line)),
            Posted::Run { run, .. } if self.queue.iter().any(|(_, known)| *known == run) => None,
            Posted::Run { thread, run } => {
                let line = TranscriptLine::by_agent(&run, "", false);
                self.queue.push_back((thread, run));
                Some(ChatNews::Line(line))
            }
        }
    }

    fn failed(&mut self, error: ApiFailure) -> ChatNews {
        self.failures += 1;
        match error {
            ApiFailure::Later { .. } => ChatNews::Lost,
            ApiFailure::Missing(reason) | ApiFailure::Refused(reason) => ChatNews::Refused(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_has_the_words_of_both_and_not_those_of_runs_that_work() {
        let row = |kind: &str, id: &str, content: Value, run: &str| json!({ "run_id": run, "content": { "type": kind, "id": id, "content": content } });
        let page = json!({ "data": [
            row("human", "1", json!([{ "type": "text", "text": "q" }]), "a"),
            row("ai", "2", json!(""), "a"),
            row("tool", "3", json!("result"), "a"),
            row("ai", "4", json!("answer"), "a"),
            row("human", "5", json!("next"), "b"),
            row("ai", "6", json!("half"), "b"),
            json!({ "odd": 7 }),
        ]});
        let lines = past(&page, &["b".to_owned()]);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["q", "answer", "next"]);
    }
}
