//! Settings of web tools.

use super::*;
use secrecy::ExposeSecret;

fn shown(entry: &str) -> String {
    let text = format!("tools: [{{use: {entry}}}]\n");
    let env = [("TAVILY_API_KEY", "env"), ("MINE", "mine")];
    let tool = good(&text, env).config.hot.tools[0].clone();
    let web = tool.web.unwrap();
    let key = web.api_key.map_or_else(|| "-".to_owned(), |key| key.expose_secret().to_owned());
    let url = web.base_url.map_or_else(|| "-".to_owned(), String::from);
    let numbers = format!("{} {} {}", web.max_results, web.max_chars, web.timeout.as_secs());
    let region = web.region.unwrap_or_else(|| "-".to_owned());
    format!("{} {:?} {url} {key} {numbers} {region} {:?}", tool.tool.name(), web.provider, web.safesearch)
}

#[test]
fn a_tool_has_its_provider_and_deerflows_settings() {
    let cases = [
        (
            "'deerflow.community.ddg_search.tools:web_search_tool', max_results: 3, region: de-de, safesearch: strict",
            "web_search DuckDuckGo - - 3 1000 30 de-de On",
        ),
        (
            "'src.community.tavily.tools:web_fetch_tool', max_chars: 20000",
            "web_fetch Tavily - env 5 20000 30 - Moderate",
        ),
        (
            "'deerflow.community.tavily.tools:web_search_tool', api_key: $MINE, api_url: 'http://10.0.0.1/t'",
            "web_search Tavily http://10.0.0.1/t mine 5 1000 30 - Moderate",
        ),
        (
            "'deerflow.community.jina_ai.tools:web_fetch_tool', timeout: 10",
            "web_fetch Jina - - 5 4096 10 - Moderate",
        ),
        (
            "'deerflow.community.firecrawl.tools:web_fetch_tool', base_url: 'http://localhost:3002'",
            "web_fetch Firecrawl http://localhost:3002/ - 5 4096 30 - Moderate",
        ),
        (
            "'deerflow.community.exa.tools:web_search_tool', api_key: k, contents_max_characters: 500",
            "web_search Exa - k 5 500 30 - Moderate",
        ),
        (
            "'deerflow.community.brave.tools:image_search_tool', api_key: k, country: US, safesearch: off",
            "image_search Brave - k 5 1000 30 US Off",
        ),
        ("'deerflow.community.searxng.tools:web_search_tool'", "web_search SearXng - - 5 1000 30 - Moderate"),
        ("'pudu.web:web_fetch_tool'", "web_fetch Own - - 5 4096 30 - Moderate"),
    ];
    for (entry, expect) in cases {
        assert_eq!(shown(entry), expect, "{entry}");
    }
}

#[test]
fn a_missing_required_key_is_an_error() {
    assert_eq!(
        messages("tools:\n  - {use: 'deerflow.community.serper.tools:image_search_tool'}\n", []),
        "config.yaml:3:5: error: tools[0].api_key: there is no `api_key`, and SERPER_API_KEY is not set\n  \
         help: set SERPER_API_KEY, or write `api_key: $NAME` with another variable"
    );
}

#[test]
fn allowed_hosts_are_names_addresses_and_networks() {
    let reached =
        |typed: &str| good(&format!("web: {{allowed_hosts: {typed}}}\n"), []).config.hot.reachable.join(" ");
    for (typed, expect) in [
        ("[]", ""),
        ("wiki.internal", "wiki.internal"),
        (
            "['*.Corp', .lan, 10.1.0.0/16, '::1', 'fd00::/8', 127.0.0.1]",
            "*.corp .lan 10.1.0.0/16 ::1 fd00::/8 127.0.0.1",
        ),
    ] {
        assert_eq!(reached(typed), expect, "{typed}");
    }
    for (typed, expect) in [
        ("https://wiki.internal", "write only the host name, without https:// and path"),
        ("wiki.internal:80", "write a name, an address, or a network such as 10.1.0.0/16; ports are ignored"),
        ("0.0.0.0/0", "this allows everything; list the allowed networks instead"),
        ("10.0.0.0/33", "the number after the slash must be from 1 to 32"),
        ("'*'", "write a name, an address, or a network such as 10.1.0.0/16; ports are ignored"),
    ] {
        let messages = messages(&format!("web: {{allowed_hosts: [{typed}]}}\n"), []);
        assert!(
            messages.contains("web.allowed_hosts") && messages.ends_with(&format!("help: {expect}")),
            "{typed}: {messages}"
        );
    }
}
