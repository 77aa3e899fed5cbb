use super::*;
use pudu_base::Sampling;
use std::fs;
use tempfile::TempDir;

fn house() -> (TempDir, Agents) {
    let home = tempfile::tempdir().unwrap();
    let agents = Agents::new(home.path().to_owned());
    (home, agents)
}

/// Writes an agent as an operator would.
fn write(home: &TempDir, below: &str, config: &str, soul: &str) -> PathBuf {
    let folder = home.path().join(below);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.yaml"), config).unwrap();
    fs::write(folder.join("SOUL.md"), soul).unwrap();
    folder
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|&name| name.to_owned()).collect())
}

fn poet() -> AgentProfile {
    AgentProfile {
        about: "Writes \"poems\": of # all kinds, ünïcode".into(),
        thinking: None,
        sampling: Sampling::default(),
        model: Some("big: model".into()),
        tool_groups: names(&["file:read", "no"]),
        skills: names(&[]),
        soul: "You write poems.\n\n---\nkey: value".into(),
    }
}

#[test]
fn an_agent_is_a_folder_with_a_soul_or_a_config() {
    let (home, agents) = house();
    let config = "name: Reviewer\ndescription: Reviews code.\nmodel: big\ntool_groups: [web]\nskills: null\n";
    write(&home, "users/default/agents/code-reviewer", config, "You review code.");
    let profile = AgentProfile {
        about: "Reviews code.".into(),
        thinking: None,
        sampling: Sampling::default(),
        model: Some("big".into()),
        tool_groups: names(&["web"]),
        skills: None,
        soul: "You review code.".into(),
    };
    let found =
        CustomAgent { name: "code-reviewer".into(), profile, place: AgentPlace::Shared, odd: Vec::new() };
    assert_eq!(agents.find(" Code_Reviewer ").unwrap(), found);
    for lone in ["SOUL.md", "config.yaml"] {
        let (home, agents) = house();
        let folder = write(&home, "agents/old", "", "");
        fs::remove_file(folder.join(lone)).unwrap();
        let old = CustomAgent {
            name: "old".into(),
            profile: AgentProfile::default(),
            place: AgentPlace::Legacy,
            odd: Vec::new(),
        };
        assert_eq!(agents.find("old").unwrap(), old, "without {lone}");
    }
    assert!(matches!(agents.find("nobody"), Err(AgentError::Unknown(name)) if name == "nobody"));
    assert!(matches!(agents.find("../agents/code-reviewer"), Err(AgentError::Name { .. })));
}

