//! `cargo bench -p pudu-memory --bench recall`: the share of a question's evidence that recall would inject, and the
//! duration of a search among 100,000 facts.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench")]

#[path = "../../tests/recall/chinese.rs"]
mod chinese;
#[path = "../../tests/recall/corpus.rs"]
mod corpus;
#[path = "../../tests/recall/english.rs"]
mod english;
#[path = "../../tests/recall/found.rs"]
mod found;
#[path = "../../tests/recall/person.rs"]
mod person;
mod speed;

use corpus::Hop;
use found::{Indexed, Method, Share};
use pudu_store::{Db, DbLocation};

const CONVERSATIONS: usize = 6;
const BUDGETS: [usize; 3] = [500, 1_000, 2_000];
const METHODS: [(Method, &str); 4] = [
    (Method::MostCertain, "most certain of the newest 100 facts"),
    (Method::Facts, "search, facts"),
    (Method::Turns, "search, turns"),
    (Method::Half, "search, half and half"),
];

#[tokio::main]
async fn main() {
    let folder = tempfile::TempDir::new().unwrap();
    let db = Db::open(&DbLocation::Sqlite(folder.path().join("pudu.db"))).await.unwrap();
    let indexed = found::index_conversations(&db, CONVERSATIONS).await;
    for chinese in [false, true] {
        table(&db, &indexed, chinese).await;
    }
    unrelated(&db, &indexed).await;
    of_one_person(&db).await;
    db.close().await;
    speed::measure().await;
}

async fn sum(db: &Db, indexed: &[&Indexed], method: Method, tokens: usize, hop: Option<Hop>) -> Share {
    let mut share = Share::default();
    for indexed in indexed {
        share.add(found::ask(db, indexed, method, tokens, hop).await);
    }
    share
}

async fn table(db: &Db, indexed: &[Indexed], chinese: bool) {
    let indexed: Vec<&Indexed> = indexed.iter().filter(|indexed| indexed.chinese == chinese).collect();
    let count = |of: fn(&Indexed) -> usize| indexed.iter().map(|indexed| of(indexed)).sum::<usize>();
    println!(
        "\n{}: {} conversations, {} turns, {} facts, {} questions; some / all evidence recalled, in percent",
        if chinese { "Chinese" } else { "English" },
        indexed.len(),
        count(|indexed| indexed.conversation.turns.len()),
        count(|indexed| indexed.conversation.facts.len()),
        count(|indexed| indexed.conversation.questions.len()),
    );
    println!("{:32}{:>16}{:>16}{:>16}", "tokens", BUDGETS[0], BUDGETS[1], BUDGETS[2]);
    for (method, name) in METHODS {
        print!("{name:32}");
        for tokens in BUDGETS {
            let (some, all) = sum(db, &indexed, method, tokens, None).await.percent();
            print!("{:>16}", format!("{some:.1} / {all:.1}"));
        }
        println!();
    }
    for (hop, name) in [(Hop::Single, "single-hop"), (Hop::Multi, "multi-hop"), (Hop::Time, "temporal")] {
        print!("  half and half, {name:15}");
        for tokens in BUDGETS {
            let share = sum(db, &indexed, Method::Half, tokens, Some(hop)).await;
            let (some, all) = share.percent();
            print!("{:>16}", format!("{some:.1} / {all:.1}"));
            if tokens == BUDGETS[2] {
                print!("   of {}", share.asked);
            }
        }
        println!();
    }
}

/// Prints the share of unrelated questions that still recall something: the false recalls.
async fn unrelated(db: &Db, indexed: &[Indexed]) {
    println!("\nfalse recalls: unrelated questions, and the lines that they recall:");
    for chinese in [false, true] {
        let language = found::language(chinese);
        for (name, questions) in
            [("of other fields", language.unrelated), ("in everyday words", language.everyday)]
        {
            let (mut asked, mut with, mut lines) = (0, 0, 0);
            for indexed in indexed.iter().filter(|indexed| indexed.chinese == chinese) {
                for question in questions {
                    let recalled = found::recall(db, indexed, question, BUDGETS[2]).await;
                    (asked, with, lines) =
                        (asked + 1, with + usize::from(!recalled.is_empty()), lines + recalled.len());
                }
            }
            let share = 100.0 * with as f64 / asked as f64;
            let language = if chinese { "Chinese" } else { "English" };
            println!("{language}, {name:18}: {with} of {asked} ({share:.1} %), {lines} lines");
        }
    }
}

/// Prints the same for the small memory of one person.
async fn of_one_person(db: &Db) {
    println!("\nmemory of one person, who asked all of the other questions before:");
    for (memory, language) in person::keep(db).await.iter().zip(["English", "Chinese"]) {
        let ((found, asked), (with, others)) = memory.measure(db).await;
        println!("{language}: {found} of {asked} own questions answered, {with} of {others} false recalls");
    }
}
