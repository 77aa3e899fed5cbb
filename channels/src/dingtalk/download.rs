//! Downloads files from DingTalk, never more bytes than requested.

use super::{api::DingTalkApi, facts::DingTalkError};
use crate::{
    SendError,
    transport::{CallError, save},
};
use serde_json::json;
use std::path::Path;
use url::Url;

/// Downloads the file behind a download code to `to`.
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

/// Requests the URL of a file. The URL itself grants access, so no token is sent to it.
async fn find(api: &DingTalkApi, robot_code: &str, code: &str) -> Result<Url, DingTalkError> {
    let body = json!({"downloadCode": code, "robotCode": robot_code});
    let answer = api.look_up("/v1.0/robot/messageFiles/download", &body).await?;
    let url = answer["downloadUrl"].as_str().and_then(|url| Url::parse(url).ok());
    let url = url.ok_or_else(|| CallError::Refused("the file does not exist".to_owned()))?;
    if !is_safe(&api.api_url, &url) {
        return Err(CallError::Refused("the file's URL is not allowed: it must use HTTPS".to_owned()));
    }
    Ok(url)
}

/// Returns whether a download URL is acceptable: HTTPS on any host, because DingTalk chooses the host; plain HTTP
/// only if the API itself uses it, and then only on the API's host.
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

    /// CVE-2026-26321: a URL that points into a private network is never fetched.
    #[tokio::test]
    async fn no_file_is_fetched_from_a_private_network() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (base, other) = (url("https://api.dingtalk.com"), url("https://oapi.dingtalk.com"));
        let api = DingTalkApi::new("id".into(), "s".into(), base, other).unwrap();
        for inside in ["https://127.0.0.1/a", "https://169.254.169.254/a", "https://[fd00::1]/a"] {
            let refused = api.fetch(url(inside), 1000).await.unwrap_err();
            assert!(
                matches!(&refused, CallError::Refused(why) if why.contains("public internet")),
                "{inside}: {refused:?}"
            );
        }
    }

    #[test]
    fn only_safe_urls_are_fetched() {
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
