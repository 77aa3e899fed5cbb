use super::*;
use crate::{FactCategory, FactOrigin, FactSource, NewFact, files::tests::kill_after};
use std::path::Path;

/// 2026-07-01, in milliseconds.
const NOW: i64 = 1_782_864_000_000;

fn user(name: &str) -> UserId {
    UserId::from_raw(name).unwrap()
}

fn of(name: &str) -> MemoryScope {
    MemoryScope::for_user(user(name))
}

fn fact(content: &str, confidence: f64) -> NewFact {
    NewFact {
        content: content.to_owned(),
        category: FactCategory::Context,
        confidence,
        source: FactSource::manual(),
        origin: Some(FactOrigin { quote: Some(content.to_owned()), ..FactOrigin::default() }),
    }
}

fn furnished(home: &Path) -> MemoryStore {
    let store = MemoryStore::new(home.to_owned(), MemoryOptions { max_facts: 4, ..MemoryOptions::default() });
    let poet = MemoryScope::of_agent(user("phone"), "poet").unwrap();
    for (scope, content, confidence) in [
        (of("ada"), "Likes green tea", 0.8),
        (of("ada"), "Lives in Rome", 0.9),
        (of("ada"), "Has a cat", 0.95),
        (of("phone"), "likes GREEN tea.", 0.9),
        (of("phone"), "Works as a nurse", 0.9),
        (of("phone"), "Plays chess", 0.7),
        (of("phone"), "Used to smoke", 0.9),
        (poet, "Writes sonnets", 0.9),
    ] {
        store.add(&scope, fact(content, confidence), NOW).unwrap();
    }
    let summary = |key, text: &str| Changes { summaries: vec![(key, text.to_owned())], ..Changes::default() };
    let keep = |scope: &MemoryScope, changes: Changes| store.change(scope, NOW, |_| Ok(changes)).unwrap();
    keep(&of("ada"), summary(SummaryKey::WorkContext, "Works a lot. Likes it."));
    keep(&of("phone"), summary(SummaryKey::WorkContext, "Likes it! Is a nurse."));
    keep(&of("phone"), summary(SummaryKey::TopOfMind, "A chess game."));
    let smoke = store.read(&of("phone"), NOW).unwrap().find_same("Used to smoke").unwrap().id.clone();
    let gone = Supersession { id: smoke, by: None, reason: SupersedeReason::Replaced };
    keep(&of("phone"), Changes { superseded: vec![gone], ..Changes::default() });
    store
}

fn contents(store: &MemoryStore, scope: &MemoryScope) -> Vec<String> {
    let mut all: Vec<String> =
        store.read(scope, NOW).unwrap().facts.into_iter().map(|fact| fact.content).collect();
    all.sort();
    all
}

fn aside(store: &MemoryStore, scope: &MemoryScope) -> Vec<(String, String)> {
    let old = store.superseded(scope).unwrap().into_iter();
    let mut all: Vec<_> = old.map(|old| (old.fact.content, old.reason)).collect();
    all.sort();
    all
}

fn check(store: &MemoryStore) {
    assert_eq!(
        contents(store, &of("ada")),
        ["Has a cat", "Likes green tea", "Lives in Rome", "Works as a nurse"]
    );
    let poet = MemoryScope::of_agent(user("ada"), "poet").unwrap();
    assert_eq!(contents(store, &poet), ["Writes sonnets"]);
    let pair = |one: &str, two: &str| (one.to_owned(), two.to_owned());
    assert_eq!(aside(store, &of("ada")), [pair("Plays chess", "evicted"), pair("Used to smoke", "replaced")]);
    let document = store.read(&of("ada"), NOW).unwrap();
    let text = |key| document.summaries.get(key).text.as_str();
    assert_eq!(text(SummaryKey::WorkContext), "Works a lot. Likes it. Is a nurse.");
    assert_eq!(text(SummaryKey::TopOfMind), "A chess game.");
    let nurse = document.find_same("Works as a nurse").unwrap();
    assert_eq!(nurse.origin.as_ref().unwrap().quote.as_deref(), Some("Works as a nurse"));
    assert!(contents(store, &of("phone")).is_empty() && aside(store, &of("phone")).is_empty());
    assert!(store.read(&of("phone"), NOW).unwrap().summaries.is_empty());
}

#[test]
fn merging_two_memories_is_idempotent() {
    let home = tempfile::tempdir().unwrap();
    let store = furnished(home.path());
    let merged = store.merge(&user("phone"), &user("ada"), NOW).unwrap();
    assert_eq!(merged.agents.iter().map(|done| done.added.len()).sum::<usize>(), 2);
    check(&store);
    store.merge(&user("phone"), &user("ada"), NOW + 1).unwrap();
    store.merge(&user("nobody"), &user("ada"), NOW + 1).unwrap();
    std::fs::create_dir_all(home.path().join("users/new/threads")).unwrap();
    store.merge(&user("new"), &user("ada"), NOW + 1).unwrap();
    assert!(!home.path().join("users/new/memory.json").exists(), "there was no memory");
    store.merge(&user("ada"), &user("ada"), NOW + 1).unwrap();
    check(&store);
}

#[test]
fn an_interrupted_merge_continues_without_loss_or_duplicates() {
    for steps in 0.. {
        let home = tempfile::tempdir().unwrap();
        let store = furnished(home.path());
        kill_after(Some(steps));
        let died = store.merge(&user("phone"), &user("ada"), NOW).is_err();
        kill_after(None);
        store.merge(&user("phone"), &user("ada"), NOW).unwrap();
        check(&store);
        if !died {
            assert!(steps > 20, "{steps}");
            break;
        }
    }
}

#[test]
fn facts_with_equal_names_are_both_kept_and_unreadable_ones_stay() {
    let home = tempfile::tempdir().unwrap();
    let store = MemoryStore::new(home.path().to_owned(), MemoryOptions::default());
    for (name, content) in [("ada", "Likes tea"), ("phone", "Likes milk")] {
        let id = FactId::new("fact_1").unwrap();
        let new = Fact::new(id, content, FactCategory::Context, 0.9, FactTime::from_millis(NOW));
        let changes = Changes { facts: vec![new], ..Changes::default() };
        store.change(&of(name), NOW, |_| Ok(changes)).unwrap();
    }
    let broken = home.path().join("users/phone/agents/__default__/facts/00");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("fact_bad.md"), "no fact").unwrap();
    store.merge(&user("phone"), &user("ada"), NOW).unwrap();
    assert_eq!(contents(&store, &of("ada")), ["Likes milk", "Likes tea"]);
    assert!(broken.join("fact_bad.md").exists());
    assert_eq!(contents(&store, &of("phone")), [] as [String; 0]);
}
