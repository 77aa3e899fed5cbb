//! What the slash commands do. Each is one visible answer, kept and delivered like any reply.

use super::{
    FollowUpMode,
    agent::{ACTION, BUTTONS},
    command::{self, SlashCommand},
    conversation::{ConversationActor, new_turn, reply_target},
    turn,
};
use crate::{bus::InboxItem, clock};
use pudu_channels::{Choice, FinalView, HealthState, Hurry, InboundKind};
use pudu_client::{
    ModelInfo,
    base::{Message, ThreadId},
    model::Offline,
    store::InboxItemId,
};
use std::fmt::Write;

impl ConversationActor {
    /// Does what a command asks for and answers it.
    pub(super) async fn command(&mut self, arrival: InboxItem, command: SlashCommand) {
        match command {
            SlashCommand::New => self.renew(arrival).await,
            SlashCommand::Stop => self.stop_all(arrival).await,
            SlashCommand::Retry => self.retry(arrival).await,
            SlashCommand::Status => {
                let text = self.status(&arrival.inbound.sender.id).await;
                self.answer(arrival, text);
            }
            SlashCommand::Models(name) => self.models(arrival, name).await,
            SlashCommand::Agent(words) => self.agent(arrival, words).await,
            SlashCommand::Mode(name) => self.choose_mode(arrival, name).await,
            SlashCommand::Usage => {
                let text = self.usage().await;
                self.answer(arrival, text);
            }
            SlashCommand::Memory => {
                let text = memory(&self.shared.home).await;
                self.answer(arrival, text);
            }
            SlashCommand::Help => {
                let text = command::help(&self.skills(&arrival.inbound.sender.id).await);
                self.answer(arrival, text);
            }
            SlashCommand::Skills => {
                let text = command::skills(&self.skills(&arrival.inbound.sender.id).await);
                self.answer(arrival, text);
            }
            SlashCommand::Connect(_) => {
                self.answer(arrival, "There is no need to: I know you already.");
            }
            SlashCommand::Start(_) => {
                let text = "Hello, I am pudu. Send me a message to start a conversation.\n\nType /help for available commands.";
                self.answer(arrival, text);
            }
            SlashCommand::Unknown(name)
                if name == "tool" && self.offline(&arrival.inbound.sender.id).await =>
            {
                self.say(arrival).await
            }
            SlashCommand::Unknown(name) => {
                let text = command::unknown(&name, &self.skills(&arrival.inbound.sender.id).await);
                self.answer(arrival, text);
            }
        }
    }

    /// Keeps an answer and delivers it beside whatever runs.
    pub(super) fn answer(&self, arrival: InboxItem, text: impl Into<String>) {
        self.answer_with(arrival, FinalView { text: text.into(), ..FinalView::default() }, Vec::new());
    }

    /// Like `answer`; other events are done with it.
    #[allow(clippy::needless_pass_by_value, reason = "an event has one answer: it is used up")]
    pub(super) fn answer_with(&self, arrival: InboxItem, view: FinalView, mut items: Vec<InboxItemId>) {
        let reply_target = reply_target(&arrival);
        let item = self.item(&reply_target);
        items.push(arrival.id);
        let row = new_turn(&item, &reply_target, items, serde_json::to_string(&view).ok());
        let (shared, account) = (self.shared.clone(), self.account.clone());
        self.shared.tasks.spawn(async move {
            if shared.outbox.open(&row).await {
                turn::deliver(&shared, &account, &item, reply_target, &view, &Hurry::default()).await;
            } else {
                // Some are settled. The inbox hands the others out again.
                shared.inbox.release(&row.items);
            }
        });
    }

    /// Begins anew with the same agent. An agent that was being made here is not made.
    async fn renew(&mut self, arrival: InboxItem) {
        self.begin_anew(&arrival).await;
        let text = match self.give_up_making().await {
            true => "New conversation started. The agent that was being made here is not made.",
            false => "New conversation started.",
        };
        self.answer(arrival, text);
    }

    /// Gives the conversation a new thread.
    pub(super) async fn begin_anew(&mut self, arrival: &InboxItem) {
        self.stop();
        // What was to be asked again belongs to the old conversation.
        if let Some(again) = self.again.take() {
            self.shared.inbox.finish(&[again.id]).await;
        }
        self.bind(arrival).await;
    }

