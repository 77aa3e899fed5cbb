//! `pudu connect`: creates a code that admits one user to a bot.

use super::remote;
use anyhow::Result;
use pudu_client::net::reqwest::Method;
use pudu_config::Start;
use serde_json::Value;

/// Requests a code from the daemon of this folder and returns instructions.
pub(super) async fn connect(start: &Start, account: &str) -> Result<String> {
    let offer = remote::call(start, Method::POST, &["channels", account, "connect"], &[]).await?;
    let text = |key: &str| offer.get(key).and_then(Value::as_str);
    let link = text("url").map(|url| format!("\nor open {url}")).unwrap_or_default();
    let instruction = text("instruction").unwrap_or_default();
    Ok(format!("{instruction}{link}\nIt is good for one person and ten minutes."))
}
