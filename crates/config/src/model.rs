//! The models that people can choose from.
//!
//! DeerFlow passes unknown keys to the constructor of a Python class. Here the keys that the constructors share are
//! read under one name each, keys that belong to a request are added to its body, and all others are unknown.

mod address;
mod key;

pub(super) use address::is_local;

use super::{
    class::{self, Class, ClassKind},
    env::Env,
    problem::Pos,
    quantity::NumberUnit,
    raw::{MappingEntry, Node, NodeValue},
    reader::{ConfigReader, Section},
    setting::is_placeholder,
};
use pudu_agent::ModelPrice;
use pudu_model::{CacheRules, Dialect, ModelSettings, ThinkingRules, Vendor, WireKind};
use pudu_net::{
    reqwest::header::{HeaderName, HeaderValue},
    scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value as Json};
use std::time::Duration;
use url::Url;

/// A model.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The displayed name.
    pub display_name: String,
    /// A one-line description, or empty.
    pub description: String,
    /// Maximum number of retries of a temporarily failing call, if the model has its own number.
    pub max_retries: Option<u32>,
    /// Its price, if configured.
    pub price: Option<ModelPrice>,
    /// The models that answer if this one cannot, in order.
    pub fallbacks: Vec<String>,
    /// Its address and protocol settings.
    pub settings: ModelSettings,
}

/// The vendor of the class, and the vendor of the base URL's host.
#[derive(Clone, Copy)]
struct ModelVendor {
    class: &'static Vendor,
    host: Option<&'static Vendor>,
}

impl ModelVendor {
    fn new(class: &'static Vendor, base_url: Option<&Url>) -> Self {
        let host = base_url.and_then(|url| Vendor::at(url.host_str()?));
        // A vendor's own class uses its own protocol on every host.
        Self { class, host: host.filter(|_| class.name == DEFAULT_VENDOR) }
    }

    /// Returns the server's deviations from its protocol. The generic class may be used with any server.
    fn dialect(self) -> Dialect {
        match self.host {
            Some(host) if host.wire == self.class.wire => host.dialect,
            // The vendor's OpenAI-compatible endpoint accepts the same schemas.
            Some(host) => Dialect { schema: host.dialect.schema, ..Dialect::PLAIN },
            None if self.class.name != DEFAULT_VENDOR => self.class.dialect,
            _ => Dialect::PLAIN,
        }
    }

    /// Returns whether an address belongs to the vendor.
    fn is_home(self, url: &Url) -> bool {
        let home = self.host.unwrap_or(self.class).base_url;
        !is_local(url) && url.as_str().trim_end_matches('/') == home
    }

    fn variables(self) -> impl Iterator<Item = &'static str> {
        let host = self.host.map_or(&[][..], |host| host.key_variables);
        host.iter().chain(self.class.key_variables).copied()
    }

    fn switches(self) -> Map<String, Json> {
        let switches = self.host.unwrap_or(self.class).switches;
        switches.iter().map(|&name| (name.to_owned(), Json::Bool(true))).collect()
    }
}

/// Other names of keys, from the Python classes.
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
    ("mistral_api_key", "api_key"),
    ("groq_api_key", "api_key"),
    ("xai_api_key", "api_key"),
    ("openrouter_api_key", "api_key"),
    ("pplx_api_key", "api_key"),
    ("dashscope_api_key", "api_key"),
    ("zhipuai_api_key", "api_key"),
    ("moonshot_api_key", "api_key"),
    ("openai_api_version", "api_version"),
    ("deployment_name", "azure_deployment"),
    ("endpoint", "base_url"),
    ("mistral_api_base", "base_url"),
    ("groq_api_base", "base_url"),
    ("xai_api_base", "base_url"),
    ("max_completion_tokens", "max_tokens"),
    ("max_output_tokens", "max_tokens"),
    ("num_predict", "max_tokens"),
    ("timeout", "request_timeout"),
    ("default_request_timeout", "request_timeout"),
    ("read_timeout", "request_timeout"),
];

