//! Any text as a URL that a model chose: what is let through is of the web and names no address inside.
#![no_main]

use pudu_net::guard::{AllowedTargets, closed};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(url) = AllowedTargets::default().read(text) {
        assert!(matches!(url.scheme(), "http" | "https"));
        assert!(url.username().is_empty() && url.password().is_none());
        let address = match url.host().expect("a host") {
            url::Host::Ipv4(ip) => Some(ip.into()),
            url::Host::Ipv6(ip) => Some(ip.into()),
            url::Host::Domain(name) => name.parse().ok(),
        };
        assert!(address.is_none_or(|address| closed(address).is_none()), "{url}");
        // Written out it may be longer than what is read.
        if url.as_str().len() <= 8 * 1024 {
            assert_eq!(AllowedTargets::default().read(url.as_str()), Ok(url));
        }
    }
});
