//! Settings of a model.

use secrecy::SecretString;
use serde_json::{Map, Value};
use std::time::Duration;

/// One model at one provider.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// The name under which people know it.
    pub name: String,
    /// The provider's name of it.
    pub model: String,
    /// Base URL, to which `/chat/completions` is added, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, where the provider wants one.
    pub api_key: Option<SecretString>,
    /// Headers to send besides.
    pub headers: Vec<(String, SecretString)>,
    /// Keys of the request's body besides ours, for example `temperature`; they win over ours.
    pub extra: Map<String, Value>,
    /// The name under which the model's thoughts go back to it, where the provider wants that.
    pub thoughts: Option<&'static str>,
    /// How many tokens prompt and answer may have together.
    pub window: u64,
    /// Whether it can see images.
    pub sees: bool,
    /// The longest wait for the next bytes, the first included.
    pub gap: Duration,
    /// The longest time for the whole answer.
    pub total: Duration,
}
