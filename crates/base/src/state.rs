//! The state of a thread, and the only ways to change it.

use crate::{CallId, Compaction, ContextState, Goal, Message, MessageId, Question, RunId, TaskStage};
use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// State of a thread: a fold over [`Update`]s, never edited in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// Messages in the order of their first arrival.
    pub messages: IndexMap<MessageId, Arc<Message>>,
    /// Sandbox paths of files presented to people, in the order of their first presentation, each with the run that
    /// presented it last.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub artifacts: IndexMap<String, RunId>,
    /// Calls that were started and have no result yet. After a crash, these may have had effects.
    #[serde(default, skip_serializing_if = "IndexSet::is_empty")]
    pub begun: IndexSet<CallId>,
    /// Number of crashes that interrupted each call since a person's last message; 0 if only orderly shutdowns did.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub interrupted: IndexMap<CallId, u32>,
    /// The agent's own to-do list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// Digests of the files that the agent has read.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub marks: Arc<Marks>,
    /// The deferred tools that the agent has searched for.
    #[serde(default, skip_serializing_if = "Promoted::is_empty")]
    pub promoted: Promoted,
    /// The parts that models no longer see in their original form.
    #[serde(default, skip_serializing_if = "ContextState::is_empty")]
    pub context: ContextState,
    /// The goal of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Opaque fields of messages, as JSON objects, that API clients get back unchanged.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub client_fields: IndexMap<MessageId, Arc<Value>>,
}

/// Deferred tools that were found by a search and can now be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promoted {
    /// Identity of their catalogue. If the catalogue changes, they have to be searched for again.
    pub catalog: String,
    /// Their names, in order of discovery.
    pub names: IndexSet<String>,
}

impl Promoted {
    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn add(&mut self, catalog: String, names: Vec<String>) {
        if self.catalog != catalog {
            *self = Self { catalog, names: IndexSet::new() };
        }
        self.names.extend(names);
    }
}

/// An entry of the to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Todo {
    /// The task.
    pub content: String,
    /// Its status.
    pub status: TodoStatus,
}

/// Status of an entry of the to-do list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
}

/// Digests of the files that the agent has read, each from when the agent last read or wrote it. If there are too many,
/// the oldest are forgotten, and those files have to be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Marks(IndexMap<String, String>);

impl Marks {
    /// Maximum number of files remembered.
    const MAX_FILES: usize = 256;

