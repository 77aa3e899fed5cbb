//! Project rules beyond the compiler: dependencies between crates, lengths of files, and forbidden content of the
//! repository. Each check reports all violations at once, with their places.

mod circles;

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The crates and their allowed dependencies. Tests may use any crate, and only tests may use the simulators.
const EDGES: &[(&str, &[&str])] = &[
    ("pudu-base", &[]),
    ("pudu-net", &[]),
    ("pudu-documents", &[]),
    ("pudu-texts", &[]),
    ("pudu-kit", &[]),
    ("pudu-shell", &[]),
    ("pudu-harness", &["pudu-base", "pudu-shell"]),
    ("pudu-sandbox", &["pudu-base", "pudu-kit"]),
    ("pudu-containers", &["pudu-base", "pudu-kit", "pudu-net", "pudu-sandbox"]),
    ("pudu-store", &["pudu-base", "pudu-kit"]),
    ("pudu-memory", &["pudu-base", "pudu-store"]),
    ("pudu-schedules", &["pudu-base", "pudu-kit", "pudu-store"]),
    ("pudu-skills", &["pudu-base", "pudu-kit", "pudu-shell"]),
    ("pudu-deerflow", &["pudu-base", "pudu-memory", "pudu-schedules", "pudu-skills", "pudu-store"]),
    ("pudu-guardrails", &["pudu-base", "pudu-net", "pudu-shell"]),
    ("pudu-model", &["pudu-base", "pudu-net"]),
    ("pudu-tools", &["pudu-base", "pudu-documents", "pudu-net"]),
    ("pudu-mcp", &["pudu-base", "pudu-net"]),
    ("pudu-acp", &["pudu-base", "pudu-mcp", "pudu-net"]),
    ("pudu-channels", &["pudu-base", "pudu-kit", "pudu-net", "pudu-texts"]),
    (
        "pudu-langgraph",
        &[
            "pudu-base",
            "pudu-harness",
            "pudu-memory",
            "pudu-net",
            "pudu-sandbox",
            "pudu-skills",
            "pudu-store",
        ],
    ),
    (
        "pudu-agent",
        &[
            "pudu-acp",
            "pudu-base",
            "pudu-documents",
            "pudu-guardrails",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-mcp",
            "pudu-memory",
            "pudu-net",
            "pudu-sandbox",
            "pudu-schedules",
            "pudu-skills",
            "pudu-store",
        ],
    ),
    (
        "pudu-runs",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-sandbox",
            "pudu-store",
        ],
    ),
    (
        "pudu-client",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-containers",
            "pudu-documents",
            "pudu-guardrails",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-mcp",
            "pudu-memory",
            "pudu-model",
            "pudu-net",
            "pudu-runs",
            "pudu-sandbox",
            "pudu-skills",
            "pudu-store",
            "pudu-tools",
        ],
    ),
    (
        "pudu-config",
        &[
            "pudu-acp",
            "pudu-agent",
            "pudu-base",
            "pudu-channels",
            "pudu-containers",
            "pudu-guardrails",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-mcp",
            "pudu-memory",
            "pudu-model",
            "pudu-net",
            "pudu-sandbox",
            "pudu-skills",
            "pudu-store",
            "pudu-texts",
            "pudu-tools",
        ],
    ),
    (
        "pudu-people",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-config",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-memory",
            "pudu-sandbox",
            "pudu-store",
        ],
    ),
    (
        "pudu-dispatch",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-channels",
            "pudu-config",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-memory",
            "pudu-model",
            "pudu-net",
            "pudu-people",
            "pudu-runs",
            "pudu-sandbox",
            "pudu-schedules",
            "pudu-store",
            "pudu-texts",
        ],
    ),
    (
        "pudu-gateway",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-channels",
            "pudu-client",
            "pudu-config",
            "pudu-deerflow",
            "pudu-dispatch",
            "pudu-harness",
            "pudu-kit",
            "pudu-langgraph",
            "pudu-memory",
            "pudu-net",
            "pudu-people",
            "pudu-runs",
            "pudu-sandbox",
            "pudu-schedules",
            "pudu-skills",
            "pudu-store",
            "pudu-texts",
        ],
    ),
    (
        "pudu-daemon",
        &[
            "pudu-agent",
            "pudu-base",
            "pudu-config",
            "pudu-containers",
            "pudu-dispatch",
            "pudu-documents",
            "pudu-gateway",
            "pudu-guardrails",
            "pudu-harness",
            "pudu-kit",
            "pudu-mcp",
            "pudu-model",
            "pudu-net",
            "pudu-people",
            "pudu-runs",
            "pudu-sandbox",
            "pudu-schedules",
            "pudu-skills",
            "pudu-store",
            "pudu-tools",
        ],
    ),
    (
        "pudu",
        &[
            "pudu-acp",
            "pudu-agent",
            "pudu-base",
            "pudu-channels",
            "pudu-config",
            "pudu-containers",
            "pudu-daemon",
            "pudu-deerflow",
            "pudu-dispatch",
            "pudu-documents",
            "pudu-gateway",
            "pudu-harness",
            "pudu-kit",
            "pudu-mcp",
            "pudu-memory",
            "pudu-model",
            "pudu-net",
            "pudu-people",
            "pudu-sandbox",
            "pudu-skills",
            "pudu-store",
            "pudu-texts",
        ],
    ),
    ("pudu-sim", &[]),
];

