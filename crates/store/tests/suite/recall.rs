use crate::fixture::{NOW, Place};
use pudu_base::UserId;
use pudu_store::{
    Db, DbLocation, MAX_RECALL_CHARS, RecallEntry, RecallHit, RecallKind, RecallLimits, RecallScope,
};
use sqlx::Connection;

const LIMITS: RecallLimits = RecallLimits { facts: 10, turns: 10 };

pub(crate) fn scope(user: &str) -> RecallScope {
    RecallScope { user: UserId::from_raw(user).unwrap(), agent: "__default__".into() }
}

pub(crate) fn fact(user: &str, doc: &str, text: &str) -> RecallEntry {
    RecallEntry {
        scope: scope(user),
        kind: RecallKind::Fact,
        doc: doc.into(),
        thread: String::new(),
        author: String::new(),
        at: NOW,
        confidence: 0.9,
        text: text.into(),
    }
}

pub(crate) fn turn(user: &str, doc: &str, thread: &str, text: &str) -> RecallEntry {
    let (kind, thread, author) = (RecallKind::Turn, thread.into(), "Ada".into());
    RecallEntry { kind, thread, author, ..fact(user, doc, text) }
}

async fn find(db: &Db, scope: &RecallScope, question: &str) -> String {
    let hits = db.recall(scope, question, LIMITS).await.unwrap();
    let names = |hits: Vec<RecallHit>| hits.into_iter().map(|hit| hit.doc).collect::<Vec<_>>().join(" ");
    format!("{} | {}", names(hits.facts), names(hits.turns))
}

#[track_caller]
fn check(found: &str, expected: &str, question: &str) {
    assert_eq!(found, expected, "{question:?}");
}

pub(crate) async fn entries_are_found_in_order_of_relevance(db: Db) {
    db.index(&[
        fact("ada", "tea", "Prefers green tea over coffee in the morning"),
        fact("ada", "cat", "Has two cats named Miso and Tofu"),
        fact("ada", "trip", "Travelled to Zürich in winter, with the cats"),
        fact("ada", "hanzi", "喜欢在周末打羽毛球，养了一只叫豆豆的狗"),
        fact("ada", "kana", "ﾎﾟｹﾓﾝのゲームが好き"),
        turn("ada", "m1", "t", "My cat Miso broke the teapot 🫖"),
        turn("ada", "m2", "t", "我昨天去了上海博物馆"),
    ])
    .await
    .unwrap();
    for (question, expected) in [
        ("What are the names of her cats?", "cat trip | m1"),
        ("did she go to ZURICH?", "trip | "),
        ("他平时喜欢什么运动", "hanzi | "),
        ("羽毛球", "hanzi | "),
        ("狗", "hanzi | "),
        ("博物馆在哪里？", " | m2"),
        ("ポケモン", "kana | "),
        ("what did Ada say about the teapots", " | m1 m2"),
        ("coffee teapot", "tea | m1"),
        ("the of and", " | "),
        ("", " | "),
        ("quantum chromodynamics", " | "),
        ("🫖🫖🫖", " | "),
    ] {
        check(&find(&db, &scope("ada"), question).await, expected, question);
    }
    let hits = db.recall(&scope("ada"), "tofu cats", LIMITS).await.unwrap();
    let best = hits.facts.first().unwrap();
    let expected = fact("ada", "cat", "Has two cats named Miso and Tofu");
    assert_eq!((&best.text, best.at, best.confidence), (&expected.text, NOW, 0.9));
    assert_eq!((best.share, best.matched), (1.0, 2));
    assert!(hits.facts.get(1).unwrap().share < 0.5);
    db.index(&[RecallEntry { author: "高峰".into(), ..turn("ada", "m3", "t", "爬山很高兴") }]).await.unwrap();
    for (question, named) in [("高峰爬山", true), ("高山", false), ("Ada爬山", false)] {
        let turns = db.recall(&scope("ada"), question, LIMITS).await.unwrap().turns;
        let hit = turns.iter().find(|hit| hit.doc == "m3").unwrap();
        assert_eq!(hit.named, named, "{question}");
    }
}

