//! `pudu connect`: creates a code that admits one user to a bot.

use super::remote::ApiRequest;
use anyhow::Result;
use pudu_config::Start;
use pudu_net::reqwest::Method;
use serde_json::Value;

/// Requests a code from the daemon of this folder and returns instructions.
pub(super) async fn connect(start: &Start, account: &str) -> Result<String> {
    let request = ApiRequest::change(Method::POST, &["channels", account, "connect"]);
    let offer = request.send_to_daemon(start).await?;
    let text = |key: &str| offer.get(key).and_then(Value::as_str);
    let link = text("url").map(|url| format!("\nor open {url}")).unwrap_or_default();
    let instruction = text("instruction").unwrap_or_default();
    Ok(format!("{instruction}{link}\nIt admits one user and expires in ten minutes."))
}
