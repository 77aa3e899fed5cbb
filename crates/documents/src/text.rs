//! Bytes to text, in whatever they are written.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// So much of a text is looked at to guess what it is written in, in bytes.
const SAMPLE: usize = 256 * 1024;
/// A page says what it is written in within its first bytes.
const DECLARED: usize = 2048;

/// Reads text: by its byte order mark, as UTF-8 if it is that, as it says itself, or as it looks.
pub(crate) fn decode(bytes: &[u8]) -> String {
    if Encoding::for_bom(bytes).is_none() && std::str::from_utf8(bytes).is_err() {
        let encoding = declared(bytes).unwrap_or_else(|| guessed(bytes));
        return encoding.decode_without_bom_handling(bytes).0.into_owned();
    }
    // A byte order mark comes before what is asked for.
    UTF_8.decode(bytes).0.into_owned()
}

/// Returns the encoding that a page's `charset=` names.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(bytes.get(..DECLARED).unwrap_or(bytes)).to_ascii_lowercase();
    let (_, said) = head.split_once("charset=")?;
    let label = said.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(label.len());
    Encoding::for_label(label.get(..end)?.as_bytes())
}

fn guessed(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes.get(..SAMPLE).unwrap_or(bytes), true);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        let gbk = encoding_rs::GB18030.encode("名称,数值\n你好世界,再见朋友\n").0.into_owned();
        let page = encoding_rs::SHIFT_JIS.encode("<meta charset=\"shift_jis\">日本語").0.into_owned();
        for (bytes, expect) in [
            ("grüße".as_bytes(), "grüße"),
            (b"\xEF\xBB\xBFa", "a"),
            (b"\xFF\xFEa\0\xFC\0", "aü"),
            (b"gr\xFC\xDFe aus K\xF6ln", "grüße aus Köln"),
            (&gbk, "名称,数值\n你好世界,再见朋友\n"),
            (&page, "<meta charset=\"shift_jis\">日本語"),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes), expect);
        }
    }
}
