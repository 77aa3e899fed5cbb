//! The daemon dies at each step of learning from a conversation: no fact is lost or duplicated.

use crate::{
    house::{House, SOON, Talker},
    memory::{QUICK, learns, proposes_all},
};
use pudu_sim::{model::Reply, telegram::Options};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The steps: before and after the request to the model, the files, the index, the note in the store.
const POINTS: [&str; 10] = [
    "learning.keep.after",
    "learning.claim.before",
    "learning.claim.after",
    "spending.settle.before#2",
    "memory.committed",
    "recall.index.before#2",
    "recall.index.after#2",
    "learning.done.before",
    "learning.done.after",
    "recall.index.after",
];

/// A model that phrases the same fact differently each time.
fn says_it_otherwise(house: &House) {
    let asked = AtomicUsize::new(0);
    house.model.when(learns, move |_| {
        let words = ["Prefers green tea", "Drinks green tea always", "Green tea is the drink"];
        let content = words[asked.fetch_add(1, Ordering::SeqCst) % words.len()];
        let fact = |content: &str, quote: &str| {
            let mut fact = crate::memory::fact(content, quote);
            fact["category"] = json!("preference");
            fact
        };
        Reply::text(&proposes_all(&[fact(content, "I always drink green tea")])).into()
    });
}

#[tokio::test]
async fn a_death_anywhere_in_learning_loses_nothing_and_doubles_nothing() {
    for point in POINTS {
        let mut house = House::furnish(Options::default(), "", QUICK).await;
        house.in_its_own_process();
        says_it_otherwise(&house);
        house.set("PUDU_CRASH_AT", point);
        house.start();
        let ada = Talker::new(&house, "Ada");
        ada.say("I always drink green tea.");
        assert!(house.ended(SOON).await.is_some(), "{point}: it did not die\n{}", house.log());
        house.set("PUDU_CRASH_AT", "");
        house.start();
        ada.reads("echo: I always drink green tea.").await;
        let (db, late) = (house.database().await, std::time::Instant::now() + SOON);
        while db.next_learning().await.unwrap().is_some() {
            assert!(std::time::Instant::now() < late, "{point}: it waits still\n{}", house.log());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        ada.say("/memory");
        let listed = ada.reads_so(|text| text.contains("y memory of this chat")).await;
        assert!(listed.contains("one fact."), "{point}: {listed}");
        // It can also be recalled.
        ada.says("/new", "New conversation started.").await;
        ada.say("which drink do I take?");
        ada.reads_so(|text| text.starts_with("echo: which drink do I take?")).await;
        let told = crate::memory::told(&house);
        assert!(told.to_lowercase().contains("green tea"), "{point}: {told}");
    }
}
