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

/// Inputs of public reports: `tomcounsell/ai#1213` and `open-webui/open-webui#30234` for words that bring anything,
/// `thedotmack/claude-mem#3801` and `openclaw/openclaw#20730` for Chinese, Japanese and Korean words that bring nothing.
#[tokio::test]
async fn questions_of_public_reports_bring_what_they_should() {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let lines = [
        "I work on user identity, 用户身份验证",
        "今日は成語しりとりをした、私は",
        "나는 오늘 끝말잇기 게임을 했다",
        "今天我玩成语接龙游戏",
        "我养了一只橘猫",
        "I keep a parrot called Rio",
    ];
    let memory = person::keep_lines(&db, &lines).await;
    for (question, expected) in [
        ("PHRASE_THAT_DEFINITELY_DOES_NOT_APPEAR_ANYWHERE_QQQQ", None),
        ("Hi there, good morning!", None),
        ("你好，早上好", None),
        ("用户身份", Some(lines[0])),
        ("しりとり", Some(lines[1])),
        ("끝말잇기", Some(lines[2])),
        ("成语接龙", Some(lines[3])),
        ("我的猫叫什么名字？", Some(lines[4])),
        ("What is my parrot called?", Some(lines[5])),
    ] {
        let told = memory.told(&db, question).await;
        match expected {
            None => assert_eq!(told, [] as [&str; 0], "{question}"),
            Some(line) => assert!(told.iter().any(|told| told.contains(line)), "{question}: {told:?}"),
        }
    }
}
