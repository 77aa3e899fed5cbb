//! The agent's shell from a chat: its abilities, and that it cannot affect the daemon. Many more attempts to escape are
//! in `crates/sandbox/tests/suite/escape.rs`; this is the real daemon with its secrets.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::model::Reply;
use serde_json::json;
use std::{
    io::{BufRead, BufReader},
    time::{Duration, Instant},
};

/// A secret in the daemon's environment.
const SECRET: &str = "hunter2-of-the-daemon";

/// A house with a secret, whose model runs the users' messages as commands; `None` with a note if the kernel cannot
/// confine commands.
async fn house(sandbox: &str) -> Option<House> {
    let mut house = House::furnish(Default::default(), "", sandbox).await;
    // Its memory, environment and descriptors are tried to be reached.
    house.in_its_own_process();
    house.set("OPENAI_API_KEY", SECRET);
    // Created manually in the configured folder below the home.
    let skill = house.path(".pudu/skills/custom/by-hand");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: by-hand\ndescription: Is there.\n---\nDo it.\n")
        .unwrap();
    house.start();
    let confined = house.log().contains("confining commands");
    if !confined && std::env::var_os("PUDU_REQUIRE_SANDBOX").is_some() {
        panic!("commands cannot be confined here:\n{}", house.log());
    }
    if !confined {
        println!("skipped: commands cannot be confined here");
    }
    confined.then_some(house)
}

/// Makes the model run a script, and returns the result.
async fn run(house: &House, ada: &Talker, script: &str) -> String {
    let before = house.model.count();
    house.model.next(Reply::tool("bash", &json!({"command": script})));
    ada.say("go on");
    house.model.wait(3 * SOON, |_| (house.model.count() >= before + 2).then_some(())).await.unwrap();
    house.model.requests().last().unwrap().last_tool()
}

