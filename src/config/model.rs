//! The models that people may choose from.
//!
//! DeerFlow hands every key it does not know to the constructor of a Python class. Here the keys that the
//! constructors share are read under one name each, those that a request carries go into `extra_body`, and
//! the rest is unknown.

use super::{
    class::{self, Class, ClassKind, Dialect},
    env::Env,
    problem::Pos,
    raw::{MappingEntry, Node, NodeValue},
    reader::{ConfigReader, Section},
};
use indexmap::IndexMap;
use pudu_client::net::scrub;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value as Json};
use std::time::Duration;
use url::Url;

/// One model that can be asked.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    /// The name by which people choose it.
    pub(crate) name: String,
    /// The name that people see.
    pub(crate) display_name: String,
    /// A line about it, or empty.
    pub(crate) description: String,
    /// The name that its provider knows it by.
    pub(crate) model: String,
    /// How its server departs from the plain OpenAI-compatible chat completions, which all of them speak.
    pub(crate) dialect: Dialect,
    /// Base URL of its API; the path of a call is added to it.
    pub(crate) base_url: Url,
    /// The key; a local server needs none.
    pub(crate) api_key: Option<SecretString>,
    /// Whether it can be told to think.
    pub(crate) supports_thinking: bool,
    /// Whether it can see images.
    #[allow(dead_code, reason = "for the list of models, which the HTTP API does not have yet")]
    pub(crate) supports_vision: bool,
    /// Whether it can be told how hard to think.
    #[allow(dead_code, reason = "for the list of models, which the HTTP API does not have yet")]
    pub(crate) supports_reasoning_effort: bool,
    /// How many tokens an answer may have; `None` leaves it to the provider.
    pub(crate) max_tokens: Option<u32>,
    /// How freely it chooses words; `None` leaves it to the provider.
    pub(crate) temperature: Option<f64>,
    /// How many tokens prompt and answer may have together. What is not said is what most models take.
    pub(crate) context_window: u32,
    /// How long a whole call may take.
    pub(crate) request_timeout: Duration,
    /// How long a stream may be silent.
    pub(crate) stream_chunk_timeout: Duration,
    /// How often a call that may succeed later is made again.
    pub(crate) max_retries: u32,
    /// Fields added to the request as they are.
    pub(crate) extra_body: Map<String, Json>,
    /// Headers added to the request. A header may be a secret.
    pub(crate) default_headers: IndexMap<String, SecretString>,
    /// Fields merged into the request when it shall think.
    pub(crate) when_thinking_enabled: Map<String, Json>,
    /// Fields merged into the request when it shall not think.
    pub(crate) when_thinking_disabled: Map<String, Json>,
}

/// Defaults of a dialect's usual server.
struct DialectDefaults {
    base_url: &'static str,
    /// The variables that name another server, as the provider's own clients read them.
    urls: &'static [&'static str],
    /// The variables that hold its key, first one first.
    keys: &'static [&'static str],
    /// The endpoint's path, for a `base_url` that a native client would take without one.
    path: &'static str,
}

