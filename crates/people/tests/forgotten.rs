//! Tests of the deletion of a user while the agent learns from their conversation.
#![allow(clippy::unwrap_used, reason = "tests")]

use futures_util::{StreamExt, stream};
use pudu_agent::{
    Agent, AgentSetup, MemoryMode, MemoryOf, MemoryRules, MemorySetup, ModelInfo, RunTask, memory,
};
use pudu_base::{
    Assistant, Delta, Finish, Human, Message, Model, ModelStream, Request, RunId, ThreadId, Update, UserId,
};
use pudu_harness::{RunBounds, RunState};
use pudu_people::person::forget_person;
use pudu_sandbox::{Folders, LocalSandboxes, Options};
use pudu_skills::Skills;
use pudu_store::{Db, DbLocation, PersonKeys};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A model that proposes a fact about a conversation once it is released.
struct Proposer {
    asked: Semaphore,
    may_answer: Arc<Semaphore>,
}

impl Model for Proposer {
    fn name(&self) -> &'static str {
        "proposer"
    }

    fn stream(&self, _: Request) -> ModelStream {
        let fact = serde_json::json!({
            "content": "Prefers green tea", "quote": "I always drink green tea",
            "confidence": 0.9, "scope": "user", "durability": "durable", "authority": "descriptive",
        });
        let answer = serde_json::json!({ "user": {}, "history": {}, "newFacts": [fact] }).to_string();
        self.asked.add_permits(1);
        let may_answer = self.may_answer.clone();
        let first = stream::once(async move {
            may_answer.acquire().await.unwrap().forget();
            Ok(Delta::Text(answer))
        });
        first.chain(stream::iter([Ok(Delta::Finish(Finish::Complete))])).boxed()
    }
}

fn reply() -> Assistant {
    Assistant {
        id: "a1".into(),
        text: "Fine.".into(),
        reasoning: None,
        provider_parts: None,
        calls: Vec::new(),
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    }
}

#[tokio::test]
async fn nothing_is_learned_about_a_user_deleted_in_the_meantime() {
    for forgets in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let folders = Folders::new(home.path().to_owned(), None);
        let model = Arc::new(Proposer { asked: Semaphore::new(0), may_answer: Arc::new(Semaphore::new(0)) });
        let models = [(ModelInfo::named("proposer"), model.clone() as Arc<dyn Model>)];
        let places = LocalSandboxes::new(folders.clone(), None, Options::default());
        let setup = AgentSetup::new(models, [], RunBounds::default(), Arc::new(places));
        let rules = MemoryRules { mode: MemoryMode::Middleware, ..MemoryRules::default() };
        let memory = MemorySetup::new(rules, None, &setup.models);
        let agent = Agent::new(db.clone(), folders, AgentSetup { memory, ..setup }, Skills::none());

        let human = Human::new("h1", "I always drink green tea.");
        let input = vec![human.clone()];
        let task = RunTask { input, ..RunTask::new(ThreadId::from("t"), RunId::from("r")) };
        let (seq, state) = agent.threads().take(&task.thread).await.unwrap();
        let mut turn = RunState::new(task.thread.clone(), task.run.clone(), seq, state, Arc::default());
        for message in [Message::Human(human), Message::Assistant(reply())] {
            turn.apply(Update::Message(Arc::new(message)));
        }
        turn.commit(&agent.threads().log()).await.unwrap();
        memory::learn::keep(&agent, &task, turn.state()).await;
        let (seq, state) = turn.into_state().unwrap();
        agent.threads().put(task.thread, seq, state);

        let reader = agent.clone();
        let late = tokio::spawn(async move { reader.read_waiting().await });
        model.asked.acquire().await.unwrap().forget();
        if forgets {
            let (user, former, people) = (UserId::local(), Vec::new(), Vec::new());
            let keys =
                PersonKeys { user, former, people, event_sender: "/sender/id", reply_sender: "/sender" };
            forget_person(&agent, &keys).await.unwrap();
        }
        model.may_answer.add_permits(1);
        late.await.unwrap();
        let of = MemoryOf { user: UserId::local(), agent: None };
        let facts = agent.memories().read(&of).await.unwrap().facts.len();
        let messages = agent.state(&"t".into()).await.unwrap().messages.len();
        assert_eq!((facts, messages), if forgets { (0, 0) } else { (1, 2) }, "{forgets}");
        assert_eq!(db.next_learning().await.unwrap(), None);
    }
}
