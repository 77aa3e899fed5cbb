//! The store fails while users talk, in several ways, and recovers. Messages are answered exactly once, no run ends
//! because of it, and the daemon is unaffected.
//!
//! By default one second of each way on one platform. `PUDU_CHAOS=1` runs each way for 1, 10 and 60 seconds with a
//! hundred chats on five platforms.

use crate::{
    crash_mix::{Bound, Talk, answered, mixed, person, script},
    house::{House, SOON},
    platforms,
    postgres::{self, Database},
};
use futures_util::future::join_all;
use pudu_sim::{Platform, Proxy};
use pudu_store::{Db, DbLocation, PostgresUrl};
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// How the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The server is down.
    Away,
    /// The server vanished without closing connections.
    Vanished,
    /// The server accepts queries but does not respond.
    Hanging,
    /// Another process has locked the file.
    Locked,
}

/// Durations of outages, in seconds.
const SECONDS: [u64; 3] = [1, 10, 60];
/// Number of chats on each platform.
const CHATS: usize = 20;

/// A daemon, its users and its store.
struct Scene {
    house: House,
    talks: Vec<Talk>,
    bound: Bound,
    store: Store,
}

impl Scene {
    fn said(&self) -> usize {
        self.talks.iter().map(|talk| talk.said.len()).sum()
    }
}

