//! `pudu chat`: from a pipe and at a terminal, with an embedded daemon and with a running one.

mod pty;

use crate::house::{House, SOON, http};
use pty::Pty;
use pudu_sim::{
    Hold,
    model::{At, Exchange, Reply},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

/// Returns the output of `pudu chat` for this input. The simulated model runs meanwhile.
async fn piped(dir: &Path, port: &str, args: &[&str], input: &str) -> (bool, String, String) {
    let (dir, port, input) = (dir.to_owned(), port.to_owned(), input.to_owned());
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let run = tokio::task::spawn_blocking(move || run(&dir, &port, &args, &input));
    told(&tokio::time::timeout(SOON, run).await.unwrap().unwrap())
}

fn run(dir: &Path, port: &str, args: &[String], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pudu"))
        .arg("chat")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("GATEWAY_PORT", port)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn told(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn an_agent_is_chosen_from_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(".pudu/users/default/agents/poet");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SOUL.md"), "You write poems.").unwrap();
    let (well, out, err) = piped(dir.path(), "0", &["/agent", "poet"], "").await;
    assert_eq!((well, out.as_str(), err.as_str()), (true, "`poet` answers here from now on.\n", ""));
    let (_, out, _) = piped(dir.path(), "0", &["/status"], "").await;
    assert!(out.contains("\n- Agent: `poet`\n"), "{out}");
}

#[tokio::test]
async fn without_a_daemon_and_without_a_model_a_pipe_is_answered_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (well, out, err) = piped(dir.path(), "0", &[], "hi\n\nand a second line\n").await;
    assert!(well && err.is_empty(), "{err}");
    assert!(out.starts_with("I am pudu's built-in **offline** model"), "{out}");
    assert!(out.contains("\n\n> hi\n") && out.contains("> and a second line"), "one message: {out}");
    assert_eq!(out.matches("built-in").count(), 1, "{out}");
    let (_, help, _) = piped(dir.path(), "0", &[], "/help\n").await;
    assert!(help.contains("- /stop — Stop the current work\n"), "{help}");
}

#[tokio::test]
async fn what_was_done_can_be_read_while_no_daemon_runs() {
    let dir = tempfile::tempdir().unwrap();
    let audit = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pudu"));
        told(&command.arg("audit").args(args).current_dir(dir.path()).env_clear().output().unwrap())
    };
    assert_eq!(audit(&[]), (true, "There are no entries yet.\n".to_owned(), String::new()));
    assert!(!dir.path().join(".pudu/data").exists(), "asking makes no store");
    let write = r#"/tool write_file {"path": "/mnt/user-data/workspace/note", "content": "x"}"#;
    let (well, _, err) = piped(dir.path(), "0", &[], write).await;
    assert!(well, "{err}");
    let (_, text, _) = audit(&[]);
    assert!(text.starts_with("TIME  ") && text.contains("  write  "), "{text}");
    let (well, _, err) = audit(&["--limit", "0"]);
    assert!(!well && err.contains("invalid value '0' for '--limit <LIMIT>'"), "{err}");
    let (well, json, _) = audit(&["--json"]);
    let deeds: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert!(well && deeds.len() == 1 && deeds[0]["detail"].to_string().contains("note"), "{json}");
}

#[test]
fn shells_and_man_have_what_they_need() {
    let said = |args: &[&str]| {
        told(&Command::new(env!("CARGO_BIN_EXE_pudu")).args(args).env_clear().output().unwrap())
    };
    for shell in ["bash", "zsh", "fish"] {
        let (well, script, _) = said(&["completions", shell]);
        assert!(well && script.contains("doctor"), "{shell}");
    }
    let (well, page, _) = said(&["man"]);
    assert!(well && page.starts_with(".ie") && page.contains(".SH \"PUDU AUDIT\""), "{page}");
    assert!(!page.to_lowercase().contains("read\\-document"), "{page}");
}

#[tokio::test]
async fn what_was_said_in_a_pipe_is_remembered_and_not_said_again() {
    let dir = tempfile::tempdir().unwrap();
    piped(dir.path(), "0", &[], "one\n").await;
    let (well, out, _) = piped(dir.path(), "0", &[], "/status\n").await;
    assert!(well && out.starts_with("Active thread: `") && out.contains("in one run"), "{out}");
    let (_, other, _) = piped(dir.path(), "0", &["--name", "other"], "/status\n").await;
    assert!(other.contains("in 0 runs"), "{other}");
}

