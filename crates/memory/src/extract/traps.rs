//! Tables of traps and of honest statements, for a model that believes everything and quotes the best supporting words.

use super::{
    Extraction, OfferedFacts, Proposal, Transcript, TranscriptTurn,
    transcript::tests::{bot, me},
};
use crate::{
    Fact, FactCategory, FactId, FactTime, MemoryDocument, MemoryOptions, MemoryScope, about::Subject,
};
use pudu_base::UserId;
use pudu_store::recall_words;
use serde::Deserialize;
use serde_json::{Value, json};

const TRAPS: &str = include_str!("../../../../tests/memory/traps.jsonl");
const HONEST: &str = include_str!("../../../../tests/memory/honest.jsonl");
/// Traps whose fact contradicts its quote, with honest statements beside them. `min_refused` and `min_stored` are
/// percentages.
struct ClaimTable {
    name: &'static str,
    traps: &'static str,
    honest: &'static str,
    min_refused: f64,
    min_stored: f64,
}

macro_rules! claims {
    ($name:literal, $table:literal, $language:literal, $refused:literal, $stored:literal) => {
        ClaimTable {
            name: $name,
            traps: include_str!(concat!(
                "../../../../tests/memory/claims/",
                $table,
                "traps.",
                $language,
                ".jsonl"
            )),
            honest: include_str!(concat!(
                "../../../../tests/memory/claims/",
                $table,
                "honest.",
                $language,
                ".jsonl"
            )),
            min_refused: $refused,
            min_stored: $stored,
        }
    };
}

/// The rules are tuned on all tables but the tenth. `docs/memory.md` has the earlier shares of each newer table.
const CLAIMS: [ClaimTable; 20] = [
    claims!("English", "", "en", 98.0, 90.0),
    claims!("Chinese", "", "zh", 98.0, 90.0),
    claims!("English, second table", "second.", "en", 98.0, 90.0),
    claims!("Chinese, second table", "second.", "zh", 98.0, 90.0),
    claims!("English, third table", "third.", "en", 95.0, 90.0),
    claims!("Chinese, third table", "third.", "zh", 95.0, 90.0),
    claims!("English, fourth table", "fourth.", "en", 95.0, 85.0),
    claims!("Chinese, fourth table", "fourth.", "zh", 98.0, 85.0),
    claims!("English, fifth table", "fifth.", "en", 98.0, 95.0),
    claims!("Chinese, fifth table", "fifth.", "zh", 98.0, 95.0),
    claims!("English, sixth table", "sixth.", "en", 90.0, 90.0),
    claims!("Chinese, sixth table", "sixth.", "zh", 90.0, 95.0),
    claims!("English, seventh table", "seventh.", "en", 95.0, 95.0),
    claims!("Chinese, seventh table", "seventh.", "zh", 95.0, 95.0),
    claims!("English, eighth table", "eighth.", "en", 95.0, 90.0),
    claims!("Chinese, eighth table", "eighth.", "zh", 95.0, 95.0),
    claims!("English, ninth table", "ninth.", "en", 95.0, 90.0),
    claims!("Chinese, ninth table", "ninth.", "zh", 90.0, 95.0),
    claims!("English, tenth table", "tenth.", "en", 95.0, 75.0),
    claims!("Chinese, tenth table", "tenth.", "zh", 95.0, 95.0),
];

#[derive(Deserialize)]
struct Line {
    said: String,
    fact: String,
    answer: Option<String>,
    output: Option<String>,
    #[serde(default)]
    forwarded: Option<String>,
}

/// Returns the best quotes: the whole message, the words nearest to the fact, and other people's words.
fn quotes(line: &Line) -> Vec<&str> {
    let pieces = line
        .said
        .split_inclusive(['.', '!', '?', ':', ',', '"', '。', '！', '？', '：', '，', '“', '”', '\n']);
    let subject = Subject::from_fact(&line.fact);
    let share = |piece: &str| subject.share_in(&recall_words(piece));
    let nearest = pieces.map(str::trim).max_by(|a, b| share(a).total_cmp(&share(b)));
    let others = [line.answer.as_deref(), line.output.as_deref()];
    [Some(line.said.as_str()), nearest].into_iter().chain(others).flatten().collect()
}

fn stored(line: &Line) -> Vec<String> {
    judged(line, None).0
}

