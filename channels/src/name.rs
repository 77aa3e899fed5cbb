//! Cleans user-supplied file names for display and storage.
//!
//! A cleaned name is not a path: the code that stores a file chooses its location and name.

/// Maximum length of a file name, in bytes.
const MAX_FILE_NAME_BYTES: usize = 120;

/// Returns the last component of a name, without characters unsuitable for a file name or a line of text.
pub(crate) fn clean_file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let cleaned: String = last.chars().filter(|c| !c.is_control() && !is_direction(*c)).collect();
    let cleaned = cleaned.trim_matches(|c: char| c == '.' || c.is_whitespace());
    shorten(cleaned)
}

/// Returns whether a character changes the reading direction, which could disguise `gpj.exe` as `exe.jpg`.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Shortens the stem and keeps the extension.
fn shorten(name: &str) -> String {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= 16 => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let room = MAX_FILE_NAME_BYTES - extension.len();
    let end = stem.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= room).last();
    format!("{}{extension}", stem.get(..end.unwrap_or(0)).unwrap_or_default())
}

/// Returns the file extension for a media type, for platforms that provide only the type.
pub(crate) fn extension_of(mime: &str) -> Option<&'static str> {
    Some(match mime {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "audio/mp4" | "audio/x-m4a" => "m4a",
        "audio/ogg" => "ogg",
        "video/quicktime" => "mov",
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        _ => return None,
    })
}

/// Returns whether users expect a file of this name to be shown as a picture.
pub(crate) fn is_picture(name: &str) -> bool {
    has_extension(name, &["jpg", "jpeg", "png", "webp", "gif", "bmp"])
}

/// Returns whether a name has one of these extensions, ignoring case.
pub(crate) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleaned_name_is_one_path_component() {
        let long = format!("{}.pdf", "é".repeat(200));
        let cases = [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Windows\\x.exe", "x.exe"),
            (".hidden.", "hidden"),
            ("a\u{202e}gpj.exe", "agpj.exe"),
            ("line\nbreak.txt", "linebreak.txt"),
            ("..", ""),
        ];
        for (given, expected) in cases {
            assert_eq!(clean_file_name(given), expected, "{given:?}");
        }
        let short = clean_file_name(&long);
        assert!(short.len() <= MAX_FILE_NAME_BYTES && short.ends_with("é.pdf"), "{short}");
    }

    #[test]
    fn pictures_are_recognised_by_extension() {
        assert!(is_picture("a.PNG") && is_picture("b.c.jpeg"));
        assert!(!is_picture("a.svg") && !is_picture("png") && !is_picture("a.pdf"));
    }
}