#[tokio::test]
async fn a_daemon_that_runs_is_found_and_answers() {
    let house = House::open("").await;
    let elsewhere = tempfile::tempdir().unwrap();
    let expect = (true, "echo: one\ntwo\n".to_owned(), String::new());
    let url = format!("http://{}/", house.address);
    let by_url = piped(elsewhere.path(), "0", &["--url", &url], "one\ntwo\n").await;
    assert_eq!(by_url, expect);
    let port = house.address.rsplit(':').next().unwrap();
    let found = piped(elsewhere.path(), port, &["--name", "other"], "one\ntwo\n").await;
    assert_eq!(found, expect);
    assert_eq!(house.model.count(), 2, "a pipe is one message");
    fs::write(elsewhere.path().join("notes.txt"), "a note\n").unwrap();
    let asked = ["--url", &url, "what", "is", "this?", "-f", "notes.txt"];
    let said = piped(elsewhere.path(), "0", &asked, "and a pipe\n").await;
    assert_eq!(said, (true, "echo: what is this?\n\na note\n\nand a pipe\n".to_owned(), String::new()));
    assert!(!elsewhere.path().join(".pudu").exists(), "nothing is kept where only a daemon is asked");
}

#[tokio::test]
async fn nothing_to_say_is_an_error_and_never_silence() {
    let dir = tempfile::tempdir().unwrap();
    let said = |args: &'static [&'static str]| {
        let dir = dir.path().to_owned();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        tokio::task::spawn_blocking(move || run(&dir, "0", &args, "\n"))
    };
    for args in [&[] as &[&str], &["-f", "-"], &[""]] {
        let output = said(args).await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{args:?}: {err}");
        assert!(err.starts_with("error: the message is empty; give a question"), "{err}");
    }
    assert!(!dir.path().join(".pudu").exists(), "nothing is begun for nothing");
}

#[tokio::test]
async fn a_signal_stops_the_answer_to_a_program_in_the_daemon() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if signal == Signal::HUP && hangups_are_ignored() {
            println!("skipped: whoever started this test ignores hangups, and so do its programs");
            continue;
        }
        let mut hold = house.model.hold(1, At::Start);
        let child = tokio::process::Command::new(env!("CARGO_BIN_EXE_pudu"))
            .args(["chat", "--url", &url, "work"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        hold.reached().await.unwrap();
        let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
        let output = tokio::time::timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
        let (_, out, err) = told(&output);
        assert_eq!((output.status.code(), out.as_str(), err.as_str()), (Some(code), "", "Stopped.\n"));
        house.model.wait(SOON, |_| (house.model.active() == 0).then_some(())).await.unwrap();
    }
}

/// Returns whether hangups are ignored here, as under `nohup`.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1)
}

