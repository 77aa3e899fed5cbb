//! Allows only addresses of the public internet.
//!
//! IPv4 excludes the ranges that IANA reserves; IPv6 includes only IANA's global unicast ranges without their
//! exceptions. IPv6 addresses with an embedded IPv4 address are refused, because public sites do not use them. The
//! exception is NAT64, which IPv6-only networks use for every site: its embedded address is checked.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// IPv4 networks outside of the public internet, from IANA's registry of special-purpose addresses.
const CLOSED_V4: &[(Ipv4Net, &str)] = &[
    (v4(0, 0, 0, 0, 8), "this host"),
    (v4(10, 0, 0, 0, 8), "a private network"),
    (v4(100, 64, 0, 0, 10), "a carrier's network"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(168, 63, 129, 16, 32), "a cloud's own service"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "a private network"),
    (v4(192, 0, 0, 0, 24), "reserved"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 88, 99, 0, 24), "a 6to4 relay"),
    (v4(192, 168, 0, 0, 16), "a private network"),
    (v4(198, 18, 0, 0, 15), "benchmarks"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
];

const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// IPv6 networks outside of the public internet despite their prefix.
const CLOSED_V6: &[(Ipv6Net, &str)] = &[
    (v6(0x2001, 0, 0, 32), "Teredo"),
    (v6(0x2001, 0, 0, 23), "reserved"),
    (v6(0x2001, 0xdb8, 0, 32), "documentation"),
    (v6(0x2002, 0, 0, 16), "6to4"),
    (v6(0x3fff, 0, 0, 20), "documentation"),
];

/// Names of networks outside of [`GLOBAL_V6`]; the first match wins.
const OUTSIDE_V6: &[(Ipv6Net, &str)] = &[
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), "loopback"),
    (Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96), "IPv4 in IPv6"),
    (v6(0, 0, 0, 96), "IPv4 in IPv6"),
    (v6(0xfc00, 0, 0, 7), "a private network"),
    (v6(0xfe80, 0, 0, 10), "link-local"),
    (v6(0xff00, 0, 0, 8), "multicast"),
];

/// Returns a description of an address that is not on the public internet.
#[must_use]
pub fn closed(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => closed_v4(address),
        IpAddr::V6(address) => closed_v6(address),
    }
}

fn closed_v4(address: Ipv4Addr) -> Option<&'static str> {
    CLOSED_V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, what)| *what)
}

fn closed_v6(address: Ipv6Addr) -> Option<&'static str> {
    let label =
        |nets: &[(Ipv6Net, &'static str)]| Some(nets.iter().find(|(net, _)| net.contains(&address))?.1);
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return closed_v4(Ipv4Addr::new(a, b, c, d));
    }
    if !GLOBAL_V6.contains(&address) {
        return label(OUTSIDE_V6).or(Some("reserved"));
    }
    label(CLOSED_V6).or_else(|| isatap(address).then_some("ISATAP"))
}

/// Returns whether an address is ISATAP: its second half is `0000:5efe` or `0200:5efe` and an IPv4 address.
fn isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, mark, efe, _, _] = address.segments();
    matches!(mark, 0 | 0x200) && efe == 0x5efe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_public_addresses_are_allowed() {
        for (address, expect) in [
            ("1.1.1.1", None),
            ("93.184.215.14", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("100.63.255.255", None),
            ("100.128.0.0", None),
            ("223.255.255.255", None),
            ("0.0.0.0", Some("this host")),
            ("0.1.2.3", Some("this host")),
            ("10.0.0.1", Some("a private network")),
            // The range includes Alibaba's metadata service.
            ("100.100.100.200", Some("a carrier's network")),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("168.63.129.16", Some("a cloud's own service")),
            ("169.254.169.254", Some("link-local")),
            ("172.16.0.1", Some("a private network")),
            ("172.31.255.255", Some("a private network")),
            ("192.0.0.192", Some("reserved")),
            ("192.0.2.1", Some("documentation")),
            ("192.88.99.1", Some("a 6to4 relay")),
            ("192.168.1.1", Some("a private network")),
            ("198.19.255.255", Some("benchmarks")),
            ("198.51.100.7", Some("documentation")),
            ("203.0.113.7", Some("documentation")),
            ("224.0.0.251", Some("multicast")),
            ("240.0.0.1", Some("reserved")),
            ("255.255.255.255", Some("reserved")),
            ("2606:4700:4700::1111", None),
            ("2a00:1450:4001:80e::200e", None),
            ("::", Some("IPv4 in IPv6")),
            ("::1", Some("loopback")),
            ("100::1", Some("reserved")),
            ("2001:2::1", Some("reserved")),
            ("2001:10::1", Some("reserved")),
            ("2001:db8::1", Some("documentation")),
            ("3fff::1", Some("documentation")),
            ("4000::1", Some("reserved")),
            ("5f00::1", Some("reserved")),
            ("fc00::1", Some("a private network")),
            // Amazon's metadata service over IPv6.
            ("fd00:ec2::254", Some("a private network")),
            ("fe80::1", Some("link-local")),
            ("fec0::1", Some("reserved")),
            ("ff02::1", Some("multicast")),
        ] {
            assert_eq!(closed(address.parse().unwrap()), expect, "{address}");
        }
    }

    /// CVE-2026-26324, zeptoclaw PR#105, bashkit#1569: an IPv4 address in an IPv6 form.
    #[test]
    fn no_form_of_ipv6_hides_a_forbidden_address() {
        for (address, expect) in [
            ("::ffff:127.0.0.1", Some("IPv4 in IPv6")),
            ("::ffff:169.254.169.254", Some("IPv4 in IPv6")),
            ("::ffff:8.8.8.8", Some("IPv4 in IPv6")),
            ("::127.0.0.1", Some("IPv4 in IPv6")),
            ("::ffff:0:127.0.0.1", Some("reserved")),
            ("64:ff9b::127.0.0.1", Some("loopback")),
            ("64:ff9b::10.0.0.1", Some("a private network")),
            ("64:ff9b::169.254.169.254", Some("link-local")),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b:1::8.8.8.8", Some("reserved")),
            ("2002:7f00:1::", Some("6to4")),
            ("2002:0808:0808::1", Some("6to4")),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some("Teredo")),
            ("2a00::5efe:10.0.0.1", Some("ISATAP")),
            ("2a00::200:5efe:127.0.0.1", Some("ISATAP")),
            ("fe80::5efe:127.0.0.1", Some("link-local")),
        ] {
            assert_eq!(closed(address.parse().unwrap()), expect, "{address}");
        }
    }

    proptest! {
        /// Every address that the standard library classifies as non-public is refused here.
        #[test]
        fn addresses_that_the_standard_library_calls_private_are_refused(bits in any::<u32>(), wide in any::<u128>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            let odd = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast()
                || v4.is_documentation() || v4.is_unspecified() || v4.is_multicast();
            prop_assert!(!odd || closed(v4.into()).is_some());
            let v6 = Ipv6Addr::from_bits(wide);
            let odd = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || v6.is_unique_local()
                || v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some();
            prop_assert!(!odd || closed(v6.into()).is_some());
            prop_assert!(closed(v4.to_ipv6_mapped().into()).is_some());
        }
    }
}
