//! Origin of a request: the client's address, and the site that the browser is on.
//!
//! For the client's address, forwarding headers count only if the operator trusts the proxy that sent them. For the
//! origin, they also count from proxies on this machine and its network, such as Next.js: no page of another site can
//! make a browser send such a header.

use crate::http::failures;
use axum::http::{HeaderMap, header};
use pudu_config::AuthConfig;
use std::net::IpAddr;

/// Returns the client's address, as far as it is known.
pub(super) fn client(config: &AuthConfig, connected: IpAddr, headers: &HeaderMap) -> IpAddr {
    let connected = connected.to_canonical();
    let trusted = |address: &IpAddr| config.trusted_proxies.iter().any(|network| network.contains(address));
    let client = trusted(&connected).then(|| real_ip(headers).or_else(|| forwarded_for(headers, trusted)));
    failures::network(client.flatten().unwrap_or(connected))
}

fn real_ip(headers: &HeaderMap) -> Option<IpAddr> {
    Some(text(headers, "x-real-ip")?.parse::<IpAddr>().ok()?.to_canonical())
}

/// Returns the last address that is not a trusted proxy: earlier ones came with the request and may be forged.
fn forwarded_for(headers: &HeaderMap, trusted: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let addresses = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    let mut addresses =
        addresses.map(|address| address.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical()));
    addresses.find(|address| address.is_none_or(|address| !trusted(&address))).flatten()
}

/// Returns whether the request comes from this machine, and is not forwarded by a proxy for another one.
pub(super) fn is_local_request(connected: IpAddr, headers: &HeaderMap) -> bool {
    let is_local =
        |address: &str| address.trim().parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    let addresses = ["x-forwarded-for", "x-real-ip"].iter().flat_map(|name| headers.get_all(*name));
    let all_local = addresses.flat_map(|line| line.to_str().unwrap_or("?").split(',')).all(is_local);
    let host = text(headers, "x-forwarded-host");
    connected.to_canonical().is_loopback()
        && all_local
        && !headers.contains_key("forwarded")
        && host.is_none_or(is_local_host)
}

/// Returns whether the browser used HTTPS, according to a proxy in front of the gateway.
pub(crate) fn is_https(headers: &HeaderMap) -> bool {
    let proto = text(headers, "x-forwarded-proto").map(|proto| first(proto).to_lowercase());
    forwarded(headers, "proto").or(proto).is_some_and(|proto| proto == "https")
}

/// Returns whether the browser and the gateway are on the same machine.
pub(super) fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let proxied = text(headers, "x-forwarded-host").map(first);
    host.is_some_and(is_local_host) && proxied.is_none_or(is_local_host)
}

/// Returns the host and port that the browser used, according to a proxy.
pub(crate) fn forwarded_host(headers: &HeaderMap) -> Option<String> {
    let proxied = text(headers, "x-forwarded-host").map(|host| first(host).to_owned());
    let host = forwarded(headers, "host").or(proxied)?;
    let port = text(headers, "x-forwarded-port").map(first);
    let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
    Some(match port.filter(|_| !has_port) {
        Some(port) if !matches!(port, "80" | "443") => format!("{host}:{port}"),
        _ => host,
    })
}

/// Returns whether a host, with or without a port, is a local name of this machine that is not resolved by DNS.
pub(crate) fn is_local_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns a part of the first entry of `Forwarded`, in lower case.
fn forwarded(headers: &HeaderMap, part: &str) -> Option<String> {
    let mut parts = first(text(headers, "forwarded")?).split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case(part))?;
    Some(value.trim().trim_matches('"').to_lowercase()).filter(|value| !value.is_empty())
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

fn first(list: &str) -> &str {
    list.split(',').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_a_trusted_proxy_can_name_its_client() {
        let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let config = AuthConfig { trusted_proxies, ..AuthConfig::default() };
        let check = |connected: &str, pairs: &[(&'static str, &str)], expected: &str| {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(client(&config, connected.parse().unwrap(), &headers(pairs)), expected, "{pairs:?}");
        };
        let (real, forwarded) = ("x-real-ip", "x-forwarded-for");
        check("203.0.113.7", &[], "203.0.113.7");
        check("203.0.113.7", &[(real, "198.51.100.1"), (forwarded, "198.51.100.1")], "203.0.113.7");
        check("127.0.0.1", &[(real, "198.51.100.1")], "127.0.0.1");
        check("10.1.1.1", &[(real, "198.51.100.1")], "198.51.100.1");
        check("::ffff:10.1.1.1", &[(real, "198.51.100.1")], "198.51.100.1");
        check("10.1.1.1", &[(forwarded, "192.0.2.9, 198.51.100.1")], "198.51.100.1");
        check("10.1.1.1", &[(forwarded, "192.0.2.9, 198.51.100.1, 10.2.2.2")], "198.51.100.1");
        check("10.1.1.1", &[(forwarded, "192.0.2.9, unknown")], "10.1.1.1");
        check("10.1.1.1", &[], "10.1.1.1");
        check("::1", &[(real, "2001:db8:1:2:3:4:5:6")], "2001:db8:1:2::");
    }

    #[test]
    fn proxied_requests_are_remote_unless_all_addresses_are_local() {
        let check = |connected: &str, pairs: &[(&'static str, &str)], expected: bool| {
            let is_local = is_local_request(connected.parse().unwrap(), &headers(pairs));
            assert_eq!(is_local, expected, "{connected} {pairs:?}");
        };
        check("127.0.0.1", &[], true);
        check("::1", &[("x-forwarded-for", "::1, 127.0.0.1"), ("x-forwarded-host", "localhost:3000")], true);
        check("127.0.0.1", &[("x-forwarded-for", "203.0.113.7")], false);
        check("127.0.0.1", &[("x-forwarded-for", "127.0.0.1, 203.0.113.7")], false);
        check("127.0.0.1", &[("x-real-ip", "unknown")], false);
        check("127.0.0.1", &[("x-forwarded-host", "pudu.example")], false);
        check("127.0.0.1", &[("forwarded", "for=127.0.0.1")], false);
        check("10.0.0.1", &[], false);
    }

    #[test]
    fn the_browsers_host_is_read_from_the_headers_of_proxies() {
        let check = |pairs: &[(&'static str, &str)], expected: Option<&str>| {
            assert_eq!(forwarded_host(&headers(pairs)).as_deref(), expected, "{pairs:?}");
        };
        check(&[], None);
        check(&[("x-forwarded-host", "app.example, other")], Some("app.example"));
        check(&[("forwarded", "proto=https;Host=\"App.example\"")], Some("app.example"));
        check(&[("x-forwarded-host", "app.example"), ("x-forwarded-port", "8443")], Some("app.example:8443"));
        check(&[("x-forwarded-host", "app.example:1"), ("x-forwarded-port", "8443")], Some("app.example:1"));
        assert!(is_https(&headers(&[("x-forwarded-proto", "https, http")])) && !is_https(&headers(&[])));
        assert!(
            is_local(&headers(&[("host", "[::1]:8001")])) && is_local(&headers(&[("host", "a.localhost:1")]))
        );
        assert!(!is_local(&headers(&[("host", "127.0.0.1:8001"), ("x-forwarded-host", "app.example")])));
    }
}
