//! Slash commands on threads of the HTTP API. A thread's choices are stored as if it were a chat with the thread's id.

use super::{
    ActivityState, CommandAnswer, CommandContext, ConversationActivity, GoalClearing, LiveConversation,
    StoppedWork,
};
use crate::{
    Account, AccountRules, Shared, agent,
    bus::{STORE_TIMEOUT, conceal},
    command::SlashCommand,
    scope::ConversationScope,
};
use pudu_agent::Authoring;
use pudu_base::{BoxFuture, MessageId, Thinking, ThreadId, UserId};
use pudu_channels::{Address, EventKey, FinalView, Inbound, InboundKind, Sender};
use pudu_kit::clock;
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::{CancelAction, StoreError};
use pudu_texts::Language;
use std::{collections::BTreeSet, sync::Arc};

/// A user of the HTTP API on a thread.
pub struct ThreadCaller {
    /// The thread, which may not exist yet.
    pub thread: ThreadId,
    /// The user.
    pub user: UserId,
    /// Whether the user may change shared settings.
    pub is_admin: bool,
    /// Language of the answer.
    pub language: Language,
    /// The account whose rules apply, with one exception: only administrators may change shared settings.
    pub account: Arc<Account>,
}

/// Result of a command on a thread.
pub struct ThreadReply {
    /// The thread on which the conversation continues.
    pub thread: ThreadId,
    /// The answer.
    pub answer: ThreadAnswer,
}

/// Answer to a command on a thread.
pub enum ThreadAnswer {
    /// A text, perhaps with buttons and files.
    View(Box<FinalView>),
    /// The text is a message to the agent.
    Message,
    /// A run has to answer the last question again.
    Retry,
    /// A run has to summarise the conversation.
    Compact,
}

/// Choices that people made for the runs of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadChoices {
    /// The model.
    pub model: Option<String>,
    /// The thinking effort.
    pub thinking: Option<Thinking>,
    /// The custom agent.
    pub agent: Option<String>,
    /// The agent that is being created, if any.
    pub authoring: Authoring,
}

/// Runs the command in a text on a thread.
pub async fn on_thread(shared: &Arc<Shared>, caller: &ThreadCaller, text: &str) -> ThreadReply {
    let concealed = conceal(text);
    let visible_text = concealed.as_ref().map_or(text, |concealed| concealed.shown.as_str());
    let message = || ThreadReply { thread: caller.thread.clone(), answer: ThreadAnswer::Message };
    let Some(command) = SlashCommand::parse(visible_text) else { return message() };
    let (inbound, scope) = (caller.inbound(visible_text), caller.scope(shared));
    if super::is_message(&shared.agent, &caller.user, &command).await {
        let session = scope.session(&inbound).await;
        return match agent::withheld(shared, &session, caller.language, &caller.user, visible_text).await {
            Some(refusal) => ThreadReply { answer: ThreadAnswer::text(refusal), ..message() },
            None => message(),
        };
    }
    let secret = concealed.map(|concealed| concealed.value);
    let mut live = LiveThread { shared, thread: caller.thread.clone() };
    let mut context = CommandContext { scope, inbound, secret, live: &mut live };
    let answer = super::run(&mut context, command).await;
    let thread = live.thread;
    let answer = match answer {
        CommandAnswer::View(view) => ThreadAnswer::View(view),
        CommandAnswer::Later(view) => ThreadAnswer::View(Box::new(view.await)),
        CommandAnswer::Dropped(text, _) => ThreadAnswer::text(text),
        CommandAnswer::Nothing => ThreadAnswer::text(String::new()),
        CommandAnswer::Message | CommandAnswer::FirstMessage => ThreadAnswer::Message,
        CommandAnswer::Retry | CommandAnswer::Compact if !shared.runs.live_runs(&thread).is_empty() => {
            ThreadAnswer::text(caller.language.thread_busy().to_owned())
        }
        CommandAnswer::Retry => match shared.is_asked(&thread).await {
            true => ThreadAnswer::Retry,
            false => ThreadAnswer::text(caller.language.nothing_to_retry().to_owned()),
        },
        CommandAnswer::Compact => ThreadAnswer::Compact,
    };
    ThreadReply { thread, answer }
}

