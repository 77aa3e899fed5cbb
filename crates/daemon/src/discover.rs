//! Selects the model if none is configured: one whose API key is in the environment, a local Ollama, or the built-in
//! offline model.

use pudu_config::{HotConfig, ModelConfig};
use pudu_net as net;
use serde_json::Value;
use std::time::Duration;

/// URL at which Ollama listens by default.
const OLLAMA: &str = "http://127.0.0.1:11434";
/// Timeout of a local server.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// Returns models found on this machine, and a line that states which model is used and why.
pub async fn models(hot: &HotConfig) -> (Vec<ModelConfig>, String) {
    if let Some(ModelConfig { settings, .. }) = hot.models.first() {
        let url = net::shown_url(&settings.base_url);
        return (Vec::new(), format!("{} ({} at {url})", settings.name, settings.model));
    }
    let found: Vec<ModelConfig> =
        installed().await.iter().filter_map(|name| ModelConfig::ollama(name)).collect();
    let line = match found.first() {
        Some(first) => format!("{} (Ollama at {OLLAMA})", first.settings.name),
        None => "offline (built in: echoes only). For a real model set OPENAI_API_KEY or ANTHROPIC_API_KEY, start \
                 Ollama, or write config.yaml"
            .to_owned(),
    };
    (found, line)
}

/// Logs that no model was found, and the remedy.
pub fn tell_none() {
    tracing::warn!(
        "found no language model, so the built-in one only echoes: set OPENAI_API_KEY or ANTHROPIC_API_KEY, start \
         Ollama, or write `models` into config.yaml, and restart pudu"
    );
}

/// Returns the models that Ollama has installed.
async fn installed() -> Vec<String> {
    let ask = async {
        let url = format!("{OLLAMA}/api/tags");
        let answer = net::client().ok()?.get(url).send().await.ok()?;
        answer.json::<Value>().await.ok()
    };
    let answer = tokio::time::timeout(PROBE_TIMEOUT, ask).await.ok().flatten();
    let models = answer.as_ref().and_then(|answer| answer.get("models")?.as_array());
    models
        .map(|models| models.iter().filter(|model| is_chat_model(model)).filter_map(name).collect())
        .unwrap_or_default()
}

fn name(model: &Value) -> Option<String> {
    model.get("name").and_then(Value::as_str).map(str::to_owned)
}

/// Families of embedding models, which cannot answer people.
const EMBEDDING_FAMILIES: [&str; 3] = ["bert", "nomic-bert", "xlm-roberta"];
/// Parts of the names of embedding and reranking models, which may share their family with a chat model.
const EMBEDDING_NAMES: [&str; 6] = ["embed", "minilm", "bge-", "gte-", "e5-", "rerank"];

/// Returns whether a model can answer people.
fn is_chat_model(model: &Value) -> bool {
    let details = model.get("details");
    let family =
        details.and_then(|details| details.get("family")).and_then(Value::as_str).unwrap_or_default();
    let name = name(model).unwrap_or_default().to_lowercase();
    !EMBEDDING_FAMILIES.contains(&family) && !EMBEDDING_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn embedding_models_are_never_selected() {
        let check = |name: &str, family: &str, expect: bool| {
            let model = json!({ "name": name, "details": { "family": family, "families": [family] } });
            assert_eq!(is_chat_model(&model), expect, "{name} {family}");
        };
        check("llama3.2:latest", "llama", true);
        check("qwen3:8b", "qwen3", true);
        check("nomic-embed-text:latest", "nomic-bert", false);
        check("all-minilm:l6-v2", "bert", false);
        check("bge-m3:latest", "bert", false);
        check("snowflake-arctic-embed:latest", "", false);
        check("qwen3-embedding:0.6b", "qwen3", false);
        check("jeffh/intfloat-e5-base:latest", "bert", false);
    }
}
