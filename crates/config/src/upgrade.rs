//! Upgrades an older file to this version as text: `config_version` is raised, and nothing else changes. Absent keys
//! have their defaults, so nothing has to be added. The new text is parsed and compared before it is shown.

use super::{
    VERSION,
    problem::{Problem, Report, join},
    raw::{MappingEntry, Node, NodeValue, parse},
};

/// An upgraded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// The new text.
    pub text: String,
    /// The version of the old file; the current one if it has none.
    pub from: i128,
}

/// Upgrades a file's text.
pub fn upgrade(text: &str) -> Result<Upgraded, Report> {
    let before = tree(text)?;
    let Some((entry, from)) = version(&before).filter(|(_, from)| *from < i128::from(VERSION)) else {
        let from = version(&before).map_or(i128::from(VERSION), |(_, from)| from);
        return Ok(Upgraded { text: text.to_owned(), from });
    };
    let after = with_new_version(text, entry, from);
    match tree(&after) {
        Ok(read) if has_same_content(&before, &read) => Ok(Upgraded { text: after, from }),
        _ => {
            let what = "the version cannot be raised without changing the meaning of the file";
            let help = format!("write `config_version: {VERSION}` by hand");
            Err(Report::new(None, vec![Problem::error(entry.at, "config_version", what, help)]))
        }
    }
}

/// Comments out the given keys of sections with their values. Returns the new text and the keys that were commented
/// out. A key that cannot be commented out is kept.
pub fn comment_out(text: &str, keys: &[(&str, &str)], why: &str) -> (String, Vec<String>) {
    let (mut text, mut lost) = (text.to_owned(), Vec::new());
    for (section, key) in keys {
        let Ok(before) = tree(&text) else { break };
        let found = before.entry(section).and_then(|entry| entry.node.entry(key));
        let Some(entry) = found else { continue };
        let line = entry.at.line;
        let comment = |(number, text): (u64, &str)| match number == line {
            true => {
                let indent = text.len() - text.trim_start().len();
                let (indent, rest) = text.split_at(indent);
                format!("{indent}# {why}: {rest}")
            }
            false => text.to_owned(),
        };
        let shorter: String = (1..).zip(text.split_inclusive('\n')).map(comment).collect();
        if tree(&shorter).is_ok_and(|after| is_less(&before, &after, section, key)) {
            text = shorter;
            lost.push(join(section, key));
        }
    }
    (text, lost)
}

/// Returns whether two files differ only in a removed key of a section.
fn is_less(before: &Node, after: &Node, section: &str, key: &str) -> bool {
    let said = |node: &Node| -> Vec<(String, String)> {
        let entries = node.entries().iter().flat_map(|entry| match entry.key == *section {
            true => entry.node.entries().iter().filter(|entry| entry.key != *key).collect(),
            false => vec![entry],
        });
        entries.map(|entry| (entry.key.clone(), format!("{:?}", entry.node.value))).collect()
    };
    let gone = after.entry(section).is_some_and(|entry| entry.node.entry(key).is_none());
    gone && said(before) == said(after)
}

fn tree(text: &str) -> Result<Node, Report> {
    match parse(text.as_bytes()) {
        (Some(root), problems) if problems.is_empty() => Ok(root),
        (_, problems) => Err(Report::new(None, problems)),
    }
}

fn version(root: &Node) -> Option<(&MappingEntry, i128)> {
    let entry = root.entry("config_version")?;
    match &entry.node.value {
        NodeValue::Int(version) => Some((entry, *version)),
        _ => None,
    }
}

/// Replaces the version in the text.
fn with_new_version(text: &str, entry: &MappingEntry, from: i128) -> String {
    let old = from.to_string();
    let replace = |(number, line): (u64, &str)| {
        let at = (number == entry.node.at.line).then(|| line.find(':')).flatten();
        let found = at.and_then(|colon| Some((colon, line.get(colon..)?.find(&old)? + colon)));
        match found {
            Some((_, start)) => {
                let (head, tail) = line.split_at(start);
                format!("{head}{VERSION}{}", tail.strip_prefix(&old).unwrap_or(tail))
            }
            None => line.to_owned(),
        }
    };
    (1..).zip(text.split_inclusive('\n')).map(replace).collect()
}

/// Compares the contents of two files, ignoring the version.
fn has_same_content(old: &Node, new: &Node) -> bool {
    let said = |node: &Node| -> Vec<(String, String)> {
        let others = node.entries().iter().filter(|entry| entry.key != "config_version");
        others.map(|entry| (entry.key.clone(), format!("{:?}", entry.node.value))).collect()
    };
    said(old) == said(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(old: &str, new: &str) {
        assert_eq!(upgrade(old).unwrap().text, new, "{old:?}");
    }

    #[test]
    fn the_version_is_raised_and_nothing_else_changes() {
        check(
            "# mine\nconfig_version: 3 # old\nlog_level: debug\n",
            "# mine\nconfig_version: 34 # old\nlog_level: debug\n",
        );
        check(
            "\u{feff}config_version: 12\r\nuploads: {max_files: 12}\r\n",
            "\u{feff}config_version: 34\r\nuploads: {max_files: 12}\r\n",
        );
        check("{config_version: 33, title: 33}", "{config_version: 34, title: 33}");
    }

    #[test]
    fn a_current_or_newer_file_or_one_without_a_version_is_unchanged() {
        for text in ["log_level: debug\n", "config_version: 34\n", "config_version: 35\n", "", "# nothing\n"]
        {
            check(text, text);
        }
    }

    #[test]
    fn a_key_is_commented_out_if_nothing_else_changes() {
        let check = |old: &str, new: &str, lost: &[&str]| {
            let keys = [("database", "sqlite_dir"), ("skills", "path")];
            assert_eq!(
                comment_out(old, &keys, "moved"),
                (new.to_owned(), lost.iter().map(|key| (*key).to_owned()).collect()),
                "{old:?}"
            );
        };
        check(
            "a: 1\ndatabase:\n  backend: sqlite\n  sqlite_dir: .deer-flow/data # here\nskills:\r\n  path: ../skills\r\n",
            "a: 1\ndatabase:\n  backend: sqlite\n  # moved: sqlite_dir: .deer-flow/data # here\nskills:\r\n  # moved: path: ../skills\r\n",
            &["database.sqlite_dir", "skills.path"],
        );
        for kept in [
            "database: {backend: sqlite, sqlite_dir: a}\n",
            "database:\n  sqlite_dir: >\n    a\n  backend: sqlite\n",
            "database:\n  sqlite_dir: &a x\nhome: *a\n",
            "database: [\n",
            "a: 1\n",
        ] {
            check(kept, kept, &[]);
        }
    }

    #[test]
    fn an_invalid_file_is_refused() {
        assert!(upgrade("a: [\n").unwrap_err().has_errors());
    }

    proptest! {
        #[test]
        fn no_value_changes_and_a_second_upgrade_changes_nothing(version in 0..40_u32, text in "([a-z]{1,4}: [0-9a-z]{1,4}\n){0,4}") {
            let old = format!("config_version: {version}\n{text}");
            if let Ok(new) = upgrade(&old) {
                prop_assert!(has_same_content(&tree(&old).unwrap(), &tree(&new.text).unwrap()));
                prop_assert_eq!(upgrade(&new.text).unwrap().text, new.text);
            }
        }
    }
}