enum Store {
    Sqlite,
    Postgres(Arc<Proxy>, Database),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_costs_no_word() {
    let Some(proxy) = proxy().await else { return };
    let mut scenes = Vec::new();
    for (n, platform) in platforms().await.into_iter().enumerate() {
        let database = postgres::database(&format!("outage_{n}")).await.unwrap();
        let mut url = url::Url::parse(&database.url).unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(proxy.address().port())).unwrap();
        let rest = format!("database:\n  backend: postgres\n  postgres_url: {url}\n{}", mixed());
        scenes.push(scene(platform, &rest, Store::Postgres(proxy.clone(), database)).await);
    }
    chaos(&mut scenes, &[Way::Away, Way::Vanished, Way::Hanging]).await;
    for scene in scenes {
        if let Store::Postgres(_, database) = scene.store {
            drop(scene.house);
            database.drop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_locked_costs_no_word() {
    let mut scenes = Vec::new();
    for platform in platforms().await {
        scenes.push(scene(platform, &mixed(), Store::Sqlite).await);
    }
    chaos(&mut scenes, &[Way::Locked]).await;
}

fn whole() -> bool {
    std::env::var("PUDU_CHAOS").is_ok_and(|value| value == "1")
}

async fn platforms() -> Vec<Arc<dyn Platform>> {
    let mut all = vec![platforms::telegram().await];
    if whole() {
        all.push(platforms::feishu().await);
        all.push(platforms::dingtalk().await);
        all.push(platforms::slack().await);
        all.push(platforms::discord().await);
    }
    all
}

async fn proxy() -> Option<Arc<Proxy>> {
    let server = url::Url::parse(&postgres::server().await?).unwrap();
    let proxy = Proxy::to(server.host_str().unwrap(), server.port().unwrap_or(5432)).await;
    Some(Arc::new(proxy.unwrap()))
}

async fn scene(platform: Arc<dyn Platform>, rest: &str, store: Store) -> Scene {
    // Only Feishu, which has file keys, can detect a duplicate file.
    let bound = Bound { copies: 1, files: if platform.name() == "feishu" { 1 } else { 2 } };
    let mut house = House::elsewhere(platform).await;
    house.configure("", rest);
    script(&house);
    house.start();
    let hears = house.platform.wait("", SOON, |platform| platform.hears().then_some(()));
    hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    let talks: Vec<Talk> = (0..CHATS).map(|n| person(&house, n)).collect();
    Scene { house, talks, bound, store }
}

async fn chaos(scenes: &mut [Scene], ways: &[Way]) {
    let seed = std::env::var("PUDU_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = if whole() { SECONDS.as_slice() } else { SECONDS.get(..1).unwrap_or_default() };
    speak(scenes, &mut random, false);
    settle(scenes, &format!("seed {seed}, before")).await;
    for (way, seconds) in ways.iter().flat_map(|way| rounds.iter().map(move |seconds| (*way, *seconds))) {
        let what = format!("seed {seed}, {way:?} for {seconds} s");
        speak(scenes, &mut random, true);
        sleep(Duration::from_millis(random.u64(0..600))).await;
        let away = Instant::now();
        let ends = begins(scenes, way).await;
        let lasts = Duration::from_secs(seconds);
        sleep(lasts / 2).await;
        let before: usize = scenes.iter().map(Scene::said).sum();
        speak(scenes, &mut random, false);
        let said = scenes.iter().map(Scene::said).sum::<usize>() - before;
        sleep(lasts.saturating_sub(away.elapsed())).await;
        ends.end(scenes).await;
        let back = Instant::now();
        settle(scenes, &what).await;
        let after = back.elapsed().as_secs_f64();
        println!("{way:?} for {seconds} s: {said} messages meanwhile; all is answered {after:.1} s after it");
    }
    let said: usize = scenes.iter().map(Scene::said).sum();
    println!("chaos: seed {seed}, {} platforms, {said} messages: 0 lost, 0 double, 0 stale", scenes.len());
    for scene in scenes {
        finish(scene, seed).await;
    }
}

/// Users without an open message write again, or some of them; users with a question decide.
fn speak(scenes: &mut [Scene], random: &mut fastrand::Rng, some: bool) {
    for Scene { house, talks, bound, .. } in scenes {
        for talk in talks {
            talk.decide(house);
            let answered = talk.read(&house.platform.shown(&talk.chat), *bound).is_ok();
            if answered && (!some || random.bool()) {
                talk.say(house, random, *bound);
            }
        }
    }
}

async fn settle(scenes: &[Scene], what: &str) {
    let all = scenes.iter().map(|scene| async {
        let what = format!("{what}, {}", scene.house.platform.name());
        answered(&scene.house, &scene.talks, &what, scene.bound).await;
    });
    join_all(all).await;
}

/// How the store recovers.
enum Ends {
    Mend,
    Release(Vec<Lock>),
}

enum Lock {
    Server(PgConnection),
    File(SqliteConnection),
}

/// Locks these tables until the session ends.
const TABLES: &str = "BEGIN; LOCK TABLE pudu.inbox, pudu.turns, pudu.log, pudu.conversations, pudu.messages";

async fn begins(scenes: &[Scene], way: Way) -> Ends {
    let mut locks = Vec::new();
    for scene in scenes {
        match (&scene.store, way) {
            (Store::Postgres(proxy, _), Way::Away) => proxy.cut().await,
            (Store::Postgres(proxy, _), Way::Vanished) => proxy.silence().await,
            (Store::Postgres(_, database), _) => {
                let mut lock = PgConnection::connect(&database.url).await.unwrap();
                // The daemon's own locks may conflict with it, and the server then refuses one side.
                while sqlx::raw_sql(TABLES).execute(&mut lock).await.is_err() {
                    sqlx::raw_sql("ROLLBACK").execute(&mut lock).await.unwrap();
                }
                locks.push(Lock::Server(lock));
            }
            (Store::Sqlite, _) => {
                let file = scene.house.path(".pudu/data/pudu.db").display().to_string();
                let mut lock = SqliteConnection::connect(&format!("sqlite://{file}")).await.unwrap();
                let begin = "PRAGMA busy_timeout = 20000; BEGIN EXCLUSIVE";
                sqlx::raw_sql(begin).execute(&mut lock).await.unwrap();
                locks.push(Lock::File(lock));
            }
        }
    }
    if locks.is_empty() { Ends::Mend } else { Ends::Release(locks) }
}

impl Ends {
    async fn end(self, scenes: &[Scene]) {
        match self {
            Self::Release(locks) => {
                for lock in locks {
                    match lock {
                        Lock::Server(lock) => lock.close().await.unwrap(),
                        Lock::File(lock) => lock.close().await.unwrap(),
                    }
                }
            }
            Self::Mend => {
                for scene in scenes {
                    if let Store::Postgres(proxy, _) = &scene.store {
                        proxy.mend();
                    }
                }
            }
        }
    }
}

/// Checks the state when everything is answered.
async fn finish(scene: &mut Scene, seed: u64) {
    let log = scene.house.log();
    // A lock of a second is no outage.
    let told = log.contains("reached the store again") || (matches!(scene.store, Store::Sqlite) && !whole());
    assert!(told, "seed {seed}: nobody was told\n{log}");
    let db = match &scene.store {
        Store::Sqlite => scene.house.database().await,
        Store::Postgres(_, database) => {
            Db::open(&DbLocation::Postgres(PostgresUrl::parse(&database.url).unwrap())).await.unwrap()
        }
    };
    // An answer is visible before the store records that it was shown.
    let late = Instant::now() + SOON;
    while !db.open_turns().await.unwrap().is_empty() {
        assert!(Instant::now() < late, "seed {seed}: {:?} is open", db.open_turns().await);
        sleep(Duration::from_millis(20)).await;
    }
    db.close().await;
    assert!(scene.house.stop().await.success(), "seed {seed}");
    for talk in &scene.talks {
        let shown = scene.house.platform.shown(&talk.chat);
        talk.read(&shown, scene.bound).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{shown:#?}"));
    }
    assert_eq!(scene.house.platform.misused(), [""; 0], "seed {seed}");
}
