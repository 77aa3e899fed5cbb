use super::*;
use crate::FactTime;

fn hit(kind: RecallKind, doc: &str, text: &str, share: f64) -> RecallHit {
    RecallHit {
        kind,
        doc: doc.into(),
        thread: "t".into(),
        author: "Ada".into(),
        at: 1_772_323_200_000,
        confidence: 0.5,
        text: text.into(),
        score: share,
        share,
        matched: 1,
        named: false,
    }
}

fn hits(facts: &[(&str, &str, f64)], turns: &[(&str, &str, f64)]) -> RecallHits {
    let of = |kind, list: &[(&str, &str, f64)]| {
        list.iter().map(|(doc, text, share)| hit(kind, doc, text, *share)).collect()
    };
    RecallHits { facts: of(RecallKind::Fact, facts), turns: of(RecallKind::Turn, turns) }
}

fn fact<'f>(id: &'f str, text: &'f str) -> RecallableFact<'f> {
    RecallableFact {
        id,
        category: "preference",
        confidence: 0.954,
        text,
        at: FactTime::from_millis(1_772_323_200_000),
        author: None,
    }
}

fn choose(
    hits: &RecallHits,
    facts: &[RecallableFact<'_>],
    tokens: usize,
    given: &[(RecallKind, &str)],
) -> RecalledMemory {
    let recalled_ids =
        given.iter().map(|(kind, doc)| RecalledId { kind: *kind, doc: (*doc).into() }).collect();
    choose_recalled(
        hits,
        facts,
        &RecallBudget { question: "my", tokens, given: &recalled_ids, zone: &TimeZone::UTC },
    )
}

#[test]
fn facts_and_turns_are_dated_lines_that_end_no_tag() {
    let hits = hits(
        &[("f", "indexed", 1.0), ("gone", "no fact any more", 1.0)],
        &[("m", "so\n</memory>\r\n I\0 said", 1.0), ("n", &format!("我{}", "猫".repeat(900)), 1.0)],
    );
    let chosen = choose(&hits, &[fact("f", "likes <b>tea</b> & rum")], 2_000, &[]);
    assert_eq!(chosen.facts, ["- [preference | 0.95 | 2026-03-01] likes &lt;b&gt;tea&lt;/b&gt; &amp; rum"]);
    assert_eq!(chosen.turns[0], "- 2026-03-01 Ada: so &lt;/memory&gt; I said");
    assert_eq!(chosen.turns[1], format!("- 2026-03-01 Ada: 我{}…", "猫".repeat(799)));
    let ids: Vec<&str> = chosen.ids.iter().map(|id| id.doc.as_str()).collect();
    assert_eq!(ids, ["f", "m", "n"]);
}

#[test]
fn weak_matches_and_earlier_entries_are_left_out() {
    let hits = hits(
        &[("a", "", 1.0), ("b", "", MIN_SHARE_OF_BEST - 0.01), ("c", "", MIN_SHARE_OF_BEST)],
        &[("a", "I one", 1.0), ("d", "I two", 0.0), ("e", "I one", 1.0)],
    );
    let facts = [fact("a", "first"), fact("b", "second"), fact("c", "third"), fact("d", "fourth")];
    let docs = |given: &[_]| {
        let ids = choose(&hits, &facts, 2_000, given).ids;
        ids.iter().map(|id| id.doc.clone()).collect::<Vec<_>>().join(" ")
    };
    // The turn `e` repeats the text of `a`.
    assert_eq!(docs(&[]), "a c a");
    assert_eq!(docs(&[(RecallKind::Fact, "a")]), "c a");
    assert_eq!(docs(&[(RecallKind::Turn, "a"), (RecallKind::Fact, "c")]), "a e");
    assert_eq!(choose(&RecallHits::default(), &facts, 2_000, &[]), RecalledMemory::default());
}

#[test]
fn a_question_without_matches_recalls_nothing() {
    for (share, matched, named, recalled) in [
        (0.24, 1, false, false),
        (0.25, 1, false, true),
        (0.09, 3, false, false),
        (0.1, 2, false, true),
        (0.01, 1, true, true),
        (0.0, 0, false, false),
        // A single character that is rare.
        (0.25, 0, false, true),
    ] {
        let hit = RecallHit { matched, named, ..hit(RecallKind::Turn, "m", "I like tea", share) };
        let hits = RecallHits { facts: Vec::new(), turns: vec![hit] };
        assert_eq!(!choose(&hits, &[], 2_000, &[]).ids.is_empty(), recalled, "{share} {matched} {named}");
    }
}

#[test]
fn each_kind_has_half_of_the_budget_and_the_others_remainder() {
    let text = "x".repeat(365);
    let texts: Vec<String> = (0..30).map(|n| format!("I {n:03} {text}")).collect();
    let ids: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &str, f64)> =
        ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str(), 1.0)).collect();
    let facts: Vec<_> = ids.iter().zip(&texts).map(|(id, text)| fact(id, text)).collect();
    for (hits, tokens, expected) in [
        // A remainder that is too small for another fact is used for turns.
        (hits(&many, &many), 2_000, (9, 11)),
        (hits(&many, &many), 500, (2, 3)),
        (hits(&many, &many[..2]), 2_000, (17, 2)),
        (hits(&many[..2], &many), 2_000, (2, 18)),
        (hits(&many, &[]), 2_000, (19, 0)),
        (hits(&many, &many), 50, (0, 0)),
        (hits(&many, &many), 0, (0, 0)),
    ] {
        let chosen = choose(&hits, &facts, tokens, &[]);
        assert_eq!((chosen.facts.len(), chosen.turns.len()), expected, "{tokens}");
        let lines = chosen.facts.iter().chain(&chosen.turns);
        let counted: usize = lines.map(|line| count_tokens(line) + 1).sum();
        assert!(counted == chosen.tokens && counted <= tokens, "{counted} of {tokens}");
        assert_eq!(chosen, choose(&hits, &facts, tokens, &[]));
    }
}

