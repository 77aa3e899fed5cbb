//! Times searches among 100,000 facts.

use crate::{
    corpus::conversation,
    found::{entries, language, scope},
};
use pudu_memory::RECALL_LIMITS;
use pudu_store::{Db, DbLocation, RecallEntry, RecallKind, RecallScope};
use std::time::{Duration, Instant};

const FACTS: usize = 100_000;
const QUESTIONS: usize = 2_000;

pub(crate) async fn measure() {
    println!("\nsearches among {FACTS} facts, SQLite file:");
    for users in [1, 100] {
        let folder = tempfile::TempDir::new().unwrap();
        let db = Db::open(&DbLocation::Sqlite(folder.path().join("pudu.db"))).await.unwrap();
        let scopes: Vec<RecallScope> = (0..users).map(|user| scope(&format!("user-{user}"))).collect();
        let (begun, questions) = (Instant::now(), fill(&db, &scopes).await);
        let filled = begun.elapsed();
        let mut times = Vec::new();
        for (n, question) in questions.iter().cycle().take(QUESTIONS).enumerate() {
            let (scope, begun) = (&scopes[n % users], Instant::now());
            db.recall(scope, question, RECALL_LIMITS).await.unwrap();
            times.push(begun.elapsed());
        }
        times.sort();
        let at = |share: usize| ms(times[(times.len() * share / 1000).min(times.len() - 1)]);
        let size = std::fs::metadata(folder.path().join("pudu.db")).unwrap().len() >> 20;
        println!(
            "{users:>4} users: p50 {}, p95 {}, p99 {}, worst {}; filled in {:.1} s, {size} MB",
            at(500),
            at(950),
            at(990),
            at(1000),
            filled.as_secs_f64(),
        );
        db.close().await;
    }
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Stores the facts, spread over the scopes, and returns questions. They are the facts and turns of generated
/// conversations, all stored as facts, with an extra word that three facts share.
async fn fill(db: &Db, scopes: &[RecallScope]) -> Vec<String> {
    let (mut questions, mut batch, mut count, mut number) = (Vec::new(), Vec::new(), 0, 0);
    while count < FACTS {
        let chinese = number % 2 == 1;
        let made = conversation(language(chinese), number, 77 + number as u64);
        for mut entry in entries(&scopes[0], &made) {
            entry.scope = scopes[count % scopes.len()].clone();
            entry.kind = RecallKind::Fact;
            entry.doc = count.to_string();
            entry.text = format!("{} #{:x}", entry.text, count / 3);
            batch.push(entry);
            count += 1;
        }
        questions.extend(made.questions.into_iter().map(|question| question.text));
        number += 1;
        if batch.len() > 4_000 {
            write(db, &mut batch).await;
        }
    }
    write(db, &mut batch).await;
    questions
}

async fn write(db: &Db, batch: &mut Vec<RecallEntry>) {
    db.index(&std::mem::take(batch)).await.unwrap();
}
