mod bounds;
mod encodings;

use super::*;
use pudu_base::{
    BoxFuture, DirEntry, Exec, Image, Killed, Marks, Question, QuestionKind, Sandbox, SandboxError,
    SandboxProvider, ShellCommand, ThreadState, Todo, TodoStatus, ToolCx, ToolError, ToolOutput, Update,
};
use pudu_sandbox::{Folders, LocalSandboxes, Options};
use serde_json::{Value, json};
use std::{path::Path, sync::Mutex};

struct Bench {
    _folder: tempfile::TempDir,
    sandbox: Arc<dyn Sandbox>,
    state: Mutex<ThreadState>,
}

async fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = place(folder.path()).await;
    Bench { _folder: folder, sandbox, state: Mutex::default() }
}

/// A sandbox with the host's shell.
pub(crate) async fn place(folder: &Path) -> Arc<dyn Sandbox> {
    let options = Options { host_shell: true, ..Options::default() };
    let local = LocalSandboxes::new(Folders::new(folder.into(), None), None, options);
    local.acquire(&"t".into()).await.unwrap()
}

pub(crate) fn cx(sandbox: Arc<dyn Sandbox>, marks: Arc<Marks>) -> ToolCx {
    let tell = Arc::new(|_| {});
    ToolCx {
        thread: "t".into(),
        run: "r".into(),
        call: "c".into(),
        sandbox,
        marks,
        events: tell,
        allowed_tools: None,
        host: Arc::new(pudu_base::NoCallHost),
    }
}

impl Bench {
    async fn output(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let bash_timeout = Duration::from_secs(20);
        let limits = ToolLimits { bash: 60, read_file: 40, ls: 200, bash_timeout, ..ToolLimits::default() };
        let cx = cx(self.sandbox.clone(), self.state.lock().unwrap().marks.clone());
        let output = tool(name, limits).unwrap().call(args, &cx).await?;
        let mut state = self.state.lock().unwrap();
        output.updates.iter().for_each(|update| state.apply(update.clone()));
        Ok(output)
    }

    /// Calls a tool and checks what the model reads.
    async fn check(&self, name: &str, args: Value, expect: &str) {
        let text = match self.output(name, args.clone()).await {
            Ok(ToolOutput { text, cut: Some(cut), .. }) => cut.apply(text),
            Ok(output) => output.text,
            Err(ToolError(text)) => format!("Error: {text}"),
        };
        assert_eq!(text, expect, "{name} {args}");
    }
}

#[test]
fn every_name_is_a_tool_with_that_name_and_a_schema() {
    for name in NAMES {
        let tool = tool(name, ToolLimits::default()).unwrap();
        assert_eq!(tool.spec().name, name);
        assert_eq!(tool.spec().parameters["type"], "object", "{name}");
    }
    assert!(tool("fly", ToolLimits::default()).is_none());
}

#[tokio::test]
async fn file_tools_and_bash_take_a_purpose_and_do_not_need_it() {
    let named = |name: &&str| {
        let spec = tool(name, ToolLimits::default()).unwrap();
        spec.spec().parameters["properties"]["description"]["type"] == "string"
    };
    let have: Vec<&str> = NAMES.iter().copied().filter(|name| named(name)).collect();
    assert_eq!(have, ["ls", "read_file", "write_file", "str_replace", "glob", "grep", "bash"]);
    let args = json!({"description": "Looking for uploads", "path": "/mnt/user-data/uploads"});
    let ls = tool("ls", ToolLimits::default()).unwrap();
    assert_eq!(ls.purpose(&args).as_deref(), Some("Looking for uploads"));
    assert_eq!(tool("write_todos", ToolLimits::default()).unwrap().purpose(&args), None);
    bench().await.check("ls", args, "(empty)").await;
}

#[tokio::test]
async fn files_are_written_read_changed_and_listed() {
    let bench = bench().await;
    let file = "/mnt/user-data/workspace/a.txt";
    bench.check("write_file", json!({"path": file, "content": "one\ntwo\ntwo\n"}), "OK").await;
    bench.check("write_file", json!({"path": file, "content": "three\n", "append": true}), "OK").await;
    bench.check("read_file", json!({"path": file}), "one\ntwo\ntwo\nthree\n").await;
    bench.check("read_file", json!({"path": file, "start_line": 2, "end_line": 3}), "two\ntwo").await;
    bench.check("str_replace", json!({"path": file, "old_str": "one", "new_str": "ONE"}), "OK").await;
    bench
        .check(
            "str_replace",
            json!({"path": file, "old_str": "two", "new_str": "2", "replace_all": true}),
            "OK",
        )
        .await;
    bench.check("read_file", json!({"path": file}), "ONE\n2\n2\nthree\n").await;
    bench.check("ls", json!({"path": "/mnt/user-data/workspace"}), "/mnt/user-data/workspace/a.txt").await;
    bench.check("ls", json!({"path": "/mnt/user-data/uploads"}), "(empty)").await;
}

