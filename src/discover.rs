//! Which model answers where none is configured: one for which the environment has a key, a local Ollama,
//! or the built-in offline model.

use crate::config::{Live, ModelConfig};
use pudu_client::net;
use serde_json::Value;
use std::time::Duration;

/// Where Ollama answers if nobody moved it.
const OLLAMA: &str = "http://127.0.0.1:11434";
/// A local server that is there answers within this time.
const PATIENCE: Duration = Duration::from_millis(300);

/// Returns models found on this machine, and a line that says which model answers and why.
pub(crate) async fn models(live: &Live) -> (Vec<ModelConfig>, String) {
    if let Some(first) = live.models.first() {
        return (Vec::new(), format!("{} ({} at {})", first.name, first.model, first.base_url));
    }
    let found: Vec<ModelConfig> =
        installed().await.iter().filter_map(|name| ModelConfig::ollama(name)).collect();
    let line = match found.first() {
        Some(first) => format!("{} (a local Ollama answers at {OLLAMA})", first.name),
        None => "offline (built in: echoes only). For a real one set OPENAI_API_KEY or ANTHROPIC_API_KEY, \
                 start Ollama, or write config.yaml"
            .to_owned(),
    };
    (found, line)
}

/// Asks Ollama which models it has.
async fn installed() -> Vec<String> {
    let ask = async {
        let url = format!("{OLLAMA}/api/tags");
        let answer = net::client().ok()?.get(url).send().await.ok()?;
        answer.json::<Value>().await.ok()
    };
    let answer = tokio::time::timeout(PATIENCE, ask).await.ok().flatten();
    let models = answer.as_ref().and_then(|answer| answer.get("models")?.as_array());
    let name = |model: &Value| model.get("name").and_then(Value::as_str).map(str::to_owned);
    models.map(|models| models.iter().filter_map(name).collect()).unwrap_or_default()
}
