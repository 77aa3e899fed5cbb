use super::*;
use pudu_base::{Sandbox, ToolCx, ToolOutput, Update};
use pudu_sandbox::Local;
use serde_json::{Value, json};

struct Bench {
    _folder: tempfile::TempDir,
    cx: ToolCx,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let sandbox: Arc<dyn Sandbox> = Arc::new(Local::new(folder.path().join("t"), true));
    let cx = ToolCx { thread: "t".into(), run: "r".into(), call: "c".into(), sandbox };
    Bench { _folder: folder, cx }
}

impl Bench {
    async fn output(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let limits = Limits { bash: 60, read_file: 40, ls: 200, bash_timeout: Duration::from_secs(20) };
        tool(name, limits).unwrap().call(args, &self.cx).await
    }

    /// Calls a tool and checks what the model reads.
    async fn check(&self, name: &str, args: Value, expect: &str) {
        let text = match self.output(name, args.clone()).await {
            Ok(output) => output.text,
            Err(ToolError(text)) => format!("Error: {text}"),
        };
        assert_eq!(text, expect, "{name} {args}");
    }
}

#[test]
fn every_name_is_a_tool_with_that_name_and_a_schema() {
    for name in NAMES {
        let tool = tool(name, Limits::default()).unwrap();
        assert_eq!(tool.spec().name, name);
        assert_eq!(tool.spec().parameters["type"], "object", "{name}");
    }
    assert!(tool("fly", Limits::default()).is_none());
}

#[tokio::test]
async fn files_are_written_read_changed_and_listed() {
    let bench = bench();
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
async fn what_cannot_be_done_is_said_so_that_the_call_can_be_mended() {
    let bench = bench();
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
            &format!("Error: {file} has lines 1 to 1: none of them was asked for"),
        ),
        ("str_replace", replace(""), "Error: old_str is empty: name the text to replace"),
        ("str_replace", replace("b"), &format!("Error: old_str does not occur in {file}")),
        (
            "str_replace",
            replace("a"),
            &format!("Error: old_str occurs 2 times in {file}: name more of its surroundings"),
        ),
        (
            "present_files",
            json!({"filepaths": [file]}),
            &format!("Error: {file} is not below /mnt/user-data/outputs/: put a copy there first"),
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
        ("ls", json!({}), "Error: the arguments do not fit ls: missing field `path`"),
    ] {
        bench.check(name, args, expect).await;
    }
}

#[tokio::test]
async fn a_file_that_is_presented_becomes_an_artifact_of_its_run() {
    let bench = bench();
    let file = "/mnt/user-data/outputs/a.txt";
    bench.check("write_file", json!({"path": file, "content": "hi"}), "OK").await;
    let output = bench.output("present_files", json!({"filepaths": [file]})).await.unwrap();
    assert_eq!(output.updates, [Update::Artifacts { run: "r".into(), paths: vec![file.into()] }]);
}

#[tokio::test]
async fn a_command_shows_output_errors_and_exit_code_and_its_middle_is_cut() {
    let bench = bench();
    bench.check("bash", json!({"command": "echo hi"}), "hi").await;
    bench.check("bash", json!({"command": "true"}), "(no output)").await;
    bench
        .check("bash", json!({"command": "echo a; echo b >&2; exit 2"}), "a\n\nStd Error:\nb\n\nExit Code: 2")
        .await;
    let flood = format!("{}\n[… 40 characters left out …]\n{}", "x".repeat(30), "x".repeat(30));
    bench.check("bash", json!({"command": "printf 'x%.0s' {1..100}"}), &flood).await;
}
