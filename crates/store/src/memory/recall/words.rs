//! Splits texts into the words that searches find. Both engines index these words, so both find the same entries.
//!
//! Words are folded (width, case, accents) and, if they are plain ASCII, reduced to their English stem. Scripts without
//! spaces between words (Han, kana, hangul's long compounds, Thai and its neighbours) become pairs of adjacent
//! characters; Chinese characters are also indexed one by one. After a change to these rules, existing entries have to
//! be reindexed.
//!
//! Deliberately absent: a dictionary. Most Chinese words have two characters, and pairs find them without one.

use frostem::{Algorithm, Stemmer};
use std::collections::HashSet;
use unicode_normalization::UnicodeNormalization;

/// Maximum length of a word, in characters. Longer words, such as checksums, are truncated and found by their
/// beginning.
const MAX_WORD_CHARS: usize = 32;
/// Maximum number of different words in a question.
const MAX_QUERY_WORDS: usize = 96;
/// Maximum number of characters read from the beginning of a longer question, and from its end.
const MAX_QUERY_CHARS: usize = 2_000;

/// English words that are ignored in searches.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be",
    "been", "before", "being", "but", "by", "can", "could", "d", "did", "didn", "do", "does", "doesn",
    "doing", "don", "ever", "for", "from", "get", "give", "good", "got", "had", "has", "have", "having",
    "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is",
    "isn", "it", "its", "just", "ll", "m", "may", "me", "might", "mine", "morning", "must", "my", "no",
    "not", "now", "of", "ok", "okay", "on", "or", "our", "ours", "please", "re", "s", "shall", "she",
    "should", "so", "some", "t", "tell", "than", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "today", "too", "us", "ve", "very", "was", "wasn", "we",
    "were", "what", "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "won",
    "would", "yes", "you", "your", "yours",
];

/// Chinese and Japanese words that are ignored in searches, longest first. A question is split at them, so that no
/// pair spans them.
const STOP_RUNS: &[&str] = &[
    "为什么",
    "是不是",
    "有没有",
    "什么样",
    "什么",
    "怎么",
    "怎样",
    "如何",
    "哪里",
    "哪儿",
    "哪个",
    "哪些",
    "哪家",
    "哪种",
    "多少",
    "是谁",
    "为何",
    "何时",
    "时候",
    "请问",
    "告诉",
    "谢谢",
    "你好",
    "今天",
    "早上好",
    "帮我",
    "我们",
    "你们",
    "他们",
    "她们",
    "自己",
    "这个",
    "那个",
    "一个",
    "可以",
    "ですか",
    "ました",
    "ません",
    "ください",
    "です",
    "ます",
    "的",
    "了",
    "吗",
    "呢",
    "吧",
    "啊",
    "呀",
    "嘛",
    "着",
    "过",
    "谁",
    "几",
    "哪",
];

/// Chinese characters that are ignored in searches if they are single.
const STOP_CHARS: &str = "一不与个为也了人什他们会你其到去又只吗呢和在多大她好对小就已年得您我所把时是有来此没然用的着给自被要让说谁跟还这过那都里";

/// Returns the distinct words of a text in the form of the index: folded, English words as their stem, scripts without
/// spaces as pairs of characters.
#[must_use]
pub fn recall_words(text: &str) -> HashSet<String> {
    split_words(text).into_iter().collect()
}

/// Returns the distinct words that describe the topic of a text, without stop words and single characters of a script
/// without spaces.
#[must_use]
pub fn telling_words(text: &str) -> Vec<String> {
    let mut words = query_words(text);
    words.retain(|word| !is_faint(word));
    words
}

/// Returns the words of a text, in order and with repetitions.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for run in runs(text) {
        run.words_into(&mut found);
    }
    found
}

/// Returns the distinct words of a question, without stop words. Only the beginning and the end of a very long
/// question are read.
pub(crate) fn query_words(text: &str) -> Vec<String> {
    let (head, tail) = ends(text);
    let mut found = Vec::new();
    for run in runs(head).into_iter().chain(runs(tail)) {
        match run {
            CharRun::Spaced(word) if STOP_WORDS.contains(&word.as_str()) => {}
            CharRun::Spaced(_) => run.words_into(&mut found),
            CharRun::Dense(run) => without_stops(&run).for_each(|part| pairs(part, &mut found)),
        }
    }
    let mut seen = HashSet::new();
    found.retain(|word| !STOP_CHARS.contains(word) && seen.insert(word.clone()));
    if found.len() > MAX_QUERY_WORDS {
        found.drain(MAX_QUERY_WORDS / 2..found.len() - MAX_QUERY_WORDS / 2);
    }
    found
}

/// A run of adjacent characters of the same kind, folded.
enum CharRun {
    /// A word between spaces.
    Spaced(String),
    /// Words of a script without spaces.
    Dense(String),
}

impl CharRun {
    fn words_into(&self, found: &mut Vec<String>) {
        match self {
            Self::Spaced(word) => found.push(stem(word)),
            Self::Dense(run) => pairs(run, found),
        }
    }
}

fn runs(text: &str) -> Vec<CharRun> {
    let (mut all, mut run, mut dense) = (Vec::new(), String::new(), false);
    for c in fold(text).chain([' ']) {
        let joined = is_word(c) && (run.is_empty() || is_dense(c) == dense);
        if !joined && !run.is_empty() {
            let run = std::mem::take(&mut run);
            all.push(if dense { CharRun::Dense(run) } else { CharRun::Spaced(run) });
        }
        if is_word(c) {
            dense = is_dense(c);
            run.push(c);
        }
    }
    all
}

