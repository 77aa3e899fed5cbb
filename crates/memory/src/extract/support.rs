//! Checks whether words were said, and whether they only repeat what is known.

use super::{
    own::evidence,
    transcript::{OwnLine, Transcript},
};
use crate::text::{is_cjk, unescape, words};
use std::collections::HashSet;

/// Maximum length of a quote, in characters: it is a piece, and not the conversation.
const MAX_QUOTE_CHARS: usize = 400;
/// Smallest quote that proves something: two words, or three characters of a script without spaces.
const MIN_QUOTE_WEIGHT: usize = 3;
/// Weight of a word, where such a character has 1.
const WORD_WEIGHT: usize = 2;
/// Words that turn a sentence around.
const NEGATIONS: [&str; 14] =
    ["not", "no", "never", "don", "doesn", "didn", "isn", "without", "cannot", "不", "没", "别", "无", "非"];

/// Finds the person's words that a quote is of. A quote of a word or two proves something only if the message has no more.
pub(super) fn said<'a>(transcript: &'a Transcript, quote: &str) -> Option<&'a OwnLine> {
    if quote.chars().count() > MAX_QUOTE_CHARS {
        return None;
    }
    let quote = evidence(&unescape(quote));
    let quote = quote.trim_matches(|c: char| c == '"' || c == '\'' || c.is_whitespace());
    let wide = quote.chars().filter(|c| is_cjk(*c)).count();
    let is_enough = (words(quote).len() - wide) * WORD_WEIGHT + wide >= MIN_QUOTE_WEIGHT;
    if quote.is_empty() {
        return None;
    }
    transcript.own().iter().find(|line| line.evidence == quote || (is_enough && holds(&line.evidence, quote)))
}

/// Whether a text has a piece in it that begins and ends where words do.
fn holds(text: &str, piece: &str) -> bool {
    let joins = |a: Option<char>, b: Option<char>| match (a, b) {
        (Some(a), Some(b)) => a.is_alphanumeric() && b.is_alphanumeric() && !is_cjk(a) && !is_cjk(b),
        _ => false,
    };
    text.match_indices(piece).any(|(at, found)| {
        let (before, rest) = text.split_at(at);
        let after = rest.strip_prefix(found).unwrap_or_default();
        !joins(before.chars().next_back(), piece.chars().next())
            && !joins(piece.chars().next_back(), after.chars().next())
    })
}

/// Whether a text has no word that a known one does not have, and means no opposite.
pub(super) fn restates(text: &str, known: &str) -> bool {
    let (new, old): (HashSet<String>, HashSet<String>) =
        (words(text).into_iter().collect(), words(known).into_iter().collect());
    let turned = |words: &HashSet<String>| NEGATIONS.iter().any(|no| words.contains(*no));
    !new.is_empty() && new.is_subset(&old) && turned(&new) == turned(&old)
}

/// Share of a text's words that some texts have.
pub(super) fn share_of_words<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> f64 {
    let known: HashSet<String> = known.flat_map(words).collect();
    let words = words(text);
    let found = words.iter().filter(|word| known.contains(*word)).count();
    #[expect(clippy::cast_precision_loss, reason = "a few words")]
    let share = found as f64 / words.len().max(1) as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::{
        super::transcript::tests::{bot, me},
        *,
    };

    #[test]
    fn a_quote_is_the_persons_own_and_says_something() {
        let turns = [
            me("I’m a nurse, and I like <green> tea. 我住在柏林"),
            bot("So you have a dog"),
            me("Rust!"),
            bot("ok"),
        ];
        let transcript = Transcript::of(&turns).unwrap();
        for (quote, expect) in [
            ("I'm a nurse", true),
            ("i like  <GREEN> tea", true),
            ("I like &lt;green&gt; tea", true),
            ("\"like <green> tea.\"", true),
            ("住在柏林", true),
            ("Rust", true),
            ("nurse", false),
            ("you have a dog", false),
            ("urse, and I", false),
            ("I like green tea", false),
            ("柏林", false),
            ("", false),
            ("\"\"", false),
        ] {
            assert_eq!(said(&transcript, quote).is_some(), expect, "{quote}");
        }
    }

    #[test]
    fn a_restatement_has_no_word_of_its_own_and_no_opposite() {
        for (text, known, expect) in [
            ("Likes tea", "Likes green tea", true),
            ("likes TEA.", "Likes tea", true),
            ("Likes coffee", "Likes tea", false),
            ("I drink tea", "I don't drink tea", false),
            ("喜欢茶", "喜欢绿茶", true),
            ("喜欢茶", "不喜欢茶", false),
            ("", "a", false),
        ] {
            assert_eq!(restates(text, known), expect, "{text} / {known}");
        }
    }
}
