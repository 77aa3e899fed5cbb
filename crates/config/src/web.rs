//! Web tools: the providers of search and fetch, and the hosts that may be fetched.

use super::{env::Env, raw::NodeValue, reader::Section};
pub(crate) use pudu_tools::web::{Provider, Safe as SafeSearch, WebCapability as WebKind};
use secrecy::SecretString;
use std::{net::IpAddr, time::Duration};
use url::Url;

/// A web tool.
#[derive(Clone, Debug)]
pub struct WebConfig {
    /// The kind of tool.
    pub kind: WebKind,
    /// Its provider.
    pub provider: Provider,
    /// Base URL of the provider, if not its usual one.
    pub base_url: Option<Url>,
    /// The API key.
    pub api_key: Option<SecretString>,
    /// Maximum number of results of a search.
    pub max_results: usize,
    /// Maximum length of a page, or of a result's snippet, that is shown at once, in characters.
    pub max_chars: usize,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Region of the results.
    pub region: Option<String>,
    /// Level of safe search.
    pub safesearch: SafeSearch,
}

/// Other names of keys, from DeerFlow's tools.
const ALIASES: &[(&str, &str)] = &[
    ("api_url", "base_url"),
    ("timeout_s", "timeout"),
    ("contents_max_characters", "max_chars"),
    ("country", "region"),
];

const UNSUPPORTED_KEYS: &[&str] = &[
    "backend",
    "exclude_domains",
    "include_domains",
    "proxy",
    "search_lang",
    "search_type",
    "spellcheck",
    "trust_env",
];

const SAFE: &[(&str, SafeSearch)] = &[
    ("on", SafeSearch::On),
    ("strict", SafeSearch::On),
    ("moderate", SafeSearch::Moderate),
    ("off", SafeSearch::Off),
];

/// Returns the variable that holds a provider's key, and whether the key is required.
fn variable(provider: Provider) -> Option<(&'static str, bool)> {
    match provider {
        Provider::Tavily => Some(("TAVILY_API_KEY", true)),
        Provider::Firecrawl => Some(("FIRECRAWL_API_KEY", true)),
        Provider::Brave => Some(("BRAVE_SEARCH_API_KEY", true)),
        Provider::Serper => Some(("SERPER_API_KEY", true)),
        Provider::Exa => Some(("EXA_API_KEY", true)),
        Provider::Jina => Some(("JINA_API_KEY", false)),
        Provider::Own | Provider::DuckDuckGo | Provider::SearXng => None,
    }
}

impl WebConfig {
    /// Returns the tool with its defaults.
    pub(super) fn plain(kind: WebKind, provider: Provider) -> Self {
        Self {
            kind,
            provider,
            base_url: None,
            api_key: None,
            max_results: 5,
            // The length of a page, as in DeerFlow, or of a result's snippet.
            max_chars: if kind == WebKind::Fetch { 4_096 } else { 1_000 },
            timeout: Duration::from_secs(30),
            region: None,
            safesearch: SafeSearch::Moderate,
        }
    }
}

/// Reads the settings of a web tool.
pub(super) fn read(section: &Section<'_>, kind: WebKind, provider: Provider, env: &Env) -> WebConfig {
    let section = &section.clone().also(ALIASES);
    section.note_unused(UNSUPPORTED_KEYS);
    let mut web = WebConfig::plain(kind, provider);
    settings! { section =>
        /// For web tools: base URL of the provider, for a self-hosted one or a proxy.
        base_url = url().eg("https://api.tavily.com").optional("the provider's");
        /// For web tools: maximum number of results of a search.
        max_results = number(1..=100).or(web.max_results);
        /// For web tools: maximum length of a page, or of a result's snippet, that the model reads at once, in characters.
        max_chars = number(1..=1_000_000).eg("4096").or_described(web.max_chars, "4096 for a page, 1000 for a snippet");
        /// For web tools: maximum duration of one request, in seconds.
        timeout = seconds(1.0).or(web.timeout);
        /// Region for DuckDuckGo, such as de-de; country for Brave, such as DE.
        region = text().eg("wt-wt").optional("worldwide");
        /// Safe search of DuckDuckGo, SearXNG and Brave: on, moderate or off.
        safesearch = choice(SAFE).or(web.safesearch);
    }
    web.api_key = api_key(section, provider, base_url.is_some(), env);
    WebConfig { base_url, max_results, max_chars, timeout, region, safesearch, ..web }
}

/// Returns the API key. If none is configured, reads the variable that the provider's own clients use. A self-hosted
/// server may need none.
fn api_key(section: &Section<'_>, provider: Provider, elsewhere: bool, env: &Env) -> Option<SecretString> {
    let about =
        "For web tools: API key; without it pudu reads the provider's own variable, such as TAVILY_API_KEY.";
    let setting = section.secret("api_key").about(about).eg("$TAVILY_API_KEY");
    let spoilt = setting.spoilt;
    let written = setting.optional("the provider's environment variable");
    let (name, needed) = variable(provider)?;
    let key = written.or_else(|| env.first(&[name]).map(|(_, key)| SecretString::from(key)));
    if key.is_none() && needed && !elsewhere && !spoilt {
        let help = format!("set {name}, or write `api_key: $NAME` with another variable");
        section.refuse("api_key", format!("there is no `api_key`, and {name} is not set"), help);
    }
    key
}

/// Reads the hosts outside the public internet that may be fetched.
pub(super) fn allowed(top: &Section<'_>) -> Vec<String> {
    let section = top.section("web").about("Web access of the agent.");
    settings! { section =>
        /// Names, addresses and networks outside the open internet that may be fetched, such as wiki.internal, .corp or
        /// 10.1.0.0/16.
        allowed_hosts = list("names, addresses or networks", host).or_described(Vec::new(), "none");
    }
    allowed_hosts
}

fn host(value: &NodeValue) -> Result<String, String> {
    let NodeValue::Text(text) = value else { return Err("put it in quotes".to_owned()) };
    let text = text.trim().to_lowercase();
    if let Some((address, prefix)) = text.split_once('/') {
        let widest = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return Err("write only the host name, without https:// and path".to_owned()),
        };
        return match prefix.parse::<u8>() {
            Ok(0) => Err("this allows everything; list the allowed networks instead".to_owned()),
            Ok(prefix) if prefix <= widest => Ok(text),
            _ => Err(format!("the number after the slash must be from 1 to {widest}")),
        };
    }
    let name = text.trim_start_matches('*').trim_start_matches('.');
    let plain = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
        && !name.starts_with('-');
    match plain || text.parse::<IpAddr>().is_ok() {
        true => Ok(text),
        false => {
            Err("write a name, an address, or a network such as 10.1.0.0/16; ports are ignored".to_owned())
        }
    }
}
