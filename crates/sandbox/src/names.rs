//! Sanitizes file names of uploads.

use cap_std::fs::Dir;
use pudu_base::foreign;
use unicode_normalization::UnicodeNormalization;

/// Maximum length of a file name, in bytes. Leaves room for a number within the usual limit of 255.
const MAX_FILE_NAME_BYTES: usize = 200;

/// Converts a sender's file name to a safe one: no path, no characters that confuse a shell or a user, not hidden, and
/// not too long. Accents, which macOS sends decomposed, are composed, because models write them so.
pub(crate) fn safe(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = |c: char| if c.is_control() || "<>:\"|?*".contains(c) { '_' } else { c };
    let shown = |c: &char| c.is_control() || !foreign::unseen(*c);
    let name: String = name.nfc().filter(shown).map(plain).collect();
    let name = name.trim_end().trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    let (stem, ending) = name.rsplit_once('.').filter(|(_, end)| end.len() <= 16).unwrap_or((name, ""));
    let mut kept = String::new();
    for c in stem.chars() {
        if kept.len() + c.len_utf8() + ending.len() + 1 > MAX_FILE_NAME_BYTES {
            break;
        }
        kept.push(c);
    }
    let kept = if kept.trim().is_empty() { "file" } else { kept.trim() };
    if ending.is_empty() { kept.to_owned() } else { format!("{kept}.{ending}") }
}

/// Returns the name, with the first unused number if the name is in use.
pub(crate) fn free(dir: &Dir, name: &str) -> String {
    let (stem, ending) =
        name.rsplit_once('.').map_or((name, String::new()), |(stem, end)| (stem, format!(".{end}")));
    let numbered = (1..).map(|number| format!("{stem}_{number}{ending}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| dir.symlink_metadata(name).is_err()).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_in_names_are_composed() {
        for (name, expect) in [
            ("Gru\u{308}ße.md", "Grüße.md"),
            ("\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}.docx", "한글.docx"),
            ("か\u{3099}.txt", "が.txt"),
            ("会议纪要.docx", "会议纪要.docx"),
            ("page [id].tsx", "page [id].tsx"),
        ] {
            assert_eq!(safe(name), expect);
        }
    }
}
