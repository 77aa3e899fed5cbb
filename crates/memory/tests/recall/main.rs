//! Measures on generated conversations how much of the evidence for questions is recalled.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is test code, but clippy recognises only functions with #[test]"
)]

mod chinese;
mod corpus;
mod english;
mod found;
mod person;

use found::{Indexed, Method, Share};
use pudu_memory::RECALL_LIMITS;
use pudu_store::{Db, DbLocation};

const TOKENS: usize = 2_000;

async fn indexed(each: usize) -> (Db, Vec<Indexed>) {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let indexed = found::index_conversations(&db, each).await;
    (db, indexed)
}

/// Checks both languages, because Chinese text is found only by pairs of characters.
#[tokio::test]
async fn recall_finds_the_evidence_for_each_question() {
    let (db, all) = indexed(1).await;
    for indexed in &all {
        let half = found::ask(&db, indexed, Method::Half, TOKENS, None).await;
        let (some, every) = half.percent();
        let language = if indexed.chinese { "Chinese" } else { "English" };
        println!("{language}: {some:.1} / {every:.1}");
        assert!(half.asked > 50, "{language}: {} questions", half.asked);
        assert!(some >= 85.0 && every >= 70.0, "{language}: {some:.1} / {every:.1}");
        for other in [Method::MostCertain, Method::Facts, Method::Turns] {
            let (less, _) = found::ask(&db, indexed, other, TOKENS, None).await.percent();
            assert!(some > less, "{language}: {some:.1} against {less:.1} by {other:?}");
        }
    }
}

/// Each user asks the questions of all users, and gets only their own entries.
#[tokio::test]
async fn recall_never_returns_another_users_statements() {
    let (db, all) = indexed(2).await;
    for indexed in &all {
        for question in all.iter().flat_map(|other| other.conversation.questions.iter().step_by(5)) {
            let hits = db.recall(&indexed.scope, &question.text, RECALL_LIMITS).await.unwrap();
            for hit in hits.facts.iter().chain(&hits.turns) {
                let own = indexed.conversation.facts.iter().any(|fact| fact.text == hit.text)
                    || indexed.conversation.turns.iter().any(|turn| turn.text == hit.text);
                assert!(own, "{:?} was shown {:?}", indexed.scope, hit.text);
            }
        }
    }
}

#[tokio::test]
async fn an_unrelated_question_recalls_nothing() {
    let (db, all) = indexed(2).await;
    for everyday in [false, true] {
        let mut share = Share::default();
        for indexed in &all {
            let language = found::language(indexed.chinese);
            for question in if everyday { language.everyday } else { language.unrelated } {
                let recalled = found::recall(&db, indexed, question, TOKENS).await;
                if !recalled.is_empty() && std::env::var("SHOW").is_ok() {
                    println!("{question}");
                }
                share.add(Share { asked: 1, some: usize::from(!recalled.is_empty()), all: 0 });
            }
        }
        println!("everyday: {everyday}: {share:?}, {:.1} %", share.percent().0);
        assert!(share.percent().0 <= 8.0, "everyday: {everyday}: {share:?}");
    }
}

/// A small memory in which each word is rare, so a single matching word must not recall anything.
#[tokio::test]
async fn only_the_persons_own_questions_recall_facts() {
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

/// Inputs of public reports: `tomcounsell/ai#1213` and `open-webui/open-webui#30234` for words that recall too much,
/// `thedotmack/claude-mem#3801` and `openclaw/openclaw#20730` for Chinese, Japanese and Korean words that recall nothing.
#[tokio::test]
async fn questions_from_public_reports_recall_the_expected_entries() {
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
        let recalled = memory.recalled(&db, question).await;
        match expected {
            None => assert_eq!(recalled, [] as [&str; 0], "{question}"),
            Some(line) => {
                assert!(recalled.iter().any(|recalled| recalled.contains(line)), "{question}: {recalled:?}")
            }
        }
    }
}