impl Dialect {
    fn home(self) -> DialectDefaults {
        const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/openai";
        let (base_url, keys): (_, &[&str]) = match self {
            Self::OpenAi | Self::Signed => ("https://api.openai.com/v1", &["OPENAI_API_KEY"]),
            Self::DeepSeek => ("https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
            Self::MiniMax => ("https://api.minimax.io/v1", &["MINIMAX_API_KEY"]),
            Self::MiMo => ("https://api.xiaomimimo.com/v1", &["MIMO_API_KEY"]),
            Self::StepFun => ("https://api.stepfun.com/v1", &["STEPFUN_API_KEY"]),
            Self::Vllm => ("http://127.0.0.1:8000/v1", &["VLLM_API_KEY"]),
            Self::MindIe => ("http://127.0.0.1:8989/v1", &[]),
            Self::Ollama => ("http://127.0.0.1:11434/v1", &[]),
            Self::Anthropic => ("https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"]),
            Self::Gemini => (GEMINI, &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        };
        let path = match self {
            Self::Ollama | Self::Anthropic => "v1",
            Self::Gemini => "v1beta/openai",
            _ => "",
        };
        let urls: &[&str] = match self {
            Self::OpenAi | Self::Signed => &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
            _ => &[],
        };
        DialectDefaults { base_url, urls, keys, path }
    }
}

/// Other names of keys, as the Python classes have them.
const ALIASES: &[(&str, &str)] = &[
    ("model_name", "model"),
    ("model_id", "model"),
    ("api_base", "base_url"),
    ("openai_api_base", "base_url"),
    ("anthropic_api_url", "base_url"),
    ("openai_api_key", "api_key"),
    ("anthropic_api_key", "api_key"),
    ("gemini_api_key", "api_key"),
    ("google_api_key", "api_key"),
    ("max_completion_tokens", "max_tokens"),
    ("max_output_tokens", "max_tokens"),
    ("num_predict", "max_tokens"),
    ("timeout", "request_timeout"),
    ("default_request_timeout", "request_timeout"),
    ("read_timeout", "request_timeout"),
];

/// Keys that a request carries under the same name.
const CARRIED: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "seed",
    "service_tier",
    "stop",
    "top_k",
    "top_p",
    "verbosity",
];

const UNSUPPORTED_KEYS: &[&str] = &[
    "connect_timeout",
    "cumulative_stream_usage",
    "output_version",
    "pool_timeout",
    "pricing",
    "reasoning",
    "stream_usage",
    "streaming",
    "use_responses_api",
    "write_timeout",
];

const DEFAULT_CLASS: &str = "langchain_openai:ChatOpenAI";

/// Reads all models in their order; the first is the default.
pub(super) fn read(top: &Section<'_>, env: &Env) -> Vec<ModelConfig> {
    let mut models: Vec<ModelConfig> = Vec::new();
    for section in top.items("models") {
        let section = section.also(ALIASES);
        let Some(model) = one(&section, env) else { continue };
        if models.iter().any(|other| other.name == model.name) {
            let what = format!("two models have the name \"{}\"", model.name);
            section.refuse("name", what, "give each its own; people choose a model by its name");
        }
        models.push(model);
    }
    models
}

fn one(section: &Section<'_>, env: &Env) -> Option<ModelConfig> {
    let class = class::read(section, ClassKind::Model, Some(DEFAULT_CLASS));
    let (dialect, known) = match class {
        Some(Class::Model(dialect)) => (dialect, true),
        _ => (Dialect::OpenAi, false),
    };
    // Of a model that cannot be had anyway, only wrong types are worth telling.
    let section = &section.clone().needed(known);
    section.later(UNSUPPORTED_KEYS);
    let name = section.text("name").required("give the name by which people choose the model");
    let model = section.text("model").required("give the name that the provider knows the model by");
    let base_url = base_url(section, dialect, env);
    let supports_reasoning_effort = section.flag("supports_reasoning_effort").or(false);
    let model = ModelConfig {
        display_name: section.text("display_name").or_told(name.clone().unwrap_or_default(), "the name"),
        description: section.text("description").or(String::new()),
        dialect,
        api_key: api_key(section, dialect, base_url.as_ref(), env),
        supports_thinking: section.flag("supports_thinking").or(false),
        supports_vision: section.flag("supports_vision").or(false),
        supports_reasoning_effort,
        max_tokens: section.number("max_tokens", 1..=10_000_000).optional("the provider's"),
        temperature: section.decimal("temperature", 0.0..=2.0).optional("the provider's"),
        context_window: section.number("context_window", 1..=100_000_000).or(128_000),
        request_timeout: section.seconds("request_timeout", 1.0).or(Duration::from_secs(600)),
        stream_chunk_timeout: section.seconds("stream_chunk_timeout", 1.0).or(Duration::from_secs(240)),
        max_retries: section.number("max_retries", 0..=20).or(2),
        extra_body: extra_body(section, supports_reasoning_effort),
        default_headers: headers(section),
        when_thinking_enabled: thinking(section),
        when_thinking_disabled: section.map("when_thinking_disabled").or(Map::new()),
        base_url: base_url?,
        name: name?,
        model: model?,
    };
    known.then_some(model)
}