#[test]
fn an_agent_with_unreadable_limits_never_answers_and_is_listed_with_the_fix() {
    let (home, agents) = house();
    for (config, why) in [
        (": [", "its config.yaml is not valid YAML"),
        ("- a\n", "has no keys"),
        ("tool_groups: web\n", "`tool_groups` must be a list of names: write `tool_groups: [a, b]`"),
        ("tool_groups: [web, 1]\n", "`tool_groups` must be a list"),
        ("skills: {a: b}\n", "`skills` must be a list"),
        ("model: [a]\n", "`model` is not text"),
        ("tool_group: []\n", "`tool_group` is not a known key; use `tool_groups`"),
        ("tools: []\n", "use `tool_groups`"),
        ("Tool-Groups: []\n", "use `tool_groups`"),
        ("skill: []\n", "use `skills`"),
        ("skills: []\nskills: [a]\n", "is not valid YAML"),
        ("model_settings: warm\n", "`model_settings` has no keys"),
        ("model_settings: {temperature: 2.1}\n", "`model_settings.temperature` must be a number from 0 to 2"),
        ("model_settings: {temperature: true}\n", "`model_settings.temperature` must be a number"),
        (
            "model_settings: {max_tokens: 0}\n",
            "`model_settings.max_tokens` must be a whole number from 1 to 200000",
        ),
        ("model_settings: {max_tokens: 200001}\n", "`model_settings.max_tokens` must be a whole number"),
        ("model_settings: {max_tokens: 1.5}\n", "`model_settings.max_tokens` must be a whole number"),
        ("model_settings: {top_p: 1}\n", "`model_settings.top_p` is unknown"),
        ("thinking_enabled: maybe\n", "`thinking_enabled` must be true or false"),
        ("reasoning_effort: hardest\n", "`reasoning_effort` must be low, medium or high"),
    ] {
        write(&home, "users/default/agents/a", config, "You.");
        let Err(AgentError::Broken { name, why: said }) = agents.find("a") else { panic!("{config}") };
        assert!(name == "a" && said.contains(why), "{config}: {said}");
        let listed = Roster { broken: vec![BrokenAgent { name, why: said }], ..Roster::default() };
        assert_eq!(agents.list(), listed, "{config}");
    }
    for (file, bytes) in [("config.yaml", vec![b'#'; 65 * 1024]), ("SOUL.md", vec![b'x'; 65 * 1024])] {
        let folder = write(&home, "users/default/agents/a", "", "You.");
        fs::write(folder.join(file), bytes).unwrap();
        assert!(agents.find("a").unwrap_err().to_string().contains("larger than 64 KiB"), "{file}");
    }
    write(&home, "users/default/agents/a", "", "You.");
    fs::write(home.path().join("users/default/agents/a/SOUL.md"), b"\xff").unwrap();
    assert!(agents.find("a").unwrap_err().to_string().contains("SOUL.md is not UTF-8"));
}

#[test]
fn foreign_keys_are_noted_but_do_not_disable_an_agent() {
    let (home, agents) = house();
    write(&home, "users/default/agents/a", "tone: {temperature: 1}\nzzz: 1\n", "You.");
    let odd = agents.find("a").unwrap().odd;
    assert_eq!(odd, ["`tone` in its config.yaml has no effect", "`zzz` in its config.yaml has no effect"]);
}

