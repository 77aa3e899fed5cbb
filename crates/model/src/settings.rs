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
    /// The name under which people know it.
    pub name: String,
    /// The provider's name for the model.
    pub model: String,
    /// The protocol.
    pub wire: WireKind,
    /// How the provider departs from it.
    pub dialect: Dialect,
    /// Base URL, to which the wire adds its path, for example `https://api.openai.com/v1`. Its query is kept.
    pub base_url: Url,
    /// The key, where the provider wants one.
    pub api_key: Option<SecretString>,
    /// Headers to send besides.
    pub headers: Vec<(String, SecretString)>,
    /// Keys of the request's body besides ours, for example `top_p`; they win over ours.
    pub body: Map<String, Value>,
    /// Additions to the body so that the model thinks, or does not.
    pub thinking: ThinkingRules,
    /// Marks for the provider's cache, on wires that want them.
    pub cache: CacheRules,
    /// How many tokens a reply may have; the provider's own limit if none.
    pub max_tokens: Option<u32>,
    /// How freely it chooses words; as the provider has it if none.
    pub temperature: Option<f64>,
    /// How many tokens prompt and reply may have together.
    pub window: u64,
    /// Whether it can see images.
    pub sees: bool,
    /// The longest wait for the next bytes, the first included.
    pub gap: Duration,
    /// The longest time for the whole reply.
    pub total: Duration,
}

impl ModelSettings {
    /// A model on this machine, for tests and benchmarks.
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

    /// Returns the settings with a request's sampling in place of theirs.
    pub(crate) fn sampled(self: &Arc<Self>, sampling: Sampling) -> Arc<Self> {
        if sampling == Sampling::default() {
            return self.clone();
        }
        let (max_tokens, temperature) =
            (sampling.max_tokens.or(self.max_tokens), sampling.temperature.or(self.temperature));
        Arc::new(Self { max_tokens, temperature, ..(**self).clone() })
    }

    /// Returns the name of wire, host and model, which parts of a reply are kept for.
    pub(crate) fn origin(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        format!("{} {host} {}", self.wire.word(), self.model)
    }
}

/// Rules for the marks of the Messages wire for its provider's cache. Other providers cache without marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// Whether anything is marked; DeerFlow's `enable_prompt_caching`.
    pub enabled: bool,
    /// How many of the newest turns from the user are marked at most; DeerFlow's `prompt_cache_size`. Anthropic takes
    /// four marks a request, and the system prompt and the tools have one each.
    pub newest: usize,
}

impl Default for CacheRules {
    /// As DeerFlow has it.
    fn default() -> Self {
        Self { enabled: true, newest: 3 }
    }
}

/// How a provider departs from its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The field in which a model's thoughts go back to it in the clear; none where its provider does not want them.
    pub thoughts: Option<&'static str>,
    /// Whether that field must be there in each turn that calls tools.
    pub needs_thoughts: bool,
    /// The form of call ids that it takes.
    pub call_ids: CallIdForm,
    /// The part of JSON Schema that it takes.
    pub schema: SchemaForm,
    /// The field of the chat wire that limits a reply.
    pub limit_field: &'static str,
    /// Whether the chat wire has to ask for the usage of a stream.
    pub asks_usage: bool,
    /// Whether calls are written as text, as Huawei's engine does.
    pub text_calls: bool,
    /// The header of the key and the text before the key in it, where they are not the wire's.
    pub key_header: Option<(&'static str, &'static str)>,
}

impl Dialect {
    /// A server that keeps to the wire.
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