/// Native clients of some providers take an address without the endpoint's path; it is added.
fn base_url(section: &Section<'_>, dialect: Dialect, env: &Env) -> Option<Url> {
    let home = dialect.home();
    if let Some(mut url) = section.url("base_url").optional("the provider's") {
        if url.path() == "/" && !home.path.is_empty() {
            url.set_path(home.path);
        }
        return Some(url);
    }
    let named = env.first(home.urls).and_then(|(_, url)| Url::parse(url).ok());
    named.or_else(|| Url::parse(home.base_url).ok())
}

/// A key that is not written is looked for where the provider's own clients look for it.
fn api_key(
    section: &Section<'_>,
    dialect: Dialect,
    base_url: Option<&Url>,
    env: &Env,
) -> Option<SecretString> {
    let home = dialect.home();
    let setting = section.secret("api_key");
    let spoilt = setting.is_spoilt();
    let written = setting.optional("the provider's variable");
    let key = written.or_else(|| env.first(home.keys).map(|(_, key)| SecretString::from(key)));
    let public = base_url.is_some_and(|url| !is_local(url) && url.as_str() == home.base_url);
    if let (None, [name, ..], true) = (&key, home.keys, public && !spoilt && section.is_needed()) {
        let help = format!("set {name}, or write `api_key: $NAME` with a variable of your own");
        section.refuse("api_key", format!("no key is written, and {name} is not set"), help);
    }
    key
}

/// Returns whether an address is on this machine.
pub(super) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn extra_body(section: &Section<'_>, reasoning_effort: bool) -> Map<String, Json> {
    let mut body = section.carried(CARRIED);
    if !reasoning_effort {
        body.remove("reasoning_effort");
    }
    body.extend(section.map("model_kwargs").or(Map::new()));
    body.extend(section.map("extra_body").or(Map::new()));
    body
}

/// `thinking: {…}` is DeerFlow's short form of `when_thinking_enabled: {thinking: {…}}`.
fn thinking(section: &Section<'_>) -> Map<String, Json> {
    let mut enabled = section.map("when_thinking_enabled").or(Map::new());
    if let Some(short) = section.map("thinking").optional("nothing") {
        enabled.insert("thinking".to_owned(), Json::Object(short));
    }
    enabled
}

fn headers(section: &Section<'_>) -> IndexMap<String, SecretString> {
    let text = |value: Json| match value {
        Json::String(text) => text,
        other => other.to_string(),
    };
    let map = section.map("default_headers").or(Map::new());
    let headers: IndexMap<_, _> =
        map.into_iter().map(|(name, value)| (name, SecretString::from(text(value)))).collect();
    let telling = headers.iter().filter(|(name, value)| scrub::is_secret(name, value.expose_secret()));
    section.know_secret(telling.map(|(_, value)| value));
    headers
}

impl ModelConfig {
    /// Returns the model that a key in the environment allows, for when none is configured.
    pub(crate) fn from_env(env: &Env) -> Option<Self> {
        let choices = [
            ("OPENAI_API_KEY", DEFAULT_CLASS, "gpt-5-mini"),
            ("ANTHROPIC_API_KEY", "langchain_anthropic:ChatAnthropic", "claude-sonnet-4-5"),
        ];
        let (_, class, model) = choices.into_iter().find(|(key, _, _)| env.first(&[key]).is_some())?;
        Self::plain(class, model, env)
    }

    /// Returns a model of the Ollama on this machine.
    pub(crate) fn ollama(model: &str) -> Option<Self> {
        Self::plain("langchain_ollama:ChatOllama", model, &Env::default())
    }

    /// Reads an entry as if it were written, so that every default stands in one place.
    fn plain(class: &str, model: &str, env: &Env) -> Option<Self> {
        let at = Pos { line: 1, column: 1 };
        let entry = |(key, text): (&str, &str)| MappingEntry {
            key: key.to_owned(),
            at,
            node: Node { at, value: NodeValue::Text(text.to_owned()) },
        };
        let entries = [("use", class), ("name", model), ("model", model)].map(entry);
        let root = Node { at, value: NodeValue::Map(entries.into()) };
        one(&ConfigReader::new(&root, env).live(), env)
    }
}
