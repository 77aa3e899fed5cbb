//! Compares a proposed fact with its supporting statements, between the model's proposal and the commit. Pure.
//!
//! Each clause of the fact is compared with the statement's clauses about the same thing: its subject, whether it is
//! true now, was true or is not true, whether it is certain, wanted or only imagined, and the side of a comparison.
//! All of these must agree, so a stored fact never contradicts its quote. English and Chinese are compared by words;
//! in any other language only an exact copy of a sentence is accepted.
//!
//! Deliberately absent: grammar and meaning. A doubtful fact is refused with a reason, and the person can repeat it.

mod clauses;
mod extent;
mod frame;
mod language;
mod mood;
mod roles;

use super::refused::RefusedReason;
use crate::{
    about::Subject,
    secrets::has_secret,
    text::{normalized, sentences, share_of_words, split_words},
};
use clauses::{ClauseSubject, clauses};
use language::SentenceLanguage;
use mood::Mood;
use pudu_store::recall_words;
use std::collections::HashSet;

/// Maximum difference between two shares of a fact's words that count as equal.
const SAME_SHARE: f64 = 1e-6;
/// Minimum share of a fact's words in a statement about it.
const MIN_SHARE: f64 = 0.34;

/// Checks that a fact says the same as the statements of its source message. `quote` is the model's evidence.
pub(super) fn verify(fact: &str, quote: &str, statements: &[String]) -> Result<(), RefusedReason> {
    if has_secret(fact) || has_secret(quote) {
        return Err(RefusedReason::Secret);
    }
    let about: Vec<&String> = statements.iter().filter(|said| speaks_of(said, fact, quote)).collect();
    match about.iter().map(|said| SentenceLanguage::detect(said)).max() {
        Some(SentenceLanguage::Other) => return verify_copy(fact, &about),
        Some(SentenceLanguage::English | SentenceLanguage::Chinese) => {}
        None => return Err(RefusedReason::Opposite),
    }
    if extent::is_withdrawn(fact, &statements.join(" ")) {
        return Err(RefusedReason::Outdated);
    }
    let said: Vec<JudgedClause> = about.iter().flat_map(|said| claims(said)).collect();
    claims(fact).iter().try_for_each(|part| verify_part(part, fact, &said))
}

/// Whether two texts with the same words agree in negation, time, doubt and the sides of comparisons.
fn agree(text: &str, other: &str) -> bool {
    let (mood, other_mood) = (Mood::from_clause(text), Mood::from_clause(other));
    mood.compare(&other_mood).is_ok() && other_mood.compare(&mood).is_ok() && !roles::are_swapped(text, other)
}

/// Whether all words of a text are in a known text, and the text does not mean the opposite.
pub(super) fn restates(text: &str, known: &str) -> bool {
    let (new, old): (HashSet<String>, HashSet<String>) =
        (split_words(text).into_iter().collect(), split_words(known).into_iter().collect());
    !new.is_empty() && new.is_subset(&old) && agree(text, known)
}

/// Checks that a summary says the same as the person's statements, except for sentences that restate `known` texts.
pub(super) fn verify_summary(
    summary: &str,
    statements: &[String],
    known: &[&str],
) -> Result<(), RefusedReason> {
    sentences(summary).into_iter().map(str::trim).filter(|sentence| !sentence.is_empty()).try_for_each(
        |sentence| {
            if has_secret(sentence) {
                return Err(RefusedReason::Secret);
            }
            let is_stated = statements.iter().any(|said| speaks_of(said, sentence, sentence));
            if known.iter().any(|known| restates(sentence, known)) || !is_stated {
                return Ok(());
            }
            verify(sentence, sentence, statements)
        },
    )
}

/// Whether a statement contains the quote or enough words of the fact.
fn speaks_of(said: &str, fact: &str, quote: &str) -> bool {
    let (said_plain, quote) = (normalized(said), normalized(quote));
    let has_quote = said_plain.contains(quote.as_str()) || quote.contains(said_plain.as_str());
    has_quote || Subject::from_fact(fact).share_in(&recall_words(said)) >= MIN_SHARE
}

