//! Agents as pudu's client sees them: well-behaved ones, and ones that break the protocol.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

use pudu_acp::{AcpAgent, AcpAnswer, AcpEvent, AcpFailure, AcpHost, PermissionRequest};
use pudu_base::BoxFuture;
use pudu_mcp::{
    PassedServer, PassedServers, PassedTransport,
    child::{ServerCommand, inherited},
};
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A host that decides each request in the same way, and keeps what it sees.
struct TestHost {
    approves: bool,
    /// How long a decision takes.
    thinks: Duration,
    events: Mutex<Vec<AcpEvent>>,
    asked: Mutex<Vec<PermissionRequest>>,
}

impl AcpHost for TestHost {
    fn on_event(&self, event: AcpEvent) {
        self.events.lock().unwrap().push(event);
    }

    fn permit<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            tokio::time::sleep(self.thinks).await;
            self.approves
        })
    }
}

struct Bench {
    folder: TempDir,
    agent: AcpAgent,
    host: TestHost,
    servers: PassedServers,
}

impl Bench {
    /// Creates a bench with an agent that misbehaves in a way before the prompt.
    fn new(start: &str) -> Self {
        let variables = HashMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let mut env: Vec<_> =
            inherited(&variables).into_iter().map(|(key, value)| (key, value.into())).collect();
        env.push(("KEY".to_owned(), "northern-sea".into()));
        let command = ServerCommand {
            program: env!("CARGO_BIN_EXE_acp-fixture").to_owned(),
            args: vec![start.to_owned().into()],
            env,
            folder: None,
            warden: None,
        };
        let agent = AcpAgent {
            name: "coder".to_owned(),
            description: "writes code".to_owned(),
            command,
            given: vec!["northern-sea".into()],
            model: None,
            auto_approve: false,
            timeout: Duration::from_secs(30),
            mcp_servers: Vec::new(),
        };
        let host = TestHost {
            approves: false,
            thinks: Duration::ZERO,
            events: Mutex::default(),
            asked: Mutex::default(),
        };
        Self { folder: tempfile::tempdir().unwrap(), agent, host, servers: PassedServers::default() }
    }

    async fn ask(&self, prompt: &str) -> AcpAnswer {
        let folder = self.folder.path();
        self.agent.ask(folder, prompt, self.servers.clone(), &self.host).await
    }

    /// Checks the text of a successful answer.
    async fn check(&self, prompt: &str, expect: &str) {
        let answer = self.ask(prompt).await;
        assert_eq!((answer.text.as_str(), answer.failure), (expect, None), "{prompt}: {:?}", answer.notes);
    }

    async fn failure(&self, prompt: &str) -> AcpFailure {
        self.ask(prompt).await.failure.unwrap()
    }
}

#[tokio::test]
async fn an_agent_works_in_its_folder_and_its_steps_are_seen() {
    let bench = Bench::new("");
    bench.check("work", "Let me look.\n\nThere are three notes.").await;
    assert_eq!(std::fs::read_to_string(bench.folder.path().join("report.txt")).unwrap(), "three");
    let events = bench.host.events.lock().unwrap();
    let [AcpEvent::Calls { text, title, input }, does, called, idle] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (text.as_str(), title.as_str(), input["path"].as_str()),
        ("Let me look.", "Read notes", Some("notes"))
    );
    assert_eq!(*does, AcpEvent::Does(vec!["Read notes".into()]));
    let ended = AcpEvent::Called { title: "Read notes".into(), failed: false, text: "three notes".into() };
    assert_eq!((called, idle), (&ended, &AcpEvent::Does(Vec::new())));
}

#[tokio::test]
async fn an_agent_gets_no_more_of_the_environment_than_configured_and_its_values_are_hidden() {
    let bench = Bench::new("");
    let folder = bench.folder.path().canonicalize().unwrap();
    let expect =
        format!("{{\"HOME\", \"KEY\", \"LANG\", \"PATH\"}} in {}; KEY is [secret]", folder.display());
    bench.check("environment", &expect).await;
    bench.check("files", "-32601").await;
}

