//! A daemon in the test's own process: on a runtime of its own, with its own environment, folder and log.

use pudu_config::Start;
use pudu_daemon::{logging, run};
use pudu_kit::{home, program};
use pudu_net::{proxy::ProxySettings, scrub::SecretScope};
use std::{
    cell::RefCell,
    fs::File,
    io::Write,
    net::TcpListener,
    os::unix::process::ExitStatusExt,
    panic,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{Arc, Once, mpsc as std_mpsc},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
};
use tracing::{Dispatch, dispatcher::WeakDispatch, subscriber::DefaultGuard};

/// Number of requests to stop that may wait.
const MAX_STOPS: usize = 2;
/// Number of threads that run a daemon's tasks.
const WORKERS: usize = 2;
/// How long a killed daemon may take to go, on a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a daemon that nobody asks any more may take to go.
const LAST_MOMENT: Duration = Duration::from_secs(5);

thread_local! {
    /// The log of the daemon whose thread this is.
    static LOG: RefCell<Option<(Arc<File>, DefaultGuard)>> = const { RefCell::new(None) };
}

/// A daemon that runs in this process.
pub(crate) struct Inside {
    runtime: Runtime,
    stop: mpsc::Sender<()>,
    ended: std_mpsc::Receiver<ExitStatus>,
    /// Each thread of the daemon holds it, the writer of its store as well.
    log: WeakDispatch,
    home: PathBuf,
    bind: String,
}

impl Inside {
    /// Starts a daemon that writes to a log. Returns it with the address of its page, or `None` if it did not start.
    pub(crate) fn start(start: Start, log: &Path) -> Option<(Self, String)> {
        let secrets = SecretScope::default();
        // This thread is the test's, which is to learn none of the daemon's secrets.
        let begin = || {
            secrets.enter();
            Self::begin(start, log, &secrets)
        };
        thread::scope(|scope| scope.spawn(begin).join()).unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    fn begin(start: Start, log: &Path, secrets: &SecretScope) -> Option<(Self, String)> {
        prepare();
        let file = Arc::new(File::options().create(true).append(true).open(log).unwrap());
        let say = |line: &str| writeln!(&*file, "{line}").unwrap();
        let loaded = match run::load(&start, say) {
            Ok(loaded) => loaded,
            Err(error) => {
                say(&run::describe(&error.into()));
                return None;
            }
        };
        run::say_missing_agents(&loaded, say);
        let log = logging::for_threads(&loaded.config, start.env.get("RUST_LOG"), file.clone());
        let (stop, stops) = mpsc::channel(MAX_STOPS);
        let (end, ended) = std_mpsc::channel();
        let (greet, greeted) = std_mpsc::channel();
        let inside = Self {
            runtime: runtime(&log, &file, secrets),
            stop,
            ended,
            log: log.downgrade(),
            home: loaded.config.fixed.home.clone(),
            bind: start.bind.clone().unwrap_or_default(),
        };
        drop(log);
        inside.runtime.spawn(async move {
            let greet = move |greeting: &pudu_daemon::Greeting| greet.send(greeting.page()).unwrap();
            let result = run::run(start, loaded, greet, stops).await;
            if let Err(error) = &result {
                writeln!(&*file, "{}", run::describe(error)).unwrap();
            }
            // 256 is the status of a process that exits with 1.
            end.send(ExitStatus::from_raw(if result.is_ok() { 0 } else { 256 })).ok();
        });
        match greeted.recv() {
            Ok(page) => Some((inside, page)),
            Err(_) => {
                inside.end(END_TIMEOUT);
                None
            }
        }
    }

    /// Asks the daemon to stop, as a signal does.
    pub(crate) fn stop(&self) {
        self.stop.try_send(()).ok();
    }

    /// Returns how the daemon ended, once it has.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.ended.try_recv().ok()
    }

    /// Drops the daemon's tasks where they wait, as a crash would, and returns when another daemon can take its place. Its
    /// calls of the system and the writes in its store's queue are finished, as if it had crashed a moment later.
    pub(crate) fn kill(self) {
        assert!(self.end(END_TIMEOUT), "the daemon's threads do not end");
    }

    /// Lets go of a daemon that nobody asks any more.
    pub(crate) fn abandon(self) {
        self.end(LAST_MOMENT);
    }

    /// Returns whether all is released in time: threads, home, and port. A child that another test starts at this moment
    /// has copies of their descriptors until it runs its program.
    fn end(self, within: Duration) -> bool {
        let Self { runtime, log, home, bind, .. } = self;
        let late = Instant::now() + within;
        // Blocking is forbidden in the test's own runtime.
        thread::spawn(move || crash(runtime, late)).join().unwrap();
        let is_bound = || !bind.is_empty() && !bind.ends_with(":0") && TcpListener::bind(&bind).is_err();
        let all_ended = wait(late, || log.upgrade().is_none());
        all_ended && wait(late, || !home::is_taken(&home) && !is_bound())
    }
}

/// Drops all tasks of a runtime as if at one moment: none runs on that sees another one gone. So all threads are held until
/// the runtime is shut down, and then one of them drops the tasks. Its threads end soon after.
fn crash(runtime: Runtime, late: Instant) {
    let tasks = runtime.metrics();
    let rest = move || late.saturating_duration_since(Instant::now());
    let mut releases = Vec::new();
    for _ in 0..WORKERS {
        let (hold, held) = std_mpsc::channel();
        let (release, released) = std_mpsc::channel::<()>();
        runtime.spawn(async move {
            hold.send(()).ok();
            released.recv().ok();
        });
        held.recv_timeout(rest()).ok();
        releases.push(release);
    }
    runtime.shutdown_background();
    const { assert!(WORKERS == 2, "all threads but one stay held") };
    drop(releases.pop());
    wait(late, || tasks.num_alive_tasks() <= 1);
}

#[expect(clippy::disallowed_methods, reason = "threads that have no handle are waited for")]
fn wait(late: Instant, done: impl Fn() -> bool) -> bool {
    while !done() {
        if Instant::now() > late {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn runtime(log: &Dispatch, file: &Arc<File>, secrets: &SecretScope) -> Runtime {
    let (log, file, secrets) = (log.clone(), file.clone(), secrets.clone());
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        // A thread sees after each task that its runtime is shut down.
        .event_interval(1)
        .thread_name("daemon")
        .enable_all()
        .on_thread_start(move || {
            secrets.enter();
            LOG.with(|own| *own.borrow_mut() = Some((file.clone(), logging::enter(&log))));
        })
        .on_thread_stop(|| drop(LOG.with(|own| own.borrow_mut().take())))
        .build()
        .unwrap()
}

/// Does what the program's `main` does. A panic of a daemon goes to its log, as it would from a process.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        program::set_path(env!("CARGO_BIN_EXE_pudu").into());
        pudu_net::install_crypto();
        // Those of the tests' environment are not meant for simulators.
        ProxySettings::default().enforce();
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let written = LOG.try_with(|own| {
                let own = own.try_borrow().ok()?;
                writeln!(&*own.as_ref()?.0, "{panic}").ok()
            });
            if !matches!(written, Ok(Some(()))) {
                usual(panic);
            }
        }));
    });
}
