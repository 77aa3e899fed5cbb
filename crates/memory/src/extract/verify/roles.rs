//! Sides of a comparison and ends of a route: words that a fact must not swap.

use pudu_store::telling_words;
use regex::Regex;
use std::{collections::HashMap, sync::LazyLock};

/// Role of a word in a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordRole {
    Plain,
    /// The rejected side of a comparison: "over Go", "than coffee".
    Against,
    /// The place or thing that a person leaves.
    From,
    /// The place or thing to which a person moves.
    To,
}

/// Words that end the role of the nouns after them.
const RESET: &str = " in at on with and but or for by as of because near when while ";

/// Beginnings of words that express a choice between two things.
const CHOICES: [&str; 9] = ["prefer", "rather", "choose", "chose", "pick", "like", "love", "better", "more"];

/// The rejected side of a Chinese comparison.
static DENSE_AGAINST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:比起|相比|不如|而不是|而非|比)(\p{Han}{1,6}?|\w+?)(?:来|，|,|更|我|还|要|好|$)").ok()
});

/// Whether a word has different roles in a fact and in its source clause.
pub(super) fn are_swapped(fact: &str, said: &str) -> bool {
    let (fact_roles, said_roles) = (roles(fact), roles(said));
    let differs = |(word, role): (&String, &WordRole)| {
        let Some(other) = said_roles.get(word) else { return false };
        match (role, other) {
            (WordRole::Against, other) | (other, WordRole::Against) => *other != WordRole::Against,
            (WordRole::From, WordRole::To) | (WordRole::To, WordRole::From) => true,
            _ => false,
        }
    };
    fact_roles.iter().any(differs) || is_dense_swap(fact, said)
}

fn is_dense_swap(fact: &str, said: &str) -> bool {
    let Some(pattern) = DENSE_AGAINST.as_ref() else { return true };
    let against =
        |text: &str| pattern.captures(text).and_then(|found| Some(found.get(1)?.as_str().to_owned()));
    match (against(said), against(fact)) {
        (Some(said), Some(fact)) => said != fact,
        (Some(said), None) => fact.contains(said.as_str()),
        (None, _) => false,
    }
}

fn roles(text: &str) -> HashMap<String, WordRole> {
    let plain = text.to_lowercase().replace("instead of", "instead").replace("rather than", "instead");
    let plain = plain.replace("more than", "");
    let chooses = CHOICES.iter().any(|verb| plain.contains(verb));
    let (mut role, mut before, mut found) = (WordRole::Plain, "", HashMap::new());
    for word in plain.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-') {
        role = match word {
            "instead" => WordRole::Against,
            "over" | "than" if chooses || plain.split_whitespace().nth(1) == Some("over") => {
                WordRole::Against
            }
            "to" if plain.contains("prefer") && !before.starts_with("prefer") => WordRole::Against,
            "from" => WordRole::From,
            "to" | "into" => WordRole::To,
            word if RESET.contains(&format!(" {word} ")) && !word.is_empty() => WordRole::Plain,
            _ => role,
        };
        for stem in telling_words(word) {
            found.entry(stem).or_insert(role);
        }
        before = word;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_not_swapped() {
        for (fact, said, expect) in [
            ("Prefers Rust over Go", "I prefer Rust over Go", false),
            ("Prefers Go over Rust", "I prefer Rust over Go", true),
            ("Prefers Go", "I prefer Rust over Go", true),
            ("Prefers Rust", "I prefer Rust over Go", false),
            ("Prefers tea to coffee", "I'd rather have tea than coffee", false),
            ("Prefers coffee", "I'd rather have tea than coffee", true),
            ("Moved from Oslo to Rome", "I moved from Oslo to Rome", false),
            ("Moved to Oslo", "I moved from Oslo to Rome", true),
            ("Lives in Rome", "I moved from Oslo to Rome", false),
            ("Prefers to work alone", "I like to work alone", false),
            ("Has worked here for ten years", "I have worked here for over ten years", false),
            ("更喜欢咖啡", "比起茶我更喜欢咖啡", false),
            ("更喜欢茶", "比起茶我更喜欢咖啡", true),
        ] {
            assert_eq!(are_swapped(fact, said), expect, "{fact} / {said}");
        }
    }
}
