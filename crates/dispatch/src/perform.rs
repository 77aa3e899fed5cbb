//! Slash commands in a conversation of a chat.

use super::{
    command::SlashCommand,
    commands::{
        self, ActivityState, CommandAnswer, CommandContext, ConversationActivity, GoalClearing,
        LiveConversation, StoppedWork,
    },
    conversation::{ConversationActor, compacts},
    input, reply,
    turn::TurnWork,
};
use crate::bus::InboxItem;
use pudu_base::{BoxFuture, ThreadId};
use pudu_channels::{FinalView, Inbound};
use pudu_store::StoreError;

impl LiveConversation for ConversationActor {
    fn activity(&self) -> ConversationActivity {
        let state = match &self.running {
            Some(running) if running.works() => ActivityState::Working(running.since.elapsed()),
            Some(_) => ActivityState::Delivering,
            None => ActivityState::Idle,
        };
        ConversationActivity { state, waiting: self.waiting.len() }
    }

    fn thread(&self) -> Option<ThreadId> {
        None
    }

    fn stop(&mut self) -> BoxFuture<'_, Result<StoppedWork, StoreError>> {
        let stopped = [self.stop_run(), self.stop_files()].contains(&true);
        let waiting = self.waiting.drain(..).chain(self.again.take());
        let dropped = waiting.map(|waiting| waiting.id).collect();
        Box::pin(std::future::ready(Ok(StoppedWork { stopped, dropped })))
    }

    fn has_goal_ahead(&self) -> bool {
        let running = self.running.as_ref().is_some_and(|running| running.sets_goal && running.works());
        running || self.waiting.iter().any(|waiting| input::goal(waiting).is_some())
    }

    /// A run that works towards the goal ends with its next answer, even after a restart.
    fn clear_goal<'a>(&'a mut self, thread: Option<&'a ThreadId>) -> BoxFuture<'a, GoalClearing> {
        Box::pin(async move {
            let shared = &self.scope.shared;
            for waiting in &mut self.waiting {
                if let Some(objective) = input::goal(waiting) {
                    input::amend(shared, waiting, &objective).await;
                }
            }
            if let Some(running) = self.running.as_ref().filter(|running| running.works()) {
                let dropped = shared.db.drop_goal(&running.turn).await;
                let dropped = dropped.inspect(|()| running.control.steering.drop_goal());
                return GoalClearing(Box::pin(std::future::ready(dropped)));
            }
            GoalClearing(match thread {
                Some(thread) => shared.runs.clear_goal(thread),
                None => Box::pin(std::future::ready(Ok(()))),
            })
        })
    }

    fn begin_anew<'a>(&'a mut self, _: &'a mut Inbound) -> BoxFuture<'a, ThreadId> {
        Box::pin(async move {
            self.stop_run();
            // A request to answer again belongs to the old conversation.
            if let Some(again) = self.again.take() {
                self.scope.shared.inbox.finish(&[again.id]).await;
            }
            ThreadId::fresh()
        })
    }
}

impl ConversationActor {
    /// Runs a command and answers its event.
    pub(super) async fn perform(&mut self, arrival: InboxItem, command: SlashCommand) {
        let secret = self.scope.shared.inbox.concealed(&arrival.inbound);
        let (scope, inbound) = (self.scope.clone(), arrival.inbound.clone());
        let mut context = CommandContext { scope, inbound, secret, live: self };
        match commands::run(&mut context, command).await {
            CommandAnswer::View(view) => self.answer_with(arrival, *view, Vec::new()),
            CommandAnswer::Dropped(text, dropped) => {
                self.answer_with(arrival, FinalView { text, ..FinalView::default() }, dropped);
            }
            CommandAnswer::Later(view) => self.answer_later(arrival, view),
            CommandAnswer::Nothing => self.scope.shared.inbox.finish(&[arrival.id]).await,
            CommandAnswer::Message => self.say(arrival).await,
            CommandAnswer::FirstMessage => self.waiting.push_back(arrival),
            CommandAnswer::Retry => self.retry(arrival).await,
            CommandAnswer::Compact => self.compact(arrival).await,
        }
    }

    fn answer_later(&self, arrival: InboxItem, view: BoxFuture<'static, FinalView>) {
        let scope = self.scope.clone();
        self.scope.shared.tasks.spawn(async move {
            let view = view.await;
            reply::answer(&scope.shared, &scope.account, &scope.key, arrival, view, Vec::new());
        });
    }

    /// Answers the last question again, once the current run is done.
    pub(super) async fn retry(&mut self, arrival: InboxItem) {
        if self.running.is_some() {
            self.acknowledge(arrival.inbound.clone());
            match self.again.replace(arrival) {
                // A replaced request for a summary gets its answer now.
                Some(before) if compacts(&before) => {
                    let text = self.scope.language(&before.inbound).compact_busy();
                    self.answer(before, text);
                }
                Some(before) => self.scope.shared.inbox.finish(&[before.id]).await,
                None => {}
            }
            return;
        }
        let record = self.scope.record().await;
        let asked = match &record {
            Some(record) => self.scope.shared.is_asked(&record.thread).await,
            None => false,
        };
        if asked {
            self.open(vec![arrival], record, TurnWork::Again).await;
        } else {
            let text = self.scope.language(&arrival.inbound).nothing_to_retry();
            self.answer(arrival, text);
        }
    }

    /// Summarises the conversation so far, after a reply that is being delivered. Refuses while a run is active,
    /// messages wait, or another request to answer again or to summarise is pending.
    pub(super) async fn compact(&mut self, arrival: InboxItem) {
        let language = self.scope.language(&arrival.inbound);
        let works = self.running.as_ref().is_some_and(|running| running.works());
        if works || !self.waiting.is_empty() || self.again.is_some() {
            self.answer(arrival, language.compact_busy());
            return;
        }
        if self.running.is_some() {
            self.again = Some(arrival);
            return;
        }
        let Some(record) = self.scope.record().await else {
            self.answer(arrival, language.no_conversation());
            return;
        };
        self.open(vec![arrival], Some(record), TurnWork::Compact).await;
    }
}
