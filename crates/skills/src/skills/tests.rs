use super::*;
use crate::ScanVerdict;
use std::io::{Cursor, Write};
use zip::{ZipWriter, write::SimpleFileOptions};

struct House {
    dir: tempfile::TempDir,
    skills: Skills,
}

fn house() -> House {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let places = CatalogPaths {
        shipped: at("shipped"),
        shelf: at("shelf"),
        users: at("users"),
        own: at("own"),
        state: at("extensions_config.json"),
        container: "/mnt/skills".into(),
    };
    House { skills: Skills::new(places), dir }
}

impl House {
    fn put(&self, folder: &str, text: &str) {
        let folder = self.dir.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), text).unwrap();
    }

    fn skill(&self, folder: &str, name: &str) {
        self.put(folder, &text(name));
    }

    /// Each skill as `name path`, with a mark for disabled ones.
    fn names(&self) -> Vec<String> {
        let line = |entry: &CatalogEntry| {
            format!("{}{} {}", if entry.enabled { "" } else { "-" }, entry.name, entry.path)
        };
        self.skills.read().entries.iter().map(line).collect()
    }

    fn broken(&self) -> Vec<String> {
        let catalog = self.skills.read();
        let line = |broken: &BrokenSkill| {
            let folder = broken.folder.strip_prefix(self.dir.path()).unwrap();
            format!("{}: {}", folder.display(), broken.why)
                .replace(&format!("{}/", self.dir.path().display()), "")
        };
        catalog.broken.iter().map(line).collect()
    }

    fn archive(&self, entries: &[(&str, &str)]) -> PathBuf {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in entries {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let path = self.dir.path().join("a.skill");
        fs::write(&path, zip.finish().unwrap().into_inner()).unwrap();
        path
    }

    /// All files below the folder of installed skills.
    fn own(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir.path().join("own")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
                found.push(
                    entry.path().strip_prefix(self.dir.path().join("own")).unwrap().display().to_string(),
                );
            }
        }
        found.retain(|name| name != ".lock");
        found.sort();
        found
    }
}

fn text(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n# {name}\n")
}

#[test]
fn skills_are_found_at_any_depth_and_nothing_below_one() {
    let house = house();
    assert_eq!(house.names(), Vec::<String>::new());
    house.skill("shipped/research", "research");
    house.skill("shelf/public/group/deep/charts", "charts");
    house.skill("shelf/public/group/deep/charts/examples/inner", "inner");
    house.skill("shelf/custom/ours", "ours");
    house.skill("own/mine", "mine");
    house.skill("own/.staging-1/new", "staged");
    house.skill("shelf/public/1/2/3/4/5/too-deep", "too-deep");
    fs::create_dir_all(house.dir.path().join("shelf/public/empty")).unwrap();
    assert_eq!(
        house.names(),
        [
            "charts /mnt/skills/public/group/deep/charts",
            "mine /mnt/skills/custom/mine",
            "ours /mnt/skills/custom/ours",
            "research /mnt/skills/public/research",
        ]
    );
    assert_eq!(house.broken(), Vec::<String>::new());
}

#[test]
fn broken_skills_are_reported_and_affect_no_other() {
    let house = house();
    house.skill("shipped/good", "good");
    house.put("shipped/bad", "# no head\n");
    fs::create_dir_all(house.dir.path().join("shipped/small")).unwrap();
    fs::write(house.dir.path().join("shipped/small/skill.md"), text("small")).unwrap();
    house.put("shipped/worse", "---\nname: Worse\ndescription: x\n---\n");
    house.put("shipped/huge", &format!("{}{}", text("huge"), "x".repeat(200_000)));
    fs::create_dir_all(house.dir.path().join("shipped/odd/SKILL.md")).unwrap();
    std::os::unix::fs::symlink(house.dir.path().join("shipped/good"), house.dir.path().join("shipped/link"))
        .unwrap();
    house.skill("own/good-too", "good");
    assert_eq!(house.names(), ["good /mnt/skills/custom/good-too"], "the team's own skill takes precedence");
    let broken = house.broken();
    let check = |folder: &str, expect: &str| {
        let line = broken.iter().find(|line| line.starts_with(&format!("shipped/{folder}: ")));
        assert!(line.is_some_and(|line| line.contains(expect)), "{folder}: {broken:?}");
    };
    check("bad", "does not begin with front matter");
    check("small", "rename it");
    check("worse", "`Worse` is not a valid name of a skill");
    check("huge", "larger than 128 KiB");
    check("odd", "is not a plain file");
    check("link", "links are not followed");
    assert_eq!(broken.len(), 6);
}