#[tokio::test]
async fn a_line_that_is_too_long_is_read_by_offset() {
    let bench = bench().await;
    let file = "/mnt/user-data/workspace/a.json";
    let line = format!("{}{}", "ä".repeat(40), "ö".repeat(20));
    bench.check("write_file", json!({"path": file, "content": format!("first\n{line}\n")}), "OK").await;
    let cut = format!("{}\n[… 20 more characters …]", "ä".repeat(40));
    bench.check("read_file", json!({"path": file, "start_line": 2}), &cut).await;
    let rest = json!({"path": file, "start_line": 2, "offset": 40});
    bench.check("read_file", rest, &"ö".repeat(20)).await;
    let error = format!("Error: the offset is past the end: {file} has 60 characters there");
    bench.check("read_file", json!({"path": file, "start_line": 2, "offset": 60}), &error).await;
}

#[tokio::test]
async fn what_cannot_be_done_is_said_so_that_the_call_can_be_mended() {
    let bench = bench().await;
    let file = "/mnt/user-data/workspace/a.txt";
    bench.check("write_file", json!({"path": file, "content": "a a"}), "OK").await;
    let replace = |old: &str| json!({"path": file, "old_str": old, "new_str": ""});
    for (name, args, expect) in [
        (
            "read_file",
            json!({"path": "/etc/passwd"}),
            "Error: /etc/passwd is outside the sandbox: use a path under /mnt/user-data",
        ),
        ("read_file", json!({"path": "/mnt/user-data/x"}), "Error: /mnt/user-data/x does not exist"),
        (
            "read_file",
            json!({"path": file, "start_line": 9}),
            &format!("Error: {file} has only the lines 1 to 1"),
        ),
        ("str_replace", replace(""), "Error: old_str is empty; give the text to replace"),
        ("str_replace", replace("b"), &format!("Error: old_str does not occur in {file}")),
        (
            "str_replace",
            replace("a"),
            &format!("Error: old_str occurs 2 times in {file}; include more of the surrounding text"),
        ),
        (
            "present_files",
            json!({"filepaths": [file]}),
            &format!("Error: {file} is not below /mnt/user-data/outputs/; put a copy there first"),
        ),
        (
            "present_files",
            json!({"filepaths": ["/mnt/user-data/outputs/no"]}),
            "Error: /mnt/user-data/outputs/no does not exist",
        ),
        (
            "present_files",
            json!({"filepaths": ["/mnt/user-data/outputs/../a"]}),
            "Error: /mnt/user-data/outputs/../a is outside the sandbox: use a path under /mnt/user-data",
        ),
        (
            "present_files",
            json!({"filepaths": vec!["/mnt/user-data/outputs/a"; 21]}),
            "Error: 21 files are too many: an answer can have at most 20; put them into an archive",
        ),
        ("ls", json!({}), "Error: the arguments do not fit ls: missing field `path`"),
    ] {
        bench.check(name, args, expect).await;
    }
}

#[tokio::test]
async fn a_file_that_is_presented_becomes_an_artifact_of_its_run() {
    let bench = bench().await;
    let file = "/mnt/user-data/outputs/a.txt";
    bench.check("write_file", json!({"path": file, "content": "hi"}), "OK").await;
    let output = bench.output("present_files", json!({"filepaths": [file]})).await.unwrap();
    assert_eq!(output.updates, [Update::Artifacts { run: "r".into(), paths: vec![file.into()] }]);
}

#[tokio::test]
async fn a_command_shows_output_errors_and_exit_code_and_its_middle_is_cut() {
    let bench = bench().await;
    bench.check("bash", json!({"command": "echo hi"}), "hi").await;
    bench.check("bash", json!({"command": "true"}), "(no output)").await;
    bench
        .check("bash", json!({"command": "echo a; echo b >&2; exit 2"}), "a\n\nStd Error:\nb\n\nExit Code: 2")
        .await;
    let flood = format!("{}\n[… 40 characters left out …]\n{}", "x".repeat(30), "x".repeat(30));
    bench.check("bash", json!({"command": "printf 'x%.0s' {1..100}"}), &flood).await;
}

