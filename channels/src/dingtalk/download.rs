//! Files on their way from DingTalk, never more of them than was asked for.

use super::{api::DingTalkApi, failure::DingError};
use crate::{
    Attachment, SendError,
    fetch::{self, check},
    reply::CallError,
};
use pudu_net::reqwest::Method;
use serde_json::json;
use std::path::Path;
use url::Url;

/// Maximum size of a file that is fetched, in bytes.
pub(super) const MAX_DOWNLOAD_BYTES: u64 = 50_000_000;

/// Fetches a file to `to`, which is made.
pub(super) async fn file(
    api: &DingTalkApi,
    robot_code: &str,
    attachment: &Attachment,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let limit = limit.min(MAX_DOWNLOAD_BYTES);
    check(attachment.size, limit)?;
    let url = find(api, robot_code, &attachment.handle).await.map_err(CallError::from)?;
    let response = api.fetch(url, fetch::patience(limit)).await.map_err(CallError::from)?;
    let status = response.status();
    if !status.is_success() {
        let why = format!("the file cannot be fetched (HTTP {})", status.as_u16());
        return Err(if status.is_server_error() {
            SendError::Unreachable(why)
        } else {
            SendError::Refused(why)
        });
    }
    check(response.content_length(), limit)?;
    let lost = |error| SendError::from(CallError::from(super::failure::unreachable(error)));
    fetch::keep(response.bytes_stream(), to, limit, lost).await
}

/// Asks where the file is. The address stands for the right to it: no token goes there.
async fn find(api: &DingTalkApi, robot_code: &str, code: &str) -> Result<Url, DingError> {
    let body = json!({"downloadCode": code, "robotCode": robot_code});
    let answer = api.call(Method::POST, "/v1.0/robot/messageFiles/download", &body).await?;
    let url = answer["downloadUrl"].as_str().and_then(|url| Url::parse(url).ok());
    let url = url.ok_or_else(|| DingError::Refused("the file is not there".to_owned()))?;
    if !is_safe(&api.api_url, &url) {
        return Err(DingError::Refused("the file's address is not a safe one".to_owned()));
    }
    Ok(url)
}

/// Files lie on hosts of DingTalk's choice; over the open line only where the API itself is spoken to so, and
/// there only on the API's own host.
fn is_safe(api: &Url, url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => api.scheme() == "http" && api.host_str() == url.host_str(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CVE-2026-26321: no address that a message leads to is fetched from inside somebody's network.
    #[tokio::test]
    async fn no_file_is_fetched_from_within_the_network() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (base, other) = (url("https://api.dingtalk.com"), url("https://oapi.dingtalk.com"));
        let api = DingTalkApi::new("id".into(), "s".into(), base, other).unwrap();
        for inside in ["https://127.0.0.1/a", "https://169.254.169.254/a", "https://[fd00::1]/a"] {
            let refused = api.fetch(url(inside), std::time::Duration::from_secs(5)).await.unwrap_err();
            assert!(
                matches!(&refused, DingError::Refused(why) if why.contains("open internet")),
                "{inside}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_file_is_fetched_from_a_safe_address_only() {
        let check = |api: &str, url: &str, safe: bool| {
            assert_eq!(is_safe(&Url::parse(api).unwrap(), &Url::parse(url).unwrap()), safe, "{url}");
        };
        check("https://api.dingtalk.com", "https://down.oss.example/a?sign=x", true);
        check("https://api.dingtalk.com", "http://down.oss.example/a?sign=x", false);
        check("https://api.dingtalk.com", "file:///etc/passwd", false);
        check("http://127.0.0.1:8081", "http://127.0.0.1:8081/oss/a", true);
        check("http://127.0.0.1:8081", "http://169.254.169.254/latest", false);
    }
}
