//! Whether a model's provider can be reached and takes the key: its list of models is asked for, which costs
//! nothing. A provider without such a list has answered too.

use crate::config::ModelConfig;
use pudu_channels::Check;
use pudu_client::net;
use secrecy::ExposeSecret;
use std::time::Duration;

/// No provider is asked for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at one model.
pub(super) async fn check(config: &ModelConfig) -> Check {
    let what = format!("model {}", config.name);
    let url = format!("{}/models", config.base_url.as_str().trim_end_matches('/'));
    let Ok(http) = net::client() else {
        return Check::bad(what, "no HTTP client can be made", "see the log");
    };
    let mut request = http.get(url).timeout(PATIENCE);
    for (name, value) in &config.default_headers {
        request = request.header(name, value.expose_secret());
    }
    if let Some(key) = &config.api_key {
        request = request.bearer_auth(key.expose_secret());
    }
    let place = config.base_url.host_str().unwrap_or_default();
    match request.send().await {
        Ok(answer) => match answer.status().as_u16() {
            401 | 403 => Check::bad(what, format!("{place} refused the key"), "see `api_key` of this model"),
            status @ 500.. => Check::poor(
                what,
                format!("{place} answers {status}"),
                "try again; see the provider's status page",
            ),
            _ => Check::good(what, format!("{} at {place} answers", config.model)),
        },
        Err(error) => {
            let why = format!("{place} cannot be reached: {}", error.without_url());
            Check::bad(what, why, "see `base_url` of this model, and whether this machine reaches it")
        }
    }
}