/// Folds width, compatibility forms, accents and case. Hangul and voiced kana are recomposed.
fn fold(text: &str) -> impl Iterator<Item = char> {
    let plain = text.nfkd().filter(|c| !matches!(c, '\u{300}'..='\u{36f}'));
    plain.flat_map(char::to_lowercase).nfc()
}

/// Whether a character is part of a word. Includes the vowel signs of Thai and Indic scripts, which are marks and not
/// letters.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17d3}')
}

/// Whether a character's script has no spaces between words.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' // Thai, Lao, Burmese, Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // kana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{ac00}'..='\u{d7a3}' // hangul
        | '\u{20000}'..='\u{3ffff}')
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a word is a single character of a script that is split into pairs. It helps to find entries, but is weak
/// evidence of a match.
pub(super) fn is_faint(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_dense) && chars.next().is_none()
}

fn stem(word: &str) -> String {
    let word: String = word.chars().take(MAX_WORD_CHARS).collect();
    if !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word;
    }
    Stemmer::new(Algorithm::English).stem(&word).into_owned()
}

/// Adds the pairs of adjacent characters, then each single Chinese character, because it has its own meaning: a
/// question about a 猫咪 may mean a 橘猫. A run of one character is one word.
fn pairs(run: &str, found: &mut Vec<String>) {
    let chars: Vec<char> = run.chars().collect();
    match chars.as_slice() {
        [] => {}
        [only] => found.push(only.to_string()),
        more => {
            found.extend(more.windows(2).map(String::from_iter));
            found.extend(more.iter().filter(|c| is_han(**c)).map(char::to_string));
        }
    }
}

/// Returns the parts of a run between stop words.
fn without_stops(run: &str) -> impl Iterator<Item = &str> {
    let (mut parts, mut rest, mut part) = (Vec::new(), run, run);
    while let Some(c) = rest.chars().next() {
        let stop = STOP_RUNS.iter().find_map(|stop| rest.strip_prefix(stop));
        let after = stop.unwrap_or_else(|| rest.split_at(c.len_utf8()).1);
        if stop.is_some() {
            parts.push(part.strip_suffix(rest).unwrap_or_default());
            part = after;
        }
        rest = after;
    }
    parts.push(part);
    parts.into_iter().filter(|part| !part.is_empty())
}

/// Returns the beginning and the end of a long text, without overlap.
fn ends(text: &str) -> (&str, &str) {
    let Some((at, _)) = text.char_indices().nth(MAX_QUERY_CHARS) else { return (text, "") };
    let (head, rest) = text.split_at(at);
    let tail = rest.char_indices().rev().nth(MAX_QUERY_CHARS - 1).map_or(0, |(at, _)| at);
    (head, rest.split_at(tail).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(table: &[(&str, &str)], split: fn(&str) -> Vec<String>) {
        for (text, expected) in table {
            assert_eq!(split(text).join(" "), *expected, "{text:?}");
        }
    }

    /// These words are stored: after a change to them, entries must be reindexed.
    #[test]
    fn a_text_is_split_into_these_words() {
        check(
            &[
                ("", ""),
                (" \t\0 — !?", ""),
                ("Caroline's adopting two puppies", "carolin s adopt two puppi"),
                ("Zürich ＡＢＣ １２３ ﬁne Ⅷ", "zurich abc 123 fine viii"),
                ("İstanbul ΑΘΗΝΑ Йод", "istanbul αθηνα иод"),
                ("foo_bar/baz.qux v2 3.5", "foo bar baz qux v2 3 5"),
                ("我养了一只猫", "我养 养了 了一 一只 只猫 我 养 了 一 只 猫"),
                ("我 爱 Rust语言", "我 爱 rust 语言 语 言"),
                ("ﾎﾟｹﾓﾝが好き", "ポケ ケモ モン ンが が好 好き 好"),
                ("한국어를 배워요", "한국 국어 어를 배워 워요"),
                ("𠮷野家", "𠮷野 野家 𠮷 野 家"),
                ("I ❤️ 🍕🍕", "i"),
                ("ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
                ("हिन्दी में", "हिन्दी में"),
                ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            ],
            split_words,
        );
    }

    #[test]
    fn a_question_keeps_only_significant_words() {
        check(
            &[
                ("What is the name of Ann's dog?", "name ann dog"),
                ("dog DOG dogs", "dog"),
                ("\"dog\" AND NEAR(cat*) -x:y", "dog near cat x y"),
                ("李娜喜欢什么运动？", "李娜 娜喜 喜欢 李 娜 喜 欢 运动 运 动"),
                ("他是谁的", ""),
                ("你好吗", ""),
                ("Good morning, thanks!", ""),
                ("猫", "猫"),
                ("我们的猫", "猫"),
                ("為什麼", "為什 什麼 為 麼"),
            ],
            query_words,
        );
    }

    #[test]
    fn a_giant_question_is_read_at_both_ends_only() {
        let giant = format!("alpha {} omega", "middle ".repeat(200_000));
        assert_eq!(query_words(&giant), ["alpha", "middl", "iddl", "omega"]);
        let many: String = (0..100_000).map(|n| format!("w{n} ")).collect();
        let many = query_words(&many);
        assert_eq!(many.len(), MAX_QUERY_WORDS);
        assert_eq!([many.first(), many.last()].map(Option::unwrap), ["w0", "w99999"]);
        assert_eq!(ends(&"猫".repeat(3_000)).1.chars().count(), 1_000);
        assert_eq!(ends(&"猫".repeat(9_000)).1.chars().count(), MAX_QUERY_CHARS);
    }
}
