//! How much of the evidence that questions need is told, on conversations of our own.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

mod chinese;
mod corpus;
mod english;
mod found;

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
    let (db, all) = kept(1).await;
    let mut share = Share::default();
    for kept in &all {
        for question in found::language(kept.chinese).unrelated {
            let hits = db.recall(&kept.scope, question, RECALL_LIMITS).await.unwrap();
            let told = found::chosen(&kept.made.facts, &hits, TOKENS);
            share.add(Share { asked: 1, some: usize::from(!told.is_empty()), all: 0 });
        }
    }
    assert!(share.percent().0 <= 5.0, "{share:?}");
}
