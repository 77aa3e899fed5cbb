//! The lives of a simulated daemon, from one crash to the next.

use crate::{
    check, network, schedule,
    story::{self, Story},
    world::{self, World, with},
};
use pudu_config::Start;
use pudu_daemon::{Greeting, logging, run};
use pudu_kit::{program, simulation::Simulation};
use pudu_net::{self as net, proxy::ProxySettings, scrub::SecretScope};
use pudu_sim::{Model, Telegram, telegram::Options};
use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Once},
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    runtime::Builder,
    sync::mpsc,
    task::yield_now,
    time::{advance, sleep},
};

/// Size of the stack of a simulation, in bytes: futures are large without optimization.
const STACK: usize = 64 * 1024 * 1024;
/// Virtual time after the last deed of the story within which all has to be answered.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Virtual time for which a settled simulation is watched on.
const AFTERMATH: Duration = Duration::from_secs(60);
/// Key of the model.
pub const API_KEY: &str = "sk-simulated-key-0123456789";

/// Result of a simulation.
#[derive(Default)]
pub struct Outcome {
    pub seed: u64,
    pub hash: u64,
    pub events: Vec<String>,
    pub faults: BTreeMap<&'static str, u64>,
    /// Broken invariant.
    pub failure: Option<String>,
    pub chats: String,
    pub log: String,
}

/// End of one life.
enum End {
    Crashed,
    Settled,
    Failed(String),
}

/// Runs a seed.
pub fn simulate(seed: u64) -> Outcome {
    simulate_with(seed, false)
}

/// Runs a seed. `confirms_early` breaks a guarantee: each update is confirmed to the platform before it is stored.
pub fn simulate_with(seed: u64, confirms_early: bool) -> Outcome {
    prepare();
    let work = move || simulate_here(seed, confirms_early);
    let ended = thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join();
    ended.unwrap_or_else(|_| Outcome { seed, failure: Some("a panic".to_owned()), ..Outcome::default() })
}

fn simulate_here(seed: u64, confirms_early: bool) -> Outcome {
    fastrand::seed(seed);
    let dir = folder();
    let (telegram, model) = (Telegram::in_memory(Options { seed, ..Options::default() }), Model::in_memory());
    story::script(&model);
    configure(dir.path(), &telegram);
    World::begin(seed, telegram.clone(), model);
    Simulation { now: world::now, step: world::step }.enter();
    net::simulate(network::answer);
    SecretScope::default().enter();
    with(|world| {
        world.confirms_early = confirms_early;
        world.faults.rate = [0, 0, 20, 60, 150][world.random.usize(..5)];
        world.crashes = [0, 0, 1, 2, 5][world.random.usize(..5)];
    });
    let mut story = Story::plan();
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(schedule::plan(dir.path(), &mut story));
    drop(runtime);
    let failure = loop {
        match live(dir.path(), &mut story) {
            End::Crashed => with(World::rest),
            End::Settled => break check::home(dir.path(), &story).err(),
            End::Failed(why) => break Some(why),
        }
    };
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    with(|world| Outcome {
        seed,
        hash: world.hash(),
        events: std::mem::take(&mut world.events),
        faults: std::mem::take(&mut world.faults.counts),
        failure,
        chats: story::transcript(&telegram),
        log,
    })
}

/// Runs the daemon until it crashes, or until the end of the story.
fn live(dir: &Path, story: &mut Story) -> End {
    let mut builder = Builder::new_current_thread();
    // After each task the crash is looked for.
    let runtime = builder.enable_all().start_paused(true).event_interval(1).build().unwrap();
    let end = runtime.block_on(async {
        // The clock of a runtime begins now: times of different lives are comparable after this.
        advance(with(|world| world.elapsed())).await;
        with(World::is_born);
        let end = Box::pin(live_here(dir, story)).await;
        with(World::is_gone);
        end
    });
    drop(runtime);
    end
}