#[test]
fn a_created_agent_is_read_back_and_a_change_keeps_other_fields() {
    let (home, agents) = house();
    let created = agents.create("Poet", &poet()).unwrap();
    assert_eq!(created.name, "poet");
    let soul = format!("{}\n", poet().soul);
    let read = |soul: &str| CustomAgent {
        profile: AgentProfile { soul: soul.into(), ..created.profile.clone() },
        ..created.clone()
    };
    assert_eq!(agents.find("poet").unwrap(), read(&soul));
    let folder = home.path().join("users/default/agents/poet");
    let mut config = fs::read_to_string(folder.join("config.yaml")).unwrap();
    config.push_str("# a comment\nmodel_settings: {temperature: 0.5}\n\"odd: key\": [1, null]\n");
    fs::write(folder.join("config.yaml"), config).unwrap();
    fs::write(folder.join("memory.json"), "{}").unwrap();
    fs::write(folder.join(".staging-1-SOUL.md.part"), "of a crash").unwrap();
    let change = AgentChange {
        model: Some(None),
        tool_groups: Some(None),
        skills: Some(names(&["a"])),
        ..AgentChange::default()
    };
    agents.update("poet", change).unwrap();
    let now = agents.find("poet").unwrap().profile;
    let sampling = Sampling { temperature: Some(0.5), max_tokens: None };
    let expect =
        AgentProfile { model: None, tool_groups: None, skills: names(&["a"]), soul, sampling, ..poet() };
    assert_eq!(now, expect);
    let text = fs::read_to_string(folder.join("config.yaml")).unwrap();
    assert!(text.contains("\nmodel_settings: {\"temperature\":0.5}\n"), "{text}");
    assert!(text.ends_with("\n\"odd: key\": [1,null]\n"), "{text}");
    let before = text;
    agents.update("poet", AgentChange { soul: Some("You rhyme.".into()), ..AgentChange::default() }).unwrap();
    assert_eq!(
        fs::read_to_string(folder.join("config.yaml")).unwrap(),
        before,
        "the other file is unchanged"
    );
    assert_eq!(fs::read_to_string(folder.join("SOUL.md")).unwrap(), "You rhyme.\n");
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["SOUL.md", "config.yaml", "memory.json"], "no temporary file is left");
    agents.remove("poet").unwrap();
    assert_eq!(agents.list(), Roster::default());
    let left: Vec<_> =
        fs::read_dir(folder.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn invalid_agents_are_refused_and_leave_no_files() {
    let (_home, agents) = house();
    let refused = |profile: AgentProfile, why: &str| {
        let error = agents.create("a", &profile).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(AgentProfile { about: "x".repeat(1001), ..AgentProfile::default() }, "more than 1000 characters");
    refused(AgentProfile { soul: "x".repeat(64 * 1024), ..AgentProfile::default() }, "more than 64 KiB");
    refused(
        AgentProfile { skills: Some(vec!["a".into(); 201]), ..AgentProfile::default() },
        "more than 200 skills",
    );
    refused(
        AgentProfile { tool_groups: names(&[" "]), ..AgentProfile::default() },
        "not a valid name of a tool group",
    );
    let long = Some((0..200).map(|n| format!("{n}{}", "ü".repeat(190))).collect());
    refused(AgentProfile { skills: long, ..AgentProfile::default() }, "larger than 64 KiB");
    for odd in ["\u{feff}x\u{fffe}", "a\u{2028}b", "\u{85}\u{9f}"] {
        let profile = AgentProfile { skills: names(&[odd]), about: odd.into(), ..AgentProfile::default() };
        if agents.create("odd", &profile).is_ok() {
            assert_eq!(agents.find("odd").unwrap().profile.skills, profile.skills, "{odd:?}");
            agents.remove("odd").unwrap();
        }
    }
    let longest =
        AgentProfile { soul: format!("{}\n\n", "x".repeat(64 * 1024 - 1)), ..AgentProfile::default() };
    agents.create("long", &longest).unwrap();
    assert_eq!(agents.find("long").unwrap().profile.soul.len(), 64 * 1024);
    agents.remove("long").unwrap();
    refused(
        AgentProfile { model: Some("a\nb".into()), ..AgentProfile::default() },
        "not a valid name of a tool group",
    );
    assert_eq!(agents.list(), Roster::default());
    for name in ["new", "../a", ""] {
        assert!(matches!(agents.create(name, &poet()), Err(AgentError::Name { .. })), "{name}");
    }
    agents.create("a", &poet()).unwrap();
    assert!(matches!(agents.create("A", &poet()), Err(AgentError::Exists(_))));
    for n in 1..FULL {
        agents.create(&format!("a{n}"), &AgentProfile::default()).unwrap();
    }
    assert!(matches!(agents.create("b", &poet()), Err(AgentError::Full(FULL))));
}

#[test]
fn the_legacy_folder_and_symbolic_links_are_never_written() {
    let (home, agents) = house();
    write(&home, "agents/old", "", "You are old.");
    let new_soul = || AgentChange { soul: Some("You are new.".into()), ..AgentChange::default() };
    assert!(matches!(agents.update("old", new_soul()), Err(AgentError::Legacy(_))));
    assert!(matches!(agents.remove("old"), Err(AgentError::Legacy(_))));
    assert!(matches!(agents.create("old", &poet()), Err(AgentError::Exists(_))));
    let elsewhere = write(&home, "elsewhere", "", "You are elsewhere.");
    std::os::unix::fs::symlink(&elsewhere, home.path().join("users/default/agents/far")).unwrap();
    assert_eq!(agents.find("far").unwrap().profile.soul, "You are elsewhere.");
    assert!(agents.update("far", new_soul()).unwrap_err().to_string().contains("is a symbolic link"));
    agents.remove("far").unwrap();
    assert_eq!(fs::read_to_string(elsewhere.join("SOUL.md")).unwrap(), "You are elsewhere.");
}

#[test]
fn a_broken_agent_cannot_be_changed_but_removed() {
    let (home, agents) = house();
    write(&home, "users/default/agents/a", "skills: 1", "You.");
    assert!(matches!(agents.update("a", AgentChange::default()), Err(AgentError::Broken { .. })));
    agents.remove("a").unwrap();
    assert!(!agents.exists("a"));
}

#[test]
fn a_folder_with_an_invalid_name_is_reported() {
    let (home, agents) = house();
    write(&home, "users/default/agents/Code_Reviewer", "", "You.");
    write(&home, "users/default/agents/.hidden", "", "You.");
    fs::create_dir_all(home.path().join("users/default/agents/empty")).unwrap();
    let broken = agents.list().broken;
    assert_eq!(broken.len(), 1);
    assert!(broken[0].name == "Code_Reviewer" && broken[0].why.contains("rename it"), "{broken:?}");
}

#[tokio::test]
async fn setup_agent_accepts_only_existing_skills() {
    use crate::audit::AuditLog;
    use pudu_store::{Db, DbLocation};
    let (_home, agents) = house();
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let audit_log = AuditLog {
        db,
        thread: "t".into(),
        run: "r".into(),
        asker: crate::Asker::default(),
        is_guarded: false,
    };
    let groups = crate::ToolGroups { names: ["web", "bash"].map(str::to_owned).into(), ..Default::default() };
    let known = AgentOptions { models: vec!["big".into()], groups, skills: vec!["x".into(), "y".into()] };
    let now = AgentProfile { tool_groups: names(&["web"]), skills: names(&[]), ..AgentProfile::default() };
    let tool = UpdateAgent { agents, audit_log, name: "a".into(), now, known, approved: false };
    for (args, note) in [
        (r#"{"soul": "x", "tool_groups": ["bash", "web"]}"#, Some("more tools (bash)")),
        (r#"{"tool_groups": ["bash"], "skills": ["x", "y"]}"#, Some("more tools (bash), more skills (x, y)")),
        (r#"{"soul": "x", "tool_groups": [], "model": "big"}"#, None),
    ] {
        let said = pudu_base::TypedTool::note(&tool, &serde_json::from_str(args).unwrap());
        assert_eq!(said.as_deref(), note, "{args}");
    }
    for (args, expect) in [
        (r#"{"tool_groups": ["web"], "skills": [], "model": "big"}"#, None),
        (r#"{"tool_groups": ["wob"]}"#, Some("no tool group `wob` (there are: bash, web)")),
        (r#"{"skills": ["z"]}"#, Some("there is no skill z; there are: x, y")),
        (r#"{"model": "small"}"#, Some("there is no model small; there are: big")),
        (r#"{"soul": " "}"#, Some("may not be empty")),
        (r#"{"soul": null, "description": "b"}"#, None),
    ] {
        let said = tool.check(&serde_json::from_str(args).unwrap()).map_err(|error| error.0);
        match expect {
            None => assert_eq!(said, Ok(()), "{args}"),
            Some(why) => assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{args}: {said:?}"),
        }
    }
}

#[test]
fn an_agent_can_only_lose_tools_and_skills() {
    let (home, agents) = house();
    let check = |config: &str,
                 tool_groups: Option<&[&str]>,
                 skills: Option<&[&str]>,
                 expect: Option<&str>| {
        write(&home, "users/default/agents/a", config, "You.");
        let change = |only_less| AgentChange {
            tool_groups: tool_groups.map(names),
            skills: skills.map(names),
            only_less,
            ..AgentChange::default()
        };
        let said = agents.update("a", change(true)).map(drop).map_err(|error| error.to_string());
        match expect {
            None => assert_eq!(said, Ok(()), "{config}"),
            Some(why) => assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{config}: {said:?}"),
        }
        agents.update("a", change(false)).unwrap();
    };
    check("", Some(&["web"]), Some(&[]), None);
    check("tool_groups: [web, bash]", Some(&["bash"]), None, None);
    check("tool_groups: [web]", Some(&["bash"]), None, Some("cannot give yourself more tools (bash)"));
    check("tool_groups: []", Some(&["web"]), None, Some("more tools (web)"));
    check("skills: [x]", None, Some(&["x", "y"]), Some("more skills (y)"));
    write(&home, "users/default/agents/a", "skills: [x]", "You.");
    let all = AgentChange { skills: Some(None), only_less: true, ..AgentChange::default() };
    assert!(agents.update("a", all).unwrap_err().to_string().contains("more skills (all)"));
}

#[test]
fn a_user_finds_shared_and_own_agents_and_changes_only_own_ones() {
    let (home, shared) = house();
    write(&home, "users/default/agents/clerk", "", "Everybody's.");
    write(&home, "agents/old", "", "Old.");
    write(&home, "users/ada/agents/poet", "", "Ada's.");
    write(&home, "users/ada/agents/clerk", "", "Hidden.");
    write(&home, "users/bob/agents/poet", "", "Bob's.");
    let (ada, bob) = (UserId::from_raw("ada").unwrap(), UserId::from_raw("bob").unwrap());
    assert_eq!(shared.owners(), [ada.clone(), bob.clone()]);
    let of = |user: &UserId| shared.for_user(Some(user), false);
    let found =
        |agents: &Agents, name: &str| agents.find(name).map(|agent| (agent.profile.soul, agent.place)).ok();
    assert_eq!(found(&of(&ada), "poet"), Some(("Ada's.".into(), AgentPlace::Own)));
    assert_eq!(found(&of(&bob), "poet"), Some(("Bob's.".into(), AgentPlace::Own)));
    assert_eq!(found(&shared, "poet"), None);
    assert_eq!(
        found(&of(&ada), "clerk"),
        Some(("Everybody's.".into(), AgentPlace::Shared)),
        "a name identifies one agent"
    );
    let listed = |agents: &Agents| -> Vec<String> {
        agents.list().agents.into_iter().map(|agent| agent.name).collect()
    };
    assert_eq!(listed(&of(&ada)), ["clerk", "old", "poet"]);
    assert_eq!(listed(&shared), ["clerk", "old"]);

    let own = shared.own_of(&ada);
    assert_eq!(own.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["poet"]);
    assert!(
        own.broken.len() == 1 && own.broken[0].why.contains("a shared agent has the same name"),
        "{own:?}"
    );

    let soul = |soul: &str| AgentChange { soul: Some(soul.into()), ..AgentChange::default() };
    of(&ada).update("poet", soul("Ada's new.")).unwrap();
    assert_eq!(found(&of(&bob), "poet"), Some(("Bob's.".into(), AgentPlace::Own)));
    for refused in [
        of(&ada).update("clerk", soul("Mine.")).map(drop),
        of(&ada).remove("clerk"),
        of(&ada).set_lead_soul("Mine."),
        shared.for_user(None, false).create("mine", &poet()).map(drop),
        shared.for_user(Some(&UserId::local()), false).create("mine", &poet()).map(drop),
    ] {
        assert!(matches!(refused, Err(AgentError::Shared(_))), "{refused:?}");
    }
    assert!(matches!(of(&ada).remove("old"), Err(AgentError::Legacy(_))));
    assert_eq!(of(&ada).create("muse", &poet()).unwrap().place, AgentPlace::Own);
    assert!(home.path().join("users/ada/agents/muse/SOUL.md").is_file());
    assert!(matches!(of(&ada).vacant("clerk"), Err(AgentError::Exists(_))));
    assert!(matches!(of(&bob).remove("muse"), Err(AgentError::Unknown(_))));
    of(&ada).remove("muse").unwrap();
    assert_eq!(shared.for_user(Some(&ada), true).create("desk", &poet()).unwrap().place, AgentPlace::Shared);
}