/// Returns the stored part of a line, given a known fact, and the reasons for refusing the other parts.
fn judged(line: &Line, known: Option<&str>) -> (Vec<String>, Vec<&'static str>) {
    let answer = line.answer.clone().unwrap_or_else(|| format!("echo: {}", line.said));
    let said = TranscriptTurn { forwarded: line.forwarded.is_some(), ..me(&line.said) };
    let Some(transcript) = Transcript::from_turns(&[me("Good day"), bot("Hello"), said, bot(&answer)]) else {
        return (Vec::new(), vec!["no statement"]);
    };
    let fact = |quote: &str| json!({"content": line.fact, "quote": quote, "confidence": 0.95, "scope": "user", "durability": "durable", "authority": "descriptive"});
    let summary = |quote: &&str| {
        let (scope, authority) = ("user", "descriptive");
        json!({"summary": line.fact, "quote": quote, "shouldUpdate": true, "scope": scope, "authority": authority})
    };
    let facts: Vec<Value> = quotes(line).into_iter().map(fact).collect();
    let mut document = MemoryDocument::empty(MemoryScope::for_user(UserId::local()));
    let id = FactId::new("known").unwrap();
    let known = known.map(|text| Fact::new(id, text, FactCategory::Context, 0.9, FactTime::default()));
    document.facts.extend(known);
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    // Each summary has one quote.
    for (place, quote) in quotes(line).iter().enumerate() {
        let facts = if place == 0 { facts.as_slice() } else { &[] };
        let answer = json!({"user": {"personalContext": summary(quote)}, "history": {}, "newFacts": facts});
        let applied = Extraction {
            document: &document,
            transcript: &transcript,
            offered: &OfferedFacts::default(),
            recalled: &[],
            thread: "t",
            options: &MemoryOptions::default(),
            now: 0,
        }
        .apply(&Proposal::parse(&answer.to_string()).unwrap());
        found.extend(applied.changes.facts.into_iter().map(|fact| fact.content));
        reasons.extend(applied.refused.iter().map(|refused| refused.reason.name()));
        found.extend(applied.changes.summaries.into_iter().map(|(_, text)| format!("summary: {text}")));
    }
    (found, reasons)
}

fn table(text: &str) -> Vec<Line> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn no_trap_is_stored_and_all_honest_statements_are() {
    let traps = table(TRAPS);
    assert_eq!(traps.len(), 200);
    let caught = traps.iter().filter(|line| !stored(line).is_empty()).map(|line| line.said.as_str());
    assert_eq!(caught.collect::<Vec<_>>(), [] as [&str; 0], "traps that worked");
    let honest = table(HONEST);
    let missed = honest.iter().filter(|line| !stored(line).contains(&line.fact));
    let missed: Vec<_> = missed.map(|line| (line.said.as_str(), judged(line, None).1)).collect();
    assert!(missed.is_empty(), "statements that were not stored: {missed:?}");
}

/// Prints the share of lines that satisfy `is_right`, for all and for each half, and the other lines. Returns the share
/// of all.
fn share(name: &str, lines: &[Line], is_right: impl Fn(&Line) -> bool) -> f64 {
    let wrong: Vec<usize> = (0..lines.len()).filter(|at| !is_right(&lines[*at])).collect();
    let percent = |wrong: usize, of: usize| 100.0 * (of - wrong) as f64 / of as f64;
    let even = wrong.iter().filter(|at| *at % 2 == 0).count();
    let (all, half) = (percent(wrong.len(), lines.len()), lines.len() / 2);
    println!(
        "{name}: {all:.1} % ({:.1} % of the half for tuning, {:.1} % of the half held back)",
        percent(even, half),
        percent(wrong.len() - even, half)
    );
    for at in wrong {
        println!(
            "  {}{at}: {} / {} {:?}",
            if at % 2 == 0 { "" } else { "held back " },
            lines[at].said,
            lines[at].fact,
            judged(&lines[at], None).1
        );
    }
    all
}

#[test]
fn facts_that_contradict_their_quote_are_refused_and_honest_ones_are_stored() {
    let mut low = Vec::new();
    for ClaimTable { name, traps, honest, min_refused, min_stored } in CLAIMS {
        let (traps, honest) = (table(traps), table(honest));
        let refused = share(&format!("{name} traps refused"), &traps, |line| stored(line).is_empty());
        let kept = share(&format!("{name} honest statements stored"), &honest, |line| {
            stored(line).contains(&line.fact)
        });
        if refused < min_refused || kept < min_stored {
            low.push(format!("{name}: {refused:.1} / {kept:.1}"));
        }
    }
    assert!(low.is_empty(), "{low:?}");
}

/// An input of a public report about another system, and whether its fact is stored.
#[derive(Deserialize)]
struct Reported {
    report: String,
    #[serde(flatten)]
    line: Line,
    known: Option<String>,
    stored: bool,
}

#[test]
fn inputs_of_public_reports_are_judged_correctly() {
    for text in include_str!("../../../../tests/memory/claims/reports.jsonl").lines() {
        let Reported { report, line, known, stored } = serde_json::from_str(text).unwrap();
        let found = judged(&line, known.as_deref()).0;
        let is_stored = found.iter().any(|found| found.trim_start_matches("summary: ") == line.fact);
        assert_eq!(is_stored, stored, "{report}: {} / {}", line.said, line.fact);
    }
}
