//! How much of the evidence that questions need is told, on conversations of our own.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

mod chinese;
mod corpus;
mod english;
mod found;
mod person;

use found::{Kept, Share, Way};
use pudu_memory::RECALL_LIMITS;
use pudu_store::{Db, DbLocation};

const TOKENS: usize = 2_000;

async fn kept(each: usize) -> (Db, Vec<Kept>) {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let kept = found::keep(&db, each).await;
    (db, kept)
}

/// In both languages: without pairs of characters nothing Chinese is found.
#[tokio::test]
async fn search_tells_the_evidence_that_questions_need() {
    let (db, all) = kept(1).await;
    for kept in &all {
        let half = found::ask(&db, kept, Way::Half, TOKENS, None).await;
        let (some, every) = half.percent();
        let language = if kept.chinese { "Chinese" } else { "English" };
        println!("{language}: {some:.1} / {every:.1}");
        assert!(half.asked > 50, "{language}: {} questions", half.asked);
        assert!(some >= 85.0 && every >= 70.0, "{language}: {some:.1} / {every:.1}");
        for other in [Way::Surest, Way::Facts, Way::Turns] {
            let (less, _) = found::ask(&db, kept, other, TOKENS, None).await.percent();
            assert!(some > less, "{language}: {some:.1} against {less:.1} by {other:?}");
        }
    }
}

/// Everybody asks everybody's questions: what comes back is their own.
#[tokio::test]
async fn nobody_is_told_what_another_one_said() {
    let (db, all) = kept(2).await;
    for kept in &all {
        for question in all.iter().flat_map(|other| other.made.questions.iter().step_by(5)) {
            let hits = db.recall(&kept.scope, &question.text, RECALL_LIMITS).await.unwrap();
            for hit in hits.facts.iter().chain(&hits.turns) {
                let own = kept.made.facts.iter().any(|fact| fact.text == hit.text)
                    || kept.made.turns.iter().any(|turn| turn.text == hit.text);
                assert!(own, "{:?} was told {:?}", kept.scope, hit.text);
            }
        }
    }
}

#[tokio::test]
async fn a_question_that_has_nothing_to_do_with_it_brings_nothing() {
    let (db, all) = kept(2).await;
    for everyday in [false, true] {
        let mut share = Share::default();
        for kept in &all {
            let language = found::language(kept.chinese);
            for question in if everyday { language.everyday } else { language.unrelated } {
                let told = found::told_for(&db, kept, question, TOKENS).await;
                if !told.is_empty() && std::env::var("SHOW").is_ok() {
                    println!("{question}");
                }
                share.add(Share { asked: 1, some: usize::from(!told.is_empty()), all: 0 });
            }
        }
        println!("everyday: {everyday}: {share:?}, {:.1} %", share.percent().0);
        assert!(share.percent().0 <= 8.0, "everyday: {everyday}: {share:?}");
    }
}

/// A small memory: each word in it is rare, so that a single one must not bring anything.
#[tokio::test]
async fn a_persons_own_questions_are_answered_and_others_bring_nothing() {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let (mut found, mut asked, mut false_recalls, mut others) = (0, 0, 0, 0);
    for memory in person::keep(&db).await {
        let ((found_here, asked_here), (false_here, others_here)) = memory.measure(&db).await;
        println!("found {found_here} of {asked_here}, false recalls {false_here} of {others_here}");
        (found, asked) = (found + found_here, asked + asked_here);
        (false_recalls, others) = (false_recalls + false_here, others + others_here);
    }
    let percent = |of: usize, all: usize| 100.0 * of as f64 / all as f64;
    println!("found {:.1} %, false recalls {:.1} %", percent(found, asked), percent(false_recalls, others));
    assert!(percent(found, asked) >= 90.0 && percent(false_recalls, others) < 8.0);
}
