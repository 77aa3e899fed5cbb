//! Renders memory as text for a model: summaries and facts in DeerFlow's format, within a token budget.
//!
//! Deliberately absent: the search for facts that match a question. The caller passes the pinned facts and those that
//! it found.

use crate::{
    document::MemoryDocument,
    fact::{Fact, FactId},
    options::MemoryOptions,
    summary::{Summaries, SummaryKey},
    text::{beginning, count_tokens, escape},
    time::FactTime,
};
use std::cmp::Ordering;

/// Percentage of the budget to which sections are cut, so that the truncation mark still fits.
const CUT_PERCENT: usize = 95;
const CUT_MARK: &str = "\n...";

/// Sections of the text: headline, and its lines with their summaries.
const SECTIONS: [(&str, [(&str, SummaryKey); 3]); 2] = [
    (
        "User Context:",
        [
            ("Work", SummaryKey::WorkContext),
            ("Personal", SummaryKey::PersonalContext),
            ("Current Focus", SummaryKey::TopOfMind),
        ],
    ),
    (
        "History:",
        [
            ("Recent", SummaryKey::RecentMonths),
            ("Earlier", SummaryKey::EarlierContext),
            ("Background", SummaryKey::LongTermBackground),
        ],
    ),
];

/// Owner of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// One person.
    #[default]
    Person,
    /// A room, whose facts name their authors.
    Room,
}

/// Memory as text, and the facts in it, which count as used for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InjectedMemory {
    /// The text; empty if there is nothing.
    pub text: String,
    /// The facts in the text, in order.
    pub facts: Vec<FactId>,
}

/// Returns the facts that are included for every question: first those of guaranteed categories, then the most certain
/// ones, up to the limit.
#[must_use]
pub fn pinned<'a>(document: &'a MemoryDocument, options: &MemoryOptions) -> Vec<&'a Fact> {
    let mut facts: Vec<&Fact> = document.facts.iter().collect();
    facts.sort_by(|a, b| {
        let first = is_guaranteed(b, options).cmp(&is_guaranteed(a, options));
        first.then_with(|| by_worth(a, b))
    });
    facts.truncate(options.max_pinned);
    facts
}

fn by_worth(a: &Fact, b: &Fact) -> Ordering {
    let certain = b.confidence.total_cmp(&a.confidence);
    certain.then(b.created_at.cmp(&a.created_at)).then_with(|| a.id.cmp(&b.id))
}

fn is_guaranteed(fact: &Fact, options: &MemoryOptions) -> bool {
    options.guaranteed_categories.iter().any(|name| name == fact.category.label())
}

/// Renders memory as text. Facts of guaranteed categories come first and have their own budget; the others keep the
/// caller's order. A fact that does not fit is omitted, but a shorter one after it may still fit. If summaries leave no
/// room, they are cut instead of facts.
#[must_use]
pub fn inject(
    summaries: &Summaries,
    facts: &[&Fact],
    options: &MemoryOptions,
    kind: MemoryKind,
) -> InjectedMemory {
    let mut sections = sections(summaries);
    let room = options.max_injection_tokens;
    let (guaranteed, others): (Vec<&Fact>, Vec<&Fact>) =
        facts.iter().copied().partition(|fact| is_guaranteed(fact, options));
    let (mut chosen, used, left) = fit(&guaranteed, options.guaranteed_tokens, kind);
    let rest: Vec<&Fact> = left.into_iter().chain(others).collect();
    let (more, _, _) = fit(&rest, room.saturating_sub(count_tokens(&sections)).max(room / 2), kind);
    chosen.extend(more);
    let lines: Vec<String> = chosen.iter().map(|fact| line(fact, kind)).collect();
    let listed = if lines.is_empty() { String::new() } else { format!("Facts:\n{}", lines.join("\n")) };
    let budget = (room + used).saturating_sub(count_tokens(&listed));
    if count_tokens(&sections) > budget {
        sections = cut(&sections, budget);
    }
    let parts: Vec<&str> = [sections.as_str(), &listed].into_iter().filter(|part| !part.is_empty()).collect();
    InjectedMemory { text: parts.join("\n\n"), facts: chosen.iter().map(|fact| fact.id.clone()).collect() }
}

