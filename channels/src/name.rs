//! Names of files as people gave them, made fit to be shown and kept.
//!
//! Not a path: where a file is put, and under which name there, is decided by the one who keeps it.

/// Maximum length of a file name, in bytes.
const MAX_FILE_NAME_BYTES: usize = 120;

/// Returns the last part of a name without characters that a file name or a line of text should not have.
pub(crate) fn clean_file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last.chars().filter(|c| !c.is_control() && !is_direction(*c)).collect();
    let kept = kept.trim_matches(|c: char| c == '.' || c.is_whitespace());
    shorten(kept)
}

/// Marks that turn the reading direction make `exe.jpg` of `gpj.exe`.
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

/// Returns the ending for a media type, where a platform provides only that.
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

/// Returns whether people expect to see a file of this name as a picture.
pub(crate) fn is_picture(name: &str) -> bool {
    has_extension(name, &["jpg", "jpeg", "png", "webp", "gif", "bmp"])
}

/// Returns whether a name ends in one of these, whatever their case.
pub(crate) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_without_tricks() {
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
    fn pictures_are_known_by_their_names() {
        assert!(is_picture("a.PNG") && is_picture("b.c.jpeg"));
        assert!(!is_picture("a.svg") && !is_picture("png") && !is_picture("a.pdf"));
    }
}
