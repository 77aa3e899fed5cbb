//! Paths that are dangerous to write, delete or read.

/// System folders, which no command should write to.
const SYSTEM: [&str; 9] = ["etc", "usr", "bin", "sbin", "boot", "lib", "lib64", "var", "sys"];
/// Folders that contain the users' home folders.
const HOMES: [&str; 2] = ["home", "Users"];
/// Spellings of the home folder and the working folder.
const HOME_AND_CWD: [&str; 5] = ["~", "$HOME", "${HOME}", "$PWD", "${PWD}"];
/// Maximum number of paths that a word with brace lists expands to. Further lists are not expanded.
const MAX_EXPANDED_PATHS: usize = 64;

/// Returns whether a path is in a system folder, or is an entire folder such as `/`, `/opt`, a mount, a home, a
/// thread's folder, the working folder or one of its parents.
pub(super) fn is_broad(word: &str) -> bool {
    !word.is_empty() && paths(word).iter().any(|path| is_broad_path(path))
}

fn is_broad_path(path: &str) -> bool {
    let (absolute, parts) = parts(path);
    match parts.as_slice() {
        parts if parts.iter().all(|part| *part == "..") => true,
        ["mnt" | "root" | "opt" | "srv"] if absolute => true,
        [homes] | [homes, _] if absolute && HOMES.contains(homes) => true,
        ["mnt", "user-data"] | ["mnt", "user-data", _] if absolute => true,
        [first] if !absolute => HOME_AND_CWD.contains(first),
        _ => is_system(path),
    }
}

/// Expands the brace lists of a word.
fn paths(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![word.to_owned()];
    while let Some(path) = open.pop() {
        match list(&path) {
            Some(listed) if open.len() + done.len() + listed.len() <= MAX_EXPANDED_PATHS => {
                open.extend(listed)
            }
            _ => done.push(path),
        }
    }
    done
}

/// Expands one brace list; `None` if there is none.
fn list(path: &str) -> Option<Vec<String>> {
    let (end, _) = path.match_indices('}').find(|(end, _)| path.split_at(*end).0.contains('{'))?;
    let (head, tail) = path.split_at(end);
    let (before, inside) = head.rsplit_once('{')?;
    let after = tail.strip_prefix('}')?;
    let listed = inside.contains(',') && !before.ends_with('$');
    listed.then(|| inside.split(',').map(|item| format!("{before}{item}{after}")).collect())
}

/// Splits a path into normalized components, without trailing wildcards. Also returns whether it is absolute.
fn parts(path: &str) -> (bool, Vec<&str>) {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let all = |part: &&mut &str| part.contains('*') && part.chars().all(|c| "*.?[!^]".contains(c));
    while parts.pop_if(|part| all(&part)).is_some() {}
    (path.starts_with('/'), parts)
}

pub(super) fn is_system(path: &str) -> bool {
    let (absolute, parts) = parts(path);
    absolute
        && parts.first().is_some_and(|first| SYSTEM.contains(first))
        && !parts.starts_with(&["var", "tmp"])
        && !parts.starts_with(&["var", "folders"])
}

pub(super) fn is_start_up(path: &str) -> bool {
    [".bashrc", ".profile", ".bash_profile", ".zshrc", "authorized_keys"]
        .iter()
        .any(|name| path.ends_with(name))
}

pub(super) fn is_secret(path: &str) -> bool {
    let places = ["/etc/shadow", "/.ssh/", "/.aws/", "/.kube/config", "/.docker/config.json"];
    places.iter().any(|place| path.contains(place))
        || path.ends_with("/.ssh")
        || path.ends_with("/.aws")
        || (path.starts_with("/proc/") && path.ends_with("/environ"))
}

/// Returns whether a path is in a system folder, a disk device, or a file that is read at login.
pub(super) fn is_protected(path: &str) -> bool {
    is_system(path) || path.starts_with("/dev/sd") || path.starts_with("/dev/nvme") || is_start_up(path)
}

pub(super) fn is_connection(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}
