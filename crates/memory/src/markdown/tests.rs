use super::*;
use proptest::prelude::*;

fn scope() -> MemoryScope {
    MemoryScope::of_agent(UserId::from_raw("alice").unwrap(), "research-agent").unwrap()
}

fn full() -> Fact {
    let time = |text| FactTime::parse(text).unwrap();
    Fact {
        title: Some("Runtime constraint".to_owned()),
        topics: vec!["python".to_owned(), "run: time".to_owned()],
        source: FactSource::conversation("thread_1"),
        source_error: Some("said 3.11".to_owned()),
        expected_valid_days: Some(30),
        last_confirmed_at: Some(time("2026-07-20T00:00:00.5Z")),
        confirmation_count: Some(2),
        consolidated_from: vec!["fact_1".to_owned()],
        consolidated_at: Some(time("2026-07-19T00:00:00Z")),
        updated_at: time("2026-07-21T00:00:00Z"),
        revision: 3,
        raw_user: Some("alice".to_owned()),
        extra: [("note".to_owned(), json!({"a": [1, "x: y"]}))].into_iter().collect(),
        ..Fact::new(
            FactId::new("fact_ab12").unwrap(),
            "Project uses Python 3.12.\n\n---\nSee the wiki.",
            FactCategory::Other(Some("knowledge".to_owned())),
            0.95,
            time("2026-07-19T00:00:00.123456Z"),
        )
    }
}

#[test]
fn a_fact_is_written_as_deerflow_reads_it() {
    let expect = r#"---
id: "fact_ab12"
category: "other"
confidence: 0.95
createdAt: "2026-07-19T00:00:00.123456Z"
source: {"threadId":"thread_1","type":"conversation"}
schemaVersion: 2
categoryExtension: "knowledge"
status: "active"
topics: ["python","run: time"]
consolidatedFrom: ["fact_1"]
updatedAt: "2026-07-21T00:00:00Z"
revision: 3
user_id: "alice"
agent_name: "research-agent"
sourceError: "said 3.11"
expected_valid_days: 30
lastConfirmedAt: "2026-07-20T00:00:00.5Z"
confirmationCount: 2
consolidatedAt: "2026-07-19T00:00:00Z"
note: {"a":[1,"x: y"]}
---

# Runtime constraint

Project uses Python 3.12.

---
See the wiki.
"#;
    let text = write(&full(), &scope()).unwrap().replace(
        r#"{"type":"conversation","threadId":"thread_1"}"#,
        r#"{"threadId":"thread_1","type":"conversation"}"#,
    );
    assert_eq!(text, expect);
    assert_eq!(read(expect.as_bytes(), "fact_ab12", &scope()).unwrap(), full());
}

#[test]
fn equivalent_yaml_is_read_the_same() {
    let plain = Fact {
        topics: vec!["python".to_owned(), "runtime".to_owned()],
        source: FactSource::conversation("thread_1"),
        source_error: Some("said it was 3.11 for long".to_owned()),
        raw_user: Some("alice".to_owned()),
        ..Fact::new(
            FactId::new("fact_ab12").unwrap(),
            "Uses Python 3.12.",
            FactCategory::Constraint,
            0.9,
            FactTime::parse("2026-07-19T00:00:00Z").unwrap(),
        )
    };
    let unquoted = "---\nid: fact_ab12\ncategory: constraint\nconfidence: 0.9\ncreatedAt: 2026-07-19T00:00:00Z\nsource:\n  type: conversation\n  threadId: thread_1\nschemaVersion: 2\nstatus: active\ntopics: [python, runtime]\nconsolidatedFrom: []\nupdatedAt: 2026-07-19T00:00:00Z\nrevision: 1\nuser_id: alice\nagent_name: research-agent\nsourceError: said it was 3.11 for long\n---\n\n# Uses Python 3.12.\n\nUses Python 3.12.\n";
    let folded = "---\r\nid: 'fact_ab12'\r\nagent_name: Research-Agent\r\nuser_id: 'alice'\r\nrevision: 1\r\ncategory: |-\r\n  constraint\r\nconfidence: .9\r\ncreatedAt: '2026-07-19T00:00:00+00:00'\r\nsource: thread_1\r\ntopics:\r\n- python\r\n- runtime\r\nsourceError: >-\r\n  said it was 3.11\r\n  for long\r\n---\r\nUses Python 3.12.\r\n";
    let by_hand = "\u{feff}---\n# a comment\nid: fact_ab12\nuser_id: alice\ncategory: constraint\nconfidence: 9.0e-1\ncreatedAt: \"2026-07-19 00:00:00\"\nupdatedAt: \"2026-07-19\"\nsource: {type: conversation, threadId: thread_1}\ntopics:\n  - python\n  - 'runtime'\nsourceError: \"said it was 3.11\n  for long\"\n---\n# Uses Python 3.12.\nUses Python 3.12.";
    for text in [unquoted, folded, by_hand] {
        assert_eq!(read(text.as_bytes(), "fact_ab12", &scope()), Ok(plain.clone()), "{text}");
    }
}