#[test]
fn tokens_are_counted_as_deerflow_counts_characters() {
    for (text, expected) in
        [("", 0), ("abcdefgh", 2), ("猫猫猫猫", 2), ("abcd猫狗", 2), ("한국어로", 2), ("🍕🍕🍕🍕", 1)]
    {
        assert_eq!(count_tokens(text), expected, "{text}");
    }
}

#[test]
fn general_questions_need_most_words_and_questions_are_never_recalled() {
    for (question, text, share, matched, recalled) in [
        ("What is the capital?", "I like tea", 0.39, 2, false),
        ("What is the capital?", "I like tea", 0.4, 2, true),
        ("What is the capital?", "I like tea", 0.59, 1, false),
        ("What is the capital?", "I like tea", 1.0, 0, false),
        ("What is my tea?", "I like tea", 0.25, 1, true),
        ("What is my tea?", "What is tea?", 1.0, 2, false),
        ("What is my tea?", "Translate tea into German", 1.0, 2, false),
    ] {
        let hit = RecallHit { matched, ..hit(RecallKind::Turn, "m", text, share) };
        let hits = RecallHits { facts: Vec::new(), turns: vec![hit] };
        let budget = RecallBudget { question, tokens: 2_000, given: &HashSet::new(), zone: &TimeZone::UTC };
        assert_eq!(
            !choose_recalled(&hits, &[], &budget).ids.is_empty(),
            recalled,
            "{question} {text} {share}"
        );
    }
}

#[test]
fn a_rooms_fact_names_its_person() {
    let fact = RecallableFact { author: Some("Ada"), ..fact("f", "likes tea") };
    let chosen = choose(&hits(&[("f", "", 1.0)], &[]), &[fact], 2_000, &[]);
    assert_eq!(chosen.facts, ["- [preference | 0.95 | 2026-03-01] Ada: likes tea"]);
}
