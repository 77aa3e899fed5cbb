//! Failed proofs that a post comes from a platform, or that the caller knows the token. A peer that fails too often is
//! refused or slowed down for a while.
//!
//! All clients behind a proxy connect from the proxy's address, so it has to name the client in `X-Forwarded-For`.
//! Otherwise failed posts are not counted, because one failing client would shut out the platform.

use axum::http::HeaderMap;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Number of failures within a minute that are tolerated as mistakes.
const MISTAKES: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of peers remembered. Failures of further ones are not counted until another is forgotten.
const MAX_TRACKED_PEERS: usize = 4096;

/// The recent failures.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, FailureCount>>);

#[derive(Clone, Copy, Debug)]
struct FailureCount {
    since: Instant,
    failures: u32,
}

impl Failures {
    /// Returns whether a peer has failed too often within the last minute.
    pub(crate) fn are_too_many(&self, peer: Option<IpAddr>, now: Instant) -> bool {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = peer.and_then(|peer| counts.get(&peer));
        count.is_some_and(|count| count.is_new(now) && count.failures >= MISTAKES)
    }

    /// Counts a failure.
    pub(crate) fn add(&self, peer: Option<IpAddr>, now: Instant) {
        let Some(peer) = peer else { return };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_TRACKED_PEERS {
            counts.retain(|_, count| count.is_new(now));
        }
        if counts.len() >= MAX_TRACKED_PEERS && !counts.contains_key(&peer) {
            return;
        }
        let count = counts.entry(peer).or_insert(FailureCount { since: now, failures: 0 });
        if !count.is_new(now) {
            *count = FailureCount { since: now, failures: 0 };
        }
        count.failures = count.failures.saturating_add(1);
    }
}

impl FailureCount {
    fn is_new(self, now: Instant) -> bool {
        now.duration_since(self.since) < MINUTE
    }
}

/// Returns the client; `None` behind a proxy that does not name it.
pub(crate) fn peer(connected: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
    let connected = connected.to_canonical();
    if !may_be_proxy(connected) {
        return Some(network(connected));
    }
    // Only the last entry was added by the proxy: earlier ones came with the request.
    let value = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let last = value.rsplit(',').next()?.trim();
    last.parse::<IpAddr>().ok().map(|peer| network(peer.to_canonical()))
}

/// Returns whether a peer may be a proxy: proxies run on this machine or in its own network.
pub(crate) fn may_be_proxy(peer: IpAddr) -> bool {
    match peer {
        IpAddr::V4(peer) => peer.is_loopback() || peer.is_private() || peer.is_link_local(),
        IpAddr::V6(peer) => peer.is_loopback() || peer.is_unique_local() || peer.is_unicast_link_local(),
    }
}

/// Returns the network that a peer's failures are counted for: the /64 for IPv6, because a client usually has all of
/// its addresses.
pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_too_often_is_refused_for_a_minute() {
        let (failures, start) = (Failures::default(), Instant::now());
        let (eve, other) = (Some([203, 0, 113, 7].into()), Some([203, 0, 113, 8].into()));
        for _ in 0..MISTAKES {
            assert!(!failures.are_too_many(eve, start));
            failures.add(eve, start);
            failures.add(None, start);
        }
        assert!(failures.are_too_many(eve, start + MINUTE / 2));
        assert!(!failures.are_too_many(other, start) && !failures.are_too_many(None, start));
        assert!(!failures.are_too_many(eve, start + MINUTE));
        failures.add(eve, start + MINUTE);
        assert!(!failures.are_too_many(eve, start + MINUTE), "counting starts again");
    }

    #[test]
    fn number_of_remembered_peers_is_limited() {
        let (failures, start) = (Failures::default(), Instant::now());
        let peer = |n: usize| Some(IpAddr::from(u32::try_from(n).unwrap().to_be_bytes()));
        for n in 0..MAX_TRACKED_PEERS + 10 {
            failures.add(peer(n), start);
        }
        assert_eq!(failures.0.lock().unwrap().len(), MAX_TRACKED_PEERS);
        failures.add(peer(MAX_TRACKED_PEERS + 10), start + MINUTE);
        assert_eq!(failures.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_proxy_names_its_client() {
        let check = |connected: &str, forwarded: Option<&str>, expect: Option<&str>| {
            let mut headers = HeaderMap::new();
            forwarded.map(|value| headers.insert("x-forwarded-for", value.parse().unwrap()));
            let expect: Option<IpAddr> = expect.map(|peer| peer.parse().unwrap());
            assert_eq!(peer(connected.parse().unwrap(), &headers), expect, "{connected} {forwarded:?}");
        };
        check("203.0.113.7", None, Some("203.0.113.7"));
        check("203.0.113.7", Some("198.51.100.1"), Some("203.0.113.7"));
        check("::ffff:203.0.113.7", None, Some("203.0.113.7"));
        check("127.0.0.1", None, None);
        check("127.0.0.1", Some("198.51.100.1, 203.0.113.7"), Some("203.0.113.7"));
        check("172.17.0.1", Some("203.0.113.7"), Some("203.0.113.7"));
        check("::1", Some("2001:db8:1:2:3:4:5:6"), Some("2001:db8:1:2::"));
        check("127.0.0.1", Some("unknown"), None);
    }
}