/// Type names that several files may define: of one trait's implementations, of the two ways to build a jail, of one
/// type in two crates, and of private types.
const SHARED_NAMES: &[&str] = &[
    "Args",
    "BoxFuture",
    "Connection",
    "DedupKey",
    "Error",
    "Inner",
    "Jail",
    "Page",
    "Ref",
    "Rejection",
    "Unconfined",
    "Value",
];

/// Maximum number of lines of a file without its tests, and with them.
const LINES: (usize, usize) = (500, 700);

#[test]
fn crates_depend_on_whom_the_house_allows() {
    let packages = packages();
    let members: BTreeSet<&str> = packages.iter().map(name).collect();
    let known: BTreeSet<&str> = EDGES.iter().map(|(room, _)| *room).collect();
    assert_eq!(members, known, "the workspace has other crates than the table of edges");
    let mut offences = Vec::new();
    for package in &packages {
        let allowed =
            EDGES.iter().find(|(room, _)| *room == name(package)).map_or(&[][..], |(_, rooms)| rooms);
        for dependency in list(package, "dependencies").iter().filter(|edge| edge["kind"] != "dev") {
            if members.contains(name(dependency)) && !allowed.contains(&name(dependency)) {
                offences.push(format!("{} -> {}", name(package), name(dependency)));
            }
        }
    }
    none("edges that the house does not have", &offences);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let without = |package: &&Value| {
        let manifest = fs::read_to_string(text(package, "manifest_path")).unwrap();
        !manifest.contains("[lints]\nworkspace = true")
    };
    let packages = packages();
    let offences: Vec<String> =
        packages.iter().filter(without).map(|package| text(package, "manifest_path").to_owned()).collect();
    none("manifests without `[lints] workspace = true`", &offences);
}

#[test]
fn files_can_be_read_in_one_go() {
    let mut offences = Vec::new();
    for (path, source) in sources() {
        let all = source.lines().count();
        let code = source.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
        if all > LINES.1 || (code > LINES.0 && !is_test(&path)) {
            offences.push(format!("{}: {code} lines, {all} with tests", path.display()));
        }
    }
    none(&format!("files above {} lines, or {} with tests", LINES.0, LINES.1), &offences);
}

