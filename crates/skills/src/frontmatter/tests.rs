use super::*;
use proptest::prelude::*;

fn good(text: &str) -> Front {
    Front::read(text, None).unwrap()
}

#[test]
fn front_matter_has_name_purpose_licence_and_tools() {
    let text = "\u{feff}---\r\nname: data-analysis\r\ndescription: \"Charts: from tables\"\r\nlicense: MIT\r\n\
                allowed-tools: [bash, Read]\r\nmetadata: {a: 1}\r\n---\r\n# Do it\r\n";
    let front = Front {
        name: "data-analysis".into(),
        about: "Charts: from tables".into(),
        license: Some("MIT".into()),
        tools: Some(vec!["bash".into(), "read_file".into()]),
        ..Front::default()
    };
    assert_eq!(good(text), front);
    let tools =
        |typed: &str| good(&format!("---\nname: a\ndescription: b\nallowed-tools: {typed}\n---\n")).tools;
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(tools("Bash(git:*, ls), Read  Grep"), names(&["bash", "read_file", "grep"]));
    assert_eq!(tools("[]"), names(&[]));
    assert_eq!(tools(""), names(&[]));
    assert_eq!(good("---\nname: a\ndescription: b\n---\n").tools, None);
}

#[test]
fn secrets_are_names_with_or_without_a_purpose() {
    let head = |lines: &str| Front::read(&format!("---\nname: a\ndescription: b\n{lines}\n---\n"), None);
    let front = head(
        "required-secrets: [ERP_TOKEN, {name: MAIL_KEY, description: \"Sends\\nmail\"}, ERP_TOKEN, LD_PRELOAD]\nsecrets-autonomous: true",
    )
    .unwrap();
    let secret = |name: &str, about: Option<&str>| RequiredSecret {
        name: name.into(),
        about: about.map(str::to_owned),
    };
    let required = vec![secret("ERP_TOKEN", None), secret("MAIL_KEY", Some("Sends mail"))];
    assert_eq!(front.secrets, SkillSecrets { required, autonomous: true });
    assert_eq!(front.odd, ["`LD_PRELOAD` in `required-secrets` is not a valid name of a secret"]);
    let many =
        format!("required-secrets: [{}]", (0..17).map(|n| format!("K{n}")).collect::<Vec<_>>().join(", "));
    for (lines, expect) in [
        ("required-secrets: KEY", "must be a list of names"),
        ("required-secrets: [1]", "must be a list of names"),
        ("required-secrets: [{description: x}]", "must be a list of names"),
        ("secrets-autonomous: maybe", "must be true or false"),
        (many.as_str(), "the limit is 16"),
    ] {
        let error = head(lines).unwrap_err();
        assert!(error.contains(expect), "{lines}: {error}");
    }
}

#[test]
fn keys_of_other_agents_apply_or_are_reported() {
    let head = |lines: &str| {
        good(&format!("---\nname: a\ndescription: Use when files are <10 MB or > 5.\n{lines}\n---\n"))
    };
    let front = head(
        "argument-hint: \"[action]\"\nuser-invocable: true\ndisable-model-invocation: true\nmodel: sonnet\nhooks: {a: 1}",
    );
    assert_eq!(front.about, "Use when files are <10 MB or > 5.");
    assert_eq!(front.notes, ["`hooks` has no effect here", "`model` has no effect here"]);
    assert_eq!((front.argument_hint.as_deref(), front.odd.len()), (Some("[action]"), 0));
    assert_eq!(front.invocation, SkillInvocation { by_model: false, by_people: true });
    let invocation = |lines: &str| head(lines).invocation;
    assert_eq!(invocation(""), SkillInvocation::default());
    assert_eq!(invocation("User_Invocable: \"no\""), SkillInvocation { by_model: true, by_people: false });
    assert_eq!(invocation("disable-model-invocation: False\nuser-invocable:"), SkillInvocation::default());
    let odd = |lines: &str, expect: &str| {
        let odd = head(lines).odd.join("; ");
        assert!(odd.contains(expect), "{lines}: {odd}");
    };
    odd("user-invocable: maybe", "`user-invocable` must be true or false");
    odd("user-invocable: false\ndisable-model-invocation: true", "neither users nor the model can start it");
    odd("disallowed-tools: Bash", "list the tools that the skill may use under `allowed-tools`");
    odd("allowed_tool: Bash", "`allowed-tool` would have no effect");
    let hint = |typed: &str| head(&format!("argument-hint: {typed}")).argument_hint;
    assert_eq!(hint("[file, format]").as_deref(), Some("[file] [format]"));
    assert_eq!(hint("[file] [format]").as_deref(), Some("[file] [format]"));
    assert_eq!(hint("a `b`\u{202e}").as_deref(), Some("a 'b'"));
    assert_eq!(hint("{a: 1}"), None);
    assert_eq!(head("when_to_use: On Mondays.").about, "Use when files are <10 MB or > 5. On Mondays.");
    assert_eq!(head("allowed_tools: Read").tools, Some(vec!["read_file".to_owned()]));
    let tools = head("allowed-tools: mcp__github__create_issue, mcp__github__*, \"Bash(npm run: *)\"");
    assert_eq!(tools.tools.unwrap(), ["github_create_issue", "github_*", "bash"]);
    assert!(
        tools.notes.iter().any(|note| note.contains("`github_*` in `allowed-tools` is not a tool name")),
        "{:?}",
        tools.notes
    );
    assert_eq!(head("allowed-tools: \"*\"").tools, None);
}

