use super::{
    ChangeRecords, ChangeStatus, MAX_COMPARED_BYTES, MAX_LISTED_FILES, NoDiff, WorkspaceChanges,
    compare::compare,
    scan::{FileEntry, FileSnapshot, is_sensitive},
};
use crate::Folders;
use pudu_base::ThreadFolder;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A thread with its folders.
struct Scene {
    _home: tempfile::TempDir,
    own: PathBuf,
    records: ChangeRecords,
}

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (folders, thread) = (Folders::new(home.path().to_owned(), None), ThreadFolder::from("t"));
        let own = folders.thread(&thread).join("user-data");
        for folder in ["workspace", "outputs", "uploads"] {
            fs::create_dir_all(own.join(folder)).unwrap();
        }
        Self { records: folders.changes(&thread), own, _home: home }
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.own.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    async fn begin(&self, run: &str) {
        self.records.begin(&run.into(), ".tool-results").await.unwrap();
    }

    async fn finish(&self, run: &str) -> WorkspaceChanges {
        self.records.finish(&run.into(), ".tool-results").await.unwrap().unwrap()
    }
}

/// Returns the path, the status and the reason for a missing diff of each change.
fn told(changes: &WorkspaceChanges) -> Vec<(String, ChangeStatus, Option<NoDiff>)> {
    let told = changes.files.iter().map(|file| {
        let path = file.path.strip_prefix("/mnt/user-data").unwrap().display().to_string();
        (path, file.status, file.diff_unavailable_reason)
    });
    told.collect()
}

#[tokio::test]
async fn the_files_before_are_those_of_the_first_look_and_survive_the_recorder() {
    let scene = Scene::new();
    scene.write("workspace/a", "1\n");
    scene.write("uploads/a", "1\n");
    scene.begin("r").await;
    scene.write("workspace/a", "2\n");
    scene.write("uploads/a", "2\n");
    // A run that continues after a restart scans again, and so does its end.
    scene.begin("r").await;
    for _ in 0..2 {
        let changes = scene.finish("r").await;
        assert_eq!(told(&changes), [("workspace/a".to_owned(), ChangeStatus::Modified, None)]);
        assert_eq!(scene.records.read_changes(&"r".into()).await.unwrap(), Some(changes));
    }
    let nothing = scene.records.finish(&"other".into(), "").await.unwrap();
    assert_eq!((nothing, scene.records.read_changes(&"other".into()).await.unwrap()), (None, None));
    scene.begin("next").await;
    assert_eq!(scene.records.finish(&"r".into(), "").await.unwrap(), None, "only one run works at a time");
    assert_eq!(scene.finish("next").await, WorkspaceChanges::default());
    scene.records.remove(&"r".into()).await.unwrap();
    assert_eq!(scene.records.read_changes(&"r".into()).await.unwrap(), None);
}

#[tokio::test]
async fn each_kind_of_file_is_told_as_far_as_it_may_be() {
    let scene = Scene::new();
    scene.write("workspace/turns", "text\n");
    scene.write("workspace/loses", "text\n");
    scene.begin("r").await;
    fs::remove_file(scene.own.join("workspace/turns")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", scene.own.join("workspace/turns")).unwrap();
    fs::remove_file(scene.own.join("workspace/loses")).unwrap();
    scene.write("workspace/empty", "");
    scene.write("workspace/giant", vec![b'a'; usize::try_from(MAX_COMPARED_BYTES).unwrap() + 1]);
    scene.write("workspace/largest", vec![b'a'; usize::try_from(MAX_COMPARED_BYTES).unwrap()]);
    scene.write("workspace/latin", b"\xe9");
    scene.write("outputs/api_TOKEN.txt", "word\n");
    scene.write("outputs/.tool-results/log", "long\n");
    scene.write("workspace/.git/HEAD", "ref\n");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        scene.own.join("workspace/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let changes = scene.finish("r").await;
    let expected = [
        ("outputs/api_TOKEN.txt", ChangeStatus::Created, Some(NoDiff::Sensitive)),
        ("workspace/empty", ChangeStatus::Created, None),
        ("workspace/giant", ChangeStatus::Created, Some(NoDiff::Large)),
        ("workspace/largest", ChangeStatus::Created, None),
        ("workspace/latin", ChangeStatus::Created, Some(NoDiff::Binary)),
        ("workspace/loses", ChangeStatus::Deleted, None),
        ("workspace/turns", ChangeStatus::SymlinkCreated, Some(NoDiff::Symlink)),
    ];
    assert_eq!(told(&changes), expected.map(|(path, status, reason)| (path.to_owned(), status, reason)));
    let turned = changes.files.last().unwrap();
    let targets = (turned.symlink_target_before.as_deref(), turned.symlink_target_after.as_deref());
    assert_eq!(targets, (None, Some("/etc/passwd")));
    let numbers = changes.summary;
    assert_eq!((numbers.created, numbers.deleted, numbers.symlink_created), (5, 1, 1));
    assert_eq!((numbers.additions, numbers.deletions, numbers.truncated), (1, 1, false));
}

/// A symlink in place of one of the thread's folders does not reveal its target.
#[tokio::test]
async fn no_link_leads_out_of_the_folders() {
    let scene = Scene::new();
    scene.begin("r").await;
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("theirs"), "theirs").unwrap();
    fs::remove_dir(scene.own.join("outputs")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), scene.own.join("outputs")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), scene.own.join("workspace/there")).unwrap();
    let changes = scene.finish("r").await;
    let link = ("workspace/there".to_owned(), ChangeStatus::SymlinkCreated, Some(NoDiff::Symlink));
    assert_eq!(told(&changes), [link]);
}