pub(crate) async fn an_entry_replaces_an_older_one_and_repeating_it_changes_nothing(db: Db) {
    let old = fact("ada", "1", "lives in Hamburg");
    let new = fact("ada", "1", "lives in Bremen now");
    db.index(&[old.clone(), old.clone(), new.clone()]).await.unwrap();
    db.index(std::slice::from_ref(&new)).await.unwrap();
    check(&find(&db, &scope("ada"), "Hamburg").await, " | ", "Hamburg");
    check(&find(&db, &scope("ada"), "Bremen lives").await, "1 | ", "Bremen");
    // A fact and a turn with the same id are two entries, and so are those of two agents.
    db.index(&[turn("ada", "1", "t", "Bremen is grey")]).await.unwrap();
    let other = RecallScope { agent: "poet".into(), ..scope("ada") };
    db.index(&[RecallEntry { scope: other.clone(), ..new }]).await.unwrap();
    check(&find(&db, &scope("ada"), "Bremen").await, "1 | 1", "both kinds");
    check(&find(&db, &other, "Bremen").await, "1 | ", "the other agent");
    db.unindex(&scope("ada"), RecallKind::Fact, &["1".into(), "1".into(), "no".into()]).await.unwrap();
    check(&find(&db, &scope("ada"), "Bremen").await, " | 1", "without the fact");
    check(&find(&db, &other, "Bremen").await, "1 | ", "the other agent's stays");
    db.unindex(&scope("nobody"), RecallKind::Fact, &["1".into()]).await.unwrap();
}

/// No question returns entries of another user or agent.
pub(crate) async fn recall_never_returns_entries_of_another_scope(db: Db) {
    let secret = "the secret word is xylophone 秘密";
    let agent = RecallScope { agent: "poet".into(), ..scope("ada") };
    db.index(&[
        fact("bob", "secret", secret),
        turn("bob", "said", "t", secret),
        RecallEntry { scope: agent, ..fact("ada", "hers", secret) },
        fact("ada", "own", "the secret is safe"),
    ])
    .await
    .unwrap();
    let giant = "xylophone \" OR * ".repeat(65_536);
    for question in [
        "xylophone",
        "\"xylophone\"",
        "xylo*",
        "a OR xylophone",
        "NOT own",
        "tokens:xylophone",
        "NEAR(xylophone word, 10)",
        "x' OR 1=1 --",
        "1·xylophone 2·xylophone 3·xylophone",
        "\" OR \"1·xylophone",
        "' | '1·xylophone",
        "xylophone\0",
        "\0",
        "\\' & !x | <-> :*",
        "秘密",
        "%_ \u{feff}\u{202e} xylophone",
        "^xylophone + - ( ) { }",
        giant.as_str(),
    ] {
        check(&find(&db, &scope("ada"), question).await, " | ", question.split_at(question.len().min(40)).0);
    }
    check(&find(&db, &scope("ada"), "secret xylophone").await, "own | ", "her own");
    check(&find(&db, &scope("bob"), "xylophone").await, "secret | said", "his own");
    for user in ["b", "bo", "bob2", "Bob", "%", "*"] {
        check(&find(&db, &scope(user), "secret xylophone").await, " | ", user);
    }
}

pub(crate) async fn any_text_can_be_indexed(db: Db) {
    let bytes: String = (0..0x3000u32).filter_map(char::from_u32).collect();
    let giant = format!("alpha {} omega", "middle ".repeat(200_000));
    let one_word = "x".repeat(3_000_000);
    let cjk = "汉字很多".repeat(100_000);
    let texts =
        ["", " ", "\0", "''\"\\;--", bytes.as_str(), &giant, &one_word, &cjk, "👩‍👩‍👧‍👦 ❤️", "|||", "{\"a\":1}"];
    let entries: Vec<RecallEntry> =
        texts.iter().enumerate().map(|(n, text)| fact("ada", &n.to_string(), text)).collect();
    db.index(&entries).await.unwrap();
    let odd = RecallEntry {
        scope: RecallScope { agent: "a\0gent".repeat(1_000), ..scope("ada") },
        doc: "d\0".repeat(10_000),
        thread: "t\0".repeat(10_000),
        author: "\0".repeat(10_000),
        at: i64::MIN,
        confidence: f64::NAN,
        ..fact("ada", "", "odd")
    };
    let other =
        RecallEntry { at: i64::MAX, confidence: f64::INFINITY, doc: odd.doc.clone() + "2", ..odd.clone() };
    db.index(&[odd.clone(), other]).await.unwrap();
    let hits = db.recall(&odd.scope, "odd", LIMITS).await.unwrap().facts;
    assert_eq!(
        hits.iter().map(|hit| (hit.at, hit.confidence)).collect::<Vec<_>>(),
        [(i64::MAX, 1.0), (i64::MIN, 0.0)]
    );
    db.forget_thread(&odd.thread.as_str().into()).await.unwrap();
    assert_eq!(db.recall(&odd.scope, "odd", LIMITS).await.unwrap().facts, []);
    let hits = db.recall(&scope("ada"), "alpha", LIMITS).await.unwrap().facts;
    let lengths: Vec<_> = hits.iter().map(|hit| (hit.doc.as_str(), hit.text.chars().count())).collect();
    assert_eq!(lengths, [("5", MAX_RECALL_CHARS)]);
    check(&find(&db, &scope("ada"), "omega").await, " | ", "beyond the end");
    check(&find(&db, &scope("ada"), "很多").await, "7 | ", "many characters");
    check(&find(&db, &scope("ada"), &one_word).await, "6 | ", "one long word");
    let docs: Vec<String> = entries.into_iter().map(|entry| entry.doc).collect();
    db.unindex(&scope("ada"), RecallKind::Fact, &docs).await.unwrap();
    check(&find(&db, &scope("ada"), "alpha 很多").await, " | ", "all gone");
}