/// Begins a run in the terminal's conversation, and returns when the answer has begun.
async fn ask_slowly(house: &House, text: &str) -> Hold<Exchange> {
    house.model.next(Reply::text("an older answer").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    let url = format!("http://{}/api/threads", house.address);
    let thread = json!({"thread_id": "theirs", "metadata": {"terminal": "terminal"}});
    assert_eq!(http().post(url).json(&thread).send().await.unwrap().status(), 200);
    assert_eq!(house.begin_run("theirs", text).await, 200);
    hold.reached().await.unwrap();
    hold
}

/// Waits until a number of runs works on the terminal's thread or waits to.
async fn runs_are(house: &House, count: usize) {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        let (_, runs) = house.get("/api/threads/theirs/runs").await;
        let runs: Vec<serde_json::Value> = serde_json::from_str(&runs).unwrap();
        if runs.len() == count {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{runs:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_pipe_gets_no_answer_to_what_was_said_before_it() {
    let house = House::open("").await;
    let hold = ask_slowly(&house, "theirs").await;
    let (dir, url) = (house.path(""), format!("http://{}", house.address));
    let pipe = tokio::spawn(async move { piped(&dir, "0", &["--url", &url], "mine\n").await });
    runs_are(&house, 2).await;
    hold.proceed();
    assert_eq!(pipe.await.unwrap(), (true, "echo: mine\n".to_owned(), String::new()));
}

#[tokio::test]
async fn a_pipe_does_not_wait_for_others_when_it_need_not() {
    let house = House::open("").await;
    let hold = ask_slowly(&house, "theirs").await;
    let url = format!("http://{}", house.address);
    let (well, out, err) = piped(&house.path(""), "0", &["--url", &url], "/status\n").await;
    assert!(well && out.starts_with("Active thread: `theirs`") && err.is_empty(), "{out}{err}");
    hold.proceed();
}

#[tokio::test]
async fn a_pipe_that_takes_up_what_was_left_gets_its_own_answer_only() {
    let mut house = House::open("").await;
    let hold = ask_slowly(&house, "theirs").await;
    house.kill();
    drop(hold);
    let told = piped(&house.path(""), "0", &[], "mine\n").await;
    assert_eq!(told, (true, "echo: mine\n".to_owned(), String::new()));
    assert_eq!(house.model.count(), 3, "theirs was finished all the same");
}

#[tokio::test]
async fn who_leaves_before_the_answer_is_told_that_it_goes_on_later() {
    let house = House::furnish(Default::default(), "", "  shutdown_grace_period_seconds: 0.1\n").await;
    let Some(mut person) = Pty::start(&house.path(""), &["chat"]) else { return };
    person.shows("› ").await;
    let mut hold = house.model.hold(1, At::Start);
    person.types("slow\r");
    hold.reached().await.unwrap();
    person.types("\x04");
    person.shows("Finishing active runs").await;
    person.shows("Not finished; runs resume at the next start of pudu in this folder.").await;
    assert!(person.ends().await.success());
    drop(hold);
    let told = piped(&house.path(""), "0", &[], "next\n").await;
    assert_eq!(told, (true, "echo: next\n".to_owned(), String::new()));
    assert_eq!(house.model.count(), 3);
}

#[tokio::test]
async fn who_is_not_let_in_is_told_why_in_one_line() {
    let mut house = House::furnish(Default::default(), "", "gateway:\n  token: open-sesame\n").await;
    house.start();
    let url = format!("http://{}", house.address);
    let locked = "error: the daemon requires a token; give --token or set PUDU_TOKEN\n";
    let nobody = "http://127.0.0.1:9";
    let wrong = "error: the daemon rejected this token; see `gateway.token` in its configuration, or the file \
                 gateway-token in its home\n";
    let foo = "error: \"foo\" is not an address: write http://HOST:PORT, such as http://127.0.0.1:8001\n";
    let cases: [(&[&str], bool, &str, &str); 5] = [
        (&["--url", "foo"], false, "", foo),
        (&["--url", &url], false, "", locked),
        (&["--url", &url, "--token", "wrong"], false, "", wrong),
        (&["--url", &url, "--token", "open-sesame"], true, "echo: one\n", ""),
        (&["--url", nobody], false, "", "error: no pudu answers at http://127.0.0.1:9\n"),
    ];
    for (args, well, out, err) in cases {
        let told = piped(&house.path(""), "0", args, "one\n").await;
        assert_eq!(told, (well, out.to_owned(), err.to_owned()), "{args:?}");
    }
}

#[tokio::test]
async fn ctrl_c_stops_the_run_and_not_the_program() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    house.model.next(Reply::text("one two three four").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    person.types("count\r");
    hold.reached().await.unwrap();
    person.shows("one two").await;
    person.shows("Ctrl-C stops").await;
    person.types("\x03");
    person.shows("Stopped.").await;
    person.shows("› ").await;
    person.types("rubbish\x03again\r");
    person.shows("echo: again").await;
    person.shows("› ").await;
    person.types("/secret set KEY correct-horse-battery\r");
    person.shows("Stored: ").await;
    person.shows("› ").await;
    person.types("\x04");
    assert!(person.ends().await.success());
    let history = house.path(".pudu/chat_history");
    let lines = fs::read_to_string(&history).unwrap();
    assert_eq!(lines.lines().skip(1).collect::<Vec<_>>(), ["count", "again"], "no secret is written");
    assert_eq!(fs::metadata(history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_key_typed_while_it_works_begins_the_next_message() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    house.model.next(Reply::text("slowly").after(Duration::from_millis(10)));
    let mut hold = house.model.hold(1, At::Chunk(1));
    person.types("first\r");
    hold.reached().await.unwrap();
    person.shows("Thinking…").await;
    person.types("second");
    person.shows("› ").await;
    person.shows("second").await;
    hold.proceed();
    person.shows("slowly").await;
    person.types("!\r");
    person.shows("echo: second!").await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn lines_typed_ahead_in_one_go_are_all_sent() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    person.types("first\rsecond\rthi");
    person.shows("echo: first").await;
    person.shows("echo: second").await;
    person.shows("› ").await;
    person.shows("thi").await;
    person.types("rd\r");
    person.shows("echo: third").await;
    assert_eq!(house.model.count(), 3);
}

#[tokio::test]
async fn a_choice_is_taken_by_its_number() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    let asked = json!({"question": "Which one?", "clarification_type": "approach_choice", "options": ["the red one", "the blue one"]});
    house.model.next(Reply::tool("ask_clarification", &asked));
    person.types("paint it\r");
    person.shows("Which one?").await;
    person.shows("[2] the blue one").await;
    person.shows("› ").await;
    person.types("2\r");
    person.shows("echo: the blue one").await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn what_the_work_changed_in_files_is_shown_below_the_answer() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    let path = "/mnt/user-data/outputs/a.md";
    house.model.next(Reply::tool("write_file", &json!({"path": path, "content": "one\ntwo\n"})));
    house.model.next(Reply::text("Written."));
    person.types("write\r");
    person.shows("Written.").await;
    person.shows("A outputs/a.md +2 -0").await;
    person.shows("+one").await;
    person.shows("› ").await;
    house
        .model
        .next(Reply::tool("str_replace", &json!({"path": path, "old_str": "two", "new_str": "three"})));
    house.model.next(Reply::text("Edited."));
    person.types("edit\r");
    person.shows("Edited.").await;
    for line in ["M outputs/a.md +1 -1", "@@", " one", "-two", "+three"] {
        person.shows(line).await;
    }
    // A program only gets the answer.
    house.model.next(Reply::tool("str_replace", &json!({"path": path, "old_str": "one", "new_str": "1"})));
    house.model.next(Reply::text("Once more."));
    let (_, out, err) = piped(&house.path(""), "0", &["--url", &url], "again\n").await;
    assert_eq!((out.as_str(), err.as_str()), ("Once more.\n", ""));
}

#[tokio::test]
async fn what_is_typed_while_the_daemon_is_away_is_said_once_when_it_is_back() {
    let mut house = House::open("").await;
    let url = format!("http://{}", house.address);
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    person.types("before\r");
    person.shows("echo: before").await;
    house.kill();
    person.types("after\r");
    person.shows("not sent yet: pudu cannot be reached; retrying…").await;
    house.bind = house.address.clone();
    house.start();
    person.shows("echo: after").await;
    person.shows("› ").await;
    person.types("last\r");
    person.shows("echo: last").await;
    assert_eq!(house.model.count(), 3, "each was said once");
    person.shows("› ").await;
    person.types("a first line \\\r");
    person.types("and a second\r");
    person.shows("echo: a first line").await;
    let asked = format!("{:?}", house.model.requests().last().unwrap());
    assert!(asked.contains("a first line \\nand a second"), "{asked}");
}

#[tokio::test]
async fn a_program_hears_by_the_exit_code_that_the_model_failed() {
    let house = House::open("").await;
    let url = format!("http://{}", house.address);
    house.model.next(Reply::status(401).message("no such key"));
    let (well, out, err) = piped(&house.path(""), "0", &["--url", &url], "one\n").await;
    assert_eq!((well, out.as_str()), (false, ""), "{err}");
    assert!(err.starts_with("⚠️ The model's provider rejected the API key"), "{err}");
    let (well, out, err) = piped(&house.path(""), "0", &["--url", &url], "three\n").await;
    assert_eq!((well, out.as_str(), err.as_str()), (true, "echo: three\n", ""));
}

#[tokio::test]
async fn a_daemon_in_the_terminal_tells_that_the_model_failed_too() {
    let house = House::build("").await;
    house.model.next(Reply::status(401).message("no such key"));
    let (well, out, err) = piped(&house.path(""), "0", &[], "one\n").await;
    assert_eq!((well, out.as_str()), (false, ""), "{err}");
    assert!(err.contains("⚠️ The model's provider rejected the API key"), "{err}");
}

#[tokio::test]
async fn what_waits_for_a_decision_is_decided_at_the_terminal_and_told_to_a_program() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let url = format!("http://{}", house.address);
    let wish =
        || Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"}));
    let Some(mut person) = Pty::start(&house.path(""), &["chat", "--url", &url]) else { return };
    person.shows("› ").await;
    house.model.next(wish());
    person.types("write it\r");
    person.shows("🔐 May I? write_file").await;
    person.shows("[2] Deny").await;
    person.shows("enter a number to decide").await;
    person.types("1");
    // It stays readable above the input.
    person.shows("🔐 May I? write_file").await;
    person.shows("[1] Approve").await;
    person.shows("› ").await;
    person.types("\r");
    person.shows("✅ You approved write_file").await;
    person.shows("› ").await;
    person.types("\x04");
    assert!(person.ends().await.success());
    assert!(
        house.model.requests()[1].last_tool().starts_with("OK"),
        "{}",
        house.model.requests()[1].last_tool()
    );

    house.configure("", "approvals: {tools: [write_file], timeout_seconds: 1}\n");
    house.model.next(wish());
    let (well, out, err) = piped(&house.path(""), "0", &["--url", &url, "--name", "other"], "again\n").await;
    assert!(well && out.contains("⌛ `write_file"), "{out}{err}");
    assert!(
        err.starts_with("🔐 May I? `write_file") && err.contains("This call waits for approval"),
        "{err}"
    );
    assert_eq!(err.matches("May I?").count(), 1, "{err}");

    let long = format!("{}\n\nthe middle\n\n{}", "begin ".repeat(200), "end ".repeat(200));
    let write = json!({"path": "/mnt/user-data/outputs/a.txt", "content": long});
    house.model.next(Reply::tool("write_file", &write));
    let (_, out, err) = piped(&house.path(""), "0", &["--url", &url, "--name", "third"], "long\n").await;
    assert!(err.contains("May I?") && err.contains("  | the middle\n"), "all of it can be read: {out}{err}");
}