#[tokio::test]
async fn a_file_is_not_replaced_by_one_who_does_not_know_what_is_in_it() {
    let bench = bench().await;
    let file = "/mnt/user-data/workspace/a.txt";
    let write = |text: &str| json!({"path": file, "content": text});
    let replace = |old: &str, new: &str| json!({"path": file, "old_str": old, "new_str": new});
    let unread =
        format!("Error: {file} exists and you have not read it; read it first, or choose another name");
    bench.sandbox.write(file, b"somebody's work", false).await.unwrap();
    bench.check("write_file", write("mine"), &unread).await;
    bench.check("str_replace", replace("work", "play"), &unread).await;
    bench.check("read_file", json!({"path": file}), "somebody's work").await;
    bench.check("str_replace", replace("work", "play"), "OK").await;
    bench.check("write_file", write("mine"), "OK").await;
    bench.sandbox.write(file, b"theirs, mine", false).await.unwrap();
    let changed = format!("Error: {file} has changed since you read it; read it again first");
    bench.check("write_file", write("mine"), &changed).await;
    bench.check("str_replace", replace("mine", "ours"), &changed).await;
    bench.check("write_file", json!({"path": file, "content": "!", "append": true}), &changed).await;
    bench.check("read_file", json!({"path": file}), "theirs, mine").await;
    bench.check("write_file", json!({"path": file, "content": "!", "append": true}), "OK").await;
    bench.check("str_replace", replace("mine", "ours"), "OK").await;
}

#[tokio::test]
async fn calls_of_one_reply_may_all_change_a_file_that_was_read_before_it() {
    let bench = bench().await;
    let file = "/mnt/user-data/workspace/several.txt";
    bench.check("write_file", json!({"path": file, "content": "one two"}), "OK").await;
    // Both know what stood there before the reply.
    let cx = cx(bench.sandbox.clone(), bench.state.lock().unwrap().marks.clone());
    let replace = async |old: &str, new: &str| {
        let tool = tool("str_replace", ToolLimits::default()).unwrap();
        tool.call(json!({"path": file, "old_str": old, "new_str": new}), &cx).await.map(|output| output.text)
    };
    assert_eq!(replace("one", "1").await, Ok("OK".to_owned()));
    assert_eq!(replace("two", "2").await, Ok("OK".to_owned()));
    bench.sandbox.write(file, b"1 2 and more", false).await.unwrap();
    assert!(replace("2", "3").await.is_err(), "somebody else changed it");
}

#[tokio::test]
async fn a_file_is_the_same_however_its_path_is_spelt() {
    let spelt = [
        "/mnt/user-data/workspace/a.txt",
        "/mnt/user-data/workspace//a.txt",
        "//mnt/./user-data/workspace/./a.txt",
    ];
    for (read, written) in spelt.iter().flat_map(|read| spelt.map(|written| (*read, written))) {
        let bench = bench().await;
        bench.sandbox.write(spelt[0], b"before", false).await.unwrap();
        bench.check("read_file", json!({"path": read}), "before").await;
        bench.check("write_file", json!({"path": written, "content": "mine"}), "OK").await;
        bench.sandbox.write(spelt[0], b"theirs", false).await.unwrap();
        let changed = format!("Error: {read} has changed since you read it; read it again first");
        bench.check("write_file", json!({"path": read, "content": "again"}), &changed).await;
    }
}

#[tokio::test]
async fn changes_of_one_file_wait_for_each_other_however_its_path_is_spelt() {
    let cx = cx(bench().await.sandbox, Arc::default());
    let held = edit::alone(&cx, "/mnt/user-data/workspace//a.txt").await;
    let other = edit::alone(&cx, "/mnt/user-data/workspace/./a.txt");
    assert!(at_once(other).is_none());
    drop(held);
}

/// What a future has to say at once.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn files_are_found_by_name_and_by_what_is_in_them() {
    let bench = bench().await;
    let root = "/mnt/user-data/workspace";
    for (path, bytes) in [
        ("a.py", &b"import os\nprint('Hello')\n"[..]),
        ("lib/b.py", b"# hello there\n"),
        ("lib/c.txt", b"HELLO\n"),
        ("lib/d.bin", b"hello\0\xff"),
    ] {
        bench.sandbox.write(&format!("{root}/{path}"), bytes, false).await.unwrap();
    }
    let find = |pattern: &str| json!({"pattern": pattern, "path": root});
    bench.check("glob", find("*.py"), &format!("1. {root}/a.py\n2. {root}/lib/b.py")).await;
    bench
        .check(
            "glob",
            find("lib/*"),
            &format!("1. {root}/lib/b.py\n2. {root}/lib/c.txt\n3. {root}/lib/d.bin"),
        )
        .await;
    bench.check("glob", find("*.rs"), &format!("No files match *.rs below {root}.")).await;
    let few = json!({"pattern": "**/*", "path": root, "include_dirs": true, "max_results": 1});
    bench.check("glob", few, &format!("1. {root}/a.py\n[… more files match; narrow the pattern …]")).await;
    let odd = format!("[not searched, not text: it is binary: {root}/lib/d.bin]");
    let all = format!(
        "{root}/a.py:2: print('Hello')\n{root}/lib/b.py:1: # hello there\n{root}/lib/c.txt:1: HELLO\n{odd}"
    );
    bench.check("grep", find("hel+o"), &all).await;
    let exact = json!({"pattern": "Hello", "path": root, "glob": "*.py", "case_sensitive": true});
    bench.check("grep", exact, &format!("{root}/a.py:2: print('Hello')")).await;
    let literal = json!({"pattern": "('", "path": format!("{root}/a.py"), "literal": true});
    bench.check("grep", literal, &format!("{root}/a.py:2: print('Hello')")).await;
    let one = json!({"pattern": "hello", "path": root, "glob": "*.{py,txt}", "max_results": 1});
    bench
        .check(
            "grep",
            one,
            &format!("{root}/a.py:2: print('Hello')\n[… more lines match; narrow the pattern …]"),
        )
        .await;
    for (name, pattern) in [("grep", "("), ("glob", "[")] {
        let Err(ToolError(text)) = bench.output(name, find(pattern)).await else {
            panic!("{name} takes {pattern}")
        };
        assert!(text.starts_with("invalid pattern: "), "{text}");
    }
    bench
        .check(
            "grep",
            json!({"pattern": "x", "path": "/mnt/user-data/no"}),
            "Error: /mnt/user-data/no does not exist",
        )
        .await;
}