    /// Returns the digest of the content of a file that the agent last saw.
    #[must_use]
    pub fn digest(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    fn is_empty(marks: &Arc<Self>) -> bool {
        marks.0.is_empty()
    }

    fn put(&mut self, path: String, digest: String) {
        self.0.shift_remove(&path);
        self.0.insert(path, digest);
        if self.0.len() > Self::MAX_FILES {
            self.0.shift_remove_index(0);
        }
    }
}

/// One change of a thread's state: the unit that the log stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", content = "value", rename_all = "snake_case")]
pub enum Update {
    /// Adds a message, or replaces the one with its id.
    Message(Arc<Message>),
    /// Removes a message. An unknown id changes nothing.
    Remove(MessageId),
    /// Adds files presented to people. Known ones keep their position.
    Artifacts {
        /// The run that presents them.
        run: RunId,
        /// Their sandbox paths.
        paths: Vec<String>,
    },
    /// A tool call starts. Written before its effect.
    Begin(CallId),
    /// A tool call was interrupted by a crash.
    Interrupt(CallId),
    /// A tool call was interrupted by an orderly shutdown, so the call cannot be the cause.
    Suspend(CallId),
    /// The agent's whole to-do list.
    Todos(Vec<Todo>),
    /// The agent read or wrote a file.
    Mark {
        /// The file's sandbox path.
        path: String,
        /// A digest of the content.
        digest: String,
    },
    /// The agent found deferred tools. Ones from another catalogue are forgotten.
    Promote {
        /// Identity of the catalogue.
        catalog: String,
        /// The tools' names.
        names: Vec<String>,
    },
    /// Requests to models now have pointers in place of results up to a message.
    Mask {
        /// The last masked message.
        through: MessageId,
        /// Sandbox paths of the files with the full text of newly masked results.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        kept: IndexMap<MessageId, String>,
    },
    /// Sets or removes the goal.
    Goal(Option<Goal>),
    /// Opaque fields of a message, as a JSON object, for API clients.
    ClientFields {
        /// The message.
        message: MessageId,
        /// The fields.
        fields: Arc<Value>,
    },
    /// Restores the thread to an earlier or a requested state. Rare, and as large as the thread.
    Restore(Arc<ThreadState>),
    /// A block now replaces the thread's beginning in requests to models.
    Compact(Arc<Compaction>),
    /// A sub-agent reached a new stage. This is for readers of the log; it does not change the state.
    Task {
        /// The call that it works for.
        call: CallId,
        /// The stage.
        #[serde(flatten)]
        stage: TaskStage,
    },
}

impl ThreadState {
    /// Applies one update. This function is the only reducer.
    pub fn apply(&mut self, update: Update) {
        match update {
            Update::Message(message) => {
                match &*message {
                    Message::Tool(result) => {
                        self.begun.shift_remove(&result.call);
                    }
                    // A new message allows interrupted calls to be retried.
                    Message::Human(_) => {
                        self.interrupted.clear();
                        self.goal.iter_mut().for_each(Goal::renew);
                    }
                    Message::Assistant(_) | Message::Reminder(_) => {}
                }
                self.messages.insert(message.id().clone(), message);
            }
            Update::Remove(id) => {
                let at = self.messages.get_index_of(&id);
                let before = at.and_then(|at| self.messages.get_index(at.checked_sub(1)?));
                if at.is_some() {
                    self.context.forget(&id, before.map(|(id, _)| id));
                }
                self.messages.shift_remove(&id);
                self.client_fields.shift_remove(&id);
            }
            Update::ClientFields { message, fields } => {
                self.client_fields.insert(message, fields);
            }
            Update::Restore(state) => *self = Arc::unwrap_or_clone(state),
            Update::Artifacts { run, paths } => {
                self.artifacts.extend(paths.into_iter().map(|path| (path, run.clone())));
            }
            Update::Begin(call) => {
                self.begun.insert(call);
            }
            Update::Interrupt(call) => {
                self.begun.shift_remove(&call);
                *self.interrupted.entry(call).or_default() += 1;
            }
            Update::Suspend(call) => {
                self.begun.shift_remove(&call);
                self.interrupted.entry(call).or_default();
            }
            Update::Task { .. } => {}
            Update::Todos(todos) => self.todos = todos,
            Update::Goal(goal) => self.goal = goal,
            Update::Mark { path, digest } => Arc::make_mut(&mut self.marks).put(path, digest),
            Update::Promote { catalog, names } => self.promoted.add(catalog, names),
            Update::Mask { through, kept } => self.context.mask(through, kept),
            Update::Compact(compaction) => {
                let through = self.messages.get_index_of(&compaction.through);
                let messages = &self.messages;
                self.context.compact(compaction, |id| messages.get_index_of(id) <= through);
            }
        }
    }

    /// Folds updates over an empty state.
    #[must_use]
    pub fn fold(updates: impl IntoIterator<Item = Update>) -> Self {
        let mut state = Self::default();
        updates.into_iter().for_each(|update| state.apply(update));
        state
    }

