//! Checks that both catalogues are complete.

use super::{catalogue::Catalogue, *};

const ENGLISH: &str = include_str!("../catalogue/en.ftl");
const CHINESE: &str = include_str!("../catalogue/zh-Hans.ftl");

fn read(language: &str, source: &str) -> Catalogue {
    Catalogue::parse(language, language, source).unwrap()
}

fn is_chinese(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}')
}

#[test]
fn the_catalogues_have_the_same_texts_with_the_same_arguments() {
    assert_eq!(read("en", ENGLISH).differences(&read("zh", CHINESE)), Vec::<String>::new());
}

#[test]
fn a_text_or_argument_missing_in_one_language_is_reported() {
    let check = |en: &str, zh: &str, expected: &str| {
        assert_eq!(read("en", en).differences(&read("zh", zh)), [expected], "{en} {zh}");
    };
    check("a = A\nb = B", "a = 甲", "`b` has no text in zh");
    check("a = A", "a = 甲\nb = 乙", "`b` has no text in en");
    check("a = A { $x }", "a = 甲", "`a` has the arguments [\"x\"] in en and [] in zh");
    let plural = "a = { $x ->\n    [one] A\n   *[other] { $y }\n}";
    check(plural, "a = { $x }", "`a` has the arguments [\"x\", \"y\"] in en and [\"x\"] in zh");
    for broken in
        ["a = ", "a = A\na = B", "a = { b }", "a = A\n    .b = B", "-a = A", "a = { $x ->\n   *[few] A\n}"]
    {
        assert!(Catalogue::parse("en", "en", broken).is_err(), "{broken}");
    }
}

#[test]
fn each_text_is_complete_in_each_language() {
    for language in Language::ALL {
        for (count, (name, text)) in [0, 1, 2]
            .iter()
            .flat_map(|count| samples(language, *count).into_iter().map(move |sample| (count, sample)))
        {
            let place = format!("{language:?} {name} {count}: {text:?}");
            assert!(!text.trim().is_empty() || name == "sentence_gap", "{place}");
            assert!(!text.contains(name) || !name.contains('_'), "a raw key: {place}");
            assert!(!text.contains(['{', '}', '$', '\u{2068}', '\u{2069}']), "{place}");
        }
    }
    let (one, many) = (Language::English.stopped_and_dropped(1), Language::English.stopped_and_dropped(2));
    assert_eq!(one, "Stopped. One waiting message was dropped.");
    assert_eq!(many, "Stopped. 2 waiting messages were dropped.");
    assert_eq!(
        Language::Chinese.mode_unknown("x"),
        "没有 `x` 这个模式，可选 `queue`、`steer` 或 `interrupt`。"
    );
}

/// Returns a sample without its arguments.
fn own_words(sample: &str) -> String {
    sample.split('›').map(|part| part.split('‹').next().unwrap_or_default()).collect()
}

#[test]
fn chinese_is_written_with_chinese_words_and_punctuation() {
    let english = samples(Language::English, 2);
    for ((name, text), (_, english)) in samples(Language::Chinese, 2).into_iter().zip(english) {
        let chars: Vec<char> = text.chars().collect();
        let half = |pair: &[char]| match pair {
            [before, after] => is_chinese(*before) && ",.;:?!()\"".contains(*after),
            _ => false,
        };
        assert!(!chars.windows(2).any(half), "{name}: {text}");
        let has_words = own_words(&english).chars().any(|c| c.is_ascii_alphabetic());
        assert_eq!(text.chars().any(is_chinese), has_words, "{name}: {text}");
    }
}

#[test]
fn a_user_is_answered_in_the_language_that_the_platform_reports() {
    let table = [
        ("en", Some(Language::English)),
        ("en-GB", Some(Language::English)),
        ("zh", Some(Language::Chinese)),
        ("zh-CN", Some(Language::Chinese)),
        ("zh_TW", Some(Language::Chinese)),
        ("zh-hant", Some(Language::Chinese)),
        ("ZH-Hans", Some(Language::Chinese)),
        ("zh_CN.UTF-8", Some(Language::Chinese)),
        ("de", None),
        ("zhx", None),
        ("", None),
    ];
    for (tag, language) in table {
        assert_eq!(Language::of_person(tag), language, "{tag}");
    }
}

#[test]
fn a_language_is_stored_as_its_tag() {
    for language in Language::ALL {
        let stored = serde_json::to_string(&language).unwrap();
        assert_eq!(serde_json::from_str::<Language>(&stored).unwrap(), language);
    }
    assert_eq!(serde_json::to_string(&Language::Chinese).unwrap(), "\"zh-Hans\"");
    assert_eq!(serde_json::from_str::<Language>("\"eo\"").unwrap(), Language::English);
}
