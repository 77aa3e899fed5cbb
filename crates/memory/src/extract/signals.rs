//! Hints for the model about the intent of people's latest messages, detected by English and Chinese words.

use regex::Regex;
use std::{collections::BTreeSet, sync::LazyLock};

/// Intent of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// They correct something.
    Correction,
    /// They confirm something.
    Reinforcement,
    /// They express a preference.
    Preference,
    /// They say who they are.
    Identity,
    /// They name a goal.
    Goal,
    /// They decide something.
    Decision,
}

/// All signals of a transcript.
pub type Signals = BTreeSet<Signal>;

impl Signal {
    /// Returns the hint for the model.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Correction => {
                "The person corrects something. Store it as `correction`, with the mistake in `sourceError`."
            }
            Self::Reinforcement => {
                "The person confirms something. List facts that they confirm in `factsToReinforce`."
            }
            Self::Preference => "The person tells a preference.",
            Self::Identity => "The person tells who they are.",
            Self::Goal => "The person tells what they want to reach.",
            Self::Decision => "The person decides something.",
        }
    }
}

const PATTERNS: [(Signal, &str); 6] = [
    (
        Signal::Correction,
        r"\b(that'?s (not right|wrong|incorrect)|you('re| are) wrong|you misunderstood|not what i (meant|asked)|actually,? (i|it|no)|no, (i|it|that)|i (meant|said)|stop (doing|using)|don'?t (do|use) (that|this))\b|不对|错了|不是这样|你理解错|我的意思是|应该是|别再|不要再|改成",
    ),
    (
        Signal::Reinforcement,
        r"\b(exactly|that'?s right|perfect|yes,? (exactly|right|please keep)|keep doing|just like that|still (true|the case))\b|没错|正是|完全正确|就是这样|继续保持|还是这样",
    ),
    (
        Signal::Preference,
        r"\b(i (really )?(prefer|like|love|hate|dislike|enjoy|always use|never use)|my favou?rite|please always|from now on)\b|我(更)?喜欢|我不喜欢|我讨厌|我偏好|我习惯|以后(都|请)",
    ),
    (
        Signal::Identity,
        r"\b(my name is|call me|i('m| am) (a|an|the|from)|i work (as|at|for|in)|i live in)\b|我叫|我是|我在.{1,12}(工作|上班)|我住",
    ),
    (
        Signal::Goal,
        r"\b(my goal|i want to|i('m| am) trying to|i plan to|i hope to|i('m| am) working (on|towards))\b|我的目标|我想要|我打算|我计划|我希望",
    ),
    (
        Signal::Decision,
        r"\b(i('ve| have)? decided|we('ve| have)? decided|let'?s go with|we('ll| will) use|i('ll| will) go with)\b|我决定|我们决定|就用|选定|确定用",
    ),
];

static SIGNALS: LazyLock<Vec<(Signal, Regex)>> = LazyLock::new(|| {
    let compiled =
        |(signal, pattern): &(Signal, &str)| Some((*signal, Regex::new(&format!("(?i){pattern}")).ok()?));
    PATTERNS.iter().filter_map(compiled).collect()
});

/// Finds the signals of a text.
pub(super) fn signals(text: &str) -> impl Iterator<Item = Signal> {
    let text = text.replace('\u{2019}', "'");
    SIGNALS.iter().filter(move |(_, pattern)| pattern.is_match(&text)).map(|(signal, _)| *signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_found_in_both_languages() {
        assert_eq!(SIGNALS.len(), PATTERNS.len(), "every pattern compiles");
        for (text, expect) in [
            ("No, that's wrong", &[Signal::Correction][..]),
            ("不对，应该是 3.12", &[Signal::Correction]),
            ("Exactly!", &[Signal::Reinforcement]),
            ("I\u{2019}m a nurse and I prefer tea", &[Signal::Preference, Signal::Identity]),
            ("我喜欢绿茶", &[Signal::Preference]),
            ("let's go with Rust", &[Signal::Decision]),
            ("what is the weather", &[]),
        ] {
            assert_eq!(signals(text).collect::<Vec<_>>(), expect, "{text}");
        }
    }
}