#[test]
fn without_a_name_the_folders_name_is_used() {
    let text = "\n---\ndescription: b\n---\n";
    let front = Front::read(text, Some("pdf-tools")).unwrap();
    assert_eq!((front.name.as_str(), front.notes.len()), ("pdf-tools", 1));
    for folder in [None, Some("PDF Tools"), Some("skill-main ")] {
        assert!(Front::read(text, folder).unwrap_err().contains("`name` is missing"), "{folder:?}");
    }
}

#[test]
fn text_with_missing_quotes_is_read_as_intended() {
    let check = |lines: &str, about: &str| {
        let front = good(&format!("---\nname: a\n{lines}\nlicense: MIT\n---\n"));
        assert_eq!((front.about.as_str(), front.license.as_deref()), (about, Some("MIT")), "{lines}");
        assert!(front.odd.is_empty() && front.notes.len() == 1, "{lines}: {:?}", front.notes);
    };
    check("description: Configure the harness: hooks, servers", "Configure the harness: hooks, servers");
    check(
        "description: 妈妈模式 — Triggers on: '/pua:mama', '/pua'",
        "妈妈模式 — Triggers on: '/pua:mama', '/pua'",
    );
    check(
        "description: Reads files.\n  Pairs with: others, e.g.\n  these.",
        "Reads files. Pairs with: others, e.g. these.",
    );
    check("description: \"Quick\" checks", "\"Quick\" checks");
    check("description: \"Say \"hi\" to all\"", "Say \"hi\" to all");
    check("description: @team reviews", "@team reviews");
    check("description: `grep` for words", "`grep` for words");
    check("description: [beta] does: things", "[beta] does: things");
    check("description: *bold* words", "*bold* words");
    check("# note: one\ndescription: a: b\n# note: two", "a: b");
    check("description: b\nargument-hint: [action] — e.g. \"list\", \"status\"", "b");
    check("description: b\nmetadata:\n\tauthor: me\nargument-hint: <a> | [b: c]", "b");
    let tools = good("---\nname: a\ndescription: b: c\nallowed-tools: [Bash(git add: *), Read]\n---\n").tools;
    assert_eq!(tools.unwrap(), ["bash", "read_file"]);
}

#[test]
fn problems_are_refused_with_a_fix() {
    let check = |text: &str, expect: &str| {
        let error = Front::read(text, None).unwrap_err();
        assert!(error.contains(expect), "{text:?}: {error}");
    };
    check("", "does not begin with front matter");
    check("# Skill\n", "does not begin with front matter");
    check("---\nname: a\n", "does not begin with front matter");
    check("---\nname: a\ndescription: b\nmetadata:\n  when: now: then\n---\n", "needs quotes");
    check("---\nname: PDF_Tools\ndescription: b\n---\n", "write `name: pdf-tools`");
    check("---\n- a\n---\n", "no keys");
    check("---\ndescription: b\n---\n", "`name` is missing");
    check("---\nname: a\n---\n", "`description` is missing");
    check("---\nname: 1\ndescription: b\n---\n", "`name` is not text");
    check(&format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025)), "the limit is 1024");
    check(&format!("---\nname: a\n{}", "#\n".repeat(9_000)), "larger than 16 KiB");
    check("---\nname: a\ndescription: b\nallowed-tools: {a: 1}\n---\n", "must be a list");
    check(&format!("---\na: {}1{}\n---\n", "[".repeat(50), "]".repeat(50)), "`name` is missing");
    for name in ["", "A", "a_b", "-a", "a-", "a--b", "../a", "ä", &"a".repeat(65)] {
        check(&format!("---\nname: \"{name}\"\ndescription: b\n---\n"), "is not a valid name of a skill");
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "(---\n)?([a-z:\\-\\[\\]{}\"' \n]|name: |description: |allowed-tools: ){0,80}(---\n)?") {
        let _ = Front::read(&text, Some("a"));
    }
}

#[test]
fn every_seed_of_the_fuzzer_is_read_or_refused_with_a_reason() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/skill_heads");
    let seeds: Vec<_> = std::fs::read_dir(seeds).unwrap().map(|seed| seed.unwrap().path()).collect();
    assert!(seeds.len() >= 10);
    for seed in seeds {
        let text = std::fs::read_to_string(&seed).unwrap();
        for (end, _) in text.char_indices() {
            match Front::read(text.get(..end).unwrap(), Some("folder")) {
                Ok(front) => assert!(is_skill_name(&front.name) && front.notes.len() <= MAX_NOTES),
                Err(why) => assert!(!why.is_empty()),
            }
        }
    }
}
