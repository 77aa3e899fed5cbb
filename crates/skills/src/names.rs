//! Checks names in an archive: rejects dangerous names, and detects names that are equal on some systems.

use unicode_normalization::UnicodeNormalization;

/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 512;
/// Maximum length of a path component, in bytes. This is the limit of file systems.
const MAX_NAME_BYTES: usize = 255;
/// Maximum number of folders in a path.
const MAX_DEPTH: usize = 12;

/// Checks the name of an entry and returns its components, without a folder's trailing slash.
///
/// # Errors
/// When the name could leave the folder, be hidden, or have another meaning on another system.
pub(crate) fn parts(name: &str) -> Result<Vec<&str>, &'static str> {
    if name.is_empty() || name == "/" {
        return Err("it has no name");
    }
    if name.len() > MAX_PATH_BYTES {
        return Err("its name is too long");
    }
    if name.contains('\\') {
        return Err("its name contains a backslash, which is a path separator on some systems");
    }
    if name.contains(':') {
        return Err("its name contains a colon, which denotes a drive or a stream on some systems");
    }
    if name.starts_with('/') {
        return Err("its name is an absolute path");
    }
    if name.chars().any(|c| c.is_control() || hidden(c)) {
        return Err("its name contains invisible characters");
    }
    let parts: Vec<&str> = name.strip_suffix('/').unwrap_or(name).split('/').collect();
    if parts.len() > MAX_DEPTH {
        return Err("it is nested too deeply");
    }
    for part in &parts {
        match *part {
            "" => return Err("its name has an empty component"),
            "." | ".." => return Err("its name contains `.` or `..`, which leads out of its folder"),
            part if part.len() > MAX_NAME_BYTES => return Err("its name is too long"),
            part if part.ends_with(['.', ' ']) || part.starts_with(' ') => {
                return Err("a part of its name begins or ends with a space, or ends with a dot");
            }
            _ => {}
        }
    }
    Ok(parts)
}

/// Folds a name, so that all names that some file system treats as equal have the same form.
pub(crate) fn folded(name: &str) -> String {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    let once: String = lower(&name.nfkc().collect::<String>());
    // Lower-casing may decompose a letter, so it is recomposed. Case folding maps `ß` to `ss`.
    once.nfkc().collect::<String>().replace('ß', "ss").replace('ς', "σ")
}

/// Returns whether a character has no width or changes the text direction.
pub(crate) fn hidden(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_names_pass() {
        for name in ["SKILL.md", "a/b/c.py", "dir/", "ü/日本.txt", "a b.txt", ".hidden/x", "a..b"] {
            assert!(parts(name).is_ok(), "{name}");
        }
        assert_eq!(parts("a/b/"), Ok(vec!["a", "b"]));
        for name in [
            "",
            "/",
            "/etc/passwd",
            "//x",
            "a//b",
            "../x",
            "a/../b",
            "./a",
            "a/.",
            "..",
            "C:/x",
            "c:x",
            "a:b",
            "a\\b",
            "..\\x",
            "a\0b",
            "a\nb",
            "a\u{202e}gpj.exe",
            "a\u{200b}b",
            "a.",
            "a ",
            " a",
            "x /y",
            &"a".repeat(256),
            &"a/".repeat(20),
            &"abcdefgh/".repeat(60),
        ] {
            assert!(parts(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn names_that_are_equal_on_some_system_fold_to_one() {
        for (a, b) in [
            ("A.md", "a.md"),
            ("é", "e\u{301}"),
            ("ﬁ", "fi"),
            ("STRASSE", "straße"),
            ("Ω", "\u{2126}"),
            ("ﬀ", "FF"),
        ] {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        assert_ne!(folded("a"), folded("b"));
    }
}