/// Checks that a fact is an exact copy of a sentence.
fn verify_copy(fact: &str, about: &[&String]) -> Result<(), RefusedReason> {
    let fact = normalized(fact);
    about.iter().any(|said| normalized(said) == fact).then_some(()).ok_or(RefusedReason::Language)
}

/// A clause with its mood.
struct JudgedClause {
    text: String,
    mood: Mood,
    /// Its own subject, or that of the previous clause.
    subject: ClauseSubject,
}

fn claims(text: &str) -> Vec<JudgedClause> {
    let is_imagined = mood::is_imagined(text);
    let mut subject = ClauseSubject::Person;
    let claim = |clause: String| {
        subject = match clauses::subject(&clause) {
            // "She" is the person named in an earlier clause.
            Some(ClauseSubject::Another(None)) if matches!(subject, ClauseSubject::Another(Some(_))) => {
                subject.clone()
            }
            Some(own) => own,
            None => subject.clone(),
        };
        let mut mood = Mood::from_clause(&clause);
        mood.unreal |= is_imagined;
        JudgedClause { mood, subject: subject.clone(), text: clause }
    };
    clauses(text).into_iter().map(claim).collect()
}

fn verify_part(part: &JudgedClause, fact: &str, said: &[JudgedClause]) -> Result<(), RefusedReason> {
    let subject = Subject::from_fact(&part.text);
    let last = subject.last_word(&part.text);
    let shares: Vec<f64> = said.iter().map(|claim| subject.share_in(&recall_words(&claim.text))).collect();
    let best = shares.iter().copied().fold(0.0, f64::max);
    if best <= 0.0 {
        // This part has none of the person's words. Another rule checks the share of words of the whole fact.
        return Ok(());
    }
    let mut nearest: Vec<&JudgedClause> = said
        .iter()
        .zip(&shares)
        .filter(|(_, share)| **share >= best - SAME_SHARE)
        .map(|(claim, _)| claim)
        .collect();
    // Among clauses with the same share of words, prefers those with the last word, which is the object.
    let has_object =
        |claim: &JudgedClause| last.as_ref().is_some_and(|last| recall_words(&claim.text).contains(last));
    if nearest.iter().any(|claim| has_object(claim)) {
        nearest.retain(|claim| has_object(claim));
    }
    // An exact copy of a clause takes precedence.
    let is_copy =
        |claim: &JudgedClause| share_of_words(&part.text, std::iter::once(claim.text.as_str())) >= 1.0;
    if nearest.iter().any(|claim| is_copy(claim)) {
        nearest.retain(|claim| is_copy(claim));
    }
    nearest.into_iter().try_for_each(|claim| compare(part, fact, claim))
}

fn compare(part: &JudgedClause, fact: &str, said: &JudgedClause) -> Result<(), RefusedReason> {
    if !said.subject.is_in(fact) {
        return Err(RefusedReason::OtherPerson);
    }
    frame::check(&part.text, fact, &said.text, said.subject == ClauseSubject::Person)?;
    extent::compare(&part.text, &said.text)?;
    // A negation after "and" applies to something else: "I grew up here and feet mean nothing to me".
    let clause = cut_behind_and(&part.text, &said.text);
    let mut mood = Mood::from_clause(clause);
    mood.unreal |= said.mood.unreal;
    part.mood.compare(&mood)?;
    if roles::are_swapped(&part.text, &said.text) { Err(RefusedReason::Opposite) } else { Ok(()) }
}

/// Returns the part of a clause before the first "and" that has words of the fact before it and none after it.
fn cut_behind_and<'t>(part: &str, said: &'t str) -> &'t str {
    let subject = Subject::from_fact(part);
    let has = |text: &str| subject.share_in(&recall_words(text)) > 0.0;
    let ands = said.match_indices(" and ").map(|(at, _)| said.split_at(at));
    let mut cuts = ands.filter(|(before, after)| has(before) && !has(after));
    cuts.next().map_or(said, |(before, _)| before)
}

#[cfg(test)]
mod tests;