#[tokio::test]
async fn a_shell_is_offered_and_sees_what_people_sent_and_what_they_get() {
    let Some(house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    assert_eq!(
        run(&house, &ada, "pwd; echo report > ../outputs/a.md; ls ..").await.lines().collect::<Vec<_>>(),
        ["/mnt/user-data/workspace", "outputs", "uploads", "workspace"]
    );
    assert_eq!(run(&house, &ada, "ls /mnt/skills/custom/by-hand").await.trim(), "SKILL.md");
    let about = house.model.requests()[0].body["tools"].to_string();
    assert!(about.contains("your own Linux shell") && about.contains("There is no network"), "{about}");
    house.model.next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/a.md"]})));
    ada.say("show me");
    let sent = house.telegram.wait(SOON, |view| {
        let file = view.answers(ada.chat).into_iter().find_map(|answer| answer.file)?;
        view.bytes(&file)
    });
    assert_eq!(sent.await.unwrap().as_ref(), b"report\n");
}

#[tokio::test]
async fn a_link_among_the_outputs_sends_nothing() {
    let Some(house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    run(
        &house,
        &ada,
        "echo of-mine > secret; ln -s ../workspace/secret ../outputs/link; ln -s ../workspace ../outputs/all",
    )
    .await;
    for name in ["link", "all/secret"] {
        let path = format!("/mnt/user-data/outputs/{name}");
        house.model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
        house.model.next(Reply::text("No."));
        ada.says("send it", "No.").await;
        let told = house.model.requests().last().unwrap().last_tool();
        assert!(told.contains("is a symlink") && told.contains("put a copy there"), "{name}: {told}");
    }
    assert!(ada.answers().iter().all(|answer| answer.file.is_none()));
}

#[tokio::test]
async fn nothing_that_a_command_does_reaches_the_daemon_and_its_secrets() {
    let Some(house) = house("").await else { return };
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    run(&house, &bob, "echo of-bob > private").await;
    let home = house.path("");
    let pid = house.pid().as_raw_nonzero().get();
    let port = house.address.rsplit(':').next().unwrap().to_owned();
    for (attempt, script) in [
        ("read the configuration", "cat HOMEconfig.yaml"),
        ("read the database", "cat HOME.pudu/data/pudu.db"),
        ("read the token", "cat HOME.pudu/*token* HOME.pudu/link-key"),
        ("read another thread", "grep -rs of-bob / --include=private --exclude-dir=proc"),
        ("read the daemon's environment", "cat /proc/PID/environ; cat /proc/[0-9]*/environ; env"),
        ("read the daemon's memory", "cat /proc/PID/maps; cat /proc/1/maps"),
        (
            "speak to the daemon",
            "exec 3<>/dev/tcp/127.0.0.1/PORT && echo -e 'GET /health HTTP/1.0\\n' >&3 && cat <&3",
        ),
        ("kill the daemon", "kill -9 PID -1 2>&1; echo"),
        ("fork without end", "b() { b | b & }; timeout 1 bash -c 'b() { b | b & }; b; sleep 2'; echo"),
        ("take all memory", "tail /dev/zero 2>&1 | tail -c 100; head -c 3G /dev/zero | tail -n 1 | wc -c"),
        ("leave something running", "setsid nohup sleep 98765701 > /dev/null 2>&1 & disown; echo"),
        (
            "plant a link for the daemon",
            "rm -rf ../outputs; ln -s HOME ../outputs; ln -s HOME.pudu/data planted; echo",
        ),
    ] {
        let script = script
            .replace("HOME", home.to_str().unwrap())
            .replace("PID", &pid.to_string())
            .replace("PORT", &port);
        let said = run(&house, &ada, &script).await;
        for secret in [SECRET, "SQLite format", "of-bob", "api_key", "healthy", &house.telegram.token()] {
            assert!(!said.contains(secret), "{attempt}: {said}");
        }
        assert_eq!(house.get("/health").await.0, 200, "{attempt}");
    }
    // The planted files do not lead anywhere on the daemon's side either.
    house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/workspace/planted/pudu.db"})));
    house.model.next(Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/x", "content": "x"})));
    house
        .model
        .next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/config.yaml"]})));
    house.model.next(Reply::text("all tried"));
    ada.says("and now?", "all tried").await;
    let asked = house.model.requests();
    let told: Vec<String> = asked.iter().rev().take(3).map(|request| request.last_tool()).collect();
    let words = ["is a symlink", "outside the sandbox", "outside the sandbox"];
    assert!(told.iter().zip(words).all(|(text, word)| text.contains(word)), "{told:?}");
    assert!(!house.path("x").exists());
    gone("98765701").await;
    // No other user noticed.
    assert_eq!(run(&house, &bob, "cat private").await, "of-bob");
}

/// CVE-2026-54449: servers that run commands outside of the sandbox only come from the operator's file.
#[tokio::test]
async fn no_chat_and_no_client_adds_an_mcp_server() {
    let Some(house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    let file = house.path("extensions_config.json");
    let servers = json!({"mcpServers": {"evil": {"command": "touch", "args": [house.path("stolen")]}}});
    for path in [file.to_str().unwrap(), "/mnt/user-data/../../extensions_config.json"] {
        let args = json!({"path": path, "content": servers.to_string()});
        house.model.next(Reply::tool("write_file", &args));
        house.model.next(Reply::text("tried"));
        ada.says(path, "tried").await;
        assert!(house.model.requests().last().unwrap().last_tool().contains("outside the sandbox"), "{path}");
    }
    run(&house, &ada, &format!("echo '{servers}' > {}", file.display())).await;
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let url = format!("http://{}/api/mcp/config", house.address);
    let servers = json!({"mcp_servers": servers["mcpServers"]});
    let put = http().put(url).bearer_auth(token.trim()).json(&servers).send().await.unwrap();
    assert_eq!(put.status(), 400, "the operator's own client neither");
    assert!(!file.exists() && !house.path("stolen").exists());
}

/// Calls the daemon's API from a command without a token, and prints the result.
const ASK: &str = r#"ask() {
    exec 3<>/dev/tcp/127.0.0.1/PORT
    printf '%s /api/%s HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Type: application/json\r\n' "$1" "$2" >&3
    printf 'Content-Length: %d\r\nConnection: close\r\n\r\n%s' ${#3} "$3" >&3
    head -n 1 <&3 | cut -d ' ' -f 2
}
"#;

/// Calls that would answer for users, or read their data.
const ASKED: &str = r#"ask POST runs '{"input":{"messages":[{"type":"human","content":"said by nobody"}]}}'
ask POST threads/other/slash-commands '{"text":"/status"}'
ask POST threads/other/approvals/x '{"approved":true}'
ask GET threads/other/uploads/list
ask GET threads/other/artifacts/mnt/user-data/uploads/x
ask GET runs
ask GET models
cat HOME.pudu/gateway-token"#;

#[tokio::test]
async fn a_command_that_reaches_the_api_neither_speaks_nor_decides_for_people() {
    let Some(house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    assert_eq!(house.get("/api/models").await.0, 200, "nobody's command is on the machine's network yet");
    house.configure("", "sandbox: {network: full}\n");
    let port = house.address.rsplit(':').next().unwrap();
    let script = format!("{ASK}{ASKED}").replace("PORT", port);
    let said = run(&house, &ada, &script.replace("HOME", house.path("").to_str().unwrap())).await;
    let statuses: Vec<&str> = said.lines().take_while(|line| line.parse::<u16>().is_ok()).collect();
    assert_eq!(statuses, ["401"; 7], "{said}");
    assert!(said.contains("No such file"), "the token is not to be seen: {said}");
    // Runs that began before may still be running.
    house.configure("", "");
    assert_eq!(run(&house, &ada, "echo confined").await.trim(), "confined");
    assert_eq!((house.get("/api/models").await.0, house.get("/health").await.0), (401, 200));
    assert_eq!(house.begin_run("terminal", "hello").await, 200);
}

#[tokio::test]
async fn who_starts_it_is_told_that_the_api_asks_for_its_token() {
    let Some(mut house) = house("sandbox: {network: full}\n").await else { return };
    house.kill();
    let mut child = house.spawn();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("  page")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.join("\n");
    assert!(told.contains("full network access, so the HTTP API requires its token"), "{told}");
    assert!(told.contains(".pudu/gateway-token (the page asks for it)"), "{told}");
}

#[tokio::test]
async fn stop_ends_a_command_and_all_that_it_started() {
    let Some(house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("bash", &json!({"command": "setsid sleep 98765702 & sleep 98765702"})));
    ada.say("wait for me");
    alive("98765702").await;
    ada.say("/stop");
    gone("98765702").await;
    ada.reads_so(|text| text.contains("Stopped")).await;
}

#[tokio::test]
async fn a_daemon_that_is_killed_leaves_no_command_behind() {
    let Some(mut house) = house("").await else { return };
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("bash", &json!({"command": "setsid sleep 98765703 & sleep 98765703"})));
    ada.say("wait for me");
    alive("98765703").await;
    house.kill();
    gone("98765703").await;
}

#[tokio::test]
async fn the_doctor_tries_to_get_out_and_says_that_it_could_not() {
    let Some(house) = house("sandbox: {network: full}\n").await else { return };
    let (_, said) = house.pudu(&["doctor"]);
    assert!(said.contains("ok    shell: confined: namespaces and seccomp"), "{said}");
    assert!(
        said.contains("full network access") && said.contains("ok    escape: tried and failed: read"),
        "{said}"
    );
    assert!(said.contains("so the HTTP API requires its token"), "{said}");
    assert!(!said.contains("reach the network"), "{said}");
}

/// Waits until a process has the word in its command line.
async fn alive(word: &str) {
    until(word, |count| count > 0).await;
}

/// Waits until no process has the word in its command line.
async fn gone(word: &str) {
    until(word, |count| count == 0).await;
}

async fn until(word: &str, wanted: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + SOON;
    let count = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| line.starts_with(b"sleep") && String::from_utf8_lossy(line).contains(word))
            .count()
    };
    while !wanted(count()) {
        assert!(Instant::now() < deadline, "{word}: {} processes", count());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