#[test]
fn a_shipped_skill_yields_to_one_with_its_name_and_is_not_broken() {
    let house = house();
    house.skill("shipped/good", "good");
    house.skill("shelf/public/deer/good", "good");
    house.skill("shelf/custom/good", "good");
    assert_eq!(house.names(), ["good /mnt/skills/custom/good"]);
    assert_eq!(house.broken(), Vec::<String>::new());
    let at = |folder: &str| house.dir.path().join(folder);
    let hidden =
        |folder: &str| Hidden { name: "good".into(), folder: at(folder), by: at("shelf/custom/good") };
    assert_eq!(house.skills.read().hidden, [hidden("shelf/public/deer/good"), hidden("shipped/good")]);
    // Two skills with the same path, or two of the team's own, are an error.
    house.skill("shipped/good-again", "good");
    house.skill("own/good", "good");
    fs::remove_dir_all(at("shelf/public")).unwrap();
    assert_eq!(
        house.broken(),
        ["shelf/custom/good: `good` in own/good takes precedence; give it another name"]
    );
    fs::remove_dir_all(at("own")).unwrap();
    fs::remove_dir_all(at("shelf")).unwrap();
    let expect = "shipped/good-again: `good` in shipped/good takes precedence; give it another name";
    assert_eq!(house.broken(), [expect]);
}

#[test]
fn changes_on_disk_are_seen_and_an_unchanged_catalog_is_reused() {
    let house = house();
    house.skill("shipped/a", "a");
    let first = house.skills.read();
    assert!(Arc::ptr_eq(&first, &house.skills.read()));
    house.skill("shipped/group/b", "b");
    assert_eq!(house.names(), ["a /mnt/skills/public/a", "b /mnt/skills/public/group/b"]);
    house.put("shipped/a", &text("renamed"));
    assert_eq!(house.names(), ["b /mnt/skills/public/group/b", "renamed /mnt/skills/public/a"]);
    fs::write(house.dir.path().join("extensions_config.json"), "{\"skills\": {\"b\": {\"enabled\": false}}}")
        .unwrap();
    assert_eq!(house.names(), ["-b /mnt/skills/public/group/b", "renamed /mnt/skills/public/a"]);
    fs::remove_dir_all(house.dir.path().join("shipped/group")).unwrap();
    assert_eq!(house.names(), ["renamed /mnt/skills/public/a"]);
}

#[test]
fn disabled_skills_are_hidden_and_a_broken_file_disables_all() {
    let house = house();
    house.skill("shipped/a", "a");
    house.skill("shipped/b", "b");
    let entry = house.skills.set_enabled("a", false).unwrap();
    assert_eq!((entry.name.as_str(), entry.enabled), ("a", false));
    let catalog = house.skills.read();
    assert_eq!(
        catalog.enabled().iter().map(|skill| skill.path.as_str()).collect::<Vec<_>>(),
        ["/mnt/skills/public/b/SKILL.md"]
    );
    assert_eq!(catalog.folders().map(|folder| folder.agent).collect::<Vec<_>>(), ["/mnt/skills/public/b"]);
    assert!(matches!(house.skills.set_enabled("c", true), Err(SkillError::Unknown(_))));
    fs::write(house.dir.path().join("extensions_config.json"), "{").unwrap();
    assert_eq!(house.names(), ["-a /mnt/skills/public/a", "-b /mnt/skills/public/b"]);
    assert!(house.broken()[0].starts_with("extensions_config.json: no skill is used until this is fixed: "));
}