#[tokio::test]
async fn what_a_tool_means_besides_its_text_is_said_in_types() {
    let bench = bench().await;
    let args = json!({"question": " Which? ", "clarification_type": "approach_choice", "context": "Two ways.",
        "options": ["fast", " ", "safe"]});
    let output = bench.output("ask_clarification", args).await.unwrap();
    let question = Question {
        text: "Two ways.\n\n🔀 Which?".into(),
        kind: QuestionKind::ApproachChoice,
        options: vec!["fast".into(), "safe".into()],
        fields: Vec::new(),
    };
    assert_eq!(output.question, Some(question));
    let todos = json!({"todos": [{"content": "look", "status": "in_progress"}]});
    let output = bench.output("write_todos", todos).await.unwrap();
    let todo = Todo { content: "look".into(), status: TodoStatus::InProgress };
    assert_eq!(output.updates, [Update::Todos(vec![todo])]);
    let path = "/mnt/user-data/uploads/a.png";
    bench.sandbox.write(path, b"\x89PNG\r\n\x1a\n", false).await.unwrap();
    let output = bench.output("view_image", json!({"image_path": path})).await.unwrap();
    assert_eq!(output.images, [Image { path: path.into(), mime: "image/png".into() }]);
    bench.sandbox.write(path, b"<svg/>", false).await.unwrap();
    bench
        .check(
            "view_image",
            json!({"image_path": path}),
            &format!("Error: {path} is not a PNG, JPEG, WebP or GIF image"),
        )
        .await;
    let empty = json!({"question": " ", "clarification_type": "suggestion"});
    bench.check("ask_clarification", empty, "Error: the question is empty").await;
}

/// A shell that kills what it is given.
struct Deadly(Killed);

impl Sandbox for Deadly {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        let done = Exec {
            stdout: "so far\n".into(),
            stderr: String::new(),
            code: None,
            killed: Some(self.0),
            cut: false,
        };
        Box::pin(async { Ok(done) })
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
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_command_that_was_killed_says_why_and_what_it_had_said() {
    let say = async |why| {
        let cx = cx(Arc::new(Deadly(why)), Arc::default());
        let bash = tool("bash", ToolLimits { bash_timeout: Duration::from_secs(7), ..ToolLimits::default() })
            .unwrap();
        bash.call(json!({"command": "x"}), &cx).await.unwrap().text
    };
    assert_eq!(say(Killed::Late).await, "so far\n\nKilled: it ran longer than 7 s");
    assert_eq!(say(Killed::Memory(5 << 20)).await, "so far\n\nKilled: it used more than 5 MiB of memory");
    let disk = "so far\n\nKilled: the files under /mnt/user-data take more than 3 MiB; remove files that are not needed";
    assert_eq!(say(Killed::Disk(3 << 20)).await, disk);
    assert_eq!(say(Killed::HostDisk).await, "so far\n\nKilled: the disk of this machine is almost full");
}

#[test]
fn the_shell_says_what_a_command_finds() {
    let about = |shell| {
        tool("bash", ToolLimits { shell, ..ToolLimits::default() }).unwrap().spec().description.clone()
    };
    assert!(about(Shell::Host).ends_with("because the shell has no /mnt/user-data."));
    for (network, words) in [
        (Network::None, "There is no network access."),
        (Network::Proxy, "through the proxy in the environment variables."),
        (Network::Full, "There is network access."),
    ] {
        let about = about(Shell::Confined(network));
        assert!(about.contains("/mnt/user-data/workspace") && about.ends_with(words), "{about}");
    }
}