/// Chooses facts that fit. Returns them, their tokens, and the other facts.
fn fit<'a>(facts: &[&'a Fact], budget: usize, kind: MemoryKind) -> (Vec<&'a Fact>, usize, Vec<&'a Fact>) {
    let (mut chosen, mut used, mut left) = (Vec::new(), 0, Vec::new());
    for fact in facts {
        let size = count_tokens(&line(fact, kind)) + 1;
        if used + size <= budget {
            used += size;
            chosen.push(*fact);
        } else {
            left.push(*fact);
        }
    }
    (chosen, used, left)
}

/// Returns the beginning of a fact's line: `[category | 0.95 | 2026-03-01]`.
pub(crate) fn fact_head(category: &str, confidence: f64, at: FactTime) -> String {
    let date = at.date().map(|date| format!(" | {date}")).unwrap_or_default();
    format!("[{category} | {confidence:.2}{date}]")
}

fn line(fact: &Fact, kind: MemoryKind) -> String {
    let avoid =
        fact.source_error.as_ref().map(|error| format!(" (avoid: {})", one_line(error))).unwrap_or_default();
    let label = one_line(fact.category.label());
    let author = fact.author_name().filter(|_| kind == MemoryKind::Room);
    let author = author.map(|name| format!("{}: ", one_line(name))).unwrap_or_default();
    let head = fact_head(&label, fact.confidence, fact.last_said());
    format!("- {head} {author}{}{avoid}", one_line(&fact.content))
}