#[tokio::test]
async fn people_decide_on_permissions_and_a_denial_does_not_end_the_work() {
    let mut bench = Bench::new("");
    bench.check("permit", r#"{"optionId":"no","outcome":"selected"}"#).await;
    bench.host.approves = true;
    bench.check("permit", r#"{"optionId":"yes","outcome":"selected"}"#).await;
    assert_eq!(bench.host.asked.lock().unwrap().len(), 2);
    // Nothing can be approved, so nobody is asked.
    bench.check("no-options", r#"{"outcome":"cancelled"}"#).await;
    bench.host.approves = false;
    bench.agent.auto_approve = true;
    bench.check("permit", r#"{"optionId":"yes","outcome":"selected"}"#).await;
    assert_eq!(bench.host.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn broken_lines_cost_nothing_but_themselves() {
    let bench = Bench::new("");
    bench.check("garbage", "Still here.").await;
    bench.check("giant", "After it.").await;
    bench.check("quick", "Done.").await;
    bench.check("say \u{1f600} ü", "\u{1f600} ü").await;
}

#[tokio::test]
async fn an_agent_that_ends_early_fails_with_its_text_and_its_complaint() {
    let bench = Bench::new("");
    let dead = bench.ask("dies").await;
    assert_eq!(dead.text, "Half of");
    let why = dead.failure.unwrap().to_string();
    assert_eq!(why, "it ended in the middle of its work; it complained: out of memory");
    let cut = bench.ask("cut").await;
    assert_eq!((cut.text.as_str(), cut.failure.is_some()), ("Half.", true));
    let never_ready = Bench::new("dies").failure("say hi").await.to_string();
    assert_eq!(never_ready, "it ended before it was ready; it complained: no licence for [secret]");
    let refuses = bench.ask("something").await;
    assert_eq!(refuses.notes, ["the agent refused to continue"]);
}

#[tokio::test]
async fn work_ends_in_time_and_time_for_decisions_does_not_count() {
    let mut bench = Bench::new("");
    bench.agent.timeout = Duration::from_millis(400);
    let begun = Instant::now();
    let late = bench.ask("waits").await;
    assert!(begun.elapsed() < Duration::from_secs(5), "it was not cancelled");
    assert_eq!(late.text, "Half and a bit");
    let failure = late.failure.unwrap();
    assert!(matches!(failure, AcpFailure::Late { .. }), "{failure}");
    assert!(failure.to_string().contains("acp_agents.coder.timeout_seconds"), "{failure}");
    bench.host.thinks = Duration::from_millis(1200);
    bench.check("permit", r#"{"optionId":"no","outcome":"selected"}"#).await;
    let mut silent = Bench::new("hangs");
    silent.agent.timeout = Duration::from_millis(300);
    assert_eq!(silent.failure("say hi").await, AcpFailure::SlowStart(Duration::from_millis(300)));
}

#[tokio::test]
async fn what_an_operator_has_to_do_is_said() {
    let mut bench = Bench::new("");
    for (program, fix) in [
        ("npx", "install Node.js 22"),
        ("uvx", "install uv"),
        ("codex", "@agentclientprotocol/codex-acp"),
        ("claude", "@agentclientprotocol/claude-agent-acp"),
        ("/opt/none/thing", "write its whole path"),
    ] {
        bench.agent.command.program = program.to_owned();
        bench.agent.command.env.retain(|(key, _)| key != "PATH");
        let text = bench.failure("say hi").await.to_string();
        assert!(text.contains(fix) && text.contains(&format!("`{program}`")), "{text}");
        assert!(text.contains("acp_agents.coder.command"), "{text}");
    }
    let locked = Bench::new("locked").failure("say hi").await.to_string();
    assert!(locked.contains("needs a sign-in") && locked.contains("acp_agents.coder.env"), "{locked}");
    let future = Bench::new("future").failure("say hi").await.to_string();
    assert_eq!(future, "it speaks version 9 of the protocol, and pudu version 1");
}

#[tokio::test]
async fn an_agent_gets_servers_that_it_can_reach_and_its_model() {
    let passed = || PassedServers {
        servers: vec![
            PassedServer {
                name: "files".into(),
                transport: PassedTransport::Stdio {
                    program: "files".into(),
                    args: vec!["-a".to_owned().into()],
                    env: vec![("K".into(), "v".into())],
                },
            },
            PassedServer {
                name: "maps".into(),
                transport: PassedTransport::Http {
                    url: "https://maps.example/".into(),
                    headers: vec![("x-key".into(), "k".into())],
                },
            },
        ],
        omitted: vec!["MCP server other is not available: it is disabled".into()],
    };
    let stdio = r#"{"args":["-a"],"command":"files","env":[{"name":"K","value":"v"}],"name":"files"}"#;
    let http = r#"{"headers":[{"name":"x-key","value":"k"}],"name":"maps","type":"http","url":"https://maps.example/"}"#;
    let mut bench = Bench::new("");
    bench.servers = passed();
    bench.agent.model = Some("big".to_owned());
    let answer = bench.ask("session").await;
    assert_eq!(answer.text, format!("[{stdio}] \"big\""));
    let notes = answer.notes.join("\n");
    for note in ["offers no models", "server maps is not available", "server other is not available"] {
        assert!(notes.contains(note), "{notes}");
    }
    let mut bench = Bench::new("http");
    bench.servers = passed();
    bench.check("session", &format!("[{stdio},{http}] null")).await;
    let mut bench = Bench::new("models");
    bench.agent.model = Some("big".to_owned());
    bench.check("session", "[] \"big\"").await;
}
