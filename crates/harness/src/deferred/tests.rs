use super::*;
use crate::Agent;
use crate::fixture::{Bench, ProbeTool, ScriptedReply, call, calls, text_reply};
use pudu_base::{Outcome, Tool, Update};
use serde_json::json;

fn spec(name: &str, about: &str) -> Arc<ToolSpec> {
    let parameters = json!({"type": "object"});
    Arc::new(ToolSpec { name: name.into(), description: about.into(), parameters, idempotent: false })
}

/// A bench whose tools `mail_*` have to be searched for.
fn bench(replies: Vec<ScriptedReply>) -> Bench {
    let mut bench = Bench::new(replies);
    let names = ["mail_send", "mail_list"];
    let probes = names.map(|name| ProbeTool::new(name, false) as Arc<dyn Tool>);
    let agent = bench.agent.clone();
    let tools = probes.iter().fold(agent.tools.clone(), |tools, probe| tools.with(probe.clone()));
    let deferred = Arc::new(ToolCatalog::new(probes.iter().map(|probe| probe.spec().clone())));
    bench.agent = searching(Agent { tools, deferred, ..agent });
    bench
}

#[test]
fn a_catalogue_is_named_by_what_is_in_it_in_any_order() {
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
fn the_model_is_told_names_and_of_very_many_the_number() {
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
fn an_agent_searches_for_those_that_it_has() {
    let all = bench(vec![]).agent;
    assert!(all.tools.get(SEARCH).is_some() && all.deferred.has("mail_send") && !all.deferred.has("writes"));
    let part = searching(Agent { tools: all.tools.only(|name| name != "mail_send"), ..all.clone() });
    assert!(!part.deferred.has("mail_send") && part.deferred.has("mail_list"));
    assert_eq!(part.deferred.hash, all.deferred.hash, "what was found stays found");
    assert!(!part.deferred.prompt.contains("mail_send"));
    let none = searching(Agent { tools: all.tools.only(|name| !name.starts_with("mail")), ..all });
    assert!(none.tools.get(SEARCH).is_none() && none.deferred.is_empty());
}

#[tokio::test]
async fn a_tool_is_there_after_it_was_searched_for_and_stays() {
    let search = || call("s", SEARCH, json!({"query": "select:mail_send,none"}));
    let send = |id: &str| call(id, "mail_send", json!({}));
    // Found in the same reply is too early.
    let bench =
        bench(vec![calls(vec![search(), send("early")]), calls(vec![send("now")]), text_reply("sent")]);
    assert_eq!(bench.run(Some("mail it")).await.0, Outcome::Success);
    let tools = bench.model.tools.lock().unwrap().clone();
    let few = "writes reads tool_search";
    assert_eq!(tools, [few, "writes reads tool_search mail_send", "writes reads tool_search mail_send"]);
    let asked = bench.asked().pop().unwrap();
    let told = r#"tool: [{"description":"mail_send","name":"mail_send","parameters":{}}]
There is no none."#;
    assert!(asked.contains(&told.to_owned()), "{asked:?}");
    let early = "tool: Error: how mail_send is called was not asked for yet. Call tool_search with select:mail_send \
                 first; from your next step on mail_send is there.";
    assert!(asked.contains(&early.to_owned()), "{asked:?}");
    assert_eq!(asked.last().unwrap(), "tool: worked");
    let systems = bench.model.systems.lock().unwrap().clone();
    assert!(systems.iter().all(|system| *system == systems[0]), "the prompt stays the same");
    assert!(systems[0].starts_with("Be brief.\n\n") && systems[0].contains("\nmail_list\nmail_send\n"));
}

#[tokio::test]
async fn who_calls_a_tool_that_is_not_there_is_not_told_of_hundreds() {
    let bench = bench(vec![calls(vec![call("1", "fly", json!({}))]), text_reply("no")]);
    bench.run(Some("fly")).await;
    let told = "tool: Error: there is no tool fly. There are: writes, reads, tool_search.";
    assert_eq!(bench.asked().pop().unwrap().pop().unwrap(), told);
}

#[tokio::test]
async fn what_was_found_in_another_catalogue_is_forgotten() {
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