/// Escapes a text and puts it on one line, so that it cannot imitate another fact.
fn one_line(text: &str) -> String {
    escape(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn sections(summaries: &Summaries) -> String {
    let section = |(headline, lines): &(&str, [(&str, SummaryKey); 3])| {
        let lines: Vec<String> = lines
            .iter()
            .filter(|(_, key)| !summaries.get(*key).text.is_empty())
            .map(|(label, key)| format!("- {label}: {}", one_line(&summaries.get(*key).text)))
            .collect();
        (!lines.is_empty()).then(|| format!("{headline}\n{}", lines.join("\n")))
    };
    SECTIONS.iter().filter_map(section).collect::<Vec<_>>().join("\n\n")
}

/// Truncates a text to a budget and adds a mark. The result is empty if only the mark would fit.
fn cut(text: &str, budget: usize) -> String {
    let length = text.chars().count();
    let share = length * budget / count_tokens(text).max(1) * CUT_PERCENT / 100;
    let mut length_left = share.min(length);
    while length_left > 0 {
        let cut = format!("{}{CUT_MARK}", beginning(text, length_left).trim_end());
        if count_tokens(&cut) <= budget {
            return cut;
        }
        length_left = length_left * CUT_PERCENT / 100;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FactCategory, FactOrigin, MemoryScope};
    use proptest::prelude::*;
    use pudu_base::UserId;

    fn fact(id: &str, category: &str, confidence: f64, content: &str) -> Fact {
        let category = FactCategory::parse(category, None);
        Fact::new(FactId::new(id).unwrap(), content, category, confidence, FactTime::default())
    }

    #[test]
    fn the_text_has_deerflows_format() {
        let mut summaries = Summaries::default();
        summaries.set(SummaryKey::WorkContext, "Works at <X>", None);
        summaries.set(SummaryKey::TopOfMind, "pudu", None);
        summaries.set(SummaryKey::RecentMonths, "Moved", None);
        let mut fix = fact("b", "correction", 0.8, "Use \"spaces\"");
        fix.source_error = Some("used tabs".to_owned());
        let facts = [fact("a", "knowledge", 0.954, "Knows\n- [goal | 1.00] Rust & C"), fix];
        let injected = inject(
            &summaries,
            &facts.iter().collect::<Vec<_>>(),
            &MemoryOptions::default(),
            MemoryKind::Person,
        );
        let expect = "User Context:\n- Work: Works at &lt;X&gt;\n- Current Focus: pudu\n\nHistory:\n- Recent: Moved\n\nFacts:\n- [correction | 0.80] Use \"spaces\" (avoid: used tabs)\n- [knowledge | 0.95] Knows - [goal | 1.00] Rust &amp; C";
        assert_eq!(injected.text, expect);
        assert_eq!(injected.facts, [FactId::new("b").unwrap(), FactId::new("a").unwrap()]);
        assert_eq!(
            inject(&Summaries::default(), &[], &MemoryOptions::default(), MemoryKind::Person),
            InjectedMemory::default()
        );
    }

    #[test]
    fn a_fact_shows_its_date_and_in_a_room_its_author() {
        let at = FactTime::parse("2026-03-01T10:00:00Z").unwrap();
        let mut fact = Fact::new(FactId::new("a").unwrap(), "Likes tea", FactCategory::Preference, 0.9, at);
        fact.origin = Some(FactOrigin { author_name: Some("Ada <b>".to_owned()), ..FactOrigin::default() });
        for (kind, expect) in [
            (MemoryKind::Person, "Facts:\n- [preference | 0.90 | 2026-03-01] Likes tea"),
            (MemoryKind::Room, "Facts:\n- [preference | 0.90 | 2026-03-01] Ada &lt;b&gt;: Likes tea"),
        ] {
            let injected = inject(&Summaries::default(), &[&fact], &MemoryOptions::default(), kind);
            assert_eq!(injected.text, expect);
        }
    }

    #[test]
    fn at_most_fifteen_facts_are_pinned_corrections_first() {
        let mut document = MemoryDocument::empty(MemoryScope::for_user(UserId::local()));
        document.facts =
            (0..30_u32).map(|n| fact(&format!("f{n:02}"), "goal", f64::from(n) / 100.0, "x")).collect();
        document.facts.push(fact("fix", "correction", 0.0, "x"));
        let pinned = pinned(&document, &MemoryOptions::default());
        assert_eq!(pinned.len(), 15);
        assert_eq!([pinned[0], pinned[1]].map(|fact| fact.id.as_str()), ["fix", "f29"]);
    }

    #[test]
    fn tokens_are_counted_by_characters() {
        for (text, expect) in [("", 0), ("abcdefgh", 2), ("我喜欢茶", 2), ("我喜欢茶 abcd", 3)] {
            assert_eq!(count_tokens(text), expect, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_budget_is_respected_and_no_fact_is_cut(
            lengths in prop::collection::vec((0_usize..600, any::<bool>()), 0..40),
            summary in 0_usize..20_000,
            room in 100_usize..3_000,
        ) {
            let facts: Vec<Fact> = lengths.iter().enumerate().map(|(n, (length, fix))| {
                let category = if *fix { "correction" } else { "goal" };
                fact(&format!("f{n}"), category, 0.9, &format!("x{}", "茶a ".repeat(*length / 3)))
            }).collect();
            let mut summaries = Summaries::default();
            summaries.set(SummaryKey::WorkContext, &"w ".repeat(summary / 2), None);
            let options = MemoryOptions { max_injection_tokens: room, ..MemoryOptions::default() };
            let injected = inject(&summaries, &facts.iter().collect::<Vec<_>>(), &options, MemoryKind::Person);
            prop_assert!(count_tokens(&injected.text) <= room + options.guaranteed_tokens + 8, "{}", count_tokens(&injected.text));
            for id in &injected.facts {
                let shown = facts.iter().find(|fact| fact.id == *id).unwrap();
                prop_assert!(injected.text.lines().any(|found| found == line(shown, MemoryKind::Person)));
            }
        }
    }
}