/// Keys that belong to a request of any protocol, under the same name or the protocol's own.
const CARRIED: &[&str] = &["service_tier", "top_k", "top_p"];

/// Returns further keys that belong to a request of one protocol.
fn carried(wire: WireKind) -> &'static [&'static str] {
    match wire {
        WireKind::Chat => &[
            "frequency_penalty",
            "logit_bias",
            "modalities",
            "parallel_tool_calls",
            "presence_penalty",
            "reasoning_effort",
            "seed",
            "stop",
            "verbosity",
        ],
        WireKind::Responses => &["include", "parallel_tool_calls", "reasoning_effort", "store", "truncation"],
        WireKind::Messages => &["metadata", "stop_sequences"],
        WireKind::Gemini => &[
            "frequency_penalty",
            "include_thoughts",
            "presence_penalty",
            "response_modalities",
            "seed",
            "stop",
            "stop_sequences",
            "thinking_budget",
            "thinking_level",
        ],
        WireKind::Ollama => &[
            "format",
            "keep_alive",
            "min_p",
            "mirostat",
            "mirostat_eta",
            "mirostat_tau",
            "num_ctx",
            "num_gpu",
            "num_thread",
            "repeat_last_n",
            "repeat_penalty",
            "seed",
            "stop",
        ],
    }
}

/// Keys of the Python clients without a counterpart, because pudu has one client for all models.
const UNSUPPORTED_KEYS: &[&str] = &["connect_timeout", "pool_timeout", "write_timeout"];

/// Keys that request pudu's fixed behaviour: replies are streamed, each usage counts once regardless of how it is
/// reported, and only `max_retries` and `llm_call` cause retries.
const ALWAYS: &[&str] = &["cumulative_stream_usage", "retry_max_attempts", "stream_usage", "streaming"];

const DEFAULT_VENDOR: &str = "openai";
const DEFAULT_CLASS: &str = "langchain_openai:ChatOpenAI";

/// Reads all models in order. The first is the default.
pub(super) fn read(top: &Section<'_>, env: &Env) -> Vec<ModelConfig> {
    top.about_list(
        "models",
        "Models that users may choose from; the first is the default. Without any, OPENAI_API_KEY or \
         ANTHROPIC_API_KEY in the environment is enough.",
    );
    let mut models: Vec<ModelConfig> = Vec::new();
    for section in top.items("models") {
        let section = section.also(ALIASES);
        let Some(model) = read_model(&section, env) else { continue };
        if models.iter().any(|other| other.settings.name == model.settings.name) {
            let what = format!("two models are named \"{}\"", model.settings.name);
            section.refuse("name", what, "rename one; users choose a model by its name");
        }
        models.push(model);
    }
    check_fallbacks(top, &models);
    models
}

/// Refuses fallbacks that are not names of other models, because an outage would then leave requests unanswered.
fn check_fallbacks(top: &Section<'_>, models: &[ModelConfig]) {
    for section in top.items("models") {
        let own = section.text("name").foreign();
        for name in section.names("fallbacks").foreign().unwrap_or_default() {
            let known = models.iter().any(|model| model.settings.name == name) && own.as_ref() != Some(&name);
            if !known {
                let what = format!("\"{name}\" is not another model of this list");
                section.refuse("fallbacks", what, "use names from this list, or remove it");
            }
        }
    }
}

