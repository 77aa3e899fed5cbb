//! The subject of a text: its significant words, without those that frame any fact. Used to compare a fact with a
//! person's statements, and a summary with a forgotten fact.
//!
//! Deliberately absent: meaning. Words are compared by stem, so a paraphrase without a word in common counts as new.

use crate::text::sentences;
use pudu_store::{recall_words, telling_words};
use std::{collections::HashSet, sync::LazyLock};

/// Minimum share of a fact's significant words in a sentence about it.
const MIN_SHARE_TO_SPEAK: f64 = 0.5;

/// Words that are common to all English facts.
const FRAMES: &str = "prefer prefers preferred like likes love loves enjoy enjoys hate hates dislike dislikes want wants wish \
     wishes need needs use uses using work works working live lives living call called name named person user usually always \
     often never currently speak speaks know knows think thinks plan plans own owns has favourite favorite interested \
     considers lot thing things says said remember remembers told";

/// The same in Chinese, longest first.
const DENSE_FRAMES: [&str; 30] = [
    "用户", "本人", "偏好", "喜欢", "喜爱", "讨厌", "使用", "希望", "想要", "正在", "目前", "名字", "名叫",
    "居住", "住在", "工作", "打算", "计划", "习惯", "总是", "一直", "经常", "通常", "记住", "我", "他", "她",
    "是", "的", "叫",
];

static FRAME_WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| recall_words(FRAMES));

/// The significant words of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject(HashSet<String>);

impl Subject {
    /// Extracts the significant words of a fact, or all its words if they are all frame words.
    pub(crate) fn from_fact(fact: &str) -> Self {
        let bare = DENSE_FRAMES.iter().fold(fact.to_owned(), |text, frame| text.replace(frame, " "));
        let mut words: HashSet<String> = telling_words(&bare).into_iter().collect();
        words.retain(|word| !FRAME_WORDS.contains(word));
        if words.is_empty() {
            words = recall_words(&bare);
            words.retain(|word| !FRAME_WORDS.contains(word));
        }
        if words.is_empty() {
            words = recall_words(fact);
        }
        Self(words)
    }

    /// Returns the share of the significant words that are in a set of recall words.
    pub(crate) fn share_in(&self, words: &HashSet<String>) -> f64 {
        let found = self.0.iter().filter(|word| words.contains(*word)).count();
        #[expect(clippy::cast_precision_loss, reason = "a few words")]
        let share = found as f64 / self.0.len().max(1) as f64;
        share
    }

    /// Returns the last significant word of a text that the fact also contains.
    pub(crate) fn last_word(&self, text: &str) -> Option<String> {
        telling_words(text).into_iter().rev().find(|word| self.0.contains(word))
    }

    /// Whether a sentence is about the fact.
    pub(crate) fn is_in(&self, sentence: &str) -> bool {
        !self.0.is_empty() && self.share_in(&recall_words(sentence)) >= MIN_SHARE_TO_SPEAK
    }

    /// Removes the sentences about the fact, or about only a part of the fact, from a text. Returns `None` if there are
    /// none.
    pub(crate) fn cut_from(&self, text: &str) -> Option<String> {
        let all = sentences(text);
        let is_part = |sentence: &str| Self::from_fact(sentence).share_in(&self.0) >= MIN_SHARE_TO_SPEAK;
        let stays = |sentence: &&str| !self.is_in(sentence) && !is_part(sentence);
        let left: Vec<&str> = all.iter().copied().filter(stays).collect();
        (left.len() < all.len()).then(|| left.concat().trim().to_owned())
    }
}

/// Whether a sentence of a text is about a fact.
#[must_use]
pub fn speaks_of(text: &str, fact: &str) -> bool {
    let subject = Subject::from_fact(fact);
    sentences(text).into_iter().any(|sentence| subject.is_in(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_recognised_by_its_significant_words() {
        for (fact, said, expect) in [
            ("Prefers green tea", "I always drink green tea", true),
            ("Lives in Rome", "My flat is in Rome", true),
            ("Lives in Rome", "What is remembered of me?", false),
            ("Works as a nurse", "I am a nurse", true),
            ("用户偏好绿茶", "我一直喝绿茶", true),
            ("喜欢茶", "我爱喝茶", true),
            ("住在柏林", "我住在巴黎", false),
            ("Is called Bob", "my name is Alice", false),
        ] {
            assert_eq!(Subject::from_fact(fact).is_in(said), expect, "{fact} / {said}");
        }
    }

    #[test]
    fn sentences_about_a_fact_are_cut() {
        let cut = |fact: &str, text: &str| Subject::from_fact(fact).cut_from(text);
        let text = "Works on birds. Keeps a falcon named Quillon. Drinks tea.";
        assert_eq!(cut("Has a falcon, Quillon", text).as_deref(), Some("Works on birds. Drinks tea."));
        assert_eq!(cut("Lives in Rome", text), None);
        assert_eq!(cut("养了一只猎鹰", "喜欢鸟。养了猎鹰。爱喝茶。").as_deref(), Some("喜欢鸟。爱喝茶。"));
        assert_eq!(cut("Works on birds", "Works on birds").as_deref(), Some(""));
    }
}
