//! A house to test in: a folder, a simulated platform, a scripted model, and the real daemon between them. The daemon runs
//! in the test's own process, unless the test needs a process of its own for it.

#[path = "house/inside.rs"]
mod inside;

use inside::Inside;
use pudu_config::{Env, Start};
use pudu_sim::{
    Model, Platform, Telegram, Timeout,
    telegram::{ChatId, MessageId, Options, Seen, UserId},
};
use pudu_store::{Db, DbLocation};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Timeout of everything that a test waits for, on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// A folder, a simulated platform (by default Telegram), a scripted model, and the daemon.
pub struct House {
    dir: TempDir,
    pub telegram: Telegram,
    /// Platform of the bot.
    pub platform: Arc<dyn Platform>,
    pub model: Model,
    daemon: Option<Running>,
    /// Whether the daemon gets a process of its own.
    own_process: bool,
    /// Where the daemon is to listen.
    pub bind: String,
    /// Address of the daemon's page.
    pub address: String,
    environment: Vec<(String, String)>,
}

/// A daemon that runs.
enum Running {
    Process(Child),
    Inside(Box<Inside>),
}

/// Environment variables that concern a whole process: crash points end it, its HTTP client knows the proxies, and its
/// secrets, which a detailed log is searched for, are known to all its parts.
const OF_PROCESSES: [&str; 5] = ["PUDU_CRASH_AT", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "RUST_LOG"];

/// Environment variable of the tests with which each daemon gets a process of its own.
const ALL_PROCESSES: &str = "PUDU_TEST_PROCESSES";

impl House {
    /// Builds a house with additional settings of its Telegram bot. The daemon is not started.
    pub async fn build(account: &str) -> Self {
        Self::furnish(Options::default(), account, "").await
    }

    /// Builds a house; `rest` is appended to the configuration.
    pub async fn furnish(options: Options, account: &str, rest: &str) -> Self {
        let telegram = Telegram::start(options).await.unwrap();
        let house = Self::on(Arc::new(telegram.clone()), telegram).await;
        house.configure(account, rest);
        house
    }

    /// Builds a house with another platform.
    pub async fn elsewhere(platform: Arc<dyn Platform>) -> Self {
        let telegram = Telegram::start(Options::default()).await.unwrap();
        let house = Self::on(platform, telegram).await;
        house.configure("", "");
        house
    }

