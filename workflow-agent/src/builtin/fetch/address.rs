//! Which addresses are public. It knows no names and no exceptions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address belongs to the public internet. In doubt it does not.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The networks of IANA's registry of special addresses, and one host, each with the length of its prefix.
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    // This network, private, shared, loopback, link-local.
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Protocol assignments, relays of 6to4, benchmarks, documentation.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved with broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // The host of a virtual machine on Azure, which answers to nobody else.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within =
        |(network, length): &(Ipv4Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (32 - length) == 0;
    !SPECIAL_V4.iter().any(within)
}

/// Global unicast without its special parts, and addresses of IPv4 in the forms that lead there.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Mapped, and NAT64 with the common prefix.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(embedded(high, low))
        }
        // Teredo and other protocol assignments, documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Tunnels within a site (ISATAP).
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] if !is_public_v4(embedded(high, low)) => false,
        // Everything else: unspecified, loopback, compatible, local NAT64, unique local, link-local, multicast, unassigned.
        [first, ..] => matches!(first, 0x2000..=0x3fff),
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::is_public;

    /// A90
    #[test]
    fn special_addresses_are_not_public_in_any_form() {
        let special = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1 \
            127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 \
            198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 \
            168.63.129.16 \
            :: ::1 ::127.0.0.1 ::10.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 \
            ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::8.8.8.8 2002:7f00:1:: 2002:a00:1::1 \
            2002:808:808::1 2001::1 2001:0:a00:1::f5ff:fffe 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1 2001:db8::1 \
            3fff::1 2620:0:1:1:0:5efe:a00:1 2620:0:1:1:200:5efe:7f00:1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1 \
            100::1 5f00::1 4000::1 1000::1";
        for address in special.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    /// A90
    #[test]
    fn neighbours_of_special_addresses_are_public() {
        let public = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
            169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 \
            198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:200::1 2001:4860:4860::8888 \
            2606:4700::1111 2a00:1450::1 3ffe::1 2001:db7::1 2001:db9::1 2620:0:1:1:0:5efe:808:808";
        for address in public.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
