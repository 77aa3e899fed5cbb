//! Checks whether a quote is in people's own words and whether their statements support a fact.

use super::{
    own::evidence,
    transcript::{OwnLine, Transcript},
    verify::verify,
};
use crate::{
    about::Subject,
    text::{is_cjk, split_words, unescape},
};
use pudu_store::recall_words;
use std::collections::HashSet;

/// Minimum share of a fact's significant words in the person's statements.
const MIN_STATED_SHARE: f64 = 0.5;

/// Maximum length of a quote, in characters, so that a quote is an excerpt and not the whole conversation.
const MAX_QUOTE_CHARS: usize = 400;
/// Minimum weight of a quote that proves something: two words, or three characters of a script without spaces.
const MIN_QUOTE_WEIGHT: usize = 3;
/// Weight of a word, relative to a character of a script without spaces.
const WORD_WEIGHT: usize = 2;

/// Finds the person's line that contains a quote. A very short quote must be the whole evidence of its line.
pub(super) fn find_quote<'a>(transcript: &'a Transcript, quote: &str) -> Option<&'a OwnLine> {
    if quote.chars().count() > MAX_QUOTE_CHARS {
        return None;
    }
    let quote = evidence(&unescape(quote));
    let quote = quote.trim_matches(|c: char| c == '"' || c == '\'' || c.is_whitespace());
    let wide = quote.chars().filter(|c| is_cjk(*c)).count();
    let is_enough = (split_words(quote).len() - wide) * WORD_WEIGHT + wide >= MIN_QUOTE_WEIGHT;
    if quote.is_empty() {
        return None;
    }
    transcript.own().iter().find(|line| {
        line.evidence == quote
            || (is_enough && (holds(&line.evidence, quote) || is_around_statement(line, quote)))
    })
}

/// Whether a quote is in the person's words and contains a statement among words that state nothing.
fn is_around_statement(line: &OwnLine, quote: &str) -> bool {
    let mut statements = line.statements.iter().map(|said| evidence(said)).filter(|said| !said.is_empty());
    holds(&line.whole, quote) && statements.any(|said| holds(quote, &said))
}

/// Finds the person's line that contains a quote, enough of a fact's significant words, and all its names and numbers.
pub(super) fn supported<'a>(transcript: &'a Transcript, quote: &str, fact: &str) -> Option<&'a OwnLine> {
    find_quote(transcript, quote).filter(|line| is_stated(fact, &line.stated))
}

/// Finds the person's statement that says the same as a fact, and the supporting words.
pub(super) fn proof<'a>(own: &'a [OwnLine], fact: &str) -> Option<(&'a OwnLine, &'a str)> {
    let subject = Subject::from_fact(fact);
    let says = |said: &&String| {
        is_stated(fact, &recall_words(said)) && verify(fact, said, std::slice::from_ref(*said)).is_ok()
    };
    own.iter().rev().find_map(|line| {
        let found = line.statements.iter().filter(says);
        let best = found.max_by(|a, b| {
            let share = |said: &str| subject.share_in(&recall_words(said));
            share(a).total_cmp(&share(b))
        });
        best.map(|said| (line, said.as_str()))
    })
}

/// Returns all words of people's statements.
pub(super) fn stated(transcript: &Transcript) -> HashSet<String> {
    transcript.own().iter().flat_map(|line| &line.stated).cloned().collect()
}

/// Whether the stated words cover a fact.
fn is_stated(fact: &str, stated: &HashSet<String>) -> bool {
    let is_there = |name: &str| recall_words(name).iter().all(|word| stated.contains(word));
    Subject::from_fact(fact).share_in(stated) >= MIN_STATED_SHARE && names(fact).all(is_there)
}

/// Returns the names and numbers of a fact: capitalised words except the first one, and words with a digit.
fn names(fact: &str) -> impl Iterator<Item = &str> {
    let words = fact.split(|c: char| c.is_whitespace() || ",;:()\"".contains(c));
    let words = words.map(|word| word.trim_end_matches(['.', '!', '?', '\'']).trim_end_matches("'s"));
    words.filter(|word| !word.is_empty()).enumerate().filter_map(|(place, word)| {
        let is_name = place > 0 && word != "I" && word.chars().next().is_some_and(char::is_uppercase);
        let is_number = word.chars().any(|c| c.is_ascii_digit());
        (is_name || is_number).then_some(word)
    })
}

/// Whether a text contains a piece that begins and ends at word boundaries.
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

#[cfg(test)]
mod tests {
    use super::{
        super::transcript::tests::{bot, me},
        *,
    };

    #[test]
    fn a_quote_must_be_the_persons_own_and_state_something() {
        let turns = [
            me("I’m a nurse, and I like <green> tea. 我住在柏林"),
            bot("So you have a dog"),
            me("Rust!"),
            bot("ok"),
        ];
        let transcript = Transcript::from_turns(&turns).unwrap();
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
            assert_eq!(find_quote(&transcript, quote).is_some(), expect, "{quote}");
        }
    }

    #[test]
    fn a_fact_must_match_what_the_person_states() {
        let turns = [
            me("I'm a nurse and drink green tea. What does the doc say about Rome? My boss Eve likes jazz."),
            bot("You live in Rome"),
        ];
        let transcript = Transcript::from_turns(&turns).unwrap();
        for (quote, fact, expect) in [
            ("I'm a nurse", "Works as a nurse", true),
            ("I'm a nurse", "Is a nurse and likes green tea", true),
            ("I'm a nurse", "Lives in Rome", false),
            ("I'm a nurse", "Is a nurse in Rome", false),
            ("I'm a nurse", "Is a nurse with 7 cats", false),
            ("the doc say about Rome", "Lives in Rome", false),
            ("My boss Eve likes jazz", "Has a boss, Eve, who likes jazz", true),
        ] {
            assert_eq!(supported(&transcript, quote, fact).is_some(), expect, "{quote} / {fact}");
            assert_eq!(proof(transcript.own(), fact).is_some(), expect, "{fact}");
        }
    }
}
