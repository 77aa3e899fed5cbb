use super::*;
use pudu_base::Network;
use pudu_base::{Exec, ShellCommand};
use pudu_sandbox::{Folders, Mount, Options};
use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::Notify, time::Instant};

/// An engine whose containers are just names. It records the calls.
#[derive(Default)]
struct Names {
    running: Mutex<BTreeSet<BoxId>>,
    said: Mutex<Vec<String>>,
    /// Blocks starts, if set.
    slow: Mutex<Option<Arc<Notify>>>,
    deaf: AtomicBool,
}

struct Nothing;

impl Sandbox for Nothing {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(std::future::pending())
    }
    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(std::future::pending())
    }
    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(std::future::pending())
    }
    fn list<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<pudu_base::DirEntry>, SandboxError>> {
        Box::pin(std::future::pending())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Names {
    fn say(&self, what: &str, id: &BoxId) {
        let thread = ["a", "b", "c", "d", "e"].into_iter().find(|thread| BoxId::of(&(*thread).into()) == *id);
        locked(&self.said).push(format!("{what} {}", thread.unwrap_or("?")));
    }

    /// Returns the calls since the last time.
    fn said(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.said))
    }

    fn count(&self) -> usize {
        locked(&self.running).len()
    }
}

impl ContainerEngine for Names {
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let slow = locked(&self.slow).clone();
            if let Some(slow) = slow {
                slow.notified().await;
            }
            if self.deaf.load(Ordering::Relaxed) {
                return Err(SandboxError::Refused("no engine".to_owned()));
            }
            self.say("start", &order.id);
            locked(&self.running).insert(order.id.clone());
            Ok(Arc::new(Nothing) as Arc<dyn Sandbox>)
        })
    }

    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool> {
        Box::pin(async move { locked(&self.running).contains(id) })
    }

    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move {
            if self.deaf.load(Ordering::Relaxed) {
                return Err(SandboxError::Refused("no engine".to_owned()));
            }
            self.say("stop", id);
            locked(&self.running).remove(id);
            Ok(())
        })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>> {
        Box::pin(async move {
            match self.deaf.load(Ordering::Relaxed) {
                true => Err(SandboxError::Refused("no engine".to_owned())),
                false => Ok(locked(&self.running).iter().cloned().collect()),
            }
        })
    }
}

struct Place {
    home: tempfile::TempDir,
    engine: Arc<Names>,
    pool: Pool,
}

const IDLE: Duration = Duration::from_secs(600);

fn rules(replicas: usize) -> PoolRules {
    PoolRules { idle_timeout: IDLE, replicas, network: Network::None }
}

impl Place {
    fn with(rules: PoolRules) -> Self {
        let home = tempfile::tempdir().unwrap();
        let engine = Arc::new(Names::default());
        let pool = Pool::new(engine.clone(), places(home.path(), Vec::new()), rules);
        Self { home, engine, pool }
    }

    async fn take(&self, thread: &str) {
        self.pool.acquire(&thread.into()).await.map(drop).unwrap();
    }

    async fn give(&self, thread: &str) {
        self.pool.release(&thread.into()).await;
    }

    fn said(&self) -> Vec<String> {
        self.engine.said()
    }
}

fn places(home: &std::path::Path, mounts: Vec<Mount>) -> LocalSandboxes {
    LocalSandboxes::new(Folders::new(home.to_owned(), None), None, Options { mounts, ..Options::default() })
}