async fn live_here(dir: &Path, story: &mut Story) -> End {
    let start = start(dir);
    let loaded = run::load(&start, |_| {}).unwrap();
    let log = File::options().create(true).append(true).open(dir.join("log")).unwrap();
    let log = logging::for_threads(&loaded.config, None, Arc::new(log));
    let _log = logging::enter(&log);
    let (stop, stops) = mpsc::channel(1);
    let daemon = run::run(start, loaded, |_| {}, stops);
    let mut daemon = pin!(daemon);
    let crash = with(|world| world.crash.clone());
    let mut day = pin!(async {
        // The database is opened by a thread of its library: time stands still meanwhile.
        while !with(|world| world.has_store) {
            yield_now().await;
        }
        story.go_on().await;
        let watched = watch(dir, story).await;
        stop.send(()).await.ok();
        watched
    });
    let watched = tokio::select! {
        biased;
        () = crash.notified() => return End::Crashed,
        ended = &mut daemon => return End::Failed(format!("the daemon ended: {ended:?}")),
        watched = &mut day => watched,
    };
    tokio::select! {
        biased;
        () = crash.notified() => End::Crashed,
        ended = daemon => match (watched, ended) {
            (Err(why), _) => End::Failed(why),
            (Ok(()), Err(error)) => End::Failed(run::describe(&error)),
            (Ok(()), Ok(())) => End::Settled,
        },
    }
}

/// Waits until all is answered, and checks that it stays so.
async fn watch(dir: &Path, story: &Story) -> Result<(), String> {
    with(|world| {
        world.faults.rate = 0;
        world.crash_in = None;
    });
    let late = with(|world| world.elapsed()) + PATIENCE;
    // Runs on threads are in no chat, and a lost request of the model takes minutes.
    while let Err(why) = check::chats(story).and_then(|()| schedule::check_idle(dir)) {
        if with(|world| world.elapsed()) > late {
            return Err(why);
        }
        sleep(Duration::from_millis(500)).await;
    }
    sleep(AFTERMATH).await;
    check::chats(story)
}

fn start(dir: &Path) -> Start {
    let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into_iter().collect();
    Start { config: None, bind: Some("127.0.0.1:0".to_owned()), env, dir: dir.to_owned() }
}

/// Returns a folder in memory, if there is one.
fn folder() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn configure(dir: &Path, telegram: &Telegram) {
    let config = format!(
        "config_version: 34\nmemory: {{enabled: false}}\nscheduler: {{enabled: true}}\nloop_detection: {{enabled: false}}\n\
         models:\n  - name: sim\n    use: langchain_openai:ChatOpenAI\n    model: sim-1\n    \
         base_url: {}/v1\n    api_key: {API_KEY}\n    max_retries: 3\n\
         channels:\n  telegram:\n    enabled: true\n    bot_token: '{}'\n    api_url: {}\n",
        network::MODEL,
        telegram.token(),
        network::PLATFORM,
    );
    std::fs::write(dir.join("config.yaml"), config).unwrap();
}

/// Does what the program's `main` does, and lets a daemon outside of all simulations look at the machine.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        program::set_path(env!("CARGO_BIN_EXE_pudu").into());
        net::install_crypto();
        ProxySettings::default().enforce();
        let look = || {
            SecretScope::default().enter();
            let dir = folder();
            configure(dir.path(), &Telegram::in_memory(Options::default()));
            let start = start(dir.path());
            let loaded = run::load(&start, |_| {}).unwrap();
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (stop, stops) = mpsc::channel(1);
                let greet = move |_: &Greeting| _ = stop.try_send(());
                Box::pin(run::run(start, loaded, greet, stops)).await.unwrap();
            });
        };
        thread::Builder::new().stack_size(STACK).spawn(look).unwrap().join().unwrap();
    });
}

impl Outcome {
    pub fn print(&self) {
        println!("seed {}:\n{}", self.seed, self.events.join("\n"));
        println!("the log:\n{}\nthe chats:\n{}", self.log, self.chats);
        println!("faults: {:?}\nhash: {:016x}\nfailure: {:?}", self.faults, self.hash, self.failure);
    }

    /// Prints the first event that is another one in the second run.
    pub fn print_difference(&self, other: &Self) {
        let at = self.events.iter().zip(&other.events).position(|(one, two)| one != two);
        let at = at.unwrap_or(self.events.len().min(other.events.len()));
        for (whose, events) in [("first", &self.events), ("second", &other.events)] {
            println!("{whose} run, around event {at} of {}:", events.len());
            events.iter().skip(at.saturating_sub(8)).take(14).for_each(|event| println!("  {event}"));
        }
    }
}