#[test]
fn a_skill_is_installed_replaced_and_removed() {
    let house = house();
    let archive = house.archive(&[
        ("x/SKILL.md", &text("demo")),
        ("x/scripts/a.py", "print(1)\n"),
        ("x/.DS_Store", ""),
    ]);
    let installed = house.skills.install(&archive, false).unwrap();
    assert_eq!(
        (installed.name.as_str(), installed.files, installed.report.verdict()),
        ("demo", 2, ScanVerdict::Allow)
    );
    assert_eq!(house.own(), ["demo", "demo/SKILL.md", "demo/scripts", "demo/scripts/a.py"]);
    let meta = fs::metadata(house.dir.path().join("own/demo/SKILL.md")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&meta) & 0o777, 0o444);
    assert!(house.skills.read().get("demo").unwrap().editable);
    let again = house.skills.install(&archive, false).unwrap_err().to_string();
    assert!(again.starts_with("a skill `demo` already exists (custom); "), "{again}");
    let newer = house.archive(&[("SKILL.md", &text("demo")), ("new.txt", "requests.post(x)")]);
    let installed = house.skills.install(&newer, true).unwrap();
    assert_eq!(installed.report.verdict(), ScanVerdict::Warn);
    assert_eq!(house.own(), ["demo", "demo/SKILL.md", "demo/new.txt"]);
    house.skills.set_enabled("demo", false).unwrap();
    house.skills.remove("demo").unwrap();
    assert_eq!(house.own(), Vec::<String>::new());
    assert_eq!(state::read(&house.skills.places().state).unwrap(), Switches::new());
    assert!(matches!(house.skills.remove("demo"), Err(SkillError::Unknown(_))));
    assert!(matches!(house.skills.remove("../shelf"), Err(SkillError::Unknown(_))));
}

#[test]
fn an_archive_replaces_a_shipped_skill_only_on_request() {
    let house = house();
    house.skill("shipped/research", "research");
    let archive = house.archive(&[("SKILL.md", &text("research"))]);
    let error = house.skills.install(&archive, false).unwrap_err().to_string();
    assert!(error.starts_with("a skill `research` already exists (public); "), "{error}");
    assert!(error.contains("--replace"), "{error}");
    house.skills.install(&archive, true).unwrap();
    assert_eq!(house.names(), ["research /mnt/skills/custom/research"]);
    assert_eq!(house.broken(), Vec::<String>::new());
    house.skills.install(&archive, true).unwrap();
    house.skills.remove("research").unwrap();
    assert_eq!(house.names(), ["research /mnt/skills/public/research"], "it is restored");
}

#[test]
fn a_refused_archive_leaves_no_files_and_operator_skills_are_protected() {
    let house = house();
    house.skill("shipped/research", "research");
    house.skill("shelf/custom/ours", "ours");
    let check = |entries: &[(&str, &str)], replace: bool, expect: &str| {
        let error = house.skills.install(&house.archive(entries), replace).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert_eq!(house.own(), Vec::<String>::new());
    };
    check(&[("SKILL.md", &text("ours"))], true, "a skill `ours` already exists (custom)");
    check(&[("SKILL.md", &text("bad")), ("a.sh", "curl x | sh")], false, "BLOCK  a.sh:1  download-and-run");
    check(
        &[("SKILL.md", &text("bad")), ("A", ""), ("a", "")],
        false,
        "the archive is refused: a: it has the same name",
    );
    check(&[("SKILL.md", "# none\n"), ("data", "x")], false, "does not begin with front matter");
    for (name, expect) in
        [("research", "one of the public skills"), ("ours", "in the folder of `skills.path`")]
    {
        let error = house.skills.remove(name).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn leftovers_of_a_crash_are_cleared_and_broken_skills_can_be_removed() {
    let house = house();
    house.skill("own/.staging-of-a-crash/new", "x");
    house.put("own/broken", "# no head\n");
    house.skills.remove("broken").unwrap();
    assert_eq!(house.own(), Vec::<String>::new());
}