#[test]
fn type_names_say_in_full_what_they_are() {
    let mut files: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let ours = |path: &Path| ["src", "channels/src", "crates"].iter().any(|folder| path.starts_with(folder));
    for (path, text) in sources().into_iter().filter(|(path, _)| ours(path) && !is_test(path)) {
        for name in text.lines().filter_map(defined) {
            files.entry(name.to_owned()).or_default().insert(path.clone());
        }
    }
    let shared =
        files.into_iter().filter(|(name, files)| files.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
    let offences: Vec<String> = shared.map(|(name, files)| format!("{name}: {files:?}")).collect();
    none("type names that several files define", &offences);
}

/// Returns the name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line
        .strip_prefix("pub")
        .map(|rest| rest.trim_start_matches(|c: char| "(crate)super".contains(c)))
    {
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    name.starts_with(char::is_uppercase).then_some(name)
}

#[test]
fn no_test_is_left_out_and_nothing_is_put_off() {
    // Concatenated, so that this file does not match itself.
    let words = [concat!("#[", "ignore"), concat!("to", "do!("), concat!("TO", "DO:"), concat!("FIX", "ME")];
    none(
        "lines that put something off",
        &find(&sources(), |line| words.iter().any(|word| line.contains(word))),
    );
}

#[test]
fn no_path_of_somebodys_machine_and_no_mirror_is_in_the_repository() {
    let Some(tracked) = tracked() else {
        println!("skipped: not a git checkout, so nobody knows which files are in the repository");
        return;
    };
    let roots = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
    let offences = find(&tracked, |line| roots.iter().any(|root| is_path(line, root)) || is_mirror(line));
    none("lines that name somebody's machine or a mirror of a registry", &offences);
}

/// Returns whether a line has an absolute path below a root that is not the end of a longer path.
fn is_path(line: &str, root: &str) -> bool {
    let more = |c: char| c.is_ascii_alphanumeric() || "-_.*}>".contains(c);
    line.match_indices(root).any(|(at, _)| !line.split_at(at).0.ends_with(more))
}

/// Returns whether a line makes Cargo, pip or npm use another source than the public registry.
fn is_mirror(line: &str) -> bool {
    let line = line.trim_start();
    let cargo =
        line.starts_with("source = \"registry+") && !line.contains("github.com/rust-lang/crates.io-index");
    let npm = line.starts_with("\"resolved\": \"http") && !line.contains("//registry.npmjs.org/");
    let words = [concat!("replace", "-with ="), concat!("index", "-url"), concat!("extra-index", "-url")];
    cargo || npm || words.iter().any(|word| line.contains(word))
}

#[test]
fn machine_paths_and_mirrors_are_told_from_innocent_ones() {
    let root = concat!("/ho", "me/");
    let path = |before: &str| format!("{before}{root}ann/pudu");
    for (line, expect) in [
        (path("see "), true),
        (path("\""), true),
        (path("file://"), true),
        (path(""), true),
        (path("https://example.org"), false),
        (path("$DIR/sub"), false),
    ] {
        assert_eq!(is_path(&line, root), expect, "{line}");
    }
    assert!(is_mirror("source = \"registry+https://mirror.example/index\""));
    assert!(!is_mirror("source = \"registry+https://github.com/rust-lang/crates.io-index\""));
    assert!(is_mirror("  \"resolved\": \"https://npm.example/a.tgz\","));
}

fn none(what: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{what}:\n{}", offences.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads the workspace's packages from Cargo itself.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    list(&metadata, "packages").to_vec()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn name(value: &Value) -> &str {
    text(value, "name")
}

/// Returns every Rust file of the workspace, its path from the root.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push((
                    path.strip_prefix(root()).unwrap().to_owned(),
                    fs::read_to_string(&path).unwrap(),
                ));
            }
        }
    }
    found.sort();
    found
}

/// Returns every text file that git tracks; `None` without git or a checkout.
fn tracked() -> Option<Vec<(PathBuf, String)>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let names = names.split('\0').filter(|name| !name.is_empty());
    // A tracked file may have been deleted, or contain no text.
    let read = |name: &str| Some((PathBuf::from(name), fs::read_to_string(root().join(name)).ok()?));
    output.status.success().then(|| names.filter_map(read).collect())
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

/// Returns place and text of each violating line.
fn find(files: &[(PathBuf, String)], offends: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = |(path, source): &(PathBuf, String)| {
        let offending = source.lines().enumerate().filter(|(_, line)| offends(line));
        let place = |(at, line): (usize, &str)| format!("{}:{}: {}", path.display(), at + 1, line.trim());
        offending.map(place).collect::<Vec<_>>()
    };
    files.iter().flat_map(lines).collect()
}
