//! Web tools, from a chat to a simulated web and back.

use crate::house::{House, SOON, Talker};
use pudu_sim::{Web, model::Reply, web::KEY};
use serde_json::json;

/// A house whose agent searches with Tavily and fetches pages itself; 127.0.0.2 is its public internet.
async fn online() -> (House, Web) {
    let web = Web::start().await.unwrap();
    let rest = format!(
        "tools:\n  - {{use: 'deerflow.community.tavily.tools:web_search_tool', base_url: '{}', api_key: $TAVILY}}\n  \
         - {{use: 'pudu.web:web_fetch_tool', max_chars: 300}}\nweb:\n  allowed_hosts: [127.0.0.2]\n",
        web.provider("tavily")
    );
    let mut house = House::furnish(Default::default(), "", &rest).await;
    house.set("TAVILY", KEY);
    house.start();
    (house, web)
}

#[tokio::test]
async fn what_was_found_and_read_reaches_the_model_and_only_its_words_the_chat() {
    let (house, web) = online().await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("web_search", &json!({"query": "smallest deer"})));
    house.model.next(Reply::tool("web_fetch", &json!({"url": web.page("/deer")})));
    house.model.next(Reply::text("It is the pudu."));
    ada.says("which deer is the smallest?", "It is the pudu.").await;
    let requests = house.model.requests();
    let always = ["present_files", "list_uploaded_files", "ask_clarification", "write_todos", "task"];
    assert_eq!(requests[0].tools(), [&["web_search", "web_fetch"], &always[..]].concat());
    let found: serde_json::Value = serde_json::from_str(&requests[1].last_tool()).unwrap();
    assert_eq!(found[1]["url"], "https://example.org/deer");
    let read = requests[2].last_tool();
    assert!(read.starts_with("# The pudu\n\n<web_page url="), "{read}");
    assert!(
        read.contains("smallest deer") && read.contains("more characters; continue with offset 300"),
        "{read}"
    );
    let words: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(words, ["It is the pudu."]);
    assert!(!house.log().contains(KEY), "{}", house.log());
}

#[tokio::test]
async fn nothing_inside_is_fetched_by_a_url_or_a_redirect() {
    let (house, web) = online().await;
    let ada = Talker::new(&house, "Ada");
    for url in [web.inside(), web.page("/to-inside"), web.inside().replace("127.0.0.1", "0x7f.1")] {
        let before = house.model.count();
        house.model.next(Reply::tool("web_fetch", &json!({"url": url})));
        house.model.next(Reply::text("I cannot."));
        ada.say("read it");
        house.model.wait(SOON, |model| (model.count() == before + 2).then_some(())).await.unwrap();
        let said = house.model.requests().last().unwrap().last_tool();
        assert!(
            said.starts_with("Error: ") && said.contains("127.0.0.1 resolves to loopback"),
            "{url}: {said}"
        );
        ada.reads("I cannot.").await;
    }
    let asked = web.asked();
    assert!(asked.iter().all(|asked| asked.what != "GET /secret"), "{asked:?}");
}

#[tokio::test]
async fn a_page_writes_no_lines_into_the_log() {
    let (house, web) = online().await;
    let ada = Talker::new(&house, "Ada");
    let before = house.log().len();
    house.model.next(Reply::tool("web_fetch", &json!({"url": web.page("/misplaced")})));
    house.model.next(Reply::text("It is a table."));
    ada.says("read it", "It is a table.").await;
    let grown = house.log().len() - before;
    assert!(grown < 64 * 1024, "{grown} bytes");
    assert!(house.model.requests()[1].last_tool().contains('x'), "it was read");
}