    /// Returns the question to people, if the thread waits for their answer.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        let results = self.messages.values().rev().map_while(|message| match &**message {
            Message::Tool(result) => Some(result),
            Message::Human(_) | Message::Assistant(_) | Message::Reminder(_) => None,
        });
        results.filter_map(|result| result.question.as_ref()).last()
    }

    /// Returns the newest message.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.messages.last().map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Assistant, Decision, Delegation, DelegationStatus, Finish, Human, Image, Reminder, StepKind,
        TaskStep, ToolCall, ToolResult, Usage,
    };
    use serde_json::json;

    fn human(id: &str, text: &str) -> Update {
        let human = Human::new(id, text);
        Update::Message(Arc::new(Message::Human(human)))
    }

    fn whole_turn() -> Vec<Update> {
        let call =
            ToolCall { id: "c".into(), name: "ls".into(), args: json!({"path": "/mnt"}), garbled: None };
        let assistant = Assistant {
            id: "a".into(),
            text: "Let me look.".into(),
            reasoning: None,
            provider_parts: None,
            calls: vec![call],
            finish: Finish::Complete,
            model: Some("gpt".into()),
            usage: Some(Usage::plain(5, 2)),
            failure: None,
        };
        let result = ToolResult {
            id: "r".into(),
            call: "c".into(),
            tool: "ls".into(),
            text: "(empty)".into(),
            error: true,
            images: vec![Image { path: "/mnt/a.png".into(), mime: "image/png".into() }],
            question: Some(Question {
                text: "Which?".into(),
                options: vec!["a".into()],
                ..Question::default()
            }),
            decision: Some(Decision {
                request: "`ls`".into(),
                approved: true,
                by: Some("Ada".into()),
                not_asked: false,
            }),
            decisions: Vec::new(),
            task: None,
        };
        vec![
            human("h", "what is there?"),
            Update::Message(Arc::new(Message::Assistant(assistant))),
            Update::Message(Arc::new(Message::Reminder(Reminder {
                id: "n".into(),
                text: "Be short.".into(),
            }))),
            Update::Begin("c".into()),
            Update::Interrupt("c".into()),
            Update::Suspend("c".into()),
            Update::Begin("c".into()),
            Update::Message(Arc::new(Message::Tool(result))),
            Update::Artifacts { run: "run".into(), paths: vec!["/mnt/user-data/outputs/a.txt".into()] },
            Update::Remove("gone".into()),
            Update::Todos(vec![Todo { content: "look".into(), status: TodoStatus::InProgress }]),
            Update::Mark { path: "/mnt/user-data/workspace/a".into(), digest: "d".into() },
            Update::Promote { catalog: "c0ffee".into(), names: vec!["mail_send".into()] },
            Update::Mask {
                through: "r".into(),
                kept: [("r".into(), "/mnt/user-data/outputs/.tool-results/ls-1.txt".into())].into(),
            },
            Update::Compact(Arc::new(Compaction {
                run: "run".into(),
                through: "a".into(),
                requests: vec!["h".into()],
                summary: Some("Ada asked what is there.".into()),
                cut: true,
                skills: vec!["/mnt/skills/public/a/SKILL.md".into()],
                delegations: vec![Delegation {
                    call: "t".into(),
                    task: "count the files".into(),
                    agent: "bash".into(),
                    status: DelegationStatus::TimedOut,
                    brief: "three so far".into(),
                }],
                before: 90_000,
                after: 12_000,
            })),
            Update::ClientFields {
                message: "h".into(),
                fields: Arc::new(json!({"additional_kwargs": {"mood": "good"}})),
            },
            Update::Task {
                call: "t".into(),
                stage: TaskStage::Step(TaskStep {
                    index: 1,
                    kind: StepKind::Result { tool: "ls".into(), error: false },
                    text: "(empty)".into(),
                    truncated: false,
                }),
            },
        ]
    }

    #[test]
    fn a_message_with_a_known_id_replaces_the_older_one_in_its_position() {
        let state = ThreadState::fold([human("1", "a"), human("2", "b"), human("1", "c")]);
        let texts: Vec<_> = state.messages.values().map(|message| message.text()).collect();
        assert_eq!(texts, ["c", "b"]);
    }

    #[test]
    fn a_restored_thread_equals_its_earlier_state() {
        let before = ThreadState::fold([human("1", "a")]);
        let after =
            ThreadState::fold([human("1", "b"), human("2", "c"), Update::Restore(before.clone().into())]);
        assert_eq!(after, before);
    }

    #[test]
    fn a_call_is_open_until_its_result_arrives() {
        let updates = whole_turn();
        assert!(ThreadState::fold(updates[..4].to_vec()).begun.contains(&CallId::from("c")));
        assert!(ThreadState::fold(updates).begun.is_empty());
    }

    #[test]
    fn interruptions_of_a_call_are_counted_until_the_next_user_message() {
        let cut = || [Update::Begin("c".into()), Update::Interrupt("c".into())];
        let twice = ThreadState::fold(cut().into_iter().chain(cut()));
        assert_eq!((twice.begun.len(), twice.interrupted.get(&CallId::from("c"))), (0, Some(&2)));
        let stopped = [Update::Begin("c".into()), Update::Suspend("c".into())];
        let once = ThreadState::fold(cut().into_iter().chain(stopped));
        assert_eq!((once.begun.len(), once.interrupted.get(&CallId::from("c"))), (0, Some(&1)));
        let state = ThreadState::fold(cut().into_iter().chain([human("h", "again")]));
        assert!(state.interrupted.is_empty());
    }

    #[test]
    fn found_tools_are_kept_while_the_catalogue_is_the_same() {
        let found = |catalog: &str, names: &[&str]| Update::Promote {
            catalog: catalog.into(),
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        let names =
            |updates: Vec<Update>| ThreadState::fold(updates).promoted.names.into_iter().collect::<Vec<_>>();
        assert_eq!(names(vec![found("1", &["b", "a"]), found("1", &["a", "c"])]), ["b", "a", "c"]);
        assert_eq!(names(vec![found("1", &["b", "a"]), found("2", &["c"])]), ["c"]);
    }

    #[test]
    fn the_stored_format_is_stable() {
        let updates = whole_turn();
        insta::assert_json_snapshot!("updates", updates);
        insta::assert_json_snapshot!("state", ThreadState::fold(updates));
    }

    #[test]
    fn stored_data_is_read_back_unchanged() {
        let updates = whole_turn();
        let text = serde_json::to_string(&updates).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Update>>(&text).unwrap(), updates);
        let state = ThreadState::fold(updates);
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<ThreadState>(&text).unwrap(), state);
    }
}
