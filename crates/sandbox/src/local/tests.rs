use super::*;
use std::time::Duration;

struct Place {
    folder: tempfile::TempDir,
    sandbox: Local,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "of the host").unwrap();
    let sandbox = Local::new(folder.path().join("thread"), true);
    Place { folder, sandbox }
}

async fn sh(place: &Place, script: &str) -> Exec {
    let command = Command { script: script.into(), timeout: Duration::from_secs(20) };
    place.sandbox.exec(&command).await.unwrap()
}

#[tokio::test]
async fn what_is_written_is_read_and_listed() {
    let place = place();
    let path = "/mnt/user-data/workspace/notes/a.txt";
    place.sandbox.write(path, b"one", false).await.unwrap();
    place.sandbox.write(path, b" two", true).await.unwrap();
    assert_eq!(place.sandbox.read(path, 100).await.unwrap(), b"one two");
    let listed = place.sandbox.list("/mnt/user-data", 3, 100).await.unwrap();
    let shown: Vec<_> = listed.iter().map(|entry| (entry.path.as_str(), entry.folder, entry.size)).collect();
    assert_eq!(
        shown,
        [
            ("/mnt/user-data/outputs", true, 0),
            ("/mnt/user-data/uploads", true, 0),
            ("/mnt/user-data/workspace", true, 0),
            ("/mnt/user-data/workspace/notes", true, 0),
            ("/mnt/user-data/workspace/notes/a.txt", false, 7),
        ]
    );
}

#[tokio::test]
async fn no_path_and_no_symlink_leads_out() {
    let place = place();
    let outside = place.folder.path().join("secret");
    place.sandbox.write("/mnt/user-data/workspace/x", b"", false).await.unwrap();
    let thread = place.folder.path().join("thread/workspace");
    std::os::unix::fs::symlink(&outside, thread.join("link")).unwrap();
    std::os::unix::fs::symlink(place.folder.path(), thread.join("up")).unwrap();
    std::os::unix::fs::symlink("/", thread.join("slash")).unwrap();
    for path in [
        "/etc/passwd",
        "relative",
        "",
        "/mnt/user-data/../secret",
        "/mnt/user-data/workspace/../../secret",
        "/mnt/user-datax/secret",
        "/mnt/user-data/workspace/link",
        "/mnt/user-data/workspace/up/secret",
        "/mnt/user-data/workspace/slash/etc/passwd",
        "/mnt/user-data/workspace/a\0b",
    ] {
        let read = place.sandbox.read(path, 100).await;
        assert!(matches!(read, Err(SandboxError::Outside { .. })), "{path}: {read:?}");
        assert!(place.sandbox.locate(path).await.is_err(), "{path}");
    }
    let write = place.sandbox.write("/mnt/user-data/workspace/up/secret", b"gone", false).await;
    assert!(matches!(write, Err(SandboxError::Outside { .. })), "{write:?}");
    // A plain write puts a file in the link's place and leaves what it pointed at.
    place.sandbox.write("/mnt/user-data/workspace/link", b"mine", false).await.unwrap();
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "of the host");
}

#[tokio::test]
async fn what_is_missing_too_large_or_a_folder_is_said_so() {
    let place = place();
    let file = "/mnt/user-data/workspace/big";
    place.sandbox.write(file, &[0; 50], false).await.unwrap();
    let read = |path: &'static str| place.sandbox.read(path, 49);
    assert!(matches!(read(file).await, Err(SandboxError::TooLarge { size: 50, limit: 49, .. })));
    assert!(matches!(read("/mnt/user-data/workspace/none").await, Err(SandboxError::Missing { .. })));
    assert!(matches!(
        read("/mnt/user-data/workspace").await,
        Err(SandboxError::Refused(_) | SandboxError::Io { .. })
    ));
}

#[tokio::test]
async fn the_shell_is_off_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Local::new(folder.path().join("thread"), false);
    let command = Command { script: "true".into(), timeout: Duration::from_secs(1) };
    assert!(matches!(sandbox.exec(&command).await, Err(SandboxError::Refused(_))));
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_without_the_daemons_environment() {
    let place = place();
    let done = sh(&place, "pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; echo oops >&2; exit 3").await;
    let workspace = place.folder.path().join("thread/workspace");
    assert!(done.stdout.starts_with(&format!("{}\n", workspace.display())), "{}", done.stdout);
    assert!(!done.stdout.contains("CARGO"), "{}", done.stdout);
    assert_eq!((done.stderr.as_str(), done.code), ("oops\n", Some(3)));
}

#[tokio::test]
async fn a_child_in_the_background_holds_nobody_up() {
    let place = place();
    let done = sh(&place, "sleep 300 & echo done").await;
    assert_eq!((done.stdout.as_str(), done.code), ("done\n", Some(0)));
}

#[tokio::test]
async fn the_timeout_and_a_dropped_call_kill_the_whole_group() {
    let place = place();
    let slow = |name: &str| format!("(sleep 1000; touch {name}) & echo $! > {name}.pid; wait");
    let command = Command { script: slow("late"), timeout: Duration::from_millis(300) };
    let done = place.sandbox.exec(&command).await.unwrap();
    assert_eq!((done.code, done.late), (None, true));
    let done = sh(&place, "kill -9 $$").await;
    assert_eq!((done.code, done.late), (None, false));
    let command = Command { script: slow("dropped"), timeout: Duration::from_secs(1000) };
    let dropped = tokio::time::timeout(Duration::from_millis(300), place.sandbox.exec(&command)).await;
    assert!(dropped.is_err());
    for name in ["late", "dropped"] {
        let path = format!("/mnt/user-data/workspace/{name}.pid");
        let pid = String::from_utf8(place.sandbox.read(&path, 100).await.unwrap()).unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let gone = state.is_empty() || state.contains(") Z ");
        assert!(gone, "{name}: {state}");
    }
}

#[tokio::test]
async fn a_flood_of_output_is_cut_in_the_middle() {
    let place = place();
    let done = sh(&place, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert!(done.stdout.starts_with("first\n") && done.stdout.ends_with("last\n"));
    assert!(done.stdout.len() < 600_000);
}

#[tokio::test]
async fn a_file_from_people_gets_a_safe_name_that_nothing_has_yet() {
    let place = place();
    let check = |name: &'static str, expect: String| {
        let place = &place;
        async move {
            let from = place.folder.path().join("incoming");
            std::fs::write(&from, name).unwrap();
            let file = place.sandbox.adopt(&from, name).await.unwrap();
            assert_eq!(file.path, format!("/mnt/user-data/uploads/{expect}"));
            assert_eq!(place.sandbox.read(&file.path, 1000).await.unwrap(), name.as_bytes());
            assert!(!from.exists());
        }
    };
    check("a.txt", "a.txt".into()).await;
    check("a.txt", "a_1.txt".into()).await;
    check("../../etc/a.txt", "a_2.txt".into()).await;
    check("C:\\temp\\b.txt", "b.txt".into()).await;
    check("..", "file".into()).await;
    check("", "file_1".into()).await;
    check(".bashrc", "bashrc".into()).await;
    check("a\nb\0?.md", "a_b__.md".into()).await;
    check("übersicht für März.xlsx", "übersicht für März.xlsx".into()).await;
    let long: &'static str = Box::leak(format!("{}.pdf", "ü".repeat(300)).into_boxed_str());
    check(long, format!("{}.pdf", "ü".repeat(98))).await;
}