/// Advances the clock while other tasks run.
async fn pass(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_container_is_used_again_and_taken_away_when_it_was_idle() {
    let place = Place::with(rules(3));
    let keep = place.pool.clone();
    let keeping = async { keep.keep().await };
    let using = async {
        place.take("a").await;
        pass(IDLE * 3).await;
        assert_eq!(place.said(), ["start a"], "one that is in use is not idle");
        place.give("a").await;
        pass(IDLE - SWEEP_INTERVAL).await;
        place.take("a").await;
        place.give("a").await;
        assert_eq!(place.said(), [""; 0]);
        pass(IDLE + SWEEP_INTERVAL * 2).await;
        assert_eq!(place.said(), ["stop a"]);
        place.take("a").await;
        assert_eq!(place.said(), ["start a"]);
    };
    tokio::select! { () = keeping => {}, () = using => {} }
}

#[tokio::test(start_paused = true)]
async fn without_an_idle_time_nothing_is_taken_away_for_it() {
    let place = Place::with(PoolRules { idle_timeout: Duration::ZERO, ..rules(3) });
    place.take("a").await;
    place.give("a").await;
    let keep = place.pool.clone();
    tokio::select! { () = keep.keep() => {}, () = pass(IDLE * 100) => {} }
    assert_eq!(place.said(), ["start a"]);
}

#[tokio::test(start_paused = true)]
async fn two_who_work_for_one_thread_share_it_until_both_are_done() {
    let place = Place::with(rules(3));
    place.take("a").await;
    place.take("a").await;
    place.give("a").await;
    let keep = place.pool.clone();
    tokio::select! { () = keep.keep() => {}, () = pass(IDLE * 2) => {} }
    assert_eq!(place.said(), ["start a"]);
    place.give("a").await;
    tokio::select! { () = keep.keep() => {}, () = pass(IDLE * 2) => {} }
    assert_eq!(place.said(), ["stop a"]);
}

#[tokio::test(start_paused = true)]
async fn the_longest_parked_makes_room_and_where_all_are_in_use_there_is_one_more_for_a_while() {
    let place = Place::with(rules(3));
    for thread in ["b", "a", "c"] {
        place.take(thread).await;
        place.give(thread).await;
        pass(Duration::from_secs(1)).await;
    }
    // Used again, it is the most recently parked.
    place.take("b").await;
    place.give("b").await;
    place.said();
    place.take("d").await;
    assert_eq!(place.said(), ["stop a", "start d"]);
    for thread in ["b", "c"] {
        place.take(thread).await;
    }
    place.take("e").await;
    assert_eq!((place.said(), place.engine.count()), (vec!["start e".to_owned()], 4));
    let keep = place.pool.clone();
    place.give("b").await;
    // It is removed immediately, not at the next sweep.
    tokio::select! { () = keep.keep() => {}, () = pass(Duration::from_secs(2)) => {} }
    assert_eq!((place.said(), place.engine.count()), (vec!["stop b".to_owned()], 3));
}

#[tokio::test(start_paused = true)]
async fn those_that_are_being_made_count() {
    let place = Place::with(rules(2));
    place.take("a").await;
    place.give("a").await;
    let go = Arc::new(Notify::new());
    *locked(&place.engine.slow) = Some(go.clone());
    let making = async { tokio::join!(place.take("b"), place.take("c")) };
    let going = async {
        pass(Duration::from_secs(1)).await;
        go.notify_waiters();
    };
    tokio::join!(making, going);
    let mut said = place.said();
    said.sort();
    assert_eq!(said, ["start a", "start b", "start c", "stop a"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_daemon_left_is_parked_and_used_or_taken_away() {
    let place = Place::with(rules(5));
    for thread in ["a", "b"] {
        locked(&place.engine.running).insert(BoxId::of(&thread.into()));
    }
    let keep = place.pool.clone();
    let using = async {
        pass(Duration::from_secs(1)).await;
        place.take("a").await;
        // The engine decides whether it is usable.
        assert_eq!(place.said(), ["start a"]);
        pass(IDLE * 2).await;
        assert_eq!(place.said(), ["stop b"]);
    };
    tokio::select! { () = keep.keep() => {}, () = using => {} }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_comes_later_is_asked_again() {
    let place = Place::with(rules(5));
    locked(&place.engine.running).insert(BoxId::of(&"a".into()));
    place.engine.deaf.store(true, Ordering::Relaxed);
    let keep = place.pool.clone();
    let using = async {
        pass(SWEEP_INTERVAL * 4).await;
        assert!(place.pool.acquire(&"b".into()).await.is_err());
        place.engine.deaf.store(false, Ordering::Relaxed);
        pass(IDLE + SWEEP_INTERVAL * 4).await;
        assert_eq!(place.said(), ["stop a"]);
        // A failure leaves no entry.
        place.take("b").await;
        assert_eq!(place.said(), ["start b"]);
    };
    tokio::select! { () = keep.keep() => {}, () = using => {} }
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_stopped_is_tried_again_later() {
    let place = Place::with(rules(5));
    place.take("a").await;
    place.give("a").await;
    let keep = place.pool.clone();
    let using = async {
        pass(Duration::from_secs(1)).await;
        place.engine.deaf.store(true, Ordering::Relaxed);
        pass(IDLE + SWEEP_INTERVAL * 2).await;
        place.engine.deaf.store(false, Ordering::Relaxed);
        pass(IDLE + SWEEP_INTERVAL * 2).await;
        assert_eq!(place.said(), ["start a", "stop a"]);
    };
    tokio::select! { () = keep.keep() => {}, () = using => {} }
}

#[tokio::test(start_paused = true)]
async fn a_dead_one_is_replaced_and_so_is_one_with_other_folders() {
    let place = Place::with(rules(3));
    place.take("a").await;
    locked(&place.engine.running).clear();
    // Also while the dead one is in use.
    place.take("a").await;
    assert_eq!(place.said(), ["start a", "stop a", "start a"]);
    place.give("a").await;
    let more = Mount { host: place.home.path().to_owned(), agent: "/mnt/more".into(), read_only: true };
    let other = place.pool.renew(place.engine.clone(), places(place.home.path(), vec![more]), rules(3));
    // It is still in use, and unchanged for its user.
    other.acquire(&"a".into()).await.unwrap();
    assert_eq!(place.said(), [""; 0]);
    other.release(&"a".into()).await;
    place.give("a").await;
    other.acquire(&"a".into()).await.unwrap();
    assert_eq!(place.said(), ["stop a", "start a"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_other_skills_has_another_container() {
    let place = Place::with(rules(3));
    let skill = |name: &str| {
        let host = place.home.path().join(name);
        std::fs::create_dir_all(&host).unwrap();
        ShownFolder { host, agent: "/mnt/skills/public/x".into() }
    };
    let take = async |shown: &[ShownFolder]| {
        place.pool.acquire_with(&"a".into(), shown).await.map(drop).unwrap();
        place.give("a").await;
        place.said()
    };
    assert_eq!(take(&[]).await, ["start a"]);
    assert_eq!(take(&[skill("x")]).await, ["stop a", "start a"]);
    assert_eq!(take(&[skill("x")]).await, [""; 0]);
    assert_eq!(take(&[skill("another user's")]).await, ["stop a", "start a"]);
    // A new version replaced it.
    std::fs::rename(place.home.path().join("another user's"), place.home.path().join("old")).unwrap();
    assert_eq!(take(&[skill("another user's")]).await, ["stop a", "start a"]);
    place.take("a").await;
    assert_eq!(place.said(), ["stop a", "start a"], "one without skills");
}