/// Returns the choices that people made for the runs of a thread.
///
/// # Errors
/// If the store does not answer in time.
pub async fn choices(shared: &Arc<Shared>, caller: &ThreadCaller) -> Result<ThreadChoices, StoreError> {
    let db = shared.db.within(STORE_TIMEOUT);
    let Some(record) = db.conversation(&caller.address().key()).await? else {
        return Ok(ThreadChoices::default());
    };
    let (scope, inbound, chosen) = (caller.scope(shared), caller.inbound(""), record.agent.as_deref());
    let session = agent::settle(shared, &scope.account, &scope.key, chosen, &inbound).await;
    let thinking = record.thinking.as_deref().and_then(Thinking::parse);
    let authoring = match session.authoring {
        authoring @ (Authoring::New(_) | Authoring::Lead) => authoring,
        _ => Authoring::Nothing,
    };
    Ok(ThreadChoices { model: record.model, thinking, agent: session.agent, authoring })
}

impl ThreadAnswer {
    fn text(text: String) -> Self {
        Self::View(Box::new(FinalView { text, ..FinalView::default() }))
    }
}

impl ThreadCaller {
    fn address(&self) -> Address {
        Address { account: API_ACCOUNT.to_owned(), chat: self.thread.to_string(), topic: None }
    }

    /// Creates the event for a command.
    fn inbound(&self, text: &str) -> Inbound {
        Inbound {
            key: EventKey(MessageId::fresh().to_string()),
            address: self.address(),
            private: true,
            message: String::new(),
            reply_to: None,
            sender: Sender {
                id: self.user.to_string(),
                name: self.user.to_string(),
                language: Some(self.language.tag().to_owned()),
            },
            addressed: true,
            at: clock::now(),
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Message { text: text.to_owned(), attachments: Vec::new(), album: None },
        }
    }

    /// Returns the conversation of the thread.
    fn scope(&self, shared: &Arc<Shared>) -> ConversationScope {
        let administrators = BTreeSet::from_iter(self.is_admin.then(|| self.user.to_string()));
        let rules = AccountRules { approvers: administrators, ..(*self.account.policy()).clone() };
        let account = Arc::new(Account::new(self.account.channel(), rules));
        ConversationScope { shared: shared.clone(), account, key: self.address().key().into() }
    }
}

/// The runs of a thread.
struct LiveThread<'a> {
    shared: &'a Arc<Shared>,
    thread: ThreadId,
}

impl LiveConversation for LiveThread<'_> {
    fn activity(&self) -> ConversationActivity {
        let runs = self.shared.runs.live_runs(&self.thread);
        let state = match runs.first() {
            Some(run) => ActivityState::Working(run.since.elapsed()),
            None => ActivityState::Idle,
        };
        ConversationActivity { state, waiting: runs.len().saturating_sub(1) }
    }

    fn thread(&self) -> Option<ThreadId> {
        Some(self.thread.clone())
    }

    fn stop(&mut self) -> BoxFuture<'_, Result<StoppedWork, StoreError>> {
        Box::pin(async move {
            let runs = self.shared.runs.live_runs(&self.thread);
            for run in &runs {
                self.shared.runs.stop(run, CancelAction::Interrupt).await?;
            }
            Ok(StoppedWork { stopped: !runs.is_empty(), dropped: Vec::new() })
        })
    }

    fn has_goal_ahead(&self) -> bool {
        false
    }

    fn clear_goal<'a>(&'a mut self, _: Option<&'a ThreadId>) -> BoxFuture<'a, GoalClearing> {
        Box::pin(std::future::ready(GoalClearing(self.shared.runs.clear_goal(&self.thread))))
    }

    /// The run on the old thread continues, because another page may be following it.
    fn begin_anew<'a>(&'a mut self, inbound: &'a mut Inbound) -> BoxFuture<'a, ThreadId> {
        self.thread = ThreadId::fresh();
        inbound.address.chat = self.thread.to_string();
        Box::pin(std::future::ready(self.thread.clone()))
    }
}
