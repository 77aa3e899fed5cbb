//! URLs for display and logs.

use url::Url;

/// Returns a URL without user name, password, query and fragment, which may contain secrets.
#[must_use]
pub fn shown_url(url: &Url) -> String {
    let mut url = url.clone();
    // A URL without a host has neither.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_query_and_fragment_are_never_shown() {
        for (url, shown) in [
            ("https://user:hush@example.org:8443/v1/?api-key=hush#hush", "https://example.org:8443/v1"),
            ("https://hush@example.org", "https://example.org"),
            ("http://localhost:11434", "http://localhost:11434"),
            ("unix:///var/run/docker.sock?hush", "unix:///var/run/docker.sock"),
            ("data:text/plain,a?hush", "data:text/plain,a"),
        ] {
            assert_eq!(shown_url(&Url::parse(url).unwrap()), shown);
        }
    }
}
