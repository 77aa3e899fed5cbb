//! Detects the encoding of names in an archive. Packers that do not declare an encoding use their system's, such as GBK
//! on Chinese Windows.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS};
use std::borrow::Cow;

/// Encodings that the detector can distinguish. Excludes single-byte encodings, because most texts are valid in all of
/// them.
const KNOWN: [&Encoding; 5] = [GBK, BIG5, SHIFT_JIS, EUC_KR, EUC_JP];

/// Decodes the names of one archive.
pub(super) struct NameDecoder {
    /// The encoding of names that are not UTF-8, if known.
    other: Option<&'static Encoding>,
}

impl NameDecoder {
    /// Guesses the encoding of all names that are not UTF-8.
    pub(super) fn guess<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let others: Vec<u8> = names
            .filter(|name| std::str::from_utf8(name).is_err())
            .flat_map(|name| [name, b"\n"].concat())
            .collect();
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(&others, true);
        let guess = detector.guess(None, Utf8Detection::Deny);
        Self { other: KNOWN.into_iter().find(|known| *known == guess) }
    }

    /// Decodes a name. Also returns its encoding if it is not UTF-8. Returns `None` if the encoding is unknown.
    pub(super) fn decode<'a>(&self, name: &'a [u8]) -> Option<(Cow<'a, str>, Option<&'static str>)> {
        if let Ok(name) = std::str::from_utf8(name) {
            return Some((name.into(), None));
        }
        let (text, encoding, failed) = self.other?.decode(name);
        (!failed).then(|| (text, Some(encoding.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{WINDOWS_1251, WINDOWS_1252};

    #[test]
    fn names_are_decoded_with_their_packers_encoding() {
        let decoded = |encoding: &'static Encoding, names: &[&str]| {
            let raw: Vec<Vec<u8>> = names.iter().map(|name| encoding.encode(name).0.into_owned()).collect();
            let decoder = NameDecoder::guess(raw.iter().map(Vec::as_slice));
            raw.iter().map(|raw| decoder.decode(raw).map(|(name, _)| name.into_owned())).collect::<Vec<_>>()
        };
        let check = |encoding: &'static Encoding, names: &[&str]| {
            let expect: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
            assert_eq!(decoded(encoding, names), expect, "{}", encoding.name());
        };
        check(GBK, &["SKILL.md", "assets/说明.md"]);
        check(GBK, &["模板/会议纪要.docx"]);
        check(GBK, &["用法.txt", "示例/数据.csv"]);
        check(SHIFT_JIS, &["資料/テスト.txt", "使い方.md"]);
        check(BIG5, &["說明/使用方法.md", "範例資料.csv"]);
        check(EUC_KR, &["자료/보고서.txt", "사용법.md"]);
        assert_eq!(decoded(WINDOWS_1252, &["Übersicht/Größe.md"]), [None]);
        assert_eq!(decoded(WINDOWS_1251, &["Отчёт.md"]), [None]);
    }
}
