use super::{
    turns::{said_at, turns},
    *,
};
use crate::{AgentSetup, Asker, MemoryMode, MemoryRules, MemorySetup, ModelInfo, fixture::answer};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use pudu_base::{Delta, Finish, Model, ModelStream, RetryReason, RunId, ThreadId, UserId};
use pudu_harness::RunBounds;
use pudu_memory::{FactCategory, FactOrigin, FactSource, MemoryOptions, NewFact};
use pudu_sandbox::{Folders, LocalSandboxes, Options};
use pudu_skills::Skills;
use pudu_store::{Db, DbLocation, Identity, JoinCode, RecallLimits};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tokio::sync::Semaphore;

/// A model that answers people with "Fine.". Once released, it proposes a fact in different words each time.
struct Proposer {
    asked: AtomicUsize,
    may_answer: Arc<Semaphore>,
    /// Whether its provider fails, so that calls are retried.
    is_down: AtomicBool,
}

impl Model for Proposer {
    fn name(&self) -> &'static str {
        "proposer"
    }

    fn stream(&self, request: Request) -> ModelStream {
        let end = stream::iter([Ok(Delta::Finish(Finish::Complete))]);
        let is_memory = request.messages.iter().any(|message| message.text().contains("<current_memory>"))
            || request.system.contains("long-term memory");
        if !is_memory {
            return stream::iter([Ok(Delta::Text("Fine.".to_owned()))]).chain(end).boxed();
        }
        if self.is_down.load(Ordering::SeqCst) {
            let (wait, reason) = (Duration::from_secs(60), RetryReason::Failed);
            let again = Delta::Again { attempt: 1, wait, reason, free: true };
            return stream::iter([Ok(again)]).chain(stream::pending()).boxed();
        }
        let content = ["Prefers green tea", "Drinks green tea always"];
        let fact = serde_json::json!({
            "content": content[self.asked.fetch_add(1, Ordering::SeqCst) % 2], "quote": "I always drink green tea",
            "confidence": 0.9, "scope": "user", "durability": "durable", "authority": "descriptive",
        });
        let answer = serde_json::json!({ "user": {}, "history": {}, "newFacts": [fact] }).to_string();
        let may_answer = self.may_answer.clone();
        let first = stream::once(async move {
            may_answer.acquire().await.unwrap().forget();
            Ok(Delta::Text(answer))
        });
        first.chain(end).boxed()
    }
}

fn client(db: &Db, home: &Path, model: &Arc<Proposer>, shared_people: bool) -> Agent {
    let bounds = RunBounds { steps: 9, time: Duration::from_secs(60), ..RunBounds::default() };
    let folders = Folders::new(home.to_owned(), None);
    let places = Arc::new(LocalSandboxes::new(folders.clone(), None, Options::default()));
    let info = ModelInfo::named("proposer");
    let rules = MemoryRules {
        mode: MemoryMode::Middleware,
        injection: true,
        debounce: Duration::from_secs(30),
        max_waiting: 10,
        last_reading: Duration::from_secs(1),
        shared_people,
        options: MemoryOptions::default(),
    };
    let setup = AgentSetup::new([(info, model.clone() as Arc<dyn Model>)], [], bounds, places);
    let setup = AgentSetup { titles: None, memory: MemorySetup::new(rules, None, &setup.models), ..setup };
    Agent::new(db.clone(), folders, setup, Skills::none())
}

struct Scene {
    _home: tempfile::TempDir,
    db: Db,
    model: Arc<Proposer>,
    one: Agent,
    other: Agent,
}

impl Scene {
    async fn new() -> Self {
        Self::of(false).await
    }

    /// Two hosts on one database, and a conversation that waits for extraction.
    async fn of(shared_people: bool) -> Self {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let (asked, is_down) = (AtomicUsize::new(0), AtomicBool::new(false));
        let model = Arc::new(Proposer { asked, may_answer: Arc::new(Semaphore::new(0)), is_down });
        let [one, other] = [(); 2].map(|()| client(&db, home.path(), &model, shared_people));
        let mut task = RunTask::new(ThreadId::from("t"), RunId::from("r"));
        task.input = vec![Human::new("h1", "I always drink green tea.")];
        let end = answer(&one, task).await;
        assert_eq!(end.text, "Fine.");
        Self { _home: home, db, model, one, other }
    }

