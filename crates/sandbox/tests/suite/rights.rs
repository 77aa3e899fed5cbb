//! Permissions of file tools on a mount if the daemon is root: those of a command.

use crate::house::{House, house, jail};
use pudu_base::SandboxError;
use pudu_sandbox::{Mount, Options};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

/// A user of the host.
const ANN: u32 = 12_345;

/// A folder of the host with files of root and of Ann: path, mode, owner; a trailing slash marks a folder.
const THINGS: [(&str, u32, u32); 10] = [
    ("secret", 0o600, 0),
    ("shown", 0o644, 0),
    ("closed/", 0o700, 0),
    ("closed/shown", 0o644, 0),
    ("shared/", 0o777, 0),
    ("shared/anns", 0o666, ANN),
    ("shared/roots", 0o644, 0),
    ("everybodys", 0o666, ANN),
    ("listed/", 0o755, ANN),
    ("listed/anns", 0o644, ANN),
];

/// Returns a house with that folder at `/mnt/host`; `None` if the tests do not run as root.
async fn with_mount(folder: &Path) -> Option<House> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only as root do file tools have rights to give up");
        return None;
    }
    let jail = jail().await?;
    for (path, mode, owner) in THINGS {
        let at = folder.join(path);
        match path.ends_with('/') {
            true => fs::create_dir(&at).unwrap(),
            false => fs::write(&at, "of the host").unwrap(),
        }
        fs::set_permissions(&at, PermissionsExt::from_mode(mode)).unwrap();
        chown(&at, Some(owner), Some(owner)).unwrap();
    }
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    let mounts = vec![Mount::configured(folder.to_owned(), "/mnt/host", false).unwrap()];
    Some(house(Some(jail), Options { mounts, ..Options::default() }).await)
}

/// Returns owner, group and mode of all files of the test.
fn owners(folder: &Path) -> Vec<String> {
    let of = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        format!("{} {}:{} {:o}", path.display(), meta.uid(), meta.gid(), meta.mode() & 0o7777)
    };
    [of(folder)].into_iter().chain(THINGS.iter().map(|(path, ..)| of(&folder.join(path)))).collect()
}

/// Returns whether an operation succeeded; a refusal has to be the kernel's.
fn went<T>(done: Result<T, SandboxError>) -> bool {
    match done {
        Ok(_) => true,
        Err(SandboxError::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn file_tools_do_on_a_mount_what_a_command_may_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let Some(house) = with_mount(folder.path()).await else { return };
    let before = owners(folder.path());
    for (path, expect) in [
        ("secret", false),
        ("shown", true),
        ("closed/shown", false),
        ("shared/anns", true),
        ("listed/anns", true),
    ] {
        let at = format!("/mnt/host/{path}");
        let command = house.sh(&format!("cat {at}")).await.code == Some(0);
        let tool = went(house.sandbox.read(&at, 100).await);
        assert_eq!((command, tool), (expect, expect), "reading {path}");
    }
    for (path, expect) in [
        ("secret", false),
        ("shown", false),
        ("closed/shown", false),
        ("closed/new", false),
        ("new", false),
        ("new/deep", false),
        ("listed/new", false),
        ("listed/anns", false),
        ("everybodys", true),
        ("shared/anns", true),
        ("shared/new", true),
        ("shared/newer/deep", true),
    ] {
        let at = format!("/mnt/host/{path}");
        for append in [true, false] {
            let command = house.sh(&format!("mkdir -p $(dirname {at}); echo x >> {at}")).await;
            let tool = went(house.sandbox.write(&at, b"y", append).await);
            assert_eq!((command.code == Some(0), tool), (expect, expect), "writing {path}, {append}");
        }
    }
    for (path, expect) in [("", true), ("closed", false), ("shared", true), ("listed", true)] {
        let at = format!("/mnt/host/{path}");
        assert_eq!(went(house.sandbox.list(&at, 1, 100).await), expect, "listing {path}");
    }
    assert_eq!(owners(folder.path()), before, "nothing of the host changes its owner");
    let made = fs::metadata(folder.path().join("shared/newer/deep")).unwrap();
    assert_eq!(made.uid(), house.local.owner().unwrap().0);
    assert_eq!(fs::read(folder.path().join("shared/anns")).unwrap(), b"y");
    assert_eq!(fs::read(folder.path().join("shared/roots")).unwrap(), b"of the host");
    assert!(fs::read_dir(folder.path().join("shared")).unwrap().count() == 4, "nothing is left over");
}

#[tokio::test]
async fn a_deep_listing_shows_what_a_command_may_see_and_goes_on_behind_what_it_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let Some(house) = with_mount(folder.path()).await else { return };
    let listed = house.sandbox.list("/mnt/host", 3, 100).await.unwrap();
    let paths: Vec<&str> = listed.iter().filter_map(|entry| entry.path.strip_prefix("/mnt/host/")).collect();
    let seen = [
        "closed",
        "everybodys",
        "listed",
        "listed/anns",
        "secret",
        "shared",
        "shared/anns",
        "shared/roots",
        "shown",
    ];
    assert_eq!(paths, seen);
}

/// Without commands, file tools have the permissions that commands would have.
#[tokio::test]
async fn without_a_shell_file_tools_have_no_more_rights() {
    use pudu_base::SandboxProvider;
    let folder = tempfile::tempdir().unwrap();
    if with_mount(folder.path()).await.is_none() {
        return;
    }
    let mounts = vec![Mount::configured(folder.path().to_owned(), "/mnt/host", false).unwrap()];
    let home = tempfile::tempdir().unwrap();
    let folders = pudu_sandbox::Folders::new(home.path().to_owned(), Some((65_533, 65_533)));
    let local = pudu_sandbox::LocalSandboxes::new(folders, None, Options { mounts, ..Options::default() });
    let sandbox = local.acquire(&"t".into()).await.unwrap();
    assert!(!went(sandbox.read("/mnt/host/secret", 100).await));
    assert!(went(sandbox.read("/mnt/host/shown", 100).await));
    assert!(went(sandbox.write("/mnt/user-data/workspace/mine", b"x", false).await));
}
