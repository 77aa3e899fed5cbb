//! The command line as used by shells and impatient users: output, streams, and exit codes.

use crate::house::{House, SOON};
use serde_json::json;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

fn pudu(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pudu"));
    command.args(args).current_dir(dir).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

/// Returns the exit code, standard output, and standard error.
fn said(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = pudu(dir, args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is_one() {
    let dir = tempfile::tempdir().unwrap();
    for args in
        [&["man"] as &[&str], &["config", "check"], &["completions", "bash"], &["skill", "list"], &["audit"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = pudu(dir.path(), args).stdout(writer).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{args:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = pudu(dir.path(), args).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        let expect = "error: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), err.as_str()), (Some(1), expect), "{args:?}");
    }
    fs::write(dir.path().join("config.yaml"), "gateway: {port: no}\n").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let checked = pudu(dir.path(), &["config", "check"]).stdout(writer).status().unwrap();
    assert_eq!(checked.code(), Some(1), "whoever reads a line of it still learns that it is wrong");
}

#[test]
fn what_was_typed_wrong_is_told_with_what_would_be_right() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("offers")).unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("offers/SKILL.md"), "---\nname: offers\ndescription: x\n---\n").unwrap();
    fs::write(dir.path().join("latin"), b"Stra\xdfe\n").unwrap();
    let address = "is not an address: write http://HOST:PORT";
    for (args, expect) in [
        (&["chat", "--url", "foo", "hi"] as &[&str], address),
        (&["health", "--url", "foo"], address),
        (&["health", "--url", "http://127.0.0.1:1/health"], "no pudu answers at http://127.0.0.1:1/health"),
        (&["chat", "-f", "latin", "hi"], "latin is not valid UTF-8 text (line 1); convert it"),
        (&["skill", "install", "offers"], "offers is a skill's folder, but an archive is required: pack it"),
        (&["skill", "install", "empty"], "empty is a folder, but an archive is required: name a .skill"),
    ] {
        let (code, out, err) = said(dir.path(), args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains(expect) && err.lines().count() == 1,
            "{args:?}: {err}"
        );
    }
    let (code, out, _) = said(dir.path(), &["audit", "--thread", "nosuch"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("There are no entries for the thread nosuch;"), "{out}");
}

#[test]
fn a_home_or_configuration_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".pudu");
    fs::write(&home, "").unwrap();
    let lock = format!(
        "cannot create the folder {} (give pudu's user write access, or set PUDU_HOME",
        home.display()
    );
    let store = "cannot read the database .pudu/data/pudu.db: Not a directory";
    for (args, expect) in [
        (&["usage"] as &[&str], store),
        (&["users"], store),
        (&["token", "add", "ci"], &lock),
        (&["--bind", ":0", "chat", "hi"], &lock),
        (&["--bind", ":0"], &lock),
    ] {
        let (code, out, err) = said(dir.path(), args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(err.starts_with(&format!("error: {expect}")), "{args:?}: {err}");
    }
    fs::remove_file(&home).unwrap();
    std::os::unix::fs::symlink("gone.yaml", dir.path().join("config.yaml")).unwrap();
    let (code, _, err) = said(dir.path(), &["usage"]);
    let expect = "error: config.yaml is a symbolic link to gone.yaml, which does not exist\n";
    assert!(code == Some(1) && err.starts_with(expect), "{err}");
}

#[test]
fn an_agent_is_made_of_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("soul"), "You write poems.").unwrap();
    let config = "models: [{name: big, model: m, api_key: k}]\n";
    fs::write(dir.path().join("config.yaml"), config).unwrap();
    let new = |more: &[&'static str]| {
        said(dir.path(), &[&["agent", "new", "poet", "--soul", "soul"], more].concat())
    };
    for (more, expect) in [
        (["--model", "bgi"], "there is no model `bgi`; did you mean `big`?"),
        (["--model", "nothing-like-it"], "there is no model `nothing-like-it`; available: big"),
        (["--skills", "code-reviw"], "there is no skill `code-reviw`; did you mean `code-review`?"),
        (["--tool-groups", "web,bahs"], "there is no tool group `bahs`; did you mean `bash`?"),
    ] {
        assert_eq!(new(&more), (Some(1), String::new(), format!("error: {expect}\n")));
    }
    let (code, out, _) = said(dir.path(), &["agent", "list", "--json"]);
    assert_eq!((code, out.contains("poet")), (Some(0), false), "nothing was made: {out}");
    let good = new(&["--model", "big", "--skills", "code-review", "--tool-groups", "web"]);
    assert_eq!(good.0, Some(0), "{good:?}");
    let (_, out, _) = said(dir.path(), &["agent", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out).unwrap();
    let expect = json!({"agents": [{
        "name": "poet", "description": "", "model": "big", "tool_groups": ["web"], "skills": ["code-review"],
        "legacy": false, "notes": [],
    }], "broken": [], "own": []});
    assert_eq!(list, expect);
}

/// A server that never responds, and one that cannot be started.
fn silent_and_broken() -> String {
    let silent = json!({"command": "sleep", "args": ["600"], "session_init_timeout": 600});
    json!({"mcpServers": {"silent": silent, "ghost": {"command": "/no/such/program"}}}).to_string()
}

#[test]
fn the_doctor_tells_each_finding_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("extensions_config.json"), silent_and_broken()).unwrap();
    let mut child =
        pudu(dir.path(), &["doctor"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen: Vec<String> = lines.take_while(|line| !line.starts_with("  ok    found: ")).collect();
    assert_eq!(child.try_wait().unwrap(), None, "the silent server is still waited for");
    child.kill().unwrap();
    child.wait().unwrap();
    let groups: Vec<&str> = seen.iter().filter(|line| !line.starts_with(' ')).map(String::as_str).collect();
    assert_eq!(groups, ["pudu", "sandbox", "skills"], "{seen:?}");
}

#[tokio::test]
async fn a_silent_server_holds_back_no_line_of_another() {
    let mut house = House::build("").await;
    fs::write(house.path("extensions_config.json"), silent_and_broken()).unwrap();
    house.start();
    tokio::time::timeout(SOON, house.logs("ghost")).await.unwrap();
    assert!(!house.log().contains("connected MCP servers"), "{}", house.log());
}