fn read_model(section: &Section<'_>, env: &Env) -> Option<ModelConfig> {
    let class = class::read(section, ClassKind::Model, Some(DEFAULT_CLASS));
    let vendor = match class {
        Some(Class::Model(name)) => Vendor::named(name),
        _ => None,
    };
    // For a model that is unavailable anyway, only wrong types are reported.
    let section = &section.clone().needed(vendor.is_some());
    section.note_unused(UNSUPPORTED_KEYS);
    section.know_all(ALWAYS);
    settings! { section =>
        /// Name by which users choose the model.
        name = text().eg("main").required("set the name by which users choose the model");
        /// Name of the model at its provider.
        model = text().eg("gpt-5-mini").required("set the provider's name of the model");
        /// Name shown to users.
        display_name = text().eg("Main").or_described(name.clone().unwrap_or_default(), "the name");
        /// One-line description of the model.
        description = text().or(String::new());
        /// Maximum number of retries of a call that failed temporarily.
        max_retries = number(0..=20).eg("2").optional("one less than `llm_call.retry_max_attempts`");
        /// Names of the models that answer, in this order, if this one is down, overloaded or without credit.
        fallbacks = names().or(Vec::new());
        /// Maximum length of an answer, in tokens.
        max_tokens = amount(NumberUnit::Tokens, 1..=10_000_000).eg("4096").optional("the provider's");
        /// Sampling temperature.
        temperature = decimal(0.0..=2.0).eg("0.7").optional("the provider's");
        /// Support for images; those that users send and tools show, up to 20 MiB each, are scaled down and added to the
        /// next request.
        sees as "supports_vision" = flag().or(false);
        /// Maximum silence of a stream, in seconds.
        gap as "stream_chunk_timeout" = seconds(1.0).or(Duration::from_secs(240));
        /// Maximum duration of a whole call, in seconds.
        total as "request_timeout" = seconds(1.0).or(Duration::from_secs(600));
        /// Headers added to each request.
        headers as "default_headers" = map().or(Map::new());
    }
    let class = vendor.or_else(|| Vendor::named(DEFAULT_VENDOR))?;
    let wire = wire(section, class);
    let base_url = address::base_url(section, class, wire, model.as_deref(), env);
    let vendor_of = ModelVendor::new(class, base_url.as_ref());
    let thinking = thinking(section, wire);
    let body = body(section, vendor_of, wire, thinking.takes_effort);
    settings! { section =>
        /// Maximum length of prompt and answer together, in tokens; the oldest messages beyond it are summarized or omitted.
        /// pudu asks an Ollama for a window of this size (`num_ctx`), and to refuse a longer prompt, which it would otherwise
        /// cut silently.
        window as "context_window" = amount(NumberUnit::Tokens, 1_000..=100_000_000)
            .eg("128000").or_described(window(wire, &body), "128000; for Ollama `num_ctx`, else 32768");
    }
    let variables: Vec<&str> = vendor_of.variables().collect();
    let is_providers = base_url.as_ref().is_some_and(|url| vendor_of.is_home(url));
    let config = ModelConfig {
        display_name,
        description,
        max_retries,
        price: price(section),
        fallbacks,
        settings: ModelSettings {
            wire,
            dialect: vendor_of.dialect(),
            api_key: key::api_key(section, &variables, is_providers, env),
            headers: self::headers(section, "default_headers", headers),
            body,
            thinking,
            cache: cache(section),
            max_tokens,
            temperature,
            window,
            sees,
            gap,
            total,
            base_url: base_url?,
            name: name?,
            model: model?,
        },
    };
    vendor.map(|_| config)
}

/// Chooses the protocol: the vendor's, or OpenAI's Responses API if it is requested, explicitly or by `reasoning`.
fn wire(section: &Section<'_>, vendor: &Vendor) -> WireKind {
    settings! { section =>
        /// Uses OpenAI's Responses API instead of chat completions, for OpenAI, Azure and providers that support it.
        asked as "use_responses_api" = flag().or(false);
        /// `responses/v1` means the same as `use_responses_api: true`; the other versions have no effect.
        version as "output_version" = text().eg("v0").optional("the default of the class");
    }
    let reasons = section.carried(&["reasoning"]).get("reasoning").is_some_and(Json::is_object);
    let newer = asked || version.as_deref() == Some("responses/v1") || reasons;
    match vendor.wire {
        WireKind::Chat if newer => WireKind::Responses,
        wire => {
            if asked {
                let help = "remove it; only OpenAI-compatible APIs support it";
                section.refuse("use_responses_api", "the API of this class does not support Responses", help);
            }
            wire
        }
    }
}

