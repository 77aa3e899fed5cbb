use super::*;
use proptest::prelude::*;
use std::io::Cursor;
use zip::{ZipWriter, write::SimpleFileOptions};

const SKILL: &str = "---\nname: demo\ndescription: For tests.\n---\n# Demo\n";

/// Creates an archive from names and contents; a name with a trailing slash is a folder.
fn pack(entries: &[(&str, &[u8])]) -> Vec<u8> {
    pack_with(entries, |_| SimpleFileOptions::default())
}

fn pack_with(entries: &[(&str, &[u8])], options: impl Fn(&str) -> SimpleFileOptions) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        if name.ends_with('/') {
            zip.add_directory(*name, options(name)).unwrap();
        } else {
            zip.start_file(*name, options(name)).unwrap();
            zip.write_all(bytes).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

/// Replaces a name with another of the same length, in both places.
fn rename(mut archive: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut at = 0;
    while let Some(found) = archive[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        archive[at + found..at + found + to.len()].copy_from_slice(to.as_bytes());
        at += found + to.len();
    }
    archive
}

/// Changes bytes after each signature of a directory entry.
fn in_directory(mut archive: Vec<u8>, name: &str, offset: usize, bytes: &[u8]) -> Vec<u8> {
    let is_entry = |at: &usize| {
        archive[*at..].starts_with(DIRECTORY_MARK) && archive[at + 46..].starts_with(name.as_bytes())
    };
    let entries: Vec<usize> = (0..archive.len() - 46).filter(is_entry).collect();
    for at in entries {
        archive[at + offset..at + offset + bytes.len()].copy_from_slice(bytes);
    }
    archive
}

/// Sets any Unix mode of an entry, even one that the writer would refuse.
fn with_mode(archive: Vec<u8>, name: &str, mode: u32) -> Vec<u8> {
    let archive = in_directory(archive, name, 38, &(mode << 16).to_le_bytes());
    in_directory(archive, name, 5, &[3])
}

fn refused(archive: &[u8]) -> String {
    match examine(Cursor::new(archive)) {
        Ok(contents) => panic!("it is accepted: {contents:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

fn with(name: &str, bytes: &[u8]) -> Vec<u8> {
    pack(&[("SKILL.md", SKILL.as_bytes()), (name, bytes)])
}

#[test]
fn a_skill_is_found_at_the_top_or_in_one_folder_without_file_manager_clutter() {
    let files = |archive: Vec<u8>| {
        let contents = examine(Cursor::new(archive)).unwrap();
        assert_eq!(contents.front.name, "demo");
        contents.files
    };
    let skill = SKILL.as_bytes();
    assert_eq!(files(pack(&[("SKILL.md", skill)])), ["SKILL.md"]);
    assert_eq!(
        files(pack(&[("d/", b""), ("d/SKILL.md", skill), ("d/scripts/a.py", b"1")])),
        ["SKILL.md", "scripts/a.py"]
    );
    let clutter = [
        ("d/SKILL.md", skill),
        ("d/.DS_Store", b"x"),
        ("__MACOSX/d/._SKILL.md", b"x"),
        ("d/.git/config", b"x"),
        ("d/data/ü.txt", "ü".as_bytes()),
    ];
    assert_eq!(files(pack(&clutter)), ["SKILL.md", "data/ü.txt"]);
}

/// Each row is an archive that must be refused, with a part of the reason. Rows from advisories on other agents
/// have their names.
#[test]
fn hostile_archives_are_refused() {
    let skill = SKILL.as_bytes();
    let zeros = vec![0; 8 * 1024 * 1024];
    let link = |target: &[u8]| with_mode(with("link", target), "link", 0o120_777);
    let many: Vec<String> = (0..4100).map(|n| format!("f{n}")).collect();
    let many: Vec<(&str, &[u8])> =
        many.iter().map(|name| (name.as_str(), &b""[..])).chain([("SKILL.md", skill)]).collect();
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        // Paths that leave the folder.
        (
            "GHSA-qrq5: an entry leads out by ..",
            rename(with("aa/x", b""), "aa/x", "../x"),
            "leads out of its folder",
        ),
        (
            "OpenClaw PR#16203: .. inside of a path",
            rename(with("a/bb/cc/x", b""), "a/bb/cc/x", "a/../../x"),
            "leads out of its folder",
        ),
        (
            "OpenClaw #9529: an absolute path",
            rename(with("xetc/x", b""), "xetc/x", "/etc/x"),
            "absolute path",
        ),
        ("OpenClaw #20796: a symbolic link out of the folder", link(b"/etc/passwd"), "symbolic link"),
        (
            "agentsync PR#373: a link, and a file through it",
            {
                let archive = pack(&[("SKILL.md", skill), ("link", b"/tmp"), ("link/x", b"1")]);
                with_mode(archive, "link", 0o120_777)
            },
            "symbolic link",
        ),
        ("a link that stays inside", link(b"SKILL.md"), "symbolic link"),
        ("a drive", rename(with("Ca/x", b""), "Ca/x", "C:/x"), "colon"),
        ("a stream", rename(with("a_b", b""), "a_b", "a:b"), "colon"),
        ("a way out with a backslash", rename(with("aa_x", b""), "aa_x", "..\\x"), "`..`"),
        ("an absolute path with a backslash", rename(with("a_x", b""), "a_x", "\\ax"), "absolute"),
        ("a drive", rename(with("aa_x", b""), "aa_x", "C:\\x"), "colon"),
        ("a dot", rename(with("a/b", b""), "a/b", "./b"), "leads out"),
        ("an empty part", rename(with("a/b/c", b""), "a/b/c", "a///c"), "empty component"),
        ("a zero byte", rename(with("a_b", b""), "a_b", "a\0b"), "invisible characters"),
        ("a turned name", with("a\u{202e}gpj.py", b""), "invisible characters"),
        (
            "a name that is not text",
            {
                let mut a = with("abc", b"");
                for at in 0..a.len() - 3 {
                    if &a[at..at + 3] == b"abc" {
                        a[at] = 0xff;
                    }
                }
                a
            },
            "not UTF-8",
        ),
        // Kinds of entries.
        ("a device", with_mode(with("dev", b""), "dev", 0o020_666), "neither a file nor a folder"),
        ("a pipe", with_mode(with("pipe", b""), "pipe", 0o010_666), "neither a file nor a folder"),
        ("a socket", with_mode(with("sock", b""), "sock", 0o140_666), "neither a file nor a folder"),
        (
            "a folder only according to its mode",
            with_mode(with("dir", b""), "dir", 0o040_755),
            "its name and its mode disagree",
        ),
        ("an encrypted entry", in_directory(with("enc", b"x"), "enc", 8, &[1, 0]), "encrypted"),
        ("another packing", in_directory(with("bz", b"x"), "bz", 10, &[12, 0]), "other than deflate"),
        // Names that collide.
        (
            "the same name twice",
            rename(pack(&[("SKILL.md", skill), ("aa", b"1"), ("bb", b"2")]), "bb", "aa"),
            "have the same name",
        ),
        (
            "names that differ in case",
            pack(&[("SKILL.md", skill), ("A.py", b"1"), ("a.py", b"2")]),
            "same name as",
        ),
        (
            "names that differ in composition",
            pack(&[("SKILL.md", skill), ("é", b"1"), ("e\u{301}", b"2")]),
            "same name as",
        ),
        (
            "names that differ in width",
            pack(&[("SKILL.md", skill), ("ａ", b"1"), ("a", b"2")]),
            "same name as",
        ),
        (
            "folders that differ in case",
            pack(&[("SKILL.md", skill), ("d/a", b"1"), ("D/b", b"2")]),
            "spelled in two ways",
        ),
        (
            "a file that is a folder too",
            pack(&[("SKILL.md", skill), ("d", b"1"), ("d/a", b"2")]),
            "the name of its folder",
        ),
        // Programs.
        ("an ELF", with("tool", b"\x7fELF\x02\x01\x01\0"), "an executable (ELF)"),
        ("a PE", with("tool.txt", b"MZ\x90\0\x03"), "an executable (PE"),
        ("a Mach-O", with("tool", b"\xcf\xfa\xed\xfe\x07"), "an executable (Mach-O"),
        // Sizes.
        ("too many entries", pack(&many), "more than 4096 entries"),
        ("a bomb", with("zeros", &zeros), "suspiciously high"),
        (
            "a size that is too small",
            in_directory(with("lie", &[b'x'; 500]), "lie", 24, &100_u32.to_le_bytes()),
            "is inconsistent",
        ),
        (
            "too large when extracted",
            in_directory(with("big", &[b'x'; 5_000]), "big", 24, &900_000_000_u32.to_le_bytes()),
            "more than 512 MiB",
        ),
        (
            "a SKILL.md that is too large",
            pack(&[("SKILL.md", &[SKILL.as_bytes(), &noise(200_000)].concat())]),
            "larger than 128 KiB",
        ),
        // Skills.
        ("no skill", pack(&[("README.md", b"x")]), "no SKILL.md"),
        ("nothing", pack(&[]), "no SKILL.md"),
        ("two skills", pack(&[("a/SKILL.md", skill), ("b/SKILL.md", skill)]), "a second SKILL.md"),
        ("a nested skill", pack(&[("SKILL.md", skill), ("sub/SKILL.md", skill)]), "a second SKILL.md"),
        (
            "a nested skill in other letters",
            pack(&[("SKILL.md", skill), ("sub/skill.MD", skill)]),
            "a second SKILL.md",
        ),
        ("a skill in small letters", pack(&[("skill.md", skill)]), "in capitals"),
        ("a skill too deep", pack(&[("a/b/SKILL.md", skill)]), "deeper than one top-level folder"),
        (
            "a file next to the folder",
            pack(&[("a/SKILL.md", skill), ("b.txt", b"x")]),
            "outside the skill's folder",
        ),
        (
            "a head with an unsupported restriction",
            pack(&[("SKILL.md", b"---\nname: a\ndescription: b\ndisallowed-tools: Bash\n---\n")]),
            "`disallowed-tools` would have no effect",
        ),
        ("no head", pack(&[("SKILL.md", b"# Demo\n")]), "does not begin with front matter"),
        ("a skill that is not text", pack(&[("SKILL.md", b"---\n\xff")]), "not UTF-8"),
        // Files.
        ("no zip", b"hello".to_vec(), "it is not a ZIP archive"),
        ("an empty file", Vec::new(), "it is not a ZIP archive"),
        (
            "data before the ZIP archive",
            [b"#!/bin/sh\n".to_vec(), with("a", b"")].concat(),
            "before the ZIP archive",
        ),
    ];
    for (what, archive, expect) in cases {
        let said = refused(&archive);
        assert!(said.contains(expect), "{what}: {said}");
    }
}

/// Incompressible bytes.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"abcdefghijklmnopqrstuvwxyz012345"[(state >> 27) as usize]
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn a_file_whose_bytes_were_changed_is_refused() {
    let archive = pack(&[("SKILL.md", SKILL.as_bytes()), ("data", &noise(2_000))]);
    for at in (0..archive.len()).step_by(7) {
        let mut spoilt = archive.clone();
        spoilt[at] ^= 0x55;
        // A changed date or version is harmless; any accepted archive has the original content.
        if let Ok(contents) = examine(Cursor::new(&spoilt)) {
            assert_eq!(
                (contents.front.name.as_str(), contents.bytes),
                ("demo", SKILL.len() as u64 + 2_000),
                "byte {at}"
            );
        }
    }
    for length in 0..archive.len() {
        refused(&archive[..length]);
    }
}

#[test]
fn all_dangers_are_reported_together_without_control_characters() {
    let mut archive = pack(&[("SKILL.md", SKILL.as_bytes()), ("aa/x", b""), ("bb_x", b""), ("c[2J", b"")]);
    for (from, to) in [("aa/x", "../x"), ("bb_x", "b:_x"), ("c[2J", "\x1b[2J")] {
        archive = rename(archive, from, to);
    }
    assert_eq!(
        refused(&archive),
        "../x: its name contains `.` or `..`, which leads out of its folder; b:_x: its name contains a colon, which denotes a \
         drive or a stream on some systems; \\u{1b}[2J: its name contains invisible characters"
    );
}

proptest! {
    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = examine(Cursor::new(bytes));
    }

    #[test]
    fn no_change_to_an_archive_causes_a_panic_or_an_escape(
        name in "[a-z./\\\\: é]{1,12}",
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut archive = pack(&[("SKILL.md", SKILL.as_bytes()), (&format!("x{name}"), b"some text that is packed")]);
        for (at, byte) in changes {
            let at = at.index(archive.len());
            archive[at] = byte;
        }
        if let Ok(contents) = examine(Cursor::new(archive)) {
            for file in contents.files {
                prop_assert!(names::parts(&file).is_ok(), "{file}");
            }
        }
    }
}

#[test]
fn archives_of_other_agents_are_accepted_with_notes() {
    let check = |archive: &[u8], files: &[&str], notes: &[&str]| {
        let contents = examine(Cursor::new(archive)).unwrap();
        assert_eq!(contents.files, files);
        assert_eq!(contents.notes.len(), notes.len(), "{:?}", contents.notes);
        for (note, expect) in contents.notes.iter().zip(notes) {
            assert!(note.contains(expect), "{note}");
        }
    };
    let head = |lines: &str| {
        format!("---\nname: demo\ndescription: Use when files are <10 MB.\n{lines}---\n# Do it\n")
    };
    let with_head = |lines: &str| pack(&[("SKILL.md", head(lines).as_bytes())]);
    check(&with_head("argument-hint: \"[action]\"\nuser-invocable: true\n"), &["SKILL.md"], &[]);
    check(
        &with_head("model: sonnet\ncontext: fork\n"),
        &["SKILL.md"],
        &["`context` has no effect", "`model` has no"],
    );
    check(
        &with_head("argument-hint: [action] — e.g. \"list\"\n"),
        &["SKILL.md"],
        &["`argument-hint` is read as if"],
    );
    let nameless = b"---\ndescription: b\n---\n";
    check(&pack(&[("pdf-tools/SKILL.md", nameless)]), &["SKILL.md"], &["`name` is missing"]);
    assert!(refused(&pack(&[("SKILL.md", nameless)])).contains("`name` is missing"));
    // A packer that declares no encoding: the name is replaced with one of the same length.
    let renamed = |name: &[u8]| {
        let placeholder = "x".repeat(name.len());
        let mut archive = with(&placeholder, b"1");
        for at in 0..archive.len() - name.len() {
            if &archive[at..at + name.len()] == placeholder.as_bytes() {
                archive[at..at + name.len()].copy_from_slice(name);
            }
        }
        archive
    };
    check(&renamed("说明/用法.md".as_bytes()), &["SKILL.md", "说明/用法.md"], &[]);
    let (gbk, _, _) = encoding_rs::GBK.encode("说明/用法.md");
    check(&renamed(&gbk), &["SKILL.md", "说明/用法.md"], &["they were read as GBK: 说明/用法.md"]);
    let windows = pack(&[("d_SKILL.md", SKILL.as_bytes()), ("d_scripts_a.py", b"1"), ("d/b.md", b"2")]);
    let windows = rename(rename(windows, "d_SKILL.md", "d\\SKILL.md"), "d_scripts_a.py", "d\\scripts\\a.py");
    check(&windows, &["SKILL.md", "scripts/a.py", "b.md"], &["have backslashes"]);
    // A path that leaves the folder is refused in every encoding.
    let (hostile, _, _) = encoding_rs::GBK.encode("../说明/用法.md");
    assert!(refused(&renamed(&hostile)).contains("说明/用法.md: "));
    assert!(refused(&renamed(b"Gr\xf6\xdfe.md")).contains("pack the folder again"));
}