    async fn facts(&self) -> Vec<String> {
        let of = MemoryOf { user: UserId::local(), agent: None };
        let document = self.one.memories().read(&of).await.unwrap();
        document.facts.into_iter().map(|fact| fact.content).collect()
    }

    async fn until_asked(&self, times: usize) {
        while self.model.asked.load(Ordering::SeqCst) < times {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn only_one_of_two_hosts_reads_a_conversation() {
    let scene = Scene::new().await;
    scene.model.may_answer.add_permits(9);
    tokio::join!(scene.one.read_waiting(), scene.other.read_waiting());
    assert_eq!((scene.model.asked.load(Ordering::SeqCst), scene.facts().await.len()), (1, 1));
    assert_eq!(scene.db.next_learning().await.unwrap(), None);
}

#[tokio::test]
async fn a_host_that_lost_its_claim_adds_nothing_when_it_returns() {
    let scene = Scene::new().await;
    let (one, other) = (scene.one.clone(), scene.other.clone());
    let late = tokio::spawn(async move { one.read_waiting().await });
    scene.until_asked(1).await;
    // Its claim expires, the other host claims the conversation, and then both get their answers, the late host first.
    scene.db.release_learnings().await.unwrap();
    let next = tokio::spawn(async move { other.read_waiting().await });
    scene.until_asked(2).await;
    scene.model.may_answer.add_permits(1);
    late.await.unwrap();
    assert_eq!(scene.facts().await, [] as [&str; 0], "it has lost the claim");
    scene.model.may_answer.add_permits(1);
    next.await.unwrap();
    assert_eq!(scene.facts().await, ["Drinks green tea always"]);
    assert_eq!(scene.db.next_learning().await.unwrap(), None);
}

/// The mark of an older home, or of a process that crashed after storing the facts, is not in the store.
#[tokio::test]
async fn messages_that_facts_were_learned_from_are_not_read_again() {
    let scene = Scene::new().await;
    let of = MemoryOf { user: UserId::local(), agent: None };
    let origin = FactOrigin { message: Some("h1".into()), ..FactOrigin::default() };
    let fact = NewFact {
        content: "Likes green tea".to_owned(),
        category: FactCategory::Context,
        confidence: 0.9,
        source: FactSource::conversation("t"),
        origin: Some(origin),
    };
    scene.one.memories().add(&of, fact).await.unwrap();
    scene.model.may_answer.add_permits(9);
    scene.one.read_waiting().await;
    assert_eq!(scene.model.asked.load(Ordering::SeqCst), 0);
    assert_eq!(scene.facts().await, ["Likes green tea"]);
    assert_eq!(scene.db.next_learning().await.unwrap(), None, "it is marked as read");
}

#[tokio::test]
async fn the_last_reading_does_not_wait_for_a_model_that_is_down() {
    let scene = Scene::new().await;
    scene.model.is_down.store(true, Ordering::SeqCst);
    let due = scene.db.next_learning().await.unwrap();
    scene.one.read_waiting().await;
    assert_eq!(scene.db.next_learning().await.unwrap(), due, "no attempt is counted");
    scene.db.release_learnings().await.unwrap();
    scene.model.is_down.store(false, Ordering::SeqCst);
    scene.model.may_answer.add_permits(1);
    scene.other.read_waiting().await;
    assert_eq!(scene.facts().await, ["Prefers green tea"]);
}

#[tokio::test]
async fn facts_turned_off_or_forgotten_in_the_meantime_are_not_stored() {
    for forgets in [true, false] {
        let scene = Scene::new().await;
        let of = MemoryOf { user: UserId::local(), agent: None };
        let one = scene.one.clone();
        let reading = tokio::spawn(async move { one.read_waiting().await });
        scene.until_asked(1).await;
        match forgets {
            true => scene.one.forget_waiting(&of).await.unwrap(),
            false => scene.db.set_memory_off(&of.user, true).await.unwrap(),
        }
        scene.model.may_answer.add_permits(1);
        reading.await.unwrap();
        assert_eq!(scene.facts().await, [] as [&str; 0]);
        assert_eq!(scene.db.next_learning().await.unwrap(), None);
    }
}

/// Asks as a person on Slack who is the given user.
async fn asks(client: &Agent, run: &str, (person, user): (&str, &UserId), room: Option<&UserId>, text: &str) {
    let mut task = RunTask::new(ThreadId::from("t"), RunId::from(run));
    let who =
        Human { person: Some(person.to_owned()), sender: Some(person.to_owned()), ..Human::new(run, text) };
    task.input = vec![who];
    task.asker = Some(Asker { account: "slack".into(), person: person.into(), ..Asker::default() });
    (task.user, task.room) = (user.clone(), room.cloned());
    let end = answer(client, task).await;
    assert_eq!(end.text, "Fine.");
}

fn identity(person: &str, user: &UserId) -> Identity {
    let (account, person, name) = ("slack".into(), person.into(), person.into());
    Identity { account, person, user: user.clone(), name, at: 0 }
}

impl Scene {
    /// Returns the messages that a search for tea finds.
    async fn turns(&self, of: &UserId) -> Vec<String> {
        let of = MemoryOf { user: of.clone(), agent: None };
        let limits = RecallLimits { facts: 0, turns: 9 };
        let found = self.db.recall(&of.indexed(), "tea", limits).await.unwrap().turns;
        found.into_iter().map(|turn| turn.text).collect()
    }
}

#[tokio::test]
async fn messages_forgotten_while_being_read_are_not_found_again() {
    let scene = Scene::new().await;
    let [learning] = &scene.db.learnings(i64::MAX, 9).await.unwrap()[..] else { panic!("one waits") };
    let forgetting = scene.one.0.moving.write().await;
    let one = scene.one.clone();
    let reading = tokio::spawn(async move { one.read_waiting().await });
    // A reader's claim lasts beyond the due time.
    while !scene.db.learnings(learning.due, 9).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let reader = LearningReader { name: "forgets".into(), until: now() + 60_000 };
    scene.db.take_learning(learning, &reader).await.unwrap();
    drop(forgetting);
    scene.model.may_answer.add_permits(1);
    reading.await.unwrap();
    assert_eq!(scene.turns(&UserId::local()).await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_run_that_ends_after_a_merge_is_learned_for_the_new_user() {
    let scene = Scene::new().await;
    let (was, ada) = (unpaired_user("slack", "U1"), UserId::from_raw("ada").unwrap());
    scene.db.identify(identity("U1", &ada)).await.unwrap();
    asks(&scene.one, "r2", ("U1", &was), None, "I like tea.").await;
    assert_eq!(scene.db.learnings_of(&was).await.unwrap(), []);
    let [learning] = &scene.db.learnings_of(&ada).await.unwrap()[..] else { panic!("it belongs to her") };
    assert_eq!(learning.spender.user, ada);
}

#[tokio::test]
async fn people_with_memory_off_are_not_read_in_rooms_either() {
    let room = UserId::from_raw("room").unwrap();
    for shared in [false, true] {
        let scene = Scene::of(shared).await;
        let bob = if shared { UserId::local() } else { unpaired_user("slack", "U2") };
        let ada = UserId::from_raw("ada").unwrap();
        scene.db.identify(identity("U1", &ada)).await.unwrap();
        scene.db.set_memory_off(&bob, true).await.unwrap();
        asks(&scene.one, "r2", ("U2", &bob), Some(&room), "I always drink green tea.").await;
        asks(&scene.one, "r3", ("U1", &ada), Some(&room), "Tea is all right.").await;
        scene.model.may_answer.add_permits(9);
        scene.one.read_waiting().await;
        assert_eq!(scene.turns(&room).await, ["Tea is all right."], "shared: {shared}");
        let of = MemoryOf { user: room.clone(), agent: None };
        assert_eq!(scene.one.memories().read(&of).await.unwrap().facts, [], "shared: {shared}");
    }
}

#[tokio::test]
async fn a_user_separated_before_the_merge_keeps_their_memory() {
    let scene = Scene::new().await;
    let (ada, bob) = (unpaired_user("slack", "U1"), unpaired_user("slack", "U2"));
    let of = |user: &UserId| MemoryOf { user: user.clone(), agent: None };
    scene.one.memories().remember(&of(&ada), "Likes tea", "U1", "Ada").await.unwrap();
    let code = JoinCode {
        hash: "code".into(),
        account: "slack".into(),
        issuer: "U2".into(),
        offer: "{}".into(),
        expires: 1,
    };
    scene.db.offer_join(code).await.unwrap();
    let (shows, issuer) = (identity("U1", &bob), identity("U2", &bob));
    assert!(scene.db.join("code", shows, issuer, Some(ada.clone()), "").await.unwrap());
    let others_work = scene.one.0.moving.write().await;
    let one = scene.one.clone();
    let merging = tokio::spawn(async move { one.merge_memories().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    scene.db.part("slack", "U2").await.unwrap();
    drop(others_work);
    merging.await.unwrap();
    for (user, facts) in [(&ada, 1), (&bob, 0)] {
        assert_eq!(scene.one.memories().read(&of(user)).await.unwrap().facts.len(), facts, "{user}");
    }
}

#[test]
fn the_time_of_a_message_is_parsed_from_text() {
    for (at, expect) in [
        ("Sunday 2026-11-22 15:04, Europe/Berlin (UTC+01:00)", Some("2026-11-22T14:04:00Z")),
        ("Sunday 2026-11-22 15:04, (UTC+00:00)", Some("2026-11-22T15:04:00Z")),
        ("Sunday 2026-11-22 15:04", None),
        ("some day", None),
        ("", None),
    ] {
        let expect: Option<i64> = expect.map(|at| at.parse::<Timestamp>().unwrap().as_millisecond());
        assert_eq!(said_at(at), expect, "{at}");
    }
}

#[test]
fn refusals_are_counted_by_reason() {
    use pudu_memory::extract::RefusedReason::{Opposite, Secret};
    let refused = |reason| RefusedFact { content: "x".into(), reason };
    let counted = count_refused(&[refused(Secret), refused(Opposite), refused(Opposite)]);
    assert_eq!(counted.as_deref(), Some("opposite: 2, secret: 1"));
    assert_eq!(count_refused(&[]), None);
}

#[test]
fn turns_are_statements_with_their_time_and_without_secrets() {
    let scope = MemoryOf { user: UserId::local(), agent: None };
    let learning = Learning {
        user: UserId::local(),
        agent: String::new(),
        thread: "t".into(),
        run: "r".into(),
        spender: pudu_store::Spender::default(),
        due: 0,
        attempts: 0,
        priority: 0,
        span: (String::new(), String::new()),
    };
    let at = Some("Sunday 2026-11-22 15:04, Europe/Berlin (UTC+01:00)".to_owned());
    let said = |id: &str, text: &str| Message::Human(Human { at: at.clone(), ..Human::new(id, text) });
    let messages = [
        said("m1", "I'm a nurse. My password is hunter2"),
        said("m2", "What is the capital of Peru?"),
        said("m3", "Translate this file into German"),
    ];
    let turns = turns(&scope, &learning, &messages.iter().collect::<Vec<_>>());
    let statements: Vec<(&str, &str, i64)> =
        turns.iter().map(|turn| (turn.doc.as_str(), turn.text.as_str(), turn.at)).collect();
    assert_eq!(statements, [("m1", "I'm a nurse. My [secret]", 1_795_356_240_000)]);
}