#[test]
fn names_that_tell_of_secrets_are_known() {
    for (path, expected) in [
        ("workspace/.env", true),
        ("workspace/.env.production", true),
        ("workspace/deep/My-Secrets/plain.txt", true),
        ("outputs/access_token.json", true),
        ("outputs/server.KEY", true),
        ("workspace/kubeconfig", true),
        ("workspace/prod-kubeconfig.yaml", true),
        ("workspace/home/.kube/config", true),
        ("workspace/.docker/config.json", true),
        ("workspace/.aws/config", true),
        ("workspace/.ssh/known_hosts", true),
        ("workspace/id_ed25519", true),
        ("workspace/id_ecdsa.pub", true),
        ("workspace/.netrc", true),
        ("workspace/.pgpass", true),
        ("workspace/.npmrc", true),
        ("workspace/.pypirc", true),
        ("workspace/.git-credentials", true),
        ("workspace/credentials.json", true),
        ("workspace/tls/ca.pem", true),
        ("workspace/login.p12", true),
        ("workspace/terraform.tfstate", true),
        ("workspace/config.json", false),
        ("workspace/docker/config.json", false),
        ("workspace/Dockerfile", false),
        ("workspace/monkey.txt", false),
        ("outputs/keyboard.md", false),
        ("workspace/environment.yml", false),
    ] {
        assert_eq!(is_sensitive(&Path::new("/mnt/user-data").join(path)), expected, "{path}");
    }
}

fn snapshot(files: &[(&str, &str)], end: Option<&str>) -> FileSnapshot {
    let entry = |(path, text): &(&str, &str)| {
        let path = PathBuf::from(format!("/mnt/user-data/workspace/{path}"));
        let (sha256, text) = (Some(pudu_base::digest(text)), Some((*text).to_owned()));
        (path, FileEntry { sha256, text, ..FileEntry::default() })
    };
    let end = end.map(|end| PathBuf::from(format!("/mnt/user-data/workspace/{end}")));
    FileSnapshot { files: files.iter().map(entry).collect(), end, ..FileSnapshot::default() }
}

#[test]
fn what_either_look_did_not_reach_counts_as_unchanged() {
    let before = snapshot(&[("a", "1"), ("m", "1"), ("z", "1")], None);
    let after = snapshot(&[("a", "1"), ("b", "1"), ("m", "2")], Some("m"));
    for (one, other, created, deleted) in [(&before, &after, 1, 0), (&after, &before, 0, 1)] {
        let changes = compare(one, other);
        let numbers = changes.summary;
        assert_eq!((numbers.created, numbers.modified, numbers.deleted), (created, 1, deleted));
        assert!(numbers.truncated);
    }
    assert_eq!(compare(&before, &before), WorkspaceChanges::default());
}

#[test]
fn hostile_texts_take_no_longer_and_lists_no_more_than_they_may() {
    // Different lines in another order: the worst case for the shortest diff.
    let lines = |step: usize| (0..60_000).map(|at| format!("{}\n", at * step % 60_007)).collect::<String>();
    let started = std::time::Instant::now();
    let changes = compare(&snapshot(&[("a", &lines(7))], None), &snapshot(&[("a", &lines(11))], None));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let numbers = changes.summary;
    assert_eq!(numbers.additions, numbers.deletions);
    assert!(numbers.truncated == changes.files[0].diff_truncated);

    let names: Vec<String> = (0..MAX_LISTED_FILES + 1).map(|at| format!("{at:04}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    let changes = compare(&FileSnapshot::default(), &snapshot(&files, None));
    assert_eq!((changes.files.len(), changes.summary.created), (MAX_LISTED_FILES, 201));
    assert!(changes.summary.truncated && changes.summary.additions == 201);
}

#[tokio::test]
async fn more_files_than_are_looked_at_are_told_as_such() {
    let scene = Scene::new();
    for at in 0..super::MAX_SCANNED_FILES + 5 {
        scene.write(&format!("workspace/{at:05}"), "");
    }
    scene.begin("r").await;
    scene.write("workspace/00000", "new\n");
    scene.write("workspace/02004", "not seen\n");
    let changes = scene.finish("r").await;
    assert_eq!(told(&changes), [("workspace/00000".to_owned(), ChangeStatus::Modified, None)]);
    assert!(changes.summary.truncated);
}

#[test]
fn what_a_closed_folder_holds_is_neither_gone_nor_new() {
    let snapshot = |files: &[&str], closed: &[&str]| FileSnapshot {
        files: files.iter().map(|path| (PathBuf::from(path), FileEntry::default())).collect(),
        closed: closed.iter().map(PathBuf::from).collect(),
        ..FileSnapshot::default()
    };
    let open = snapshot(&["/mnt/user-data/workspace/d/a", "/mnt/user-data/workspace/d2"], &[]);
    let closed = snapshot(&["/mnt/user-data/workspace/d2"], &["/mnt/user-data/workspace/d"]);
    for (before, after) in [(&open, &closed), (&closed, &open)] {
        let changes = compare(before, after);
        assert!(changes.files.is_empty() && changes.summary.truncated, "{changes:?}");
    }
}