    async fn on(platform: Arc<dyn Platform>, telegram: Telegram) -> Self {
        let model = Model::start().await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir,
            telegram,
            platform,
            model,
            daemon: None,
            own_process: std::env::var_os(ALL_PROCESSES).is_some(),
            bind: "127.0.0.1:0".to_owned(),
            address: String::new(),
            environment: Vec::new(),
        }
    }

    /// Builds a house and starts the daemon.
    pub async fn open(account: &str) -> Self {
        let mut house = Self::build(account).await;
        house.start();
        house
    }

    /// Gives the daemon a process of its own from its next start on: for signals, for `kill -9` at any instruction, and for
    /// measurements.
    pub fn in_its_own_process(&mut self) {
        self.own_process = true;
    }

    /// Returns the folders of all threads, of all users.
    pub fn threads(&self) -> Vec<PathBuf> {
        let list = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let users = list(self.path(".pudu/users")).map(|user| user.path().join("threads"));
        users.flat_map(list).map(|thread| thread.path()).collect()
    }

    /// Rewrites the configuration.
    pub fn configure(&self, account: &str, rest: &str) {
        self.configure_accounts(&[(&self.platform, account)], rest);
    }

    /// Rewrites the configuration, with a bot on each of several platforms.
    pub fn configure_all(&self, platforms: &[Arc<dyn Platform>], rest: &str) {
        let accounts: Vec<_> = platforms.iter().map(|platform| (platform, "")).collect();
        self.configure_accounts(&accounts, rest);
    }

    fn configure_accounts(&self, accounts: &[(&Arc<dyn Platform>, &str)], rest: &str) {
        let account = |(platform, account): &(&Arc<dyn Platform>, &str)| {
            let settings = format!("{}{account}", platform.settings());
            let indented: String = settings.lines().map(|line| format!("    {line}\n")).collect();
            format!("  {}:\n    enabled: true\n{indented}", platform.name())
        };
        let accounts: String = accounts.iter().map(account).collect();
        // Memory would be updated half a minute later, which disturbs tests that count calls.
        let memory = if rest.contains("memory:") { "" } else { "memory: {enabled: false}\n" };
        let config = format!(
            "config_version: 34\n{memory}\
             models:\n  - name: sim\n    use: langchain_openai:ChatOpenAI\n    model: sim-1\n    \
             base_url: {}\n    api_key: sk-simulated-key-0123456789\n    max_retries: 3\n\
             channels:\n{accounts}{rest}",
            self.model.url(),
        );
        self.write_config(&config);
    }

    /// Writes the configuration's text and waits until a running daemon has applied or refused it.
    #[expect(clippy::disallowed_methods, reason = "another process is waited for, by its log")]
    pub fn write_config(&self, text: &str) {
        let heard = |log: &str| log.matches("edited configuration").count();
        let before = heard(&self.log());
        std::fs::write(self.path("config.yaml"), text).unwrap();
        if self.daemon.is_some() {
            let late = Instant::now() + SOON;
            while heard(&self.log()) == before {
                assert!(Instant::now() < late, "the edit was not seen:\n{}", self.log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Sets an environment variable for the next start of the daemon.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(other, _)| other != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Starts the daemon and waits for its page.
    pub fn start(&mut self) {
        assert!(self.try_start(), "the daemon did not start:\n{}", self.log());
    }

    /// Starts the daemon and returns whether it survived until its page was available.
    pub fn try_start(&mut self) -> bool {
        if self.needs_process() { self.start_process() } else { self.start_inside() }
    }

    fn needs_process(&self) -> bool {
        let of_process = |(name, value): &(String, String)| {
            !value.is_empty() && OF_PROCESSES.contains(&name.to_uppercase().as_str())
        };
        self.own_process || self.environment.iter().any(of_process)
    }

    fn start_inside(&mut self) -> bool {
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let env: Env = std::iter::once(path).chain(self.environment.iter().cloned()).collect();
        let bind = Some(self.bind.clone());
        let start = Start { config: None, bind, env, dir: self.dir.path().to_owned() };
        let Some((inside, address)) = Inside::start(start, &self.path("log")) else { return false };
        self.address = address;
        self.daemon = Some(Running::Inside(Box::new(inside)));
        true
    }

    fn start_process(&mut self) -> bool {
        let mut child = self.spawn();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let page = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, address) = line.trim().strip_prefix("page")?.split_once("http://")?;
            Some(address.split_once('/')?.0.to_owned())
        });
        let Some(page) = page else {
            child.wait().unwrap();
            return false;
        };
        self.address = page;
        self.daemon = Some(Running::Process(child));
        true
    }

    /// Starts the daemon in a process of its own, without waiting for anything.
    pub fn spawn(&self) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        Command::new(env!("CARGO_BIN_EXE_pudu"))
            .args(["--bind", &self.bind])
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Runs another command of the program in the house; returns whether it succeeded, and its output.
    pub fn pudu(&self, args: &[&str]) -> (bool, String) {
        let output = self.program(args).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// Returns another command of the program in the house, which has not started.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pudu"));
        command.args(args).current_dir(self.dir.path()).env_clear().envs(self.environment.iter().cloned());
        command
    }

    /// Returns the entries that `pudu audit` lists, without the header and the padding of columns.
    pub fn audit(&self, args: &[&str]) -> String {
        let (well, listed) = self.pudu(&[&["audit"], args].concat());
        assert!(well, "{listed}");
        let (_, entries) = listed.split_once('\n').unwrap_or_default();
        let columns = |line: &str| {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells.collect::<Vec<_>>().join("  ")
        };
        entries.lines().map(|line| columns(line) + "\n").collect()
    }

    /// Kills the daemon as a power cut would: a process between any two instructions, and a daemon in this process where
    /// its tasks wait.
    pub fn kill(&mut self) {
        match self.daemon.take().unwrap() {
            Running::Process(mut child) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            Running::Inside(inside) => inside.kill(),
        }
    }

    /// Returns the daemon's process, to kill it from a hook.
    pub fn pid(&self) -> Pid {
        match self.daemon.as_ref().unwrap() {
            Running::Process(child) => Pid::from_child(child),
            Running::Inside(_) => panic!("the daemon has no process: build the house `in_its_own_process`"),
        }
    }

    /// Sends the daemon a signal. A daemon without a process knows only the request to stop.
    pub fn signal(&self, signal: Signal) {
        match self.daemon.as_ref().unwrap() {
            Running::Process(child) => kill_process(Pid::from_child(child), signal).unwrap(),
            Running::Inside(inside) => {
                assert_eq!(signal, Signal::TERM, "build the house `in_its_own_process`");
                inside.stop();
            }
        }
    }

    /// Waits for the daemon to exit.
    pub async fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            let status = match self.daemon.as_mut().unwrap() {
                Running::Process(child) => child.try_wait().unwrap(),
                Running::Inside(inside) => inside.ended(),
            };
            if let Some(status) = status {
                if let Some(Running::Inside(inside)) = self.daemon.take() {
                    inside.kill();
                }
                return Some(status);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        None
    }

    /// Stops the daemon and waits until it has exited.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        let ended = self.ended(SOON).await;
        ended.unwrap_or_else(|| panic!("the daemon does not stop:\n{}", self.log()))
    }

    /// Returns the daemon's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Waits for a text in the daemon's log.
    pub async fn logs(&self, words: &str) {
        let deadline = Instant::now() + SOON;
        while !self.log().contains(words) {
            assert!(Instant::now() < deadline, "{words:?} is not in the log:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Opens the daemon's database for inspection.
    pub async fn database(&self) -> Db {
        Db::open(&DbLocation::Sqlite(self.path(".pudu/data/pudu.db"))).await.unwrap()
    }

    /// Returns a path in the house.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until the bot has acknowledged a message as waiting.
    pub async fn acknowledged(&self) {
        let seen = self.telegram.wait(SOON, |view| (view.count("setMessageReaction") >= 1).then_some(()));
        seen.await.unwrap_or_else(|timeout| panic!("{timeout}"));
    }

    /// Begins a run on a thread over the HTTP API, with the operator's token, and returns the status. A missing thread is
    /// made, and a run at work there is waited for.
    pub async fn begin_run(&self, thread: &str, text: &str) -> u16 {
        let url = format!("http://{}/api/threads/{thread}/runs", self.address);
        let token = std::fs::read_to_string(self.path(".pudu/gateway-token")).unwrap();
        let message = serde_json::json!({"type": "human", "content": text});
        let body = serde_json::json!({
            "input": {"messages": [message]},
            "if_not_exists": "create",
            "multitask_strategy": "enqueue",
        });
        http().post(url).bearer_auth(token.trim()).json(&body).send().await.unwrap().status().as_u16()
    }

    /// Sends a request to the daemon.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let answer = http().get(format!("http://{}{path}", self.address)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

impl Drop for House {
    fn drop(&mut self) {
        match self.daemon.take() {
            Some(Running::Process(mut child)) => {
                child.kill().ok();
                child.wait().ok();
            }
            Some(Running::Inside(inside)) => inside.abandon(),
            None => {}
        }
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", self.log());
        }
    }
}

/// Returns a client for requests to the daemon.
pub fn http() -> reqwest::Client {
    pudu_net::client().unwrap()
}

/// A user in a chat.
pub struct Talker {
    telegram: Telegram,
    pub person: UserId,
    pub chat: ChatId,
}

impl Talker {
    /// Creates a user in a private chat with the bot.
    pub fn new(house: &House, name: &str) -> Self {
        let person = house.telegram.add_person(name, None);
        Self { telegram: house.telegram.clone(), person, chat: house.telegram.private(person) }
    }

    /// Returns the same user in another chat.
    pub fn at(&self, chat: ChatId) -> Self {
        Self { telegram: self.telegram.clone(), person: self.person, chat }
    }

    /// Sends a message.
    pub fn say(&self, text: &str) -> MessageId {
        self.telegram.say(self.chat, self.person, text).unwrap()
    }

    /// Sends a message and waits until the bot's last message has this text.
    pub async fn says(&self, text: &str, answer: &str) -> MessageId {
        let message = self.say(text);
        self.reads(answer).await;
        message
    }

    /// Waits until the bot's last message has this text and is final: there is nothing left to stop.
    pub async fn reads(&self, answer: &str) {
        let last = self.final_text(|text| text == answer).await;
        last.unwrap_or_else(|timeout| panic!("{answer:?} {timeout}"));
    }

    /// Waits until the bot's last message meets a condition and is final.
    pub async fn reads_final(&self, wanted: impl Fn(&str) -> bool) -> String {
        self.final_text(wanted).await.unwrap_or_else(|timeout| panic!("{timeout}"))
    }

    async fn final_text(&self, wanted: impl Fn(&str) -> bool) -> Result<String, Timeout> {
        let last = self.telegram.wait(SOON, |view| {
            let last = view.answers(self.chat).pop()?;
            let growing = last.buttons.iter().flatten().any(|button| button.text == "Stop");
            (wanted(&last.text) && !growing).then_some(last.text)
        });
        last.await
    }

    /// Waits until the bot's last message meets a condition, which a part of an answer may do.
    pub async fn reads_so(&self, wanted: impl Fn(&str) -> bool) -> String {
        self.reads_within(SOON, wanted).await.unwrap_or_else(|timeout| panic!("{timeout}"))
    }

    /// Waits with a timeout until the bot's last message meets a condition.
    pub async fn reads_within(
        &self,
        within: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, Timeout> {
        let last = self.telegram.wait(within, |view| {
            let text = view.last_answer(self.chat)?;
            wanted(text).then(|| text.to_owned())
        });
        last.await
    }

    /// Returns the bot's messages.
    pub fn answers(&self) -> Vec<Seen> {
        self.telegram.look(|view| view.answers(self.chat))
    }
}
