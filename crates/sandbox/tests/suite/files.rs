//! File operations of the daemon by the agent's paths.

use crate::house::{confined, with_host_shell};
use pudu_base::SandboxError;
use pudu_sandbox::Options;
use std::{io::Read, time::Duration};

#[tokio::test]
async fn what_is_written_is_read_and_listed() {
    let place = with_host_shell().await;
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
    let place = with_host_shell().await;
    let outside = place.home.path().join("secret");
    place.sandbox.write("/mnt/user-data/workspace/x", b"", false).await.unwrap();
    let thread = place.on_host("workspace");
    std::os::unix::fs::symlink(&outside, thread.join("link")).unwrap();
    std::os::unix::fs::symlink(place.home.path(), thread.join("up")).unwrap();
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
        assert!(place.kept(path).await.is_err(), "{path}");
    }
    let write = place.sandbox.write("/mnt/user-data/workspace/up/secret", b"gone", false).await;
    assert!(matches!(write, Err(SandboxError::Outside { .. })), "{write:?}");
    // A plain write replaces the link with a file and leaves its target unchanged.
    place.sandbox.write("/mnt/user-data/workspace/link", b"mine", false).await.unwrap();
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "of the host");
}

#[tokio::test]
async fn what_is_missing_too_large_or_a_folder_is_said_so() {
    let place = with_host_shell().await;
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
async fn a_file_from_people_gets_a_safe_name_that_nothing_has_yet() {
    let place = with_host_shell().await;
    let check = |name: &'static str, expect: String| {
        let place = &place;
        async move {
            let from = place.home.path().join("incoming");
            std::fs::write(&from, name).unwrap();
            let file = place.files.adopt(&from, name).await.unwrap();
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

/// Files that block until another process writes to them.
#[tokio::test]
async fn nothing_that_a_command_leaves_behind_makes_the_daemon_wait() {
    let place = with_host_shell().await;
    assert_eq!(place.sh("mkfifo ../outputs/pipe").await.code, Some(0));
    let path = "/mnt/user-data/outputs/pipe";
    let work = async {
        assert!(matches!(place.read(path).await, Err(SandboxError::Refused(_))));
        assert!(place.files.open(path).await.is_err());
        assert!(place.kept(path).await.is_err());
        assert!(place.sandbox.write(path, b"x", true).await.is_err());
        place.sandbox.write(path, b"a file now", false).await.unwrap();
        assert_eq!(place.read(path).await.unwrap(), "a file now");
    };
    tokio::time::timeout(Duration::from_secs(20), work).await.unwrap();
}

#[tokio::test]
async fn a_file_that_was_opened_or_kept_stays_the_file_that_it_was() {
    let place = with_host_shell().await;
    place.sh("echo -n mine > ../outputs/a").await;
    let kept = place.kept("/mnt/user-data/outputs/a").await.unwrap();
    let (mut file, size) = place.files.open("/mnt/user-data/outputs/a").await.unwrap();
    place.sh("rm ../outputs/a; ln -s /etc/hostname ../outputs/a").await;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), size), ("mine", 4));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine");
    assert_eq!(place.read("/mnt/user-data/outputs/a").await.ok(), None);
    assert!(place.files.open("/mnt/user-data/outputs/a").await.is_err());
}

#[tokio::test]
async fn what_was_kept_is_not_changed_by_later_commands() {
    let place = with_host_shell().await;
    place.sh("echo -n mine > ../outputs/a; echo -n first > ../outputs/b").await;
    let kept = place.kept("/mnt/user-data/outputs/a").await.unwrap();
    place.sh("echo -n changed > ../outputs/a; echo -n more >> ../outputs/a; chmod 777 ../outputs/a").await;
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&kept).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(place.kept("/mnt/user-data/outputs/b").await.map(std::fs::read).unwrap().unwrap(), b"first");
}

#[tokio::test]
async fn nothing_is_kept_that_a_symlink_leads_to_or_that_is_too_large() {
    let place = with_host_shell().await;
    place
        .sh("echo secret > x; ln -s ../workspace/x ../outputs/link; ln -s ../workspace ../outputs/folder")
        .await;
    place.sh("truncate -s 1T ../outputs/huge; mkdir ../outputs/empty").await;
    let before = std::fs::read_dir(place.home.path()).unwrap().count();
    for (name, word) in
        [("link", "symlink"), ("folder/x", "symlink"), ("huge", "more than"), ("empty", "not a file")]
    {
        let path = format!("/mnt/user-data/outputs/{name}");
        let said = place.kept(&path).await.unwrap_err().to_string();
        assert!(said.contains(word), "{name}: {said}");
        let measured = place.sandbox.measure(&path).await;
        assert_eq!(measured.is_ok(), name == "huge", "{name}: {measured:?}");
    }
    assert_eq!(std::fs::read_dir(place.home.path()).unwrap().count(), before, "nothing is left of it");
}

#[tokio::test]
async fn a_script_that_is_rewritten_can_still_be_started() {
    let Some(place) = confined(Options::default()).await else { return };
    let path = "/mnt/user-data/workspace/run";
    place.sandbox.write(path, b"#!/bin/sh\necho one\n", false).await.unwrap();
    assert_eq!(place.says("chmod +x run; ./run").await, "one");
    place.sandbox.write(path, b"#!/bin/sh\necho two\n", false).await.unwrap();
    assert_eq!(place.says("./run; ls -A").await, "two\nrun");
}

/// Commands can use files of the daemon and vice versa, whatever user the daemon has.
#[tokio::test]
async fn daemon_and_commands_can_use_each_others_files() {
    let Some(place) = confined(Options::default()).await else { return };
    let from = place.home.path().join("incoming");
    std::fs::write(&from, "sent").unwrap();
    place.files.adopt(&from, "a.txt").await.unwrap();
    place.sandbox.write("/mnt/user-data/workspace/x/y/z", b"z", false).await.unwrap();
    place.sandbox.write("/mnt/user-data/workspace/log", b"1", true).await.unwrap();
    place.says("echo 2 >> ../uploads/a.txt; echo 2 >> x/y/z; touch x/new x/y/new; echo 2 >> log").await;
    place.says("umask 077; mkdir own; echo own > own/file").await;
    assert_eq!(place.read("/mnt/user-data/workspace/own/file").await.unwrap(), "own\n");
    // A folder that was created when commands ran as the daemon.
    let old = place.home.path().join("users/default/threads/old/user-data/workspace/deep");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("file"), "old").unwrap();
    std::os::unix::fs::symlink(place.home.path().join("secret"), old.join("link")).unwrap();
    let secret = std::fs::metadata(place.home.path().join("secret")).unwrap();
    let thread = pudu_base::SandboxProvider::acquire(&place.local, &"old".into()).await.unwrap();
    let script = "echo new >> deep/file && touch deep/other && cat deep/file".to_owned();
    let done = thread.exec(&pudu_base::ShellCommand::new(script, Duration::from_secs(20))).await.unwrap();
    assert_eq!(done.stdout, "oldnew\n", "{done:?}");
    let after = std::fs::metadata(place.home.path().join("secret")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&secret), std::os::unix::fs::MetadataExt::uid(&after));
}
