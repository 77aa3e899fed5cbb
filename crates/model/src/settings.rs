//! Settings of a model.

use crate::{CallIdForm, SchemaForm, ThinkingRules, WireKind};
use pudu_base::Sampling;
use pudu_net::reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

/// One model at one provider.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// Name of the model for users.
    pub name: String,
    /// The provider's name for the model.
    pub model: String,
    /// The protocol.
    pub wire: WireKind,
    /// Deviations of the provider from the protocol.
    pub dialect: Dialect,
    /// Base URL, such as `https://api.openai.com/v1`. The wire appends its path, and keeps the query.
    pub base_url: Url,
    /// API key, if the provider requires one.
    pub api_key: Option<SecretString>,
    /// Additional headers.
    pub headers: Vec<(String, SecretString)>,
    /// Additional keys of the request's body, such as `top_p`. They override ours.
    pub body: Map<String, Value>,
    /// Additions to the body that enable or disable thinking.
    pub thinking: ThinkingRules,
    /// Rules for marking content for the provider's cache, on wires that use marks.
    pub cache: CacheRules,
    /// Maximum length of a reply, in tokens; the provider's default if `None`.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; the provider's default if `None`.
    pub temperature: Option<f64>,
    /// Size of the context window for prompt and reply, in tokens.
    pub window: u64,
    /// Whether the model accepts images.
    pub sees: bool,
    /// Maximum time between two chunks of a reply, and before the first one.
    pub gap: Duration,
    /// Maximum duration of the whole reply.
    pub total: Duration,
}

impl ModelSettings {
    /// Returns the settings of a local model for tests.
    #[cfg(test)]
    pub(crate) fn plain(name: &str, wire: WireKind) -> Self {
        Self {
            name: name.to_owned(),
            model: name.to_owned(),
            wire,
            dialect: Dialect::PLAIN,
            base_url: Url::parse("http://localhost/v1").unwrap(),
            api_key: None,
            headers: Vec::new(),
            body: Map::new(),
            thinking: ThinkingRules::default(),
            cache: CacheRules::default(),
            max_tokens: None,
            temperature: None,
            window: 128_000,
            sees: true,
            gap: Duration::from_secs(1),
            total: Duration::from_secs(1),
        }
    }

    /// Returns the settings with a request's sampling parameters.
    pub(crate) fn sampled(self: &Arc<Self>, sampling: Sampling) -> Arc<Self> {
        if sampling == Sampling::default() {
            return self.clone();
        }
        let (max_tokens, temperature) =
            (sampling.max_tokens.or(self.max_tokens), sampling.temperature.or(self.temperature));
        Arc::new(Self { max_tokens, temperature, ..(**self).clone() })
    }

    /// Returns the names of the wire, host and model, which together identify the origin of a reply's parts.
    pub(crate) fn origin(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        format!("{} {host} {}", self.wire.name(), self.model)
    }
}

/// Rules for cache marks on the Messages wire. Other providers cache without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// Whether content is marked; DeerFlow's `enable_prompt_caching`.
    pub enabled: bool,
    /// Maximum number of marked user turns, newest first; DeerFlow's `prompt_cache_size`. Anthropic accepts four marks
    /// per request, and the system prompt and the tools use one each.
    pub newest: usize,
}

impl Default for CacheRules {
    /// DeerFlow's defaults.
    fn default() -> Self {
        Self { enabled: true, newest: 3 }
    }
}

/// Deviations of a provider from its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Field that sends the model's thoughts back as plain text; `None` if the provider does not expect them.
    pub thoughts: Option<&'static str>,
    /// Whether the `thoughts` field is required in each turn with tool calls.
    pub needs_thoughts: bool,
    /// Format of call IDs.
    pub call_ids: CallIdForm,
    /// The accepted part of JSON Schema.
    pub schema: SchemaForm,
    /// Field of the chat wire that limits a reply.
    pub limit_field: &'static str,
    /// Whether the usage of a stream has to be requested on the chat wire.
    pub asks_usage: bool,
    /// Whether the model's calls are part of its text, as with Huawei's engine.
    pub text_calls: bool,
    /// Header for the key and prefix of its value, if they differ from the wire's.
    pub key_header: Option<(&'static str, &'static str)>,
}

impl Dialect {
    /// A server that follows the wire exactly.
    pub const PLAIN: Self = Self {
        thoughts: None,
        needs_thoughts: false,
        call_ids: CallIdForm::Plain,
        schema: SchemaForm::Full,
        limit_field: "max_tokens",
        asks_usage: true,
        text_calls: false,
        key_header: None,
    };
}