    /// Stops the run and drops what waits. A press of the button needs no answer besides: the message
    /// that it stood under shows what happened.
    async fn stop_all(&mut self, arrival: InboxItem) {
        let stopped = [self.stop(), self.stop_files()].contains(&true);
        let waiting = self.waiting.drain(..).chain(self.again.take());
        let dropped: Vec<InboxItemId> = waiting.map(|waiting| waiting.id).collect();
        if matches!(arrival.inbound.kind, InboundKind::Press { .. }) && stopped && dropped.is_empty() {
            self.shared.inbox.finish(&[arrival.id]).await;
            return;
        }
        let text = match (stopped, dropped.len()) {
            (false, 0) => "Nothing is running here.".to_owned(),
            (_, 0) => "Stopped.".to_owned(),
            (_, 1) => "Stopped. One waiting message was dropped.".to_owned(),
            (_, count) => format!("Stopped. {count} waiting messages were dropped."),
        };
        self.answer_with(arrival, FinalView { text, ..FinalView::default() }, dropped);
    }

    /// Asks the last question again, when what runs is done.
    pub(super) async fn retry(&mut self, arrival: InboxItem) {
        if self.running.is_some() {
            self.acknowledge(&arrival);
            if let Some(before) = self.again.replace(arrival) {
                self.shared.inbox.finish(&[before.id]).await;
            }
            return;
        }
        let (thread, ..) = self.thread(&arrival).await;
        if self.asked(&thread).await {
            let policy = self.account.policy();
            self.open(vec![arrival], &policy, true).await;
        } else {
            self.answer(arrival, "There is nothing to ask again yet.");
        }
    }

    /// Tells whether somebody has asked something in this thread.
    async fn asked(&self, thread: &ThreadId) -> bool {
        let state = self.shared.client.state(thread).await.unwrap_or_default();
        state.messages.values().any(|message| matches!(**message, Message::Human(_)))
    }

    async fn models(&self, arrival: InboxItem, name: Option<String>) {
        let models = self.shared.client.models();
        let chosen = self.chosen(&models, &arrival.inbound.sender.id).await;
        let Some(name) = name else {
            self.answer_with(arrival, list(&models, chosen.as_deref()), Vec::new());
            return;
        };
        let Some(model) = models.iter().find(|model| model.name.eq_ignore_ascii_case(&name)) else {
            let nearest = models.iter().max_by(|a, b| {
                let likeness = |model: &ModelInfo| strsim::jaro_winkler(&model.name, &name);
                likeness(a).total_cmp(&likeness(b))
            });
            let meant = nearest.map(|model| format!(" Did you mean `{}`?", model.name)).unwrap_or_default();
            self.answer(arrival, format!("There is no model `{name}`.{meant} /models lists them."));
            return;
        };
        self.thread(&arrival).await;
        let text = match self.shared.db.set_model(&self.key, Some(&model.name)).await {
            Ok(()) => format!("This conversation now uses `{}`.", model.name),
            Err(error) => not_kept(&error),
        };
        self.answer(arrival, text);
    }

    async fn choose_mode(&self, arrival: InboxItem, name: Option<String>) {
        let Some(name) = name else {
            let view = modes(self.mode().await);
            self.answer_with(arrival, view, Vec::new());
            return;
        };
        let Some(mode) = FollowUpMode::parse(&name) else {
            let text = format!("There is no mode `{name}`. Choose `queue`, `steer` or `interrupt`.");
            self.answer(arrival, text);
            return;
        };
        self.thread(&arrival).await;
        let text = match self.shared.db.set_mode(&self.key, Some(mode.name())).await {
            Ok(()) => format!("Mode `{}`: {}.", mode.name(), mode.about()),
            Err(error) => not_kept(&error),
        };
        self.answer(arrival, text);
    }

