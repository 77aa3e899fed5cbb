//! The extent of a statement: how often and how long it is true, the number of things, and whether it is retracted.

use super::super::refused::RefusedReason;
use crate::text::simplified;
use pudu_store::telling_words;
use regex::Regex;
use std::{collections::HashSet, sync::LazyLock};

/// Words for "at any time" that a fact must not add.
const ALWAYS: &str = r"(?i)\b(?:always|every(?:day|one|body|where|thing)?|daily|constantly|permanently|exclusively|all)\b|总是|一直|每天|天天|永远|每|全都|从来";
/// Words for "at present only" that a fact must not drop.
const BRIEF: &str = r"(?i)\b(?:this (?:week|weekend|morning|afternoon|evening)|tonight|for now|for the moment|temporarily|till|until|for (?:a few|a couple of|two|three) (?:days|weeks)|just for (?:today|now)|(?:^|\b(?:i|we|my|our)\b.{0,20}?)\bonly)\b|只有|只在|仅|这周|本周|这两天|这几天|暂时|临时|先凑合|今晚";
/// Words that retract the words before them.
const WITHDRAWN: &str = r"(?i)(?:\b(?:auto-?correct(?:ed)?|typo|scratch that|strike that|i meant?|(?:wait|sorry|oops|no),? (?:no|wait|i mean|actually|make that)|hang on|hold on|or rather)\b|[,.…]\s*(?:well|ok|okay),? \w+(?: \w+)? actually\b|(?:[,–—-]\s*(?:no[,\s]+)?(?:make (?:that|it)|correction\b)))|说错了|打错了|写错了|口误|更正|纠正一下|[啊哦呃额诶]，?不[对是]|等等|等下|[，。]不对[，。]|(?:^|\s)\*[^\s*][^*]*$";
/// A number and the counted thing.
const COUNTED: &str = r"(?i)\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten)\s+([a-z-]{3,}(?:\s+[a-z-]{3,})?)\b|([\d一二两三四五六七八九十]+)[个位只条名辆台](\p{Han}{2})";
/// Words of annoyance before a retraction.
const ANNOYED: [&str; 8] = ["ugh", "oop", "argh", "damn", "haha", "lol", "sorri", "fuck"];

struct ExtentRules {
    always: Regex,
    brief: Regex,
    withdrawn: Regex,
    counted: Regex,
}

static RULES: LazyLock<Option<ExtentRules>> = LazyLock::new(|| {
    Some(ExtentRules {
        always: Regex::new(ALWAYS).ok()?,
        brief: Regex::new(BRIEF).ok()?,
        withdrawn: Regex::new(WITHDRAWN).ok()?,
        counted: Regex::new(COUNTED).ok()?,
    })
});

/// Compares the extent of a fact's clause with its source clause's.
pub(super) fn compare(fact: &str, said: &str) -> Result<(), RefusedReason> {
    let Some(rules) = RULES.as_ref() else { return Err(RefusedReason::Opposite) };
    let (fact, said) = (simplified(&fact.to_lowercase()), simplified(&said.to_lowercase()));
    let always: HashSet<&str> = rules.always.find_iter(&said).map(|word| word.as_str()).collect();
    if rules.always.find_iter(&fact).any(|word| !always.contains(word.as_str())) {
        return Err(RefusedReason::Opposite);
    }
    let is_limited =
        rules.brief.is_match(&fact) || ["only", "只", "仅"].iter().any(|only| fact.contains(only));
    if rules.brief.is_match(&said) && !is_limited {
        return Err(RefusedReason::Outdated);
    }
    let said: Vec<(String, String)> = counted(rules, &said);
    let is_swapped = |(number, thing): &(String, String)| {
        let mut same = said.iter().filter(|(_, counted)| counted == thing).peekable();
        same.peek().is_some() && same.all(|(counted, _)| counted != number)
    };
    if counted(rules, &fact).iter().any(is_swapped) { Err(RefusedReason::Opposite) } else { Ok(()) }
}

fn counted(rules: &ExtentRules, text: &str) -> Vec<(String, String)> {
    const NUMBERS: [&str; 10] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    const DENSE: [&str; 10] = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十"];
    let pairs = rules.counted.captures_iter(text);
    let read = |found: regex::Captures<'_>| {
        let number = found.get(1).or(found.get(3))?.as_str().replace('两', "二");
        let index = NUMBERS.iter().chain(&DENSE).position(|name| *name == number);
        let number = index.map_or(number, |index| (index % NUMBERS.len() + 1).to_string());
        let things = found.get(2).or(found.get(4))?.as_str().split_whitespace();
        let things = things.take_while(|thing| !["and", "or", "but"].contains(thing));
        Some(things.map(|thing| (number.clone(), thing.to_owned())).collect::<Vec<_>>())
    };
    pairs.filter_map(read).flatten().collect()
}

/// Whether a fact contains a word that the same sentence retracts: "Hansen, ugh, autocorrect, Jansen".
pub(super) fn is_withdrawn(fact: &str, said: &str) -> bool {
    let Some(mark) =
        RULES.as_ref().and_then(|rules| rules.withdrawn.find(&simplified(said)).map(|mark| mark.range()))
    else {
        return false;
    };
    let (before, after) = said.split_at(mark.start);
    let kept = telling_words(after);
    let facts = telling_words(fact);
    let taken = telling_words(before);
    if kept.iter().any(|word| facts.contains(word) && !taken.contains(word)) {
        return false;
    }
    let mut taken =
        taken.iter().rev().filter(|word| !kept.contains(word) && !ANNOYED.contains(&word.as_str()));
    !kept.is_empty() && taken.next().is_some_and(|word| facts.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_does_not_exceed_its_statement() {
        for (fact, said, expect) in [
            ("Has 5 brothers and 3 nephews", "Got 3 brothers and 5 nephews", false),
            ("Has 5 brothers", "Got 3 brothers and 5 nephews", false),
            ("Has 3 older brothers", "I've got three older brothers", true),
            ("Likes all jazz", "I really like jazz", false),
            ("Has three brothers", "Got 3 brothers and 5 nephews", true),
            ("Goes by bike every day", "I go by bike", false),
            ("Goes by bike every day", "I go by bike every day", true),
            ("Lives at a cousin's", "I live at a cousin's till May", false),
            ("有四个哥哥", "我有两个哥哥四个姐姐", false),
            ("有2个哥哥", "我有两个哥哥四个姐姐", true),
            ("每天跑步", "我周末跑步", false),
        ] {
            assert_eq!(compare(fact, said).is_ok(), expect, "{fact} / {said}");
        }
    }

    #[test]
    fn retracted_words_are_recognised() {
        for (fact, said, expect) in [
            ("Surname is Hansen", "my surname is Hansen, ugh, autocorrect, Jansen with a J", true),
            ("Surname is Jansen", "my surname is Hansen, ugh, autocorrect, Jansen with a J", false),
            ("Is a nurse", "I'm a nurse", false),
            ("Works in color correction", "I work in color correction at a studio", false),
            ("Works in Berlin", "I work in Berlin and make it home every Friday", false),
        ] {
            assert_eq!(is_withdrawn(fact, said), expect, "{fact} / {said}");
        }
    }
}
