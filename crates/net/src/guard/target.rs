//! Checks of a URL before its name is resolved, and the operator's exceptions.

use super::{address, error::GuardError};
use ipnet::IpNet;
use reqwest::Url;
use std::net::IpAddr;
use url::Host;

/// Maximum length of a URL, in bytes; longer ones are refused.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Names inside a network, including their subdomains.
const INSIDE: &[&str] = &[
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "onion",
];

/// Ports of protocols other than HTTP, from the Fetch standard's list of bad ports: such a server could interpret a
/// request as commands of its protocol.
const BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    11211,
];

/// Hosts and networks outside of the public internet that the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTargets {
    /// Names; a leading dot matches all subdomains.
    hosts: Vec<String>,
    networks: Vec<IpNet>,
}

impl AllowedTargets {
    /// Parses entries: an address, a network such as `10.1.0.0/16`, a name, or `.name` for all subdomains.
    pub fn new(entries: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut allowed = Self::default();
        for entry in entries {
            let entry = entry.as_ref().trim().trim_matches(['[', ']']);
            let network = entry.parse::<IpNet>().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
            match network {
                Ok(network) => allowed.networks.push(network),
                Err(_) => allowed.hosts.push(entry.trim_start_matches('*').to_lowercase()),
            }
        }
        allowed
    }

    pub(super) fn host(&self, host: &str) -> bool {
        let below = |rule: &str| rule.starts_with('.') && host.ends_with(rule);
        self.hosts.iter().any(|rule| rule == host || below(rule))
    }