pub(crate) async fn only_forgotten_entries_are_deleted(db: Db) {
    let many = (0..700).map(|n| turn("ada", &n.to_string(), "long", &format!("elephant number {n}")));
    let mut entries: Vec<RecallEntry> = many.collect();
    entries.push(RecallEntry { thread: "long".into(), ..fact("ada", "f", "likes elephants") });
    entries.push(turn("ada", "other", "short", "an elephant elsewhere"));
    entries.push(turn("bob", "his", "short", "my elephant"));
    db.index(&entries).await.unwrap();
    db.forget_thread(&"long".into()).await.unwrap();
    check(&find(&db, &scope("ada"), "elephant").await, " | other", "after the thread");
    db.forget_thread(&"".into()).await.unwrap();
    db.index(&entries).await.unwrap();
    db.forget_user(&scope("ada").user).await.unwrap();
    check(&find(&db, &scope("ada"), "elephant").await, " | ", "after the user");
    check(&find(&db, &scope("bob"), "elephant").await, " | his", "nobody else's");
    db.forget_user(&scope("nobody").user).await.unwrap();
    db.index(&[fact("ada", "f", "likes elephants again")]).await.unwrap();
    check(&find(&db, &scope("ada"), "elephant").await, "f | ", "a new beginning");
}

pub(crate) async fn old_turns_expire_and_facts_do_not(db: Db) {
    let old = |entry: RecallEntry| RecallEntry { at: NOW - 1, ..entry };
    let turn_in = |doc: &str| turn("ada", doc, "thread", "an elephant");
    db.index(&[old(turn_in("old")), turn_in("new"), old(fact("ada", "f", "an elephant"))]).await.unwrap();
    db.forget_turns_before(NOW).await.unwrap();
    check(&find(&db, &scope("ada"), "elephant").await, "f | new", "what is old");
}

/// Nothing of a deleted entry is left in the file: neither in free pages nor in the write-ahead log.
#[tokio::test]
async fn forgotten_text_is_not_left_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(&DbLocation::Sqlite(folder.path().join("pudu.db"))).await.unwrap();
    let secret = "quillonvane";
    let in_files = || {
        let files = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.filter(|bytes| bytes.windows(secret.len()).any(|window| window == secret.as_bytes())).count()
    };
    let many = (0..300).map(|n| fact("ada", &n.to_string(), &format!("a falcon, {secret}, number {n}")));
    let others = (0..300).map(|n| fact("ada", &format!("other{n}"), &format!("a kestrel, number {n}")));
    let entries: Vec<RecallEntry> = many.chain(others).collect();
    db.index(&entries).await.unwrap();
    db.index(&entries).await.unwrap();
    assert!(in_files() > 0);
    let docs: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    db.unindex(&scope("ada"), RecallKind::Fact, &docs).await.unwrap();
    db.purge_write_log().await.unwrap();
    assert_eq!(in_files(), 0);
    db.close().await;
}