    async fn status(&self, person: &str) -> String {
        let record = self.record().await;
        let models = self.shared.client.models();
        let model = self.chosen(&models, person).await.unwrap_or_else(|| "none".to_owned());
        let mut text = match &record {
            Some(record) => format!("Active thread: `{}`", record.thread),
            None => "No active conversation.".to_owned(),
        };
        let state = match &self.running {
            Some(running) if running.works() => {
                format!("working for {} s", running.since.elapsed().as_secs())
            }
            Some(_) => "delivering an answer".to_owned(),
            None => "idle".to_owned(),
        };
        let mut line = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n- {name}: {value}");
        };
        line("Agent", format!("`{}`", self.session(person).await.agent_name()));
        line("Model", format!("`{model}`"));
        line("State", state);
        line("Waiting messages", self.waiting.len().to_string());
        line("While I work", format!("{} ({})", self.mode().await.name(), self.mode().await.about()));
        if let Some(record) = &record {
            let (usage, runs) = self.shared.db.usage(&record.thread).await.unwrap_or_default();
            line("Tokens", format!("{} in {runs} run(s)", usage.total()));
        }
        line("Channel", self.health());
        if let Ok(count @ 1..) = self.shared.db.parked_count(&self.key).await {
            line("Replies that could not be delivered", count.to_string());
        }
        text
    }

    fn health(&self) -> String {
        let health = self.account.channel().health();
        let state = match health.state {
            HealthState::Connecting => "connecting",
            HealthState::Ready => "ready",
            HealthState::Degraded => "degraded",
            HealthState::AuthFailed => "credentials refused",
            HealthState::Stopped => "stopped",
        };
        let mut text = format!("`{}` is {state}", self.account.channel().account());
        if let Some(at) = health.last_event {
            let _ = write!(text, ", last event {} s ago", (clock::now() - at).max(0) / 1000);
        }
        if let Some(error) = health.last_error {
            let _ = write!(text, ", last error: {error}");
        }
        text
    }

    async fn usage(&self) -> String {
        let Some(record) = self.record().await else { return "No active conversation.".to_owned() };
        match self.shared.db.usage(&record.thread).await {
            Ok((usage, runs)) => format!(
                "Tokens in this conversation: {} read, {} written, {} in all, in {runs} run(s).",
                usage.input,
                usage.output,
                usage.total()
            ),
            Err(error) => {
                tracing::error!(%error, "the usage could not be read");
                "The usage could not be read just now.".to_owned()
            }
        }
    }

    /// Returns the name of the model that answers a person here: what was chosen in this conversation, what the
    /// account's session says, what the agent wants, or the default.
    async fn chosen(&self, models: &[ModelInfo], person: &str) -> Option<String> {
        let chosen = self.record().await.and_then(|record| record.model);
        let wanted = match chosen.or_else(|| self.account.policy().session(person).model) {
            Some(wanted) => Some(wanted),
            None => self.custom(person).await.and_then(|custom| custom.profile.model),
        };
        let known = wanted.filter(|name| models.iter().any(|model| model.name == *name));
        known.or_else(|| models.first().map(|model| model.name.clone()))
    }

    async fn offline(&self, person: &str) -> bool {
        self.chosen(&self.shared.client.models(), person).await.as_deref() == Some(Offline::NAME)
    }
}

fn list(models: &[ModelInfo], chosen: Option<&str>) -> FinalView {
    if models.is_empty() {
        return FinalView { text: "No models configured.".to_owned(), ..FinalView::default() };
    }
    let mut text = "Available models:\n".to_owned();
    for model in models {
        let mark = if Some(model.name.as_str()) == chosen { " ← in use" } else { "" };
        let about = model.about.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
        let title = if model.title == model.name { String::new() } else { format!(" ({})", model.title) };
        let _ = write!(text, "\n- `{}`{title}{about}{mark}", model.name);
    }
    let other = models.iter().filter(|model| Some(model.name.as_str()) != chosen);
    let button =
        |model: &ModelInfo| Choice { label: model.title.clone(), action: format!("/models {}", model.name) };
    let choices = other.map(button).filter(|choice| choice.action.len() <= ACTION).take(BUTTONS).collect();
    FinalView { text, choices, ..FinalView::default() }
}

fn modes(now: FollowUpMode) -> FinalView {
    let mut text = "What a message does while I work:\n".to_owned();
    for mode in FollowUpMode::ALL {
        let mark = if mode == now { " ← in use" } else { "" };
        let _ = write!(text, "\n- `{}`: {}{mark}", mode.name(), mode.about());
    }
    let button = |mode: FollowUpMode| Choice {
        label: mode.name().to_owned(),
        action: format!("/mode {}", mode.name()),
    };
    let choices = FollowUpMode::ALL.into_iter().filter(|mode| *mode != now).map(button).collect();
    FinalView { text, choices, ..FinalView::default() }
}

pub(super) fn not_kept(error: &pudu_client::store::StoreError) -> String {
    tracing::error!(%error, "a choice could not be kept");
    "That could not be stored just now. Try again in a moment.".to_owned()
}

/// Counts the facts of DeerFlow's memory file. This version shows them and does not use them yet.
async fn memory(home: &std::path::Path) -> String {
    let path = home.join("users/default/memory.json");
    let text = match tokio::fs::read_to_string(&path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return "Memory contains 0 fact(s).".to_owned();
        }
        Err(_) => return "Failed to fetch memory information.".to_owned(),
    };
    let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    match document.as_ref().and_then(|document| document.get("facts")).and_then(|facts| facts.as_array()) {
        Some(facts) => {
            format!("Memory contains {} fact(s). This version does not use them yet.", facts.len())
        }
        None => "Failed to fetch memory information.".to_owned(),
    }
}
