//! Downloads files from DingTalk, never more bytes than requested.

use super::{api::DingTalkApi, failure::DingTalkError};
use crate::{
    SendError,
    transport::{CallError, save},
};
use serde_json::json;
use std::path::Path;
use url::Url;

/// Maximum size of a file that is fetched, in bytes.
pub(super) const MAX_DOWNLOAD_BYTES: u64 = 50_000_000;

/// Fetches the file of a download code to `to`.
pub(super) async fn file(
    api: &DingTalkApi,
    robot_code: &str,
    code: &str,
    to: &Path,
    limit: u64,
) -> Result<u64, SendError> {
    let url = find(api, robot_code, code).await?;
    save(api.fetch(url, limit).await?, to, limit).await
}

/// Asks for the address of a file. The address itself grants access: no token is sent to it.
async fn find(api: &DingTalkApi, robot_code: &str, code: &str) -> Result<Url, DingTalkError> {
    let body = json!({"downloadCode": code, "robotCode": robot_code});
    let answer = api.look_up("/v1.0/robot/messageFiles/download", &body).await?;
    let url = answer["downloadUrl"].as_str().and_then(|url| Url::parse(url).ok());
    let url = url.ok_or_else(|| CallError::Refused("the file is not there".to_owned()))?;
    if !is_safe(&api.api_url, &url) {
        return Err(CallError::Refused("the file's address is not a safe one".to_owned()));
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

    /// CVE-2026-26321: an address from a message is never fetched from inside a private network.
    #[tokio::test]
    async fn no_file_is_fetched_from_within_the_network() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (base, other) = (url("https://api.dingtalk.com"), url("https://oapi.dingtalk.com"));
        let api = DingTalkApi::new("id".into(), "s".into(), base, other).unwrap();
        for inside in ["https://127.0.0.1/a", "https://169.254.169.254/a", "https://[fd00::1]/a"] {
            let refused = api.fetch(url(inside), 1000).await.unwrap_err();
            assert!(
                matches!(&refused, CallError::Refused(why) if why.contains("open internet")),
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