/// A scope of thousands, in which some words are in every entry.
pub(crate) async fn a_rare_word_among_common_ones_is_found(db: Db) {
    let text = |n: usize| {
        let place = ["market", "harbour", "station", "library"][n % 4];
        format!("meeting at the {place} about project {} on day {}", n % 7, n / 7)
    };
    let entries: Vec<RecallEntry> = (0..6_000).map(|n| fact("ada", &n.to_string(), &text(n))).collect();
    db.index(&entries).await.unwrap();
    let hits = db.recall(&scope("ada"), "which meeting at the harbour was on day 123", LIMITS).await.unwrap();
    let docs: Vec<&str> = hits.facts.iter().map(|hit| hit.doc.as_str()).collect();
    assert_eq!(docs.first(), Some(&"865"), "{docs:?}");
    assert!(docs.contains(&"861"), "{docs:?}");
    // No word is rare here, so the newest entries are found.
    let hits = db.recall(&scope("ada"), "meeting", LIMITS).await.unwrap();
    let docs: Vec<&str> = hits.facts.iter().map(|hit| hit.doc.as_str()).take(3).collect();
    assert_eq!(docs, ["5999", "5998", "5997"]);
}

/// Reads the tables directly: statistics are exact, and a forgotten word is in no table.
pub(crate) async fn statistics_are_exact_after_entries_are_forgotten(place: Place) {
    let db = place.open().await;
    db.index(&[
        fact("ada", "1", "green tea tea"),
        fact("ada", "2", "black tea"),
        turn("ada", "m", "t", "red"),
    ])
    .await
    .unwrap();
    db.index(&[fact("ada", "2", "black coffee")]).await.unwrap();
    let mut behind = place.connect().await;
    let scopes = "SELECT kind || ' ' || docs || ' ' || words FROM recall_scopes ORDER BY kind";
    let words = "SELECT word || ' ' || docs FROM recall_words ORDER BY scope, word";
    let bags = "SELECT words FROM recall_bags ORDER BY id";
    let docs =
        "SELECT doc || ' ' || thread || ' ' || author || ' ' || confidence || ' ' || text FROM recall_docs
        ORDER BY id";
    let mut column = async |sql: &'static str| -> String {
        sqlx::query_scalar::<_, String>(sql).fetch_all(&mut behind).await.unwrap().join(", ")
    };
    assert_eq!(column(scopes).await, "fact 2 5, turn 1 2");
    assert_eq!(column(words).await, "black 1, coffe 1, green 1, tea 1, ada 1, red 1");
    assert_eq!(column(bags).await, "green tea tea, ada red, black coffe");
    assert_eq!(column(docs).await, "1   900000 green tea tea, m t Ada 900000 red, 2   900000 black coffee");
    db.forget_user(&scope("ada").user).await.unwrap();
    for sql in [scopes, words, bags, docs] {
        assert_eq!(column(sql).await, "", "{sql}");
    }
    behind.close().await.unwrap();
    db.close().await;
}

/// All engines share one snapshot of the hits with their scores.
pub(crate) async fn all_engines_return_the_same_order(db: Db) {
    let (who, what) =
        (["Ann", "Ben", "李娜", "Кира"], ["tea", "running", "paintings", "羽毛球", "château", "jazz"]);
    let how = ["loves", "started", "gave up", "asked about", "买了"];
    let text = |n: usize| {
        let pick = |list: &[&'static str], step: usize| list[(n * step + n / 7) % list.len()];
        format!("{} {} {} {}", pick(&who, 3), pick(&how, 7), pick(&what, 5), "and so on ".repeat(n % 4))
    };
    let entries =
        (0..300).map(|n| RecallEntry { at: NOW + (n as i64 % 9), ..fact("ada", &n.to_string(), &text(n)) });
    db.index(&entries.collect::<Vec<_>>()).await.unwrap();
    db.unindex(&scope("ada"), RecallKind::Fact, &["3".into(), "30".into()]).await.unwrap();
    let mut told = String::new();
    for question in ["who loves running", "李娜买了羽毛球", "chateau jazz Ben", "Кира and tea", "paints"]
    {
        let hits = db.recall(&scope("ada"), question, LIMITS).await.unwrap().facts;
        let line = |hit: &RecallHit| format!("{} {:.9} {:.9} {}", hit.doc, hit.score, hit.share, hit.matched);
        told += &format!("{question}\n  {}\n", hits.iter().map(line).collect::<Vec<_>>().join("\n  "));
    }
    insta::assert_snapshot!("recall_order", told);
}
