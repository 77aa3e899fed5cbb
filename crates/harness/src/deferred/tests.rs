use super::*;
use crate::RunAgent;
use crate::fixture::{Bench, ProbeTool, ScriptedReply, call, calls, text_reply};
use pudu_base::{Outcome, Tool, Update};
use serde_json::json;

fn spec(name: &str, about: &str) -> Arc<ToolSpec> {
    let parameters = json!({"type": "object"});
    Arc::new(ToolSpec { name: name.into(), description: about.into(), parameters, idempotent: false })
}

/// A bench with deferred tools `mail_*`.
fn bench(replies: Vec<ScriptedReply>) -> Bench {
    let mut bench = Bench::new(replies);
    let names = ["mail_send", "mail_list"];
    let probes = names.map(|name| ProbeTool::new(name, false) as Arc<dyn Tool>);
    let agent = bench.agent.clone();
    let tools = probes.iter().fold(agent.tools.clone(), |tools, probe| tools.with(probe.clone()));
    let deferred = Arc::new(ToolCatalog::new(probes.iter().map(|probe| probe.spec().clone())));
    bench.agent = searching(RunAgent { tools, deferred, ..agent });
    bench
}

#[test]
fn a_catalogues_hash_depends_on_its_content_and_not_on_the_order() {
    let (one, two) = (spec("a", "One."), spec("b", "Two."));
    let name = |specs: &[&Arc<ToolSpec>]| ToolCatalog::new(specs.iter().map(|spec| (*spec).clone())).hash;
    let both = name(&[&one, &two]);
    assert_eq!(both.len(), 16);
    assert_eq!(both, name(&[&two, &one]));
    for changed in
        [spec("b", "Two"), spec("c", "Two."), Arc::new(ToolSpec { parameters: json!({}), ..(*two).clone() })]
    {
        assert_ne!(both, name(&[&one, &changed]));
    }
}

#[test]
fn the_model_gets_names_and_the_number_of_omitted_ones() {
    let prompt = prompt(&[spec("mail_list", "Lists."), spec("mail_send", "Sends.")]);
    let list = "\n\n<available-deferred-tools>\nmail_list\nmail_send\n</available-deferred-tools>";
    assert_eq!(prompt, format!("\n\n{ABOUT}{list}"));
    let many: Vec<Arc<ToolSpec>> = (0..1000).map(|n| spec(&format!("{n:060}"), "")).collect();
    let prompt = super::prompt(&many);
    assert!(
        prompt.len() < MAX_NAMES_BYTES + 1_000
            && prompt.contains(" more are not listed; tool_search finds them)")
    );
}

#[test]
fn an_agent_searches_only_for_its_own_tools() {
    let all = bench(vec![]).agent;
    assert!(all.tools.get(SEARCH).is_some() && all.deferred.has("mail_send") && !all.deferred.has("writes"));
    let part = searching(RunAgent { tools: all.tools.only(|name| name != "mail_send"), ..all.clone() });
    assert!(!part.deferred.has("mail_send") && part.deferred.has("mail_list"));
    assert_eq!(part.deferred.hash, all.deferred.hash, "found tools stay available");
    assert!(!part.deferred.prompt.contains("mail_send"));
    let none = searching(RunAgent { tools: all.tools.only(|name| !name.starts_with("mail")), ..all });
    assert!(none.tools.get(SEARCH).is_none() && none.deferred.is_empty());
}

#[tokio::test]
async fn a_tool_is_available_after_it_was_found() {
    let search = || call("s", SEARCH, json!({"query": "select:mail_send,none"}));
    let send = |id: &str| call(id, "mail_send", json!({}));
    // A tool found in the same reply is not available yet.
    let bench =
        bench(vec![calls(vec![search(), send("early")]), calls(vec![send("now")]), text_reply("sent")]);
    assert_eq!(bench.run(Some("mail it")).await.0, Outcome::Success);
    let tools = bench.model.tools.lock().unwrap().clone();
    let few = "writes reads tool_search";
    assert_eq!(tools, [few, "writes reads tool_search mail_send", "writes reads tool_search mail_send"]);
    let asked = bench.asked().pop().unwrap();
    let expected = r#"tool: [{"description":"mail_send","name":"mail_send","parameters":{}}]
There is no none."#;
    assert!(asked.contains(&expected.to_owned()), "{asked:?}");
    let early = "tool: Error: the parameters of mail_send were not looked up yet. Call tool_search with select:mail_send \
                 first; from your next step on you can call mail_send.";
    assert!(asked.contains(&early.to_owned()), "{asked:?}");
    assert_eq!(asked.last().unwrap(), "tool: worked");
    let systems = bench.model.systems.lock().unwrap().clone();
    assert!(systems.iter().all(|system| *system == systems[0]), "the prompt is unchanged");
    assert!(systems[0].starts_with("Be brief.\n\n") && systems[0].contains("\nmail_list\nmail_send\n"));
}

#[tokio::test]
async fn the_error_for_an_unknown_tool_does_not_list_hundreds() {
    let bench = bench(vec![calls(vec![call("1", "fly", json!({}))]), text_reply("no")]);
    bench.run(Some("fly")).await;
    let expected = "tool: Error: there is no tool fly. There are: writes, reads, tool_search.";
    assert_eq!(bench.asked().pop().unwrap().pop().unwrap(), expected);
}

#[tokio::test]
async fn tools_found_in_another_catalogue_are_forgotten() {
    let check = async |catalog: &str, expect: &str| {
        let bench = bench(vec![text_reply("hi")]);
        let catalog = if catalog.is_empty() { bench.agent.deferred.hash.clone() } else { catalog.to_owned() };
        let names = vec!["mail_send".to_owned(), "of a server that is gone".to_owned()];
        let bench = bench.past(vec![Update::Promote { catalog, names }]);
        bench.run(Some("hello")).await;
        assert_eq!(bench.model.tools.lock().unwrap().as_slice(), [expect]);
    };
    check("", "writes reads tool_search mail_send").await;
    check("0123456789abcdef", "writes reads tool_search").await;
}
