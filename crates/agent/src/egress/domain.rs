//! Domains that a sandbox may reach: a name, or `*.` followed by a name for all of its subdomains. Any port other than
//! 80 and 443 must be given.

use std::fmt;

/// Ports that are allowed by default.
const USUAL: [u16; 2] = [80, 443];

/// A domain, or all subdomains of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    name: String,
    below: bool,
    port: Option<u16>,
}

impl Domain {
    /// Parses `example.org`, `*.example.org` or `example.org:8443`.
    ///
    /// # Errors
    /// If the text is not a domain. The error describes the expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a domain: write example.org, *.example.org or example.org:8443, without http://"
            )
        };
        let lower = text.trim().to_ascii_lowercase();
        let (name, port) = match lower.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| wrong())?)),
            None => (lower.as_str(), None),
        };
        let (below, name) = name.strip_prefix("*.").map_or((false, name), |name| (true, name));
        let name = name.trim_end_matches('.');
        let label = |label: &str| {
            let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
            !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
        };
        // A name whose last label is a number is an IP address.
        let address = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|c| c.is_ascii_digit()));
        let is_name = name.contains('.') && name.len() <= 253 && name.split('.').all(label) && !address;
        if is_name { Ok(Self { name: name.to_owned(), below, port }) } else { Err(wrong()) }
    }

    /// Returns whether a host, in lower case, may be reached at a port.
    pub(super) fn admits(&self, host: &str, port: u16) -> bool {
        let port_fits = self.port.map_or(USUAL.contains(&port), |own| own == port);
        let name_fits = match self.below {
            true => host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.name,
        };
        port_fits && name_fits
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stars = if self.below { "*." } else { "" };
        write!(f, "{stars}{}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_admits_itself_or_its_subdomains_and_no_lookalikes() {
        let check = |domain: &str, host: &str, port| Domain::parse(domain).unwrap().admits(host, port);
        for (domain, host, port, expect) in [
            ("example.org", "example.org", 443, true),
            ("Example.ORG.", "example.org", 80, true),
            ("example.org", "example.org", 22, false),
            ("example.org", "www.example.org", 443, false),
            ("example.org", "badexample.org", 443, false),
            ("example.org", "example.org.evil.net", 443, false),
            ("*.example.org", "www.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*.example.org", "badexample.org", 443, false),
            ("example.org:8443", "example.org", 8443, true),
            ("example.org:8443", "example.org", 443, false),
        ] {
            assert_eq!(check(domain, host, port), expect, "{domain} {host}:{port}");
        }
    }

    #[test]
    fn invalid_domains_are_refused() {
        for text in [
            "",
            "*",
            "*.",
            "org",
            "http://example.org",
            "example.org/path",
            "a..b",
            "10.0.0.1",
            "[::1]",
            "::1",
            "localhost",
            "a b.org",
            "*.*.org",
            "a*.org",
            "example.org:",
            "example.org:99999",
            "example.org:http",
            "ex\u{e4}mple.org",
            &"a.".repeat(200),
        ] {
            assert!(Domain::parse(text).unwrap_err().contains("is not a domain"), "{text}");
        }
        assert_eq!(Domain::parse(" *.Example.org:8443 ").unwrap().to_string(), "*.example.org:8443");
    }
}