    /// Refuses an address outside of the public internet, unless the operator allows it.
    pub(super) fn address(&self, host: &str, address: IpAddr) -> Result<(), GuardError> {
        match address::closed(address) {
            Some(what) if !self.networks.iter().any(|network| network.contains(&address)) => {
                Err(GuardError::Refused(format!(
                    "{host} resolves to {what}, not to the public internet: fetch a public URL instead"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Parses a URL and refuses it if its target is never allowed.
    ///
    /// # Errors
    /// The reason, so that the author of the URL can correct it.
    pub fn read(&self, text: &str) -> Result<Url, GuardError> {
        let refused = |what: &str| Err(GuardError::Refused(what.to_owned()));
        if text.len() > MAX_URL_BYTES {
            return refused("the URL is longer than 8 KiB");
        }
        let Ok(url) = Url::parse(text.trim()) else {
            return refused("this is not a complete URL: begin it with https://");
        };
        self.check(url)
    }

    /// Like [`read`](Self::read), for the target of a redirect.
    pub(super) fn check(&self, mut url: Url) -> Result<Url, GuardError> {
        let refused = |what: String| Err(GuardError::Refused(what));
        if !matches!(url.scheme(), "http" | "https") {
            return refused(format!("{} URLs cannot be fetched: only http and https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused(
                "a URL must not contain a user name or a password: omit the part before `@`".to_owned(),
            );
        }
        if let Some(port) = url.port().filter(|port| BAD_PORTS.contains(port)) {
            return refused(format!("port {port} is not for web pages"));
        }
        match url.host() {
            Some(Host::Ipv4(ip)) => self.address(&ip.to_string(), ip.into())?,
            Some(Host::Ipv6(ip)) => self.address(&ip.to_string(), ip.into())?,
            Some(Host::Domain(name)) => self.name(name)?,
            None => return refused("the URL names no host".to_owned()),
        }
        url.set_fragment(None);
        Ok(url)
    }

    fn name(&self, name: &str) -> Result<(), GuardError> {
        let name = name.trim_end_matches('.').to_lowercase();
        if self.host(&name) {
            return Ok(());
        }
        let inside =
            |end: &&str| name == **end || name.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
        if !name.contains('.') || INSIDE.iter().any(inside) {
            return Err(GuardError::Refused(format!(
                "{name} is a name of an internal network, not of the public internet: fetch a public URL instead"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(allowed: &[&str], text: &str) -> String {
        match AllowedTargets::new(allowed).read(text) {
            Ok(url) => url.to_string(),
            Err(error) => format!("Error: {error}"),
        }
    }

    #[test]
    fn only_plain_web_urls_are_accepted() {
        for (text, expect) in [
            ("https://example.com", "https://example.com/"),
            (" http://example.com:8080/a?b=c#d ", "http://example.com:8080/a?b=c"),
            ("https://bücher.example.com/", "https://xn--bcher-kva.example.com/"),
            ("example.com", "Error: this is not a complete URL: begin it with https://"),
            ("//example.com", "Error: this is not a complete URL: begin it with https://"),
            ("", "Error: this is not a complete URL: begin it with https://"),
            ("file:///etc/passwd", "Error: file URLs cannot be fetched: only http and https"),
            ("gopher://example.com/_x", "Error: gopher URLs cannot be fetched: only http and https"),
            ("data:text/html,x", "Error: data URLs cannot be fetched: only http and https"),
            (
                "https://example.com@127.0.0.1/",
                "Error: a URL must not contain a user name or a password: omit the part before `@`",
            ),
            ("http://example.com:25/", "Error: port 25 is not for web pages"),
            ("http://example.com:6379/", "Error: port 6379 is not for web pages"),
            ("https://example.com:443/", "https://example.com/"),
        ] {
            assert_eq!(verdict(&[], text), expect, "{text}");
        }
        assert_eq!(
            verdict(&[], &format!("https://example.com/{}", "x".repeat(MAX_URL_BYTES))),
            "Error: the URL is longer than 8 KiB"
        );
    }

    /// CVE-2026-26324 and similar: all spellings of an internal address.
    #[test]
    fn no_spelling_of_an_internal_address_is_accepted() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.０.０.１/",
            "http://127。0。0。1/",
            "http:\\\\127.0.0.1\\",
            "http:127.0.0.1",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://foo.localhost/",
            "http://metadata.google.internal/computeMetadata/v1/",
            "http://printer.local/",
            "http://router.home.arpa/",
            "http://postgres/",
            "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        ] {
            let said = verdict(&[], text);
            assert!(said.starts_with("Error: ") && said.contains("public internet"), "{text}: {said}");
        }
    }

    #[test]
    fn only_the_operators_exceptions_are_accepted() {
        let allowed = ["wiki.internal", "*.corp", "10.1.0.0/16", "fd00::1", "192.168.0.7"];
        for (text, expect) in [
            ("http://wiki.internal/", true),
            ("http://WIKI.internal./", true),
            ("http://other.internal/", false),
            ("http://wiki.internal.evil.example/", true),
            ("http://a.b.corp/", true),
            ("http://corp/", false),
            ("http://evilcorp/", false),
            ("http://10.1.2.3:8080/", true),
            ("http://10.2.0.1/", false),
            ("http://[fd00::1]/", true),
            ("http://[fd00::2]/", false),
            ("http://192.168.0.7/", true),
            ("http://192.168.0.8/", false),
            ("http://[::ffff:10.1.2.3]/", false),
        ] {
            assert_eq!(!verdict(&allowed, text).starts_with("Error"), expect, "{text}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics_and_no_internal_address_passes(text in "(http://)?[\\[\\]0-9a-fx:.%@/\\\\#?]{0,40}|.{0,60}") {
            if let Ok(url) = AllowedTargets::default().read(&text) {
                prop_assert!(matches!(url.scheme(), "http" | "https"));
                let address = match url.host().unwrap() {
                    Host::Ipv4(ip) => Some(IpAddr::from(ip)),
                    Host::Ipv6(ip) => Some(ip.into()),
                    Host::Domain(name) => name.parse().ok(),
                };
                prop_assert!(address.is_none_or(|address| address::closed(address).is_none()));
            }
        }
    }
}