#[test]
fn a_broken_file_is_reported_with_its_problem() {
    let head = |lines: &str| format!("---\nid: fact_1\n{lines}\n---\n\n# a\n\na\n");
    for (text, expect) in [
        (String::new(), "does not begin with front matter"),
        ("no head".to_owned(), "does not begin with front matter"),
        ("---\nid: fact_1\ncategory: con".to_owned(), "does not begin with front matter"),
        ("---\n- a\n---\n\na\n".to_owned(), "not valid YAML"),
        ("---\nid: [\n---\n\na\n".to_owned(), "not valid YAML"),
        ("---\ncategory: context\n---\n\na\n".to_owned(), "`id` is missing"),
        ("---\nid: fact_2\n---\n\na\n".to_owned(), "the file is named `fact_1`"),
        ("---\nid: fact_1\n---\n\n# only a headline\n".to_owned(), "no text"),
        (head("user_id: bob"), "another user's"),
        (head("agent_name: other"), "another agent's"),
        (head("confidence: 1.5"), "`confidence`"),
        (head("confidence: high"), "`confidence`"),
        (head("createdAt: soon"), "`createdAt` is not a valid time"),
        (head("topics: one"), "`topics` must be a list of strings"),
        (head("status: deleted"), "`status` is `deleted`"),
        (head("revision: -1"), "`revision` is not a whole number"),
        (format!("---\nid: fact_1\n---\n\n{}", "a".repeat(MAX_FACT_FILE_BYTES)), "larger than 256 KiB"),
    ] {
        let error = read(text.as_bytes(), "fact_1", &scope()).unwrap_err();
        assert!(error.contains(expect), "{text:.80}: {error}");
    }
    assert!(read(&[0xff, 0xfe], "fact_1", &scope()).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_facts_are_read_back(
        content in "[^\\s\r].{0,40}(\n.{0,40}){0,3}",
        title in prop::option::of("[a-zA-Z#:][a-z :#'\"-]{0,20}[a-z]"),
        category in "[a-z]{1,12}",
        topics in prop::collection::vec(".{0,12}", 0..3),
        thousandths in 0_u32..=1000,
        times in prop::array::uniform3(-2_000_000_000_000_i64..4_000_000_000_000),
        error in prop::option::of(".{0,30}"),
        days in prop::option::of(any::<u32>()),
        note in any_json(),
        key in "x-.{0,8}",
    ) {
        let [created, updated, confirmed] = times.map(FactTime::from_millis);
        let plain = Fact::new(FactId::new("fact_1").unwrap(), &content, FactCategory::parse(&category, None), f64::from(thousandths) / 1000.0, created);
        prop_assume!(!plain.content.is_empty());
        let fact = Fact {
            title: title.filter(|title| *title != headline(&plain.content)),
            topics,
            updated_at: updated,
            last_confirmed_at: Some(confirmed),
            source_error: error,
            expected_valid_days: days,
            raw_user: Some("alice".to_owned()),
            extra: [(key, note)].into_iter().collect(),
            ..plain
        };
        let text = write(&fact, &scope()).unwrap();
        prop_assert_eq!(read(text.as_bytes(), "fact_1", &scope()), Ok(fact), "{}", text);
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut text = b"---\nid: fact_1\n".to_vec();
        text.extend(&bytes);
        let _ = read(&bytes, "fact_1", &scope());
        let _ = read(&text, "fact_1", &scope());
    }
}

/// A file written by PyYAML 6.0.3 with DeerFlow's options.
#[test]
fn difficult_texts_written_by_pyyaml_are_read_correctly() {
    let fact = read(include_bytes!("pyyaml.md"), "fact_ab12", &scope()).unwrap();
    let topics = [
        "yes",
        "2026-01-01",
        "null",
        "",
        "a: b",
        "- x",
        "#no",
        "it's",
        "绿茶😀",
        "0x1F",
        "1e3",
        "~",
        "tab\there",
    ];
    assert_eq!(fact.topics, topics);
    let error = "said that the project uses Python 3.11 for a very long time, which is wrong: it uses 3.12\nand a second line\n\nand \"quotes\" \u{85} \u{2028} end ";
    assert_eq!(fact.source_error.as_deref(), Some(error));
    assert_eq!(fact.source, FactSource { kind: "conversation".to_owned(), thread: None });
    assert_eq!(fact.created_at.to_string(), "2026-07-19T00:00:00.123456Z");
}