/// Returns the additional fields of a request's body.
fn body(section: &Section<'_>, vendor: ModelVendor, wire: WireKind, takes_effort: bool) -> Map<String, Json> {
    let mut body = vendor.switches();
    body.extend(section.carried(CARRIED));
    body.extend(section.carried(carried(wire)));
    let effort = body.remove("reasoning_effort").filter(|_| takes_effort);
    match (wire, effort, section.carried(&["reasoning"]).remove("reasoning")) {
        (WireKind::Responses, effort, reasoning) => {
            let mut reasoning = reasoning.and_then(|value| value.as_object().cloned()).unwrap_or_default();
            reasoning.extend(effort.map(|effort| ("effort".to_owned(), effort)));
            if !reasoning.is_empty() {
                body.insert("reasoning".to_owned(), Json::Object(reasoning));
            }
        }
        (_, effort, _) => body.extend(effort.map(|effort| ("reasoning_effort".to_owned(), effort))),
    }
    settings! { section =>
        /// Fields added to the request body unchanged.
        extra_body = map().or(Map::new());
        /// Name of `extra_body` in older DeerFlow files.
        model_kwargs = map().or(Map::new());
    }
    body.extend(model_kwargs);
    body.extend(extra_body);
    body
}

/// Returns the default window of a model. Ollama uses the requested window, and reserves memory for its whole size.
fn window(wire: WireKind, body: &Map<String, Json>) -> u64 {
    let context_size = body.get("num_ctx").or_else(|| body.get("options")?.get("num_ctx"));
    match wire {
        WireKind::Ollama => {
            context_size.and_then(Json::as_u64).filter(|tokens| *tokens > 0).unwrap_or(32_768)
        }
        _ => 128_000,
    }
}

/// Reads the rules for thinking. `thinking: {…}` is DeerFlow's short form of `when_thinking_enabled: {thinking: {…}}`.
///
/// Ollama's `reasoning` sets whether the model thinks, or its effort.
fn thinking(section: &Section<'_>, wire: WireKind) -> ThinkingRules {
    settings! { section =>
        /// Support for thinking; it selects `when_thinking_enabled` or `when_thinking_disabled`.
        supported as "supports_thinking" = flag().or(false);
        /// Support for `reasoning_effort`.
        takes_effort as "supports_reasoning_effort" = flag().or(false);
        /// Anthropic: adds a budget if thinking is enabled without one.
        auto_budget as "auto_thinking_budget" = flag().or(true);
        /// Fields merged into the request with thinking.
        when_enabled as "when_thinking_enabled" = map().or(Map::new());
        /// Fields merged into the request without thinking.
        disabled as "when_thinking_disabled" = map().or(Map::new());
        /// Shorthand for `thinking` inside `when_thinking_enabled`.
        thinking = map().eg("{type: enabled}").optional("nothing");
    }
    let mut enabled = when_enabled;
    let reasoning = section.carried(&["reasoning"]).remove("reasoning").filter(|_| wire == WireKind::Ollama);
    let reasons = reasoning.as_ref().is_some_and(|value| *value != Json::Bool(false) && !value.is_null());
    enabled.extend(reasoning.map(|value| ("think".to_owned(), value)));
    if let Some(short) = thinking {
        enabled.insert("thinking".to_owned(), Json::Object(short));
    }
    ThinkingRules { supported: supported || reasons, takes_effort, enabled, disabled, auto_budget }
}

/// Reads the rules for cache marks.
fn cache(section: &Section<'_>) -> CacheRules {
    let usual = CacheRules::default();
    settings! { section =>
        /// Anthropic: marks the prompt for its cache.
        enabled as "enable_prompt_caching" = flag().or(usual.enabled);
        /// Anthropic: maximum number of the newest turns that are marked for the cache.
        newest as "prompt_cache_size" = number(0..=100).or(3);
    }
    CacheRules { enabled, newest }
}

