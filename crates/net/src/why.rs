//! Text of HTTP client errors.

use crate::proxy::ProxySettings;
use std::error::Error;

/// Describes why a call failed, with the innermost cause, and with the proxy if it was unreachable. The URL is omitted
/// because it may contain a key.
#[must_use]
pub fn why(error: &reqwest::Error) -> String {
    why_with(error, &ProxySettings::in_force())
}

fn why_with(error: &reqwest::Error, rules: &ProxySettings) -> String {
    let what = match (error.is_connect(), error.is_timeout()) {
        (true, _) => "cannot connect",
        (false, true) => "timed out",
        (false, false) => "the connection broke",
    };
    let proxy = error.url().filter(|_| error.is_connect()).and_then(|url| rules.shown_for(url));
    let by = proxy.map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default();
    let cause = std::iter::successors(error.source(), |&source| source.source()).last();
    cause.map_or_else(|| format!("{what}{by}"), |cause| format!("{what}{by}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_error_names_the_proxy_without_its_password() {
        let proxy = "http://ada:s3cret@127.0.0.1:1";
        let rules = ProxySettings { http: proxy.to_owned(), ..ProxySettings::default() };
        crate::install_crypto();
        let client = crate::builder().no_proxy().proxy(reqwest::Proxy::all(proxy).unwrap()).build().unwrap();
        let error = client.get("http://gateway.test/?key=hush").send().await.unwrap_err();
        let said = why_with(&error, &rules);
        assert!(said.starts_with("cannot connect through the proxy 127.0.0.1:1: "), "{said}");
        assert!(said.to_lowercase().contains("refused"), "{said}");
        assert!(!said.contains("s3cret") && !said.contains("hush"), "{said}");
        let direct = why_with(&error, &ProxySettings::default());
        assert!(direct.starts_with("cannot connect: "), "{direct}");
    }
}
