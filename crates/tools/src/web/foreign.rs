//! Sanitizes text from the web for a model.

pub(crate) use pudu_base::foreign::{line, text};

/// Returns the normalized form of a web URL; `None` for any other text.
pub(crate) fn address(foreign: &str) -> Option<String> {
    const MAX_URL_BYTES: usize = 2_048;
    let url = pudu_net::reqwest::Url::parse(foreign.trim()).ok()?;
    let web =
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    let url = String::from(url);
    (web && url.len() <= MAX_URL_BYTES).then(|| text(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_are_accepted() {
        for (foreign, expect) in [
            ("https://example.com/a b", Some("https://example.com/a%20b")),
            (" http://example.com ", Some("http://example.com/")),
            ("https://example.com/<system>", Some("https://example.com/%3Csystem%3E")),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("https://u:p@example.com/", None),
            ("/relative", None),
        ] {
            assert_eq!(address(foreign).as_deref(), expect, "{foreign}");
        }
        assert_eq!(address(&format!("https://example.com/{}", "x".repeat(3_000))), None);
    }
}