/// Reads the prices per million tokens of each kind.
fn price(section: &Section<'_>) -> Option<ModelPrice> {
    const MAX_PRICE: f64 = 1_000_000.0;
    let pricing = section.section("pricing").about("Price of this model; without it costs are unknown.");
    settings! { pricing =>
        /// Currency of the price.
        currency = text().or("USD".to_owned());
        /// Price of a million tokens of the prompt.
        input as "input_per_million" = decimal(0.0..=MAX_PRICE).eg("1.25").optional("unknown");
        /// Price of a million tokens of the reply, including thoughts.
        output as "output_per_million" = decimal(0.0..=MAX_PRICE).eg("10").optional("unknown");
        /// Price of a million tokens of the prompt that are read from the provider's cache.
        cached as "input_cache_hit_per_million" = decimal(0.0..=MAX_PRICE)
            .eg("0.125").optional("the price of other input");
        /// Price of a million tokens of the prompt that are written to the provider's cache.
        cache_writes as "input_cache_write_per_million" = decimal(0.0..=MAX_PRICE)
            .eg("1.25").optional("the price of other input");
    }
    match (input, output) {
        (Some(input), Some(output)) => Some(ModelPrice { currency, input, output, cached, cache_writes }),
        (None, None) if cached.is_none() && cache_writes.is_none() => None,
        _ => {
            let what = "a price needs `input_per_million` and `output_per_million`";
            section.refuse("pricing", what, "write both, or remove `pricing`; the cost is then unknown");
            None
        }
    }
}

/// Reads additional headers of requests.
pub(super) fn headers(
    section: &Section<'_>,
    key: &str,
    map: Map<String, Json>,
) -> Vec<(String, SecretString)> {
    let text = |value: Json| match value {
        Json::String(text) => text,
        other => other.to_string(),
    };
    let headers: Vec<_> =
        map.into_iter().map(|(name, value)| (name, SecretString::from(text(value)))).collect();
    let is_sendable = |(name, value): &(String, SecretString)| {
        HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value.expose_secret()).is_ok()
    };
    if let Some((name, _)) = headers.iter().find(|header| !is_sendable(header)) {
        let what = format!("the header \"{name}\" cannot be sent");
        section.refuse(key, what, "use plain letters, digits and punctuation in the name and the value");
    }
    let secrets = headers.iter().filter(|(name, value)| scrub::is_secret(name, value.expose_secret()));
    section.know_secret(secrets.map(|(_, value)| value));
    headers
}

/// Variables with an API key, each with the class and name of the model to use if none is configured.
const ENV_MODELS: [(&str, &str, &str); 2] = [
    ("OPENAI_API_KEY", DEFAULT_CLASS, "gpt-5-mini"),
    ("ANTHROPIC_API_KEY", "langchain_anthropic:ChatAnthropic", "claude-sonnet-4-5"),
];

/// Returns the model for an API key in the environment. A placeholder is refused.
pub(super) fn of_environment(top: &Section<'_>, env: &Env) -> Option<ModelConfig> {
    if let Some((name, key)) = env.first(&ENV_MODELS.map(|(name, _, _)| name))
        && is_placeholder(key)
    {
        let what = format!("the environment variable {name} is a placeholder, not a key");
        top.refuse("models", what, format!("set {name} to the provider's key, or remove it"));
    }
    ModelConfig::from_env(env)
}

impl ModelConfig {
    /// Returns the model for an API key in the environment, for use if none is configured.
    pub fn from_env(env: &Env) -> Option<Self> {
        let (_, class, model) = ENV_MODELS.into_iter().find(|(key, _, _)| env.first(&[key]).is_some())?;
        Self::plain(class, model, env)
    }

    /// Returns a model of the Ollama server on this machine.
    pub fn ollama(model: &str) -> Option<Self> {
        Self::plain("langchain_ollama:ChatOllama", model, &Env::default())
    }

    /// Reads an entry as if it were in the file, so that defaults are defined only once.
    fn plain(class: &str, model: &str, env: &Env) -> Option<Self> {
        let at = Pos { line: 1, column: 1 };
        let entry = |(key, text): (&str, &str)| MappingEntry {
            key: key.to_owned(),
            at,
            node: Node { at, value: NodeValue::Text(text.to_owned()) },
        };
        let entries = [("use", class), ("name", model), ("model", model)].map(entry);
        let root = Node { at, value: NodeValue::Map(entries.into()) };
        read_model(&ConfigReader::new(&root, env).live(), env)
    }
}
